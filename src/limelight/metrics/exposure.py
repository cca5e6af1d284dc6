"""How evenly lists share exposure over the whole catalogue, and how evenly they could.

Exposure o_j is the sum of the position weights of the places that show item j. The Gini index
counts every item of the catalogue, also those never shown, and divides by n:

    Gini = sum_j (2 j - n - 1) o_(j) / (n sum_j o_j),   o ascending;   0 = all equal
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limelight._base.errors import ConfigError, DataError
from limelight.metrics.lists import (
    FloatArray,
    Weight,
    check_lists,
    check_positive,
    position_weights,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Levels = tuple[FloatArray, NDArray[np.int64]]


def handout_gini(weights: FloatArray, counts: NDArray[np.integer[Any]], n_items: int) -> float:
    """Give the Gini after handing out weights, largest first, to the least exposed item.

    Parameters
    ----------
    weights
        Position weights in descending order.
    counts
        How many places have each weight.
    n_items
        Size of the catalogue.

    Examples
    --------
    Two places of weight 1 and two of weight 0.5 for three items: 1, 1 and 0.5 + 0.5.

    >>> handout_gini(np.array([1.0, 0.5]), np.array([2, 2]), n_items=3)
    0.0
    """
    levels: Levels = (np.zeros(1), np.array([n_items], dtype=np.int64))
    for weight, count in zip(weights, counts, strict=True):
        levels = _hand_out(levels, float(weight), int(count))
    return _gini_of_levels(*levels)


def _hand_out(levels: Levels, weight: float, count: int) -> Levels:
    """Give `count` units of the same weight, one by one, to the least exposed item.

    Items with equal exposure are kept together as a level (value, number of items). Items
    within one weight of the lowest each get a unit before any gets a second, so a whole window
    of levels moves at once. Once all items fit into the window, every further round only adds
    the weight to each of them.
    """
    values, sizes = levels
    n_items = int(sizes.sum())
    while count:
        if values[-1] - values[0] <= weight:
            rounds, count = divmod(count, n_items)
            values = values + rounds * weight
        window = int(np.searchsorted(values, values[0] + weight, side="right"))
        given = np.clip(count - (np.cumsum(sizes[:window]) - sizes[:window]), 0, sizes[:window])
        kept = sizes.copy()
        kept[:window] -= given
        values = np.concatenate([values, values[:window] + weight])
        sizes = np.concatenate([kept, given])
        order = np.argsort(values, kind="stable")
        order = order[sizes[order] > 0]
        values, sizes = values[order], sizes[order]
        count -= int(given.sum())
    return values, sizes


def _gini_of_levels(values: FloatArray, sizes: NDArray[np.int64]) -> float:
    """Apply the sorted formula to levels: ranks a+1 .. a+c of a level add up in closed form."""
    n_items = float(sizes.sum())
    mass = values * sizes
    total = n_items * float(mass.sum())
    if total == 0:
        return 0.0  # nothing was handed out
    below = np.cumsum(sizes) - sizes
    return max(0.0, float((mass * (2.0 * below + sizes - n_items)).sum()) / total)


def exposure(
    ids: ArrayLike, n_items: int, k: int | None = None, weight: Weight = "log"
) -> FloatArray:
    """Add up the exposure that ranked lists give to each item.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    n_items
        Size of the catalogue; items that no list shows get 0.
    k
        Count the first k places only; by default all.
    weight
        What a place at rank r is worth: "log" 1 / log2(r + 1), "uniform" 1.

    Returns
    -------
    float64 array of length n_items.

    Examples
    --------
    >>> exposure([[0, 1], [0, 2], [1, -1]], n_items=4, weight="uniform")
    array([2., 2., 1., 0.])
    """
    lists = check_lists(ids, n_items, k)
    shown = lists >= 0
    weights = np.broadcast_to(position_weights(lists.shape[1], weight), lists.shape)
    total = np.bincount(lists[shown], weights=weights[shown], minlength=n_items)
    return np.asarray(total, dtype=np.float64)


def gini(exposure: ArrayLike) -> float:
    """Measure how unequal the exposure is: 0 if all items have the same, 1 - 1/n if one has all.

    Parameters
    ----------
    exposure
        One non-negative number per item of the whole catalogue, zeros included.

    Examples
    --------
    >>> gini([0, 0, 0, 0, 1, 2, 3, 4, 10, 20])
    0.7
    """
    ordered = np.sort(_checked(exposure))
    n = len(ordered)
    weights = 2.0 * np.arange(1, n + 1) - n - 1
    # Rounding may leave a tiny negative sum where all items are equal.
    return max(0.0, float(weights @ ordered / (n * ordered.sum())))


def lorenz(exposure: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Give the Lorenz curve: which share of all exposure the least exposed items hold.

    Parameters
    ----------
    exposure
        One non-negative number per item of the whole catalogue, zeros included.

    Returns
    -------
    q, share
        Two arrays of length n + 1 from 0 to 1: the least exposed share `q` of the items holds
        `share` of the exposure.

    Examples
    --------
    >>> lorenz([3, 0, 1])
    (array([0.        , 0.33333333, 0.66666667, 1.        ]), array([0.  , 0.  , 0.25, 1.  ]))
    """
    ordered = np.sort(_checked(exposure))
    held = np.append(0.0, np.cumsum(ordered))
    return np.linspace(0.0, 1.0, len(held)), held / held[-1]


def coverage(exposure: ArrayLike) -> float:
    """Give the share of the items that have any exposure.

    Parameters
    ----------
    exposure
        One non-negative number per item of the whole catalogue, zeros included.

    Examples
    --------
    >>> coverage([3, 0, 1, 0])
    0.5
    """
    return float(np.mean(_checked(exposure) > 0))


def entropy(exposure: ArrayLike) -> float:
    """Give the entropy of the exposure shares divided by ln n: 1 if equal, 0 if one item has all.

    Parameters
    ----------
    exposure
        One non-negative number per item of the whole catalogue, zeros included.

    Examples
    --------
    >>> entropy([1, 1, 0, 0])
    0.5
    """
    values = _checked(exposure)
    if len(values) == 1:
        return 1.0  # a single item cannot be treated unequally
    shares = values[values > 0] / values.sum()
    return max(0.0, float(-(shares @ np.log(shares)) / math.log(len(values))))


def top_share(exposure: ArrayLike, top: float = 0.01) -> float:
    """Give the share of all exposure that the most exposed items hold.

    Parameters
    ----------
    exposure
        One non-negative number per item of the whole catalogue, zeros included.
    top
        Which share of the items counts as the top, rounded up to whole items.

    Examples
    --------
    >>> top_share([6, 1, 1, 1, 1], top=0.2)
    0.6
    """
    values = _checked(exposure)
    if not 0 < top <= 1:
        message = f"top must be above 0 and at most 1, got {top!r}"
        raise ConfigError(message, hint="0.01 is the top 1 % of the items")
    # 0.07 * 100 is slightly above 7 in floating point, and must not be rounded up to 8.
    n_top = max(1, math.ceil(top * len(values) - 1e-9))
    return float(np.sort(values)[-n_top:].sum() / values.sum())


_SEEN_CHANGE = 5e-3
"""Of an equal share: a smaller change is written as 0.00, and an item may make it because a user
more or less was served."""


class ExposureMoves(NamedTuple):
    """How many items gain exposure, lose some, and are shown for the first time."""

    items: int
    gained: int
    lost: int
    new: int


def count_moves(before: FloatArray, after: FloatArray) -> ExposureMoves:
    """Count who gains and who loses, by shares of all exposure, over the whole catalogue.

    Terminal, JSON and page count with this function, so that they say the same.

    Examples
    --------
    >>> count_moves(np.array([2.0, 1.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    ExposureMoves(items=4, gained=1, lost=1, new=1)
    """
    shares = [one / (one.mean() or 1.0) for one in (before, after)]
    change = shares[1] - shares[0]
    return ExposureMoves(
        items=len(change),
        gained=int(np.sum(change > _SEEN_CHANGE)),
        lost=int(np.sum(change < -_SEEN_CHANGE)),
        new=int(np.sum((after > 0) & (before == 0))),
    )


def mmf(exposure: ArrayLike) -> float:
    """Give the max-min fairness: the share of all exposure that the least exposed half holds.

    It is 0.5 where all have the same, and a little less where their number n is odd, because the
    half is n // 2 of them.

    Parameters
    ----------
    exposure
        One non-negative number for each provider, group or item, zeros included.

    Examples
    --------
    >>> mmf([6, 1, 2, 1])
    0.2
    """
    values = np.sort(_checked(exposure))
    return float(values[: len(values) // 2].sum() / values.sum())


def gini_floor(n_lists: int, k: int, n_items: int, weight: Weight = "log") -> float:
    """Give about the lowest Gini that so many lists can reach, however they are filled.

    With fewer places than items some items must go without, so a Gini of 0 is out of reach.
    For uniform weight the value is exact. For log weight it is an approximation: the Gini after
    handing out the position weights, largest first, each to the item with the least exposure.

    Parameters
    ----------
    n_lists
        Number of lists.
    k
        Their length.
    n_items
        Size of the catalogue.
    weight
        Position weight, "log" or "uniform".

    Examples
    --------
    >>> round(gini_floor(462, 3, 3999, weight="uniform"), 3)
    0.653
    """
    for value, name in ((n_lists, "n_lists"), (k, "k"), (n_items, "n_items")):
        check_positive(value, name)
    # A list cannot show more items than there are.
    weights = position_weights(min(k, n_items), weight)
    return handout_gini(weights, np.full(len(weights), n_lists), n_items)


def _checked(exposure: ArrayLike) -> FloatArray:
    """Return the exposure over a power of two near its largest value, so that no sum overflows."""
    values = np.asarray(exposure, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        message = f"exposure must hold one number per item, got shape {values.shape}"
        raise DataError(message, hint="pass the array that `exposure` returns")
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        item = int(np.argmax(wrong))
        message = f"exposure of item {item} is negative or not finite: {values[item]}"
        raise DataError(message, hint="exposure is a sum of position weights, never below 0")
    largest = values.max()
    if largest == 0:
        message = f"no exposure at all: the sum over {len(values):,} items is 0"
        raise DataError(message, hint="check that the lists are not empty")
    scaled: FloatArray = np.ldexp(values, -np.frexp(largest)[1])
    return scaled
