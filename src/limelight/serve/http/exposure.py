"""The audit of the window, live: what `GET /v1/exposure` tells, from a copy of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.metrics.exposure import gini, gini_floor
from limelight.serve.http.wire import ExposedItem, GroupAccount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64
    from limelight.data.interactions import Ids

_POINTS = 100
"""How many steps the Lorenz curve has."""


class WindowFigures(NamedTuple):
    """What the exposure of all items says."""

    gini: float | None
    """None if nothing was shown."""
    coverage: float
    lorenz: list[tuple[float, float]]


def figures_of(exposure: Float64) -> WindowFigures:
    """Measure how evenly exposure is shared.

    Examples
    --------
    >>> figures_of(np.array([0.0, 1.0])).gini
    0.5
    """
    if not exposure.any():
        return WindowFigures(None, 0.0, [])
    ordered = np.sort(exposure)
    held = np.append(0.0, np.cumsum(ordered))
    shares = np.linspace(0.0, 1.0, _POINTS + 1)
    at = np.interp(shares, np.linspace(0.0, 1.0, len(held)), held / held[-1])
    points = list(zip(shares.round(4).tolist(), at.round(6).tolist(), strict=True))
    return WindowFigures(gini(exposure), float(np.mean(exposure > 0)), points)


def floor_for(lists: float, k: int, n_items: int) -> float | None:
    """Give about the lowest Gini that so many lists can have."""
    return None if lists < 1 else gini_floor(round(lists), k, n_items)


def extremes(
    exposure: Float64, item_ids: Ids, titles: Sequence[str] | None, top: int
) -> tuple[list[ExposedItem], list[ExposedItem]]:
    """Return the items that were shown most, and those shown least.

    Examples
    --------
    >>> most, least = extremes(np.array([0.5, 0.0, 2.0]), np.array([7, 8, 9]), None, 1)
    >>> most[0].id, least[0].id
    (9, 8)
    """
    top = min(top, len(exposure))
    if not top:
        return [], []

    def written(numbers: NDArray[np.int64]) -> list[ExposedItem]:
        return [
            ExposedItem(
                item_ids[number].item() if hasattr(item_ids[number], "item") else item_ids[number],
                round(float(exposure[number]), 4),
                (titles[number] or None) if titles is not None else None,
            )
            for number in numbers
        ]

    most = np.argpartition(-exposure, top - 1)[:top]
    least = np.argpartition(exposure, top - 1)[:top]
    return (
        written(most[np.lexsort((most, -exposure[most]))]),
        written(least[np.lexsort((least, exposure[least]))]),
    )


def accounts_of(
    totals: Float64,
    exposure: float,
    group_ids: Sequence[str | int],
    bounds: tuple[float | None, float | None],
    top: int,
) -> list[GroupAccount]:
    """Return the groups with the largest shares, and those furthest outside their bounds.

    Examples
    --------
    >>> accounts_of(np.array([1.0, 3.0]), 4.0, ["a", "b"], (0.7, None), 1)
    [GroupAccount(group='b', share=0.75, cap=0.7, floor=None)]
    """
    if not len(totals) or not exposure:
        return []
    cap, floor = bounds
    shares = totals / exposure
    order = np.argsort(-shares, kind="stable")
    shown = order[:top]
    if floor is not None:
        below = order[::-1][:top]
        shown = np.concatenate([shown, below[(shares[below] < floor) & ~np.isin(below, shown)]])
    return [
        GroupAccount(group_ids[number], round(float(shares[number]), 6), cap, floor)
        for number in shown
    ]
