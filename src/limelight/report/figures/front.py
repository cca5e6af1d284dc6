"""The trade-off: accuracy against the inequality of exposure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import DataError
from limelight.metrics.lists import ListCount, over_all
from limelight.report.figures.inputs import tradeoff_of
from limelight.report.figures.style import add_legend, add_title, colour, drawing, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limelight._base.arrays import Float64
    from limelight.report.figures.inputs import Point, Points

    Box = tuple[Float64, Float64]

_MARKER = np.array([0.018, 0.024])  # half the room of a marker, as a share of the axes
_LABEL_NEAR, _LABEL_FAR = np.array([0.01, -0.014]), np.array([0.085, -0.065])  # corners of a label


def front(
    points: Points,
    *,
    k: int | None = None,
    accuracy: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the inequality of exposure, one series for each method.

    Parameters
    ----------
    points
        What ``ll.frontier`` returns, of which the points on the front are drawn, for test users. Or
        what ``ll.evaluate`` returns, or a ``Point``, or several of either, alone or by the name of
        the method: ``{"iALS": plain, "exADMM": [weak, strong]}``. Several are joined by a line in
        the order given.
    k
        Length of the lists whose metrics to draw, where they are of evaluations; the longest that
        all have, unless given.
    accuracy
        Name of the accuracy metric; by default nDCG.
    title
        What the figure shows; by default its two axes.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import limelight as ll
    >>> split = ll.split_users(ll.marketplace(600, 100, 9000).interactions, validation=50, test=100)
    >>> plain = ll.IALS(factors=8).fit(split.train)
    >>> strengths = 0.1, 0.3
    >>> controlled = [ll.BestResponse(strength=s).over(plain) for s in strengths]
    >>> found = [ll.evaluate(model, split.test, k=10) for model in (plain, *controlled)]
    >>> ax = ll.plot.front({"iALS": found[0], "re-ranked": found[1:]})
    >>> ax.get_ylabel()
    'nDCG@10'
    """
    found = tradeoff_of(points, k)
    if not any(found.series.values()):
        message = f"no points to draw: {points!r}"
        raise DataError(message, hint="pass for example {'iALS': ll.evaluate(model, split.test)}")
    accuracy = accuracy or found.accuracy
    with drawing(ax) as axes:
        for number, (name, series) in enumerate(found.series.items()):
            x, y = [point.gini for point in series], [point.accuracy for point in series]
            marker = "o" if len(series) > 1 else "D"
            # A single model lies above the lines: it is what they are compared with.
            above = 2.5 if len(series) == 1 else 2
            axes.plot(x, y, marker=marker, color=colour(number), label=name, zorder=above)
        axes.margins(0.1, 0.12)
        shown = [point for series in found.series.values() for point in series]
        over = over_all(ListCount(point.users, point.items) for point in shown)
        axes.set_xlabel(f"Gini of exposure (further left: shared more evenly)\n{over}".rstrip())
        axes.set_ylabel(accuracy)
        add_legend(axes, loc="lower right")
        add_title(axes, title or f"{accuracy} against the inequality of exposure")
        _label(axes, shown)
    return axes


def _label(ax: Axes, points: Sequence[Point]) -> None:
    """Write labels below right of the points, or above left, or not at all: where there is room."""
    ax.autoscale_view()  # the limits are not known before
    to_axes = ax.transData + ax.transAxes.inverted()
    places = [to_axes.transform((point.gini, point.accuracy)) for point in points]
    markers = [(place - _MARKER, place + _MARKER) for place in places]
    labels: list[Box] = []
    for own, (place, point) in enumerate(zip(places, points, strict=True)):
        taken = [*markers[:own], *markers[own + 1 :], *labels]
        for side in (1, -1):
            corners = place + side * _LABEL_NEAR, place + side * _LABEL_FAR
            box = np.minimum(*corners), np.maximum(*corners)
            if point.label and not any(_overlap(box, other) for other in taken):
                labels.append(box)
                write(ax, point.label, (point.gini, point.accuracy), side)
                break


def _overlap(a: Box, b: Box) -> bool:
    return bool((a[0] < b[1]).all() and (b[0] < a[1]).all())
