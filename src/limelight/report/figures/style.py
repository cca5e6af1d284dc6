"""What all figures share: colours, the house style, where they are drawn, how they are kept.

Matplotlib is an extra, so it is imported where a figure is drawn. Figures are made without pyplot:
nothing pops up, nothing stays open, and no display is needed. Only in a notebook it is pyplot that
makes them, because a figure is shown below its cell then. To draw into a figure of your own, pass
``ax``.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.files import atomic_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes
    from matplotlib.text import Text

PALETTE = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, which colour-blind readers can tell apart; black for the baseline."""
MUTED = "#666666"
"""For what only helps to read the rest."""
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
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""What matplotlib would write of itself or of the time: it would change the bytes of a figure."""


def load_matplotlib() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = "figures need matplotlib, which is not installed"
        raise ConfigError(message, hint="pip install 'limelight[plot]'") from error
    return mpl


@contextmanager
def drawing(ax: Axes | None) -> Iterator[Axes]:
    """Draw in the house style, into axes that were given or into those of a new figure."""
    mpl = load_matplotlib()
    # Before the style is set: pyplot changes settings of its own when it is first imported.
    new_figure = _figure_maker()
    with mpl.rc_context(STYLE):
        yield new_figure(figsize=_SIZE, layout="constrained").subplots() if ax is None else ax


def colour(number: int) -> str:
    """Return the colour of a series; after the last it begins again.

    Examples
    --------
    >>> colour(1), colour(8)
    ('#0072B2', '#0072B2')
    """
    return PALETTE[number % len(PALETTE)]


def write(ax: Axes, text: str, place: tuple[float, float], side: int = 1) -> None:
    """Write below and to the right of a place, or above and to its left."""
    ax.annotate(
        text,
        place,
        (6 * side, -5 * side),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="top" if side > 0 else "bottom",
        color=MUTED,
        parse_math=False,
    )


def add_title(ax: Axes, title: str) -> None:
    """Write the title as it is, for names may hold a dollar sign, in as many lines as it takes."""
    ax.set_title(title, parse_math=False, wrap=True)


def add_legend(ax: Axes, **options: Any) -> None:
    """Name the series that have a name, as it is."""
    if ax.get_legend_handles_labels()[1]:
        texts: list[Text] = ax.legend(**options).get_texts()
        for text in texts:
            text.set_parse_math(False)


def save(ax: Axes, path: str | os.PathLike[str]) -> None:
    """Write the figure to a file, whole or not at all; its ending says the format.

    The same figure has the same bytes as PNG, SVG and PDF: neither time nor chance is written.

    Parameters
    ----------
    ax
        What any of the figures returned.
    path
        Where to write, such as ``lorenz.png``, ``lorenz.svg`` or ``lorenz.pdf``.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> path = Path(tempfile.mkdtemp()) / "lorenz.png"
    >>> ll.plot.save(ll.plot.lorenz([1.0, 1.0, 0.0]), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    mpl = load_matplotlib()
    kind = Path(path).suffix.lower().removeprefix(".")
    figure = ax.get_figure(root=True)
    known = figure.canvas.get_supported_filetypes() if figure else {}
    if figure is None or kind not in known:
        message = f"unknown kind of figure: {str(path)!r}"
        raise ConfigError(message, hint=f"the name must end in one of: {', '.join(sorted(known))}")
    with atomic_file(path) as temporary:
        # Drawn in memory: on a full disk matplotlib would hide the system's error behind its own.
        drawn = BytesIO()
        with warnings.catch_warnings():
            # The font draws a box for a letter that it lacks; the user cannot change that.
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
            with mpl.rc_context({"svg.hashsalt": "limelight"}):
                figure.savefig(drawn, format=kind, dpi=_DPI, metadata=_METADATA.get(kind))
        temporary.write_bytes(drawn.getbuffer())


def _figure_maker() -> Callable[..., Any]:
    if _in_notebook():
        from matplotlib import pyplot

        return pyplot.figure
    from matplotlib.figure import Figure

    return Figure


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "IPKernelApp" in shell.config
