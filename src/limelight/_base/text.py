"""Values as short text, whatever they hold, and the shares and counts that people write."""

from __future__ import annotations

import math
import re
import reprlib

from limelight._base.errors import ConfigError
from limelight._base.printable import printable

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


def count(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 user``, ``2,000 users``.

    Examples
    --------
    >>> count(1, "user"), count(2000, "user")
    ('1 user', '2,000 users')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def parse_share(flag: str, text: str | None) -> float | None:
    """Read 2% as 0.02.

    Examples
    --------
    >>> parse_share("--group-cap", "3%")
    0.03
    """
    if text is None:
        return None
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        message = f"{flag} must be a share: {text!r}"
        raise ConfigError(message, hint="write 2% or 0.02") from None


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_NUMBER = re.compile(r"([0-9][0-9_,]*\.?[0-9]*(?:e\+?[0-9]{1,2})?)\s*([kmbgt]?)", re.IGNORECASE)


def parse_count(flag: str, text: str) -> int:
    """Read 100M as 100,000,000.

    Examples
    --------
    >>> parse_count("--users", "2.5k"), parse_count("--users", "1e6"), parse_count("--users", "1B")
    (2500, 1000000, 1000000000)
    """
    found = _NUMBER.fullmatch(text.strip())
    value = math.nan
    if found:
        value = float(re.sub("[_,]", "", found[1])) * _UNITS[found[2].lower()]
    if not value.is_integer():
        message = f"{flag} must be a whole number: {text!r}"
        raise ConfigError(message, hint="write 2500, 2.5k, 100M or 10B")
    return int(value)
