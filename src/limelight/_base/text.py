"""Values as short text, whatever they hold, and the shares and counts that people write."""

from __future__ import annotations

import math
import re
import reprlib
from typing import TYPE_CHECKING

from limelight._base.errors import ConfigError
from limelight._base.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def percent(share: float, digits: int = 1, *, signed: bool = False) -> str:
    """Write a share as people read it: a space before the sign, as the SI has it.

    Examples
    --------
    >>> percent(0.1674), percent(1.0, 0), percent(0.011, signed=True), percent(-0.034, signed=True)
    ('16.7 %', '100 %', '+1.1 %', '-3.4 %')
    """
    # Nobody loses "-0.0 %": what rounds to nothing has no sign.
    rounded = round(100 * share, digits) + 0.0
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f} %"


def points(change: float, *, signed: bool = True) -> str:
    """Write the change of a share, which is not a share of the share.

    Examples
    --------
    >>> points(0.2545), points(-0.00824), points(0.0), points(0.0338, signed=False)
    ('+25.45 points', '-0.82 points', '0.00 points', '3.38 points')
    """
    return percent(change, 2, signed=signed).replace(" %", " points")


def moves(before: float, after: float, write: Callable[[float], str] = "{:.3f}".format) -> str:
    """Say how a figure moves, or that it stays where it is as far as people see.

    Examples
    --------
    >>> moves(0.823, 0.599), moves(0.49, 1, percent), moves(0.5001, 0.5)
    ('falls from 0.823 to 0.599', 'rises from 49.0 % to 100.0 %', 'stays at 0.500')
    """
    ends = write(before), write(after)
    if ends[0] == ends[1]:
        return f"stays at {ends[1]}"
    return f"{'falls' if after < before else 'rises'} from {ends[0]} to {ends[1]}"


def price(loss: float, what: str, bounds: Sequence[float] = (), digits: int = 1) -> str:
    """Say what something costs, as the share of a figure that is lost, with its interval.

    Examples
    --------
    >>> price(0.034, "nDCG@20", (0.02, 0.048))
    'It costs 3.4 % of nDCG@20 (2.0 % to 4.8 %)'
    >>> price(-0.011, "nDCG@20", (-0.027, 0.005))
    'It costs nothing: nDCG@20 rises by 1.1 % (-0.5 % to +2.7 %)'
    >>> price(0.0, "the relevance")
    'It costs nothing: the relevance stays as it was'
    """
    is_gain = loss < 0
    ordered = sorted(-bound if is_gain else bound for bound in bounds)
    ends = [percent(bound, digits, signed=is_gain) for bound in ordered]
    between = f" ({' to '.join(ends)})" if ends else ""
    share = percent(abs(loss), digits)
    if share == percent(0.0, digits):
        return f"It costs nothing: {what} stays as it was{between}"
    if is_gain:
        return f"It costs nothing: {what} rises by {share}{between}"
    return f"It costs {share} of {what}{between}"


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
