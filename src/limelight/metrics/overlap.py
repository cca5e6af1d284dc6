"""What re-ranking changed: how alike two lists of a user are, and from how far down items came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError, DataError
from limelight.metrics.lists import check_cutoff, check_lists, mean_over_users

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limelight.metrics.lists import FloatArray, IntArray

_CELLS = 1 << 24
"""How many pairs of places are compared at once."""


@overload
def rank_biased_overlap(
    first: ArrayLike,
    second: ArrayLike,
    k: int | None = None,
    *,
    persistence: float = 0.9,
    per_user: Literal[False] = False,
) -> float: ...


@overload
def rank_biased_overlap(
    first: ArrayLike,
    second: ArrayLike,
    k: int | None = None,
    *,
    persistence: float = 0.9,
    per_user: Literal[True],
) -> FloatArray: ...


def rank_biased_overlap(
    first: ArrayLike,
    second: ArrayLike,
    k: int | None = None,
    *,
    persistence: float = 0.9,
    per_user: bool = False,
) -> float | FloatArray:
    """Measure how alike two lists are, RBO in its extrapolated form (Webber et al. 2010).

    X_d is how many items the first d places of both lists share, s the length of the shorter list,
    l that of the longer one and p the persistence:

        RBO_EXT = (1 - p)/p [ sum_{d=1..l} X_d/d p^d  +  sum_{d=s+1..l} X_s (d - s)/(s d) p^d ]
                  + [ (X_l - X_s)/l + X_s/s ] p^l

    It takes the lists to go on as they were: 1 if they are the same, 0 if they share nothing. It is
    the extrapolated form, not the lower bound RBO_MIN, which depends on the length of the lists.

    Parameters
    ----------
    first, second
        Lists x places, item numbers, best first, padded with -1. They may differ in width.
    k
        Look at the first k places of both; by default at all.
    persistence
        The chance p that a reader goes on to the next place, above 0 and below 1.
    per_user
        Return one value per row, nan where both lists are empty; 0 where one is.

    Examples
    --------
    >>> round(rank_biased_overlap([[0, 1, 2]], [[1, 0, 2]]), 3)
    0.9
    >>> rank_biased_overlap([[0, 1], [0, 1]], [[0, 1], [2, 3]], per_user=True)
    array([1., 0.])
    """
    if not (isinstance(persistence, float) and 0 < persistence < 1):
        message = f"persistence must be above 0 and below 1, got {persistence!r}"
        raise ConfigError(message, hint="0.9 gives the first ten places 86 % of the weight")
    one, other = _pair(first, second, k)
    values = np.empty(len(one))
    for rows in batches(len(one), max(1, _CELLS // max(1, one.shape[1] * other.shape[1]))):
        values[rows] = _extrapolated(one[rows], other[rows], persistence)
    return values if per_user else mean_over_users(values)


@overload
def least_item_promoted(
    before: ArrayLike,
    after: ArrayLike,
    k: int | None = None,
    *,
    per_user: Literal[False] = False,
) -> float: ...


@overload
def least_item_promoted(
    before: ArrayLike, after: ArrayLike, k: int | None = None, *, per_user: Literal[True]
) -> FloatArray: ...


def least_item_promoted(
    before: ArrayLike, after: ArrayLike, k: int | None = None, *, per_user: bool = False
) -> float | FloatArray:
    """Measure from how far below place k the lowest item of a re-ranked list came, LIP.

    With r_i the rank, from 1, of item i in the ranking before,

        LIP = max(0, max_{i in the first k after} r_i - k)

    It is 0 if the first k hold the same items as before. Items that the ranking before does not
    have are left out. The definition is LensKit's; no paper that defines it was found. LensKit
    counts one place less where an item was promoted.

    Parameters
    ----------
    before
        Lists x places, item numbers, best first, padded with -1: longer than k, or nothing can have
        come from below.
    after
        The re-ranked lists of the same users.
    k
        Look at the first k places after; by default at all.
    per_user
        Return one value per row, nan where either list is empty.

    Examples
    --------
    >>> least_item_promoted([[4, 3, 2, 1, 0]], [[4, 1]])
    2.0
    """
    ranked, lists = _pair(before, after)
    depth = check_cutoff(k, lists.shape[1])
    lists = lists[:, :depth]
    values = np.empty(len(lists))
    for rows in batches(len(lists), max(1, _CELLS // max(1, ranked.shape[1] * depth))):
        same = _same(ranked[rows], lists[rows]).any(axis=2)
        lowest = (same * np.arange(1, ranked.shape[1] + 1)).max(axis=1, initial=0)
        values[rows] = np.maximum(lowest - depth, 0)
    is_empty = ~((ranked >= 0).any(axis=1) & (lists >= 0).any(axis=1))
    values = np.where(is_empty, np.nan, values)
    return values if per_user else mean_over_users(values)


def _pair(first: ArrayLike, second: ArrayLike, k: int | None = None) -> tuple[IntArray, IntArray]:
    """Check two lists of each user; with k, cut both."""
    lists = [np.asarray(given) for given in (first, second)]
    largest = max(
        (int(given.max(initial=0)) for given in lists if given.dtype.kind in "iu"), default=0
    )
    one, other = (check_lists(given, largest + 1) for given in lists)
    if len(one) != len(other):
        message = f"lists of {len(one):,} users and of {len(other):,} cannot be compared"
        raise DataError(message, hint="pass the lists of the same users, in the same order")
    if k is not None:
        one, other = (
            given[:, : check_cutoff(k, max(one.shape[1], other.shape[1]))] for given in (one, other)
        )
    return one, other


def _same(one: IntArray, other: IntArray) -> NDArray[np.bool_]:
    """Tell for each place of one list and each of the other whether they show the same item."""
    same = (one[:, :, np.newaxis] == other[:, np.newaxis, :]) & (one >= 0)[:, :, np.newaxis]
    return np.asarray(same, dtype=np.bool_)


def _extrapolated(one: IntArray, other: IntArray, p: float) -> FloatArray:
    """Give RBO_EXT of each row."""
    deepest = max(one.shape[1], other.shape[1])
    # An item is shared from the depth on at which both lists have shown it.
    rows, i, j = np.nonzero(_same(one, other))
    shared = np.zeros((len(one), deepest + 1))
    np.add.at(shared, (rows, np.maximum(i, j) + 1), 1.0)
    shared = shared.cumsum(axis=1)
    lengths = [(lists >= 0).sum(axis=1) for lists in (one, other)]
    s, l = np.minimum(*lengths), np.maximum(*lengths)
    x_s, x_l = (np.take_along_axis(shared, n[:, np.newaxis], axis=1)[:, 0] for n in (s, l))
    share = x_s / np.maximum(s, 1)
    d = np.arange(1, deepest + 1)
    beyond = np.maximum(d - s[:, np.newaxis], 0)
    agreement = (shared[:, 1:] + beyond * share[:, np.newaxis]) / d
    weights = np.where(d <= l[:, np.newaxis], (1 - p) * np.power(p, d - 1.0), 0.0)
    tail = ((x_l - x_s) / np.maximum(l, 1) + share) * np.power(p, l)
    return np.where(l == 0, np.nan, (weights * agreement).sum(axis=1) + np.where(s == 0, 0, tail))
