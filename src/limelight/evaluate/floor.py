"""The lowest Gini that a given stock of places can reach, without placing them one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limelight.evaluate.lists import FloatArray

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
