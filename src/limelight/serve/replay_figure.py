"""A replay as a figure: the figure that was asked for, the loss and the strength over time."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from limelight._base.errors import DataError
from limelight.report.figures.style import MUTED, add_title, colour, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limelight.serve.replay import ReplayResult


def replay_figure(result: ReplayResult, *, title: str | None = None) -> Axes:
    """Draw what a log of requests would have come to, and what was asked.

    Parameters
    ----------
    result
        What ``replay`` returned.
    title
        What the figure shows; by default what was asked for.

    Returns
    -------
    Axes
        Those at the top.
    """
    if not result.points:
        message = f"nothing was measured in {result.n_requests:,} requests: there is no curve"
        raise DataError(message, hint="replay a longer log, or a shorter window")
    times = [dt.datetime.fromtimestamp(point.time, dt.UTC) for point in result.points]
    goal = result.goal
    covers = goal.min_coverage is not None and goal.gini is None
    curves = {
        "Coverage" if covers else "Gini index": [
            point.coverage if covers else point.gini for point in result.points
        ],
        "Loss of relevance": [point.loss for point in result.points],
        "Strength": [point.strength for point in result.points],
    }
    wishes = [goal.min_coverage if covers else goal.gini, goal.max_relevance_loss, None]
    with drawing(None) as first:
        figure = first.get_figure(root=True)
        assert figure is not None
        figure.clear()
        panels = figure.subplots(3, 1, sharex=True)
        for number, (name, values) in enumerate(curves.items()):
            axes = panels[number]
            axes.plot(times, values, color=colour(number + 1), lw=1.5)
            axes.set_ylabel(name, fontsize=9)
            if (wish := wishes[number]) is not None:
                axes.axhline(wish, color=MUTED, ls="--", lw=1)
        panels[1].set_ylim(bottom=0)
        if any(point.strength for point in result.points):
            panels[2].set_yscale("log")
        panels[2].set_xlabel("Time (UTC); each point is of the window before it")
        add_title(panels[0], title or f"{len(times):,} measurements, asked for {goal}")
        figure.autofmt_xdate()
    top: Axes = panels[0]
    return top
