"""The figures of a run, for papers: those of its page, through matplotlib."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from limelight.data.groups import exposure_of
from limelight.report.figures.convergence import convergence
from limelight.report.figures.exposures import exposure, lorenz
from limelight.report.figures.front import front
from limelight.report.figures.groups import groups
from limelight.report.figures.inputs import CountedExposure, Point

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from limelight.report.exhibit import Exhibit, ExhibitPoint

_RESIDUALS = ("residual_V", "residual_U", "residual_s", "residual_w", "feasibility")


def figures_of_run(exhibit: Exhibit) -> dict[str, Callable[[], Axes]]:
    """Name the figures that a run has, each with how to draw it.

    These are front, lorenz, exposure, groups and convergence as far as they can be drawn. Curves
    are of no control, of the point that was chosen, and of the most even one.
    """
    found: dict[str, Callable[[], Axes]] = {}
    if series := _series(exhibit):
        found["front"] = lambda: front(series, accuracy=f"nDCG@{exhibit.k}")
    shown = _compared(exhibit)
    curves = {
        p.label: CountedExposure(p.shown.exposure, exhibit.counted(p))
        for p in shown
        if p.shown.exposure is not None
    }
    if curves:
        found["lorenz"] = lambda: lorenz(curves)
        found["exposure"] = lambda: exposure(curves)
    if exhibit.groups is not None and exhibit.base is not None and len(shown) > 1:
        found["groups"] = lambda: groups(_group_shares(exhibit))
    chosen = exhibit.points[exhibit.chosen]
    traced = chosen if chosen.shown.trace else exhibit.points[exhibit.base or 0]
    if traced.shown.trace:
        found["convergence"] = lambda: convergence(_records(traced))
    return found


def _series(exhibit: Exhibit) -> dict[str, list[Point]]:
    """Sort the points by method; those that others beat in both are left out."""
    keys = f"gini@{exhibit.k}", f"ndcg@{exhibit.k}"
    series: dict[str, list[Point]] = {}
    for point in exhibit.points:
        if point.on_front and all(key in point.figures for key in keys):
            label = f"{point.strength:.2g}" if point.strength else ""
            gini, ndcg = (point.figures[key] for key in keys)
            count = exhibit.counted(point)
            one = Point(gini, ndcg, label, count.users, count.items)
            series.setdefault(point.method, []).append(one)
    return series


def _compared(exhibit: Exhibit) -> list[ExhibitPoint]:
    """Choose whose curves to draw: no control, the chosen point, and that of the lowest Gini."""
    seen = [point for point in exhibit.points if point.shown.exposure is not None]
    if not seen:
        return []
    gini = f"gini@{exhibit.k}"
    first = [] if exhibit.base is None else [exhibit.points[exhibit.base]]
    evenest = min(seen, key=lambda point: point.figures.get(gini, math.inf))
    wanted = [*first, exhibit.points[exhibit.chosen], evenest]
    return [point for point in dict.fromkeys(wanted) if point in seen]


def _group_shares(exhibit: Exhibit) -> dict[str, tuple[float, float]]:
    """Return what groups have without control, and at the point that was chosen."""
    members = exhibit.groups
    assert members is not None
    ends = []
    for number in (exhibit.base or 0, exhibit.chosen):
        held = exhibit.points[number].shown.exposure
        assert held is not None
        ends.append((exposure_of(members, held) / held.sum()).tolist())
    return dict(zip(map(str, members.group_ids), zip(*ends, strict=True), strict=True))


def _records(point: ExhibitPoint) -> list[Any]:
    """Return the trace as the records that it was made of."""
    missing = dict.fromkeys(_RESIDUALS, math.nan)
    columns = point.shown.trace
    return [
        SimpleNamespace(**(missing | dict(zip(columns, row, strict=True))))
        for row in zip(*columns.values(), strict=True)
    ]
