"""Tables of plain text for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_ROWS = 20
T = TypeVar("T")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align a table, the first column to the left and numbers to the right.

    Examples
    --------
    >>> table(("item", "lists"), [("a", "1,000")])
    ['  item  lists', '  a     1,000']
    """
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for first, *others in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


def cut_middle(rows: Sequence[T], what: str) -> tuple[list[T], list[str]]:
    """Keep the first and the last ten rows of many, and say how many are left out.

    Examples
    --------
    >>> cut_middle(range(3), "groups")
    ([0, 1, 2], [])
    """
    if len(rows) <= _MOST_ROWS:
        return list(rows), []
    half = _MOST_ROWS // 2
    gap = f"  ({len(rows) - _MOST_ROWS:,} {what} in between are left out)"
    return [*rows[:half], *rows[-half:]], [gap]
