"""Figures: who holds how much of the exposure, and what evenness costs.

Matplotlib is an extra, so it is imported where a figure is drawn. Figures are made without pyplot:
nothing pops up, nothing stays open, and no display is needed. To draw into a figure of your own,
pass ``ax``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._atomic import atomic_file
from limelight._errors import ConfigError, DataError
from limelight.evaluate.exposure import gini
from limelight.evaluate.exposure import lorenz as lorenz_curve

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    Box = tuple[NDArray[np.float64], NDArray[np.float64]]

PALETTE = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, which colour-blind readers can tell apart; black for the baseline."""

STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "font.size": 10,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
_SIZE = (7.2, 4.5)  # inches: as wide as a README at the resolution below
_DPI = 144
_MARKER = np.array([0.018, 0.024])  # half the room of a marker, as a share of the axes
_LABEL_NEAR, _LABEL_FAR = np.array([0.01, -0.014]), np.array([0.085, -0.065])  # corners of a label
_MUTED = "#666666"


class Point(NamedTuple):
    """One model: how unequal its exposure is, how accurate it is, and what to write beside it."""

    gini: float
    accuracy: float
    label: str = ""


def load_matplotlib() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = "figures need matplotlib, which is not installed"
        raise ConfigError(message, hint="pip install 'limelight[plot]'") from error
    return mpl


def lorenz(
    exposures: Mapping[str, ArrayLike], *, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw Lorenz curves: how much of the exposure the less exposed items hold together.

    Parameters
    ----------
    exposures
        For each name in the legend, the exposure of every item of the catalogue.
    title
        What the figure shows; by default what the first curve says.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = lorenz({"one list": [1.0, 1.0, 0.0, 0.0]})
    >>> ax.get_title(loc="left")
    'Half of the items hold 0 % of the exposure'
    """
    if not exposures:
        message = "no exposures to draw: {}"
        raise DataError(message, hint="pass for example {'iALS': exposure(ids, n_items)}")
    with load_matplotlib().rc_context(STYLE):
        ax = _new_axes() if ax is None else ax
        ax.plot([0, 1], [0, 1], color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
        _write(ax, "all items equal", (0.4, 0.4))
        for number, (name, exposure) in enumerate(exposures.items()):
            items, share = lorenz_curve(exposure)
            label = f"{name} (Gini {gini(exposure):.2f})"
            ax.plot(items, share, color=PALETTE[number % len(PALETTE)], label=label)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="Items, from the least to the most exposed")
        ax.set_ylabel("Share of all exposure that they hold")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.legend(loc="upper left")
        ax.set_title(title or _half(next(iter(exposures.values()))))
    return ax


def _half(exposure: ArrayLike) -> str:
    items, share = lorenz_curve(exposure)
    return f"Half of the items hold {100 * np.interp(0.5, items, share):.0f} % of the exposure"


def front(
    points: Mapping[str, Sequence[Point]],
    *,
    title: str | None = None,
    accuracy: str = "nDCG",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the inequality of exposure, one series for each method.

    Parameters
    ----------
    points
        For each method its models. Several are joined by a line in the order given.
    title
        What the figure shows; by default its two axes.
    accuracy
        Name of the accuracy metric.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = front({"iALS": [Point(0.97, 0.120)], "exADMM": [Point(0.96, 0.119, "1e-5")]})
    >>> ax.get_ylabel()
    'nDCG'
    """
    if not any(points.values()):
        message = f"no points to draw: {points!r}"
        raise DataError(message, hint="pass for example {'iALS': [Point(0.9, 0.1)]}")
    with load_matplotlib().rc_context(STYLE):
        ax = _new_axes() if ax is None else ax
        for number, (name, series) in enumerate(points.items()):
            x, y = [point.gini for point in series], [point.accuracy for point in series]
            marker = "o" if len(series) > 1 else "D"
            colour = PALETTE[number % len(PALETTE)]
            # A single model lies above the lines: it is what they are compared with.
            above = 2.5 if len(series) == 1 else 2
            ax.plot(x, y, marker=marker, color=colour, label=name, zorder=above)
        ax.margins(0.1, 0.12)
        ax.set_xlabel("Gini of exposure (further left: shared more evenly)")
        ax.set_ylabel(accuracy)
        ax.legend(loc="lower right")
        ax.set_title(title or f"{accuracy} against the inequality of exposure")
        _label(ax, [point for series in points.values() for point in series])
    return ax


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
                _write(ax, point.label, (point.gini, point.accuracy), side)
                break


def _overlap(a: Box, b: Box) -> bool:
    return bool((a[0] < b[1]).all() and (b[0] < a[1]).all())


def _write(ax: Axes, text: str, place: tuple[float, float], side: int = 1) -> None:
    """Write below and to the right of a place, or above and to its left."""
    ax.annotate(
        text,
        place,
        (6 * side, -5 * side),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="top" if side > 0 else "bottom",
        color=_MUTED,
    )


def save(ax: Axes, path: str | os.PathLike[str]) -> None:
    """Write the figure to a file, whole or not at all; its ending says the format.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lorenz.png"
    >>> save(lorenz({"one list": [1.0, 1.0, 0.0]}), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    figure = ax.get_figure(root=True)
    known = figure.canvas.get_supported_filetypes() if figure else {}
    if figure is None or kind not in known:
        message = f"unknown kind of figure: {str(path)!r}"
        raise ConfigError(message, hint=f"the name must end in one of: {', '.join(sorted(known))}")
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=_DPI)


def _new_axes() -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=_SIZE, layout="constrained").subplots()
