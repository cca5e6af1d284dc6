"""Shares of groups, before and after."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from limelight._base.errors import DataError
from limelight._base.settings import check_integer
from limelight._base.text import percent
from limelight.report.exhibit import Compared
from limelight.report.figures.style import MUTED, PALETTE, add_legend, add_title, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = 40
"""Letters of a group's name that fit beside the figure."""
_INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Zs"}
"""Unicode categories of characters that cannot be seen."""
_HINT = "pass for example {'studio': (0.4, 0.3)}, or an audit with groups"


@runtime_checkable
class Grouped(Protocol):
    """What knows the shares of groups: an audit, re-ranked lists, a model for a target."""

    def group_shares(self) -> Compared:
        """Return the shares of groups, such as before and after."""


Shares: TypeAlias = "Mapping[Any, tuple[float, float]] | Grouped | Sequence[Any]"


class _Row(NamedTuple):
    name: str
    before: float
    after: float
    wishes: tuple[float, ...] = ()


def groups(
    shares: Shares, *, top: int = 20, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the shares of groups before and after, joined by a line, largest group first.

    Parameters
    ----------
    shares
        By group its share before and after, ``{"studio": (0.4, 0.3)}``. Or what ``ll.rerank`` or
        ``ll.fit_to`` returned for a target of groups; its wishes are drawn, too. Or an ``Audit``
        with groups: before and after, where it was made ``against`` other lists, else the share of
        the items beside that of the exposure. Or a list of changes, such as
        ``result.group_changes(file)`` and ``method.outcome_.shares``.
    top
        How many groups to draw, the largest.
    title
        What the figure shows; by default what happens to the group that changes most.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import limelight as ll
    >>> ax = ll.plot.groups({"large studio": (0.8, 0.6), "small studio": (0.2, 0.4)})
    >>> ax.get_title(loc="left")
    'large studio goes from 80.0 % to 60.0 % of the exposure'
    """
    check_integer("top", top, least=1)
    words, rows = _read(shares)
    if not rows:
        message = f"no groups to draw: {type(shares).__name__}"
        raise DataError(message, hint=_HINT)
    largest = sorted(rows, key=lambda row: -max(row.before, row.after))[:top]
    with drawing(ax) as axes:
        for place, row in enumerate(largest):
            axes.plot([row.before, row.after], [place, place], color=MUTED, linewidth=1, zorder=1)
        _ends(axes, [row.before for row in largest], words.before, facecolors="white")
        _ends(axes, [row.after for row in largest], words.after, facecolors=PALETTE[1])
        _draw_wishes(axes, largest)
        axes.set_yticks(range(len(largest)), [row.name for row in largest], parse_math=False)
        axes.set_ylim(len(largest) - 0.5, -0.5)  # the largest on top
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
        axes.set_xlabel("Share")
        if len(rows) > len(largest):
            axes.set_ylabel(f"The {len(largest):,} largest of {len(rows):,} groups")
        add_legend(axes, loc="best")
        add_title(axes, title or _change_title(largest, words))
    return axes


def _read(given: Any) -> tuple[Compared, list[_Row]]:
    found = given.group_shares() if isinstance(given, Grouped) else Compared(given)
    if isinstance(found.shares, Mapping):
        return found, [_pair(name, ends) for name, ends in found.shares.items()]
    if not isinstance(found.shares, Iterable):
        message = f"not the shares of groups: {given!r}"
        raise DataError(message, hint=_HINT)
    return found, [_row(change) for change in found.shares]


def _pair(name: Any, ends: Any) -> _Row:
    if not isinstance(ends, Sequence) or len(ends) != 2:
        message = f"a group needs two shares, before and after: {ends!r}"
        raise DataError(message, hint=_HINT)
    return _Row(_short(name), *ends)


def _row(change: Any) -> _Row:
    """Take a change of rerank, of an audit, or the share of a group with what was wished."""
    if not hasattr(change, "before"):
        message = f"not the shares of a group: {change!r}"
        raise DataError(message, hint=_HINT)
    name = change.name if hasattr(change, "name") else change.id
    least, most = getattr(change, "at_least", 0), getattr(change, "at_most", 1)
    # 0 at least and 1 at most are no wishes.
    wishes = {wish for wish, is_one in ((least, least > 0), (most, most < 1)) if is_one}
    return _Row(_short(name), change.before, change.after, tuple(wishes))


def _short(name: Any) -> str:
    line = " ".join(str(name).split())
    if all(unicodedata.category(letter) in _INVISIBLE for letter in line):
        return "(no name)"
    return line if len(line) <= _NAME else f"{line[: _NAME - 1]}…"


def _ends(ax: Axes, shares: list[float], label: str, **look: Any) -> None:
    places = range(len(shares))
    ax.scatter(shares, places, label=label, edgecolors=PALETTE[1], zorder=2, **look)


def _draw_wishes(ax: Axes, rows: list[_Row]) -> None:
    wishes = [(wish, place) for place, row in enumerate(rows) for wish in row.wishes]
    if wishes:
        shares, places = zip(*wishes, strict=True)
        ax.scatter(shares, places, marker="|", s=120, color=PALETTE[2], label="wish")


def _change_title(rows: list[_Row], words: Compared) -> str:
    row = max(rows, key=lambda row: abs(row.after - row.before))
    ends = (percent(share) for share in (row.before, row.after))
    return words.sentence.format(row.name, *ends)
