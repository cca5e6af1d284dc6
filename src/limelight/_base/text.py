"""Values as text that stays short, whatever they hold."""

from __future__ import annotations

import reprlib

_WRITER = reprlib.Repr()
_WRITER.maxstring = _WRITER.maxother = 80
_LONGEST_LINE = 300


def short(value: object) -> str:
    """Write a value as Python does, with the middle of long ones left out.

    Examples
    --------
    >>> short("log"), short({n: 0.1 for n in range(1000)})
    ("'log'", '{0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1, ...}')
    """
    return _WRITER.repr(value)


def settings(values: dict[str, object]) -> str:
    """Write settings as in a call.

    Examples
    --------
    >>> settings({"factors": 8, "solver": "exact"})
    "factors=8, solver='exact'"
    """
    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def first_words(error: Exception) -> str:
    r"""Return the first line of what an error says, or its kind; it may quote a whole file.

    Examples
    --------
    >>> first_words(ValueError("no such column\nin 40 lines")), first_words(KeyError())
    ('no such column', 'KeyError')
    """
    line = (str(error).splitlines() or [""])[0].strip() or type(error).__name__
    return printable(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}...")


def printable(text: str) -> str:
    r"""Write characters that a terminal would obey, such as those that move or colour, as escapes.

    Examples
    --------
    >>> printable("naïve \x1b[2J")
    'naïve \\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def count(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 user``, ``2,000 users``.

    Examples
    --------
    >>> count(1, "user"), count(2000, "user")
    ('1 user', '2,000 users')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
