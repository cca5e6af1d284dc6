"""Text of strangers, safe to show in a terminal: ids, titles, names of files."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_JOINERS = "\u200c\u200d"
"""Zero-width joiners, which Persian, Hindi and emoji are spelt with."""


def _is_shown(character: str) -> bool:
    """Tell what a terminal only shows from what it obeys, or what reorders the text around it."""
    return (
        character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
    )


def printable(text: str, escape: Callable[[str], str] | None = None) -> str:
    r"""Write characters that a terminal would obey, such as those that move or colour, as escapes.

    Examples
    --------
    >>> printable("naïve \x1b[2J")
    'naïve \\x1b[2J'
    """
    if text.isprintable():
        return text
    escape = escape or (lambda character: character.encode("unicode_escape").decode())
    return "".join(c if _is_shown(c) else escape(c) for c in text)


def printable_lines(text: str, escape: Callable[[str], str] | None = None) -> str:
    r"""Do the same for a text of several lines, which stay lines.

    Examples
    --------
    >>> printable_lines("a\nb\r")
    'a\nb\\r'
    """
    return "\n".join(printable(line, escape) for line in text.split("\n"))
