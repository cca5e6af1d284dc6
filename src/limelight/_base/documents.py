"""Tables and documents: one value, shown as text, as HTML, as Markdown or as CSV.

HTML is for notebooks. It has no colours, sizes or scripts of its own, so that it looks like the
notebook around it, light or dark. Every text in it is escaped, because ids and names may hold
anything. For the same reason cells show control characters as escapes, in text as in HTML; CSV
is for programs and keeps them.
"""

from __future__ import annotations

import csv
import io
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from limelight._base.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 80
"""Letters of a cell in HTML; ids may be long."""
_MOST_ROWS = 20
T = TypeVar("T")


class Table(NamedTuple):
    """A table: the first columns stand to the left, the others to the right.

    Examples
    --------
    >>> table = Table(("item", "lists"), [("a", 1000), ("b", None)])
    >>> print(table.text())
    item  lists
    a     1,000
    b
    >>> print(table.markdown())
    | item | lists |
    |---|--:|
    | a | 1,000 |
    | b |  |
    """

    head: Sequence[str]
    """What stands above the columns; empty if nothing does."""
    rows: Sequence[Sequence[Any]]
    left: int = 1
    """How many columns stand to the left."""

    def lines(self, indent: str = "") -> list[str]:
        """Write it as lines of text whose columns are aligned."""
        rows = [
            *([[_cell(c) for c in self.head]] if self.head else []),
            *([_cell(c) for c in row] for row in self.rows),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = [
                cell.ljust(width) if number < self.left else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append((indent + "  ".join(cells)).rstrip())
        return lines

    def text(self, indent: str = "") -> str:
        """Write it as text whose columns are aligned."""
        return "\n".join(self.lines(indent))

    def html(self) -> str:
        """Write it for a notebook."""
        head = f"<thead>{self._html_row('th', self.head)}</thead>" if self.head else ""
        body = "".join(self._html_row("td", row) for row in self.rows)
        return f"<table>{head}<tbody>{body}</tbody></table>"

    def _html_row(self, tag: str, cells: Sequence[Any]) -> str:
        written = (
            f'<{tag} style="text-align:{"left" if number < self.left else "right"}">'
            f"{escape(_cut(_cell(cell)))}</{tag}>"
            for number, cell in enumerate(cells)
        )
        return f"<tr>{''.join(written)}</tr>"

    def markdown(self) -> str:
        """Write it for a page."""
        rules = ["---"] * self.left + ["--:"] * (len(self.head) - self.left)
        lines = [f"| {' | '.join(self.head)} |", f"|{'|'.join(rules)}|"]
        for row in self.rows:
            cells = (_cell(cell).replace("|", "\\|") for cell in row)
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def csv(self) -> str:
        """Write it for programs: numbers are not rounded."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows(self.rows)
        return text.getvalue()


def pairs(values: Iterable[tuple[str, str]]) -> Table:
    """Make a table of names and values, which has no head.

    Examples
    --------
    >>> pairs([("users", "1,000")]).text()
    'users  1,000'
    """
    return Table((), list(values))


class Document(NamedTuple):
    """A title, tables and notes.

    Examples
    --------
    >>> Document("A <b> title", notes=["R&D"]).html()
    '<div class="..."><p><strong>A &lt;b&gt; title</strong></p><p>R&amp;D</p></div>'
    """

    title: str
    tables: Sequence[Table] = ()
    """Those without rows are left out."""
    notes: Sequence[str] = ()
    """What the reader should know."""

    def html(self) -> str:
        """Write it for a notebook."""
        parts = [
            f"<p><strong>{escape(printable_lines(self.title))}</strong></p>",
            *(table.html() for table in self.tables if table.rows),
            *(f"<p>{escape(printable_lines(note))}</p>" for note in self.notes),
        ]
        # The classes keep notebooks from reading mathematics into names with dollar signs.
        return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


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


def _cell(value: Any) -> str:
    """Write a value for people.

    Examples
    --------
    >>> [_cell(value) for value in ("a", None, True, 12345, 0.123456)]
    ['a', '', 'True', '12,345', '0.1235']
    """
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return printable(str(value))
    return f"{value:,}" if isinstance(value, Integral) else f"{value:.4g}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
