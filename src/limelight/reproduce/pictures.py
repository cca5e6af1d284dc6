"""The paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.plot import Point, front, lorenz
from limelight.report.figures import MUTED, PALETTE, STYLE, load_matplotlib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes


def tradeoffs(points: Mapping[int, Mapping[str, Sequence[Mapping[str, Any]]]], title: str) -> Axes:
    """Draw Figure 1: accuracy against the inequality of exposure, one panel for each cutoff.

    Parameters
    ----------
    points
        By cutoff and method, what was measured on the test users.
    title
        Of the whole figure.
    """
    mpl = load_matplotlib()
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(points), title)
        for ax, (k, methods) in zip(panels, points.items(), strict=True):
            series = {
                name: [Point(one[f"gini@{k}"], one[f"ndcg@{k}"]) for one in measured]
                for name, measured in methods.items()
            }
            front(series, title=f"K = {k}", accuracy=f"nDCG@{k}", ax=ax)
            floor = next(iter(methods.values()))[0][f"gini_floor@{k}"]
            ax.axvline(floor, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
            ax.annotate(
                "floor", (floor, 1), (4, -4), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="top", color=MUTED,
            )  # fmt: skip
            ax.get_legend().remove()
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    first: Axes = panels[0]
    return first


def distribution(exposures: Mapping[float, Sequence[float]], title: str) -> Axes:
    """Draw Figure 2: what three exposure weights do to the exposure of the items.

    On the left as the paper does, against no control: items stand in the order of their exposure
    without it, and a curve is the share of the exposure that the first items hold together, less
    what they hold without it. On the right the Lorenz curves, each with its own order.

    Parameters
    ----------
    exposures
        By exposure weight, the exposure of every item; the first is the weight 0.
    title
        Of the whole figure.
    """
    mpl = load_matplotlib()
    names = {weight: f"{weight:.0e}" if weight else "0" for weight in exposures}
    with mpl.rc_context(STYLE):
        _, (left, right) = _panels(2, title)
        base = np.asarray(next(iter(exposures.values())))
        order = np.argsort(base, kind="stable")
        items = np.arange(1, len(base) + 1) / len(base)
        held = np.cumsum(base[order]) / base.sum()
        for number, (weight, exposure) in enumerate(exposures.items()):
            own = np.asarray(exposure)
            gained = np.cumsum(own[order]) / own.sum() - held
            left.plot(items, gained, color=PALETTE[number], label=names[weight])
        left.set(xlim=(0, 1), xlabel="Items, from the least to the most exposed without control")
        left.set_ylabel("Share of the exposure, less without control")
        for axis in (left.xaxis, left.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        left.legend(title="exposure weight")
        left.set_title("What the less exposed items gain")
        lorenz({names[weight]: own for weight, own in exposures.items()}, ax=right)
        right.set_title("Lorenz curves")
    first: Axes = left
    return first


def _panels(count: int, title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * count, 4.8), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return figure, np.atleast_1d(figure.subplots(1, count))
