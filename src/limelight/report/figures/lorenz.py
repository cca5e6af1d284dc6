"""Lorenz curves: how much of the exposure the less exposed items hold together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.metrics.exposure import gini
from limelight.metrics.exposure import lorenz as lorenz_curve
from limelight.report.figures.inputs import exposures_of, named
from limelight.report.figures.style import MUTED, add_legend, add_title, colour, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limelight._base.arrays import Float64
    from limelight.report.figures.inputs import Exposures

_POINTS = 1000
"""More than this along either axis, nobody can see; a catalogue may have millions of items."""


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
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="Items, from the least to the most exposed")
        axes.set_ylabel("Share of all exposure that they hold")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        add_legend(axes, loc="upper left")
        add_title(axes, title or _half(next(iter(series.values()))))
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


def _half(exposure: Float64) -> str:
    held = np.interp(0.5, *lorenz_curve(exposure))
    return f"Half of the items hold {100 * held:.0f} % of the exposure"


def _thinned(items: Float64, share: Float64) -> tuple[Float64, Float64]:
    """Leave points of a long curve out, where it is flat and where it is steep."""
    if len(items) <= 2 * _POINTS:
        return items, share
    steps = np.linspace(0, 1, _POINTS)
    along = np.rint(steps * (len(items) - 1)).astype(np.int64)
    kept = np.union1d(along, np.searchsorted(share, steps).clip(max=len(items) - 1))
    return items[kept], share[kept]
