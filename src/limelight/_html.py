"""Small tables for notebooks.

The markup has no colours, sizes or scripts of its own, so it looks like the notebook around it,
light or dark. Every text is escaped: ids and names may hold anything.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 80
"""Letters of a cell; ids may be long."""


class Table(NamedTuple):
    """A table of text, its first column to the left and the others to the right."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def pairs(values: Iterable[tuple[str, str]]) -> Table:
    """Make a table of names and values, which has no head.

    Examples
    --------
    >>> pairs([("users", "1,000")])
    Table(head=(), rows=[('users', '1,000')])
    """
    return Table((), list(values))


def show(title: str, *tables: Table, notes: Iterable[str] = ()) -> str:
    """Write a title, tables and notes as markup.

    Parameters
    ----------
    title
        What is shown.
    tables
        Those without rows are left out.
    notes
        What the reader should know.

    Examples
    --------
    >>> show("A <b> title", notes=["R&D"])
    '<div class="..."><p><strong>A &lt;b&gt; title</strong></p><p>R&amp;D</p></div>'
    """
    parts = [
        f"<p><strong>{escape(title)}</strong></p>",
        *(_markup(table) for table in tables if table.rows),
        *(f"<p>{escape(note)}</p>" for note in notes),
    ]
    # The classes keep notebooks from reading mathematics into names with dollar signs.
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _markup(table: Table) -> str:
    head = f"<thead>{_row('th', table.head)}</thead>" if table.head else ""
    body = "".join(_row("td", row) for row in table.rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    sides = ["left", *["right"] * (len(cells) - 1)]
    written = (
        f'<{tag} style="text-align:{side}">{escape(_cut(cell))}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
