"""Figures of exposures: Lorenz curves, and exposure by the rank of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.text import percent
from limelight.metrics.exposure import coverage, gini
from limelight.metrics.exposure import lorenz as lorenz_curve
from limelight.report.figures.inputs import exposures_of, items_label, named
from limelight.report.figures.style import MUTED, add_legend, add_title, colour, drawing, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limelight._base.arrays import Float64, Int64
    from limelight.report.figures.inputs import Exposures

_POINTS = 1000
"""Points along an axis: a catalogue may have millions of items, but more cannot be seen."""


def lorenz(exposures: Exposures, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw Lorenz curves: how much of the exposure the less exposed items hold together.

    Parameters
    ----------
    exposures
        The exposure of every item of the catalogue, such as ``ll.exposure(ids, n_items)``; or an
        ``Audit``; or several of these by name, ``{"iALS": ..., "exADMM": ...}``; or what
        ``ll.rerank`` returns.
    title
        What the figure shows; by default what the first curve says.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import limelight as ll
    >>> ax = ll.plot.lorenz({"one list": [1.0, 1.0, 0.0, 0.0]})
    >>> ax.get_title(loc="left")
    'Half of the items hold 0 % of the exposure'
    """
    series = exposures_of(exposures)
    with drawing(ax) as axes:
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        _name_diagonal(axes)
        for number, (name, exposure) in enumerate(series.items()):
            label = named(name, f"Gini {gini(exposure):.2f}")
            axes.plot(*_thinned(*lorenz_curve(exposure)), color=colour(number), label=label)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        label = "Items, from the least to the most exposed"
        axes.set_xlabel(items_label(label, exposures, series))
        axes.set_ylabel("Share of all exposure that they hold")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: percent(value, 0))
        add_legend(axes, loc="upper left")
        add_title(axes, title or _half_title(next(iter(series.values()))))
    return axes


def _name_diagonal(ax: Axes) -> None:
    """Write along the diagonal and above it, where no curve ever lies."""
    ax.text(
        0.6,
        0.61,
        "all items equal",
        rotation=45,
        transform_rotates_text=True,
        rotation_mode="anchor",
        ha="center",
        va="bottom",
        color=MUTED,
    )


def _half_title(exposure: Float64) -> str:
    held = np.interp(0.5, *lorenz_curve(exposure))
    return f"Half of the items hold {percent(held, 0)} of the exposure"


def _thinned(items: Float64, share: Float64) -> tuple[Float64, Float64]:
    """Leave points of a long curve out, where it is flat and where it is steep."""
    if len(items) <= 2 * _POINTS:
        return items, share
    steps = np.linspace(0, 1, _POINTS)
    along = np.rint(steps * (len(items) - 1)).astype(np.int64)
    kept = np.union1d(along, np.searchsorted(share, steps).clip(max=len(items) - 1))
    return items[kept], share[kept]


def exposure(exposures: Exposures, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw exposure against the rank of the items, most exposed first, on logarithmic axes.

    1 is the share that each item would have if all had the same. Items without exposure have no
    place on a logarithmic axis: a curve ends where they begin, and the legend says how many of the
    items it shows.

    Parameters
    ----------
    exposures
        The exposure of every item of the catalogue, such as ``ll.exposure(ids, n_items)``; or an
        ``Audit``; or several of these by name, ``{"iALS": ..., "exADMM": ...}``; or what
        ``ll.rerank`` returns.
    title
        What the figure shows; by default what the first curve says.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import limelight as ll
    >>> ax = ll.plot.exposure({"one list": [1.0, 1.0, 0.0, 0.0]})
    >>> ax.get_title(loc="left")
    'The most exposed item has 2 times the equal share'
    """
    series = exposures_of(exposures)
    with drawing(ax) as axes:
        axes.set(xscale="log", yscale="log")
        axes.axhline(1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        write(axes, "equal share", (1, 1))
        for number, (name, one) in enumerate(series.items()):
            label = named(name, f"{percent(coverage(one), 0)} of the items shown")
            axes.plot(*_by_rank(one), color=colour(number), label=label)
        axes.set_xlim(1, max(2, *(len(one) for one in series.values())))
        axes.set_xlabel(items_label("Items, most exposed first", exposures, series))
        axes.set_ylabel("Exposure, equal share = 1")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.15g}")
        add_legend(axes, loc="upper right")
        add_title(axes, title or _top_title(next(iter(series.values()))))
    return axes


def _top_title(exposure: Float64) -> str:
    most = exposure.max() / exposure.mean()
    figure = f"{most:,.0f}" if most >= 100 else f"{most:.2g}"
    return f"The most exposed item has {figure} times the equal share"


def _by_rank(exposure: Float64) -> tuple[Float64, Float64]:
    """Return ranks and multiples of the equal share, fewer of them where ranks lie close."""
    shown: Float64 = np.sort(exposure[exposure > 0])[::-1] / exposure.mean()
    kept: Int64 = np.arange(len(shown))
    if len(shown) > _POINTS:
        kept = np.unique(np.rint(np.geomspace(1, len(shown), _POINTS)).astype(np.int64)) - 1
    return kept + np.float64(1), shown[kept]
