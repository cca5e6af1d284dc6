"""How evenly lists share exposure over the whole catalogue.

Exposure o_j is the sum of the position weights of the places that show item j. The Gini index
counts every item of the catalogue, also those never shown, and divides by n:

    Gini = sum_j (2 j - n - 1) o_(j) / (n sum_j o_j),   o ascending;   0 = all equal
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import ConfigError, DataError
from limelight.evaluate.floor import handout_gini
from limelight.evaluate.lists import (
    FloatArray,
    Weight,
    check_lists,
    check_positive,
    position_weights,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
    # 0.07 * 100 is a hair above 7: take the hair off before rounding up.
    n_top = max(1, math.ceil(top * len(values) - 1e-9))
    return float(np.sort(values)[-n_top:].sum() / values.sum())


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
    """Return the exposure over a power of two near its largest value, lest a sum overflows."""
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
