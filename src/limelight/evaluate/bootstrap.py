"""Confidence intervals for means over users, by resampling the users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight.evaluate.lists import FloatArray

_DRAWN_AT_ONCE = 1 << 14
"""Users in all resamples that are drawn together."""


def bootstrap_interval(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Give the percentile bootstrap interval of the mean of each column.

    Users are drawn with replacement and keep their row, so all columns see the same users.
    Rows are sorted first: the interval depends on the values, not on the order in which the
    users came in. Memory is one resample at a time, or several of few users.

    Parameters
    ----------
    values
        Users x metrics, without nan.
    level
        Share of the resampled means that lie inside the interval.
    resamples
        How many times to draw.
    seed
        Seed of the draws.

    Returns
    -------
    low, high
        One bound per column.

    Examples
    --------
    >>> low, high = bootstrap_interval([[0.0], [1.0], [1.0], [0.0]] * 25)
    >>> bool(0.35 < low[0] < 0.5 < high[0] < 0.65)
    True
    """
    rows = np.asarray(values, dtype=np.float64)
    columns = np.ascontiguousarray(rows[np.lexsort(rows.T)].T)
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, len(columns)))
    at_once = max(1, _DRAWN_AT_ONCE // len(rows))
    for some in np.split(means, range(at_once, resamples, at_once)):
        # The same draws and the same means, bit by bit, as one resample after the other.
        drawn = generator.integers(0, len(rows), size=(len(some), len(rows)))
        some[:] = np.stack([column[drawn].mean(axis=1) for column in columns], axis=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high
