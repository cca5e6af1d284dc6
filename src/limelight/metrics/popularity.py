"""How popular the items of lists are: ARP, APLT and ACLT, which papers on popularity bias report.

Popularity phi_j is the number of interactions of item j in the training data. The long tail is what
is left of the catalogue without the most popular items that hold 80 % of all interactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import scipy  # loads its packages when they are used

from limelight._base.errors import ConfigError, DataError
from limelight.data.interactions import Interactions, as_interactions
from limelight.metrics.lists import check_lists, mean_over_users

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from limelight._base.arrays import Float64, Int64
    from limelight.metrics.lists import FloatArray, IntArray


def item_counts(popularity: ArrayLike | Interactions) -> Float64:
    """Return how popular every item is: numbers as they are, interactions counted.

    Examples
    --------
    >>> item_counts(scipy.sparse.csr_matrix([[1, 1, 0], [0, 1, 0]]))
    array([1., 2., 0.])
    """
    if isinstance(popularity, Interactions) or scipy.sparse.issparse(popularity):
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
    and so on; cuts ascend. Equally popular items go by number.

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


def long_tail(popularity: ArrayLike | Interactions, head: float = 0.8) -> NDArray[np.bool_]:
    """Tell which items are in the long tail.

    The head takes items, the most popular first, until it holds at least ``head`` of all
    interactions; the tail is the rest. Equally popular items go by number.

    Parameters
    ----------
    popularity
        How many interactions every item has, or the training data to count them in.
    head
        Which share of all interactions the head holds, above 0 and below 1.

    Examples
    --------
    >>> long_tail([6, 1, 2, 1])
    array([False,  True, False,  True])
    """
    if not 0 < head < 1:
        message = f"head must be above 0 and below 1, got {head!r}"
        raise ConfigError(message, hint="0.8 ends the head at 80 % of all interactions")
    return np.asarray(popularity_bins(item_counts(popularity), [head]) == 1, dtype=np.bool_)


@overload
def arp(
    ids: ArrayLike,
    popularity: ArrayLike | Interactions,
    k: int | None = None,
    *,
    per_user: Literal[False] = False,
) -> float: ...


@overload
def arp(
    ids: ArrayLike,
    popularity: ArrayLike | Interactions,
    k: int | None = None,
    *,
    per_user: Literal[True],
) -> FloatArray: ...


def arp(
    ids: ArrayLike,
    popularity: ArrayLike | Interactions,
    k: int | None = None,
    *,
    per_user: bool = False,
) -> float | FloatArray:
    """Measure the average recommendation popularity, ARP (Yin et al. 2012).

    With L_u the list of user u and phi_i the popularity of item i,

        ARP = 1/|U| sum_u 1/|L_u| sum_{i in L_u} phi_i

    Lower is less popular. Users without a list are left out.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    popularity
        How many interactions every item has, or the training data to count them in.
    k
        Look at the first k places only; by default at all.
    per_user
        Return one value per user, nan for a user without a list.

    Examples
    --------
    >>> arp([[0, 1], [2, -1]], popularity=[10, 4, 1])
    4.0
    """
    counts = item_counts(popularity)
    return _told(mean_shown(check_lists(ids, len(counts), k), counts), per_user=per_user)


@overload
def aplt(
    ids: ArrayLike, tail: ArrayLike, k: int | None = None, *, per_user: Literal[False] = False
) -> float: ...


@overload
def aplt(
    ids: ArrayLike, tail: ArrayLike, k: int | None = None, *, per_user: Literal[True]
) -> FloatArray: ...


def aplt(
    ids: ArrayLike, tail: ArrayLike, k: int | None = None, *, per_user: bool = False
) -> float | FloatArray:
    """Measure the average percentage of long-tail items, APLT (Abdollahpouri et al. 2019).

    With L_u the list of user u and Gamma the long tail,

        APLT = 1/|U| sum_u |L_u and Gamma| / |L_u|

    It is a share from 0 to 1. Users without a list are left out.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    tail
        Whether each item is in the long tail, as :func:`long_tail` says it.
    k
        Look at the first k places only; by default at all.
    per_user
        Return one value per user, nan for a user without a list.

    Examples
    --------
    >>> aplt([[0, 1], [2, -1]], tail=long_tail([8, 1, 1]))
    0.75
    """
    is_tail = _checked_tail(tail)
    return _told(mean_shown(check_lists(ids, len(is_tail), k), is_tail), per_user=per_user)


@overload
def aclt(
    ids: ArrayLike, tail: ArrayLike, k: int | None = None, *, per_user: Literal[False] = False
) -> float: ...


@overload
def aclt(
    ids: ArrayLike, tail: ArrayLike, k: int | None = None, *, per_user: Literal[True]
) -> FloatArray: ...


def aclt(
    ids: ArrayLike, tail: ArrayLike, k: int | None = None, *, per_user: bool = False
) -> float | FloatArray:
    """Measure the average coverage of long-tail items, ACLT (Abdollahpouri et al. 2019).

    With L_u the list of user u and Gamma the long tail,

        ACLT = 1/|U| sum_u sum_{i in L_u} 1(i in Gamma)

    It is how many long-tail items a list shows, from 0 to k. Users without a list are left out.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    tail
        Whether each item is in the long tail, as :func:`long_tail` says it.
    k
        Look at the first k places only; by default at all.
    per_user
        Return one value per user, nan for a user without a list.

    Examples
    --------
    >>> aclt([[0, 1], [2, -1]], tail=long_tail([8, 1, 1]))
    1.0
    """
    is_tail = _checked_tail(tail)
    return _told(sum_shown(check_lists(ids, len(is_tail), k), is_tail), per_user=per_user)


def sum_shown(lists: IntArray, amounts: NDArray[Any]) -> FloatArray:
    """Add up an amount of the items of each list, nan for a list without items.

    Examples
    --------
    >>> sum_shown(np.array([[1, 0], [1, -1], [-1, -1]]), np.array([1.0, 2.0]))
    array([ 3.,  2., nan])
    """
    shown = lists >= 0
    found = np.where(shown, amounts[lists], 0.0).sum(axis=1)
    return np.asarray(np.where(shown.any(axis=1), found, np.nan), dtype=np.float64)


def mean_shown(lists: IntArray, amounts: NDArray[Any]) -> FloatArray:
    """Average an amount over the items of each list, nan for a list without items.

    Examples
    --------
    >>> mean_shown(np.array([[1, 0], [1, -1], [-1, -1]]), np.array([1.0, 2.0]))
    array([1.5, 2. , nan])
    """
    lengths = (lists >= 0).sum(axis=1)
    return np.asarray(sum_shown(lists, amounts) / np.maximum(lengths, 1), dtype=np.float64)


def _told(values: FloatArray, *, per_user: bool) -> float | FloatArray:
    return values if per_user else mean_over_users(values)


def _checked_tail(tail: ArrayLike) -> NDArray[np.bool_]:
    is_tail = np.asarray(tail)
    if is_tail.ndim != 1 or is_tail.dtype != np.bool_:
        message = f"tail must be True or False for each item, got {is_tail.dtype}{is_tail.shape}"
        raise DataError(message, hint="pass what `ll.long_tail(popularity)` returns")
    return is_tail
