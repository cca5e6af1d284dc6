"""Popular and less popular items, and how much of each every user chose so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from limelight._errors import DataError
from limelight.data.grouping import row_numbers
from limelight.data.interactions import Interactions, as_interactions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from limelight._arrays import Float64, Int64


def item_counts(popularity: ArrayLike | Interactions) -> Float64:
    """Return how popular every item is: numbers as they are, interactions counted.

    Examples
    --------
    >>> item_counts(sparse.csr_matrix([[1, 1, 0], [0, 1, 0]]))
    array([1., 2., 0.])
    """
    if isinstance(popularity, Interactions) or sparse.issparse(popularity):
        data = as_interactions(popularity)
        counts = np.bincount(data.indices, minlength=data.n_items)
    else:
        counts = np.asarray(popularity)
    if counts.ndim != 1 or counts.dtype.kind not in "iuf":
        message = f"popularity must be one number an item, got {counts.dtype}{counts.shape}"
        raise DataError(message, hint="pass counts by item number, or the interactions to count")
    unfit = counts[~((counts >= 0) & np.isfinite(counts))]
    if len(unfit) or not counts.any():
        found = unfit[0] if len(unfit) else "no item has any"
        message = f"popularity must be finite numbers from 0 up, some above 0: {found}"
        raise DataError(message, hint="pass how many interactions every item has")
    return counts.astype(np.float64)


def popularity_bins(counts: Float64, cuts: Sequence[float]) -> Int64:
    """Part the items, the most popular first: 0 is the head, the last bin is the tail.

    The first bin takes items until it holds at least the first cut's share of all interactions,
    and so on. Equally popular items go by number.

    Parameters
    ----------
    counts
        How many interactions every item has.
    cuts
        Where bins end: shares of all interactions, ascending.

    Examples
    --------
    >>> popularity_bins(np.array([1.0, 6.0, 2.0, 1.0]), [0.5, 0.8])
    array([2, 0, 1, 2])
    """
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    # A cut is meant as written: three tenths, and not the nearest binary number.
    edges = np.asarray(cuts) * counts.sum() * (1 - 1e-12)
    bins = np.empty(len(counts), dtype=np.int64)
    bins[order] = np.searchsorted(edges, before, side="right")
    return bins


def bin_shares(counts: Float64, bins: Int64, n_bins: int) -> Float64:
    """Return the share of all interactions that every bin holds.

    Examples
    --------
    >>> bin_shares(np.array([6.0, 3.0, 1.0]), np.array([0, 1, 1]), 2)
    array([0.6, 0.4])
    """
    return np.asarray(np.bincount(bins, weights=counts, minlength=n_bins) / counts.sum())


def user_tastes(histories: Any, bins: Int64, shares: Float64) -> Float64:
    """Return the share of every bin in each user's history, users x bins.

    Parameters
    ----------
    histories
        Users x items, a sparse matrix or interactions.
    bins
        The bin of every item.
    shares
        What a user without a history is taken to like.

    Examples
    --------
    >>> histories = sparse.csr_matrix([[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]])
    >>> user_tastes(histories, np.array([0, 1, 1, 1]), np.array([0.8, 0.2]))
    array([[0.25, 0.75],
           [1.  , 0.  ],
           [0.8 , 0.2 ]])
    """
    data = as_interactions(histories)
    if data.n_items != len(bins):
        message = f"profiles have {data.n_items:,} columns, popularity has {len(bins):,} items"
        raise DataError(message, hint="use the same item numbering in both")
    cells = row_numbers(data.indptr).astype(np.int64) * len(shares) + bins[data.indices]
    counts = np.bincount(cells, minlength=data.n_users * len(shares))
    counts = counts.reshape(data.n_users, len(shares))
    totals = counts.sum(axis=1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1), shares)
