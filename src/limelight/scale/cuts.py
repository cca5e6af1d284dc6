"""Where to cut rows into shards: at equal work, not at equal numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._arrays import Int64

MOST_SHARDS = 2**16
"""Interactions are sorted by shard while they are read, which short numbers do fastest."""
_ROW = 32
"""What a row costs beside its interactions, in interactions: it is solved for, or at least kept."""


def cut(work: NDArray[Any], n_runs: int) -> Int64:
    """Cut rows into runs of about equal work, each of them perhaps empty.

    Parameters
    ----------
    work
        Of each row, from 0 up.
    n_runs
        How many runs.

    Returns
    -------
    int64[n_runs + 1]
        The first row of each run, and the number of rows.

    Examples
    --------
    >>> cut(np.array([1, 1, 1, 1, 8]), 3)
    array([0, 4, 5, 5])
    """
    done = np.concatenate([[0.0], np.cumsum(work, dtype=np.float64)])
    goals = done[-1] * np.arange(n_runs + 1) / n_runs
    after = np.searchsorted(done, goals).clip(max=len(work))
    before = (after - 1).clip(min=0)
    is_nearer = goals - done[before] < done[after] - goals
    bounds: Int64 = np.where(is_nearer, before, after).astype(np.int64)
    bounds[0], bounds[-1] = 0, len(work)
    return bounds


def cut_rows(counts: NDArray[Any], n_shards: int) -> Int64:
    """Cut users or items into shards by the interactions of each.

    Examples
    --------
    >>> cut_rows(np.array([1000, 1, 1, 1000]), 2)
    array([0, 2, 4])
    """
    return cut(counts.astype(np.int64) + _ROW, n_shards)
