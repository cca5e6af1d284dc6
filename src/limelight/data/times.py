"""Times as seconds since 1970, durations as seconds, and weights that fall with age."""

from __future__ import annotations

import datetime as dt
import math
import re
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limelight._base.errors import ConfigError, LimelightWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Float64

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LARGEST_SECONDS = 1e11
"""The year 5138. Larger numbers count parts of seconds: as milliseconds this is the year 1973."""
Duration: TypeAlias = "float | str | dt.timedelta"
"""What :func:`duration` reads."""
LEAST_DECAY = 2.0**-40
"""What is left of a weight after 40 half-lives and more, so that old pairs stay in the history."""

_MOST_DOUBLED = 1000.0
"""So that what is far in the future stays finite."""
_USUAL, _ENOUGH = 0.999, 100
"""The share of times up to which they are usual, and how many there must be to say so."""


def duration(value: object, name: str = "half_life") -> float:
    """Read a positive number of seconds, one with a unit (s, m, h, d or w), or a timedelta.

    Examples
    --------
    >>> duration("90d"), duration("36h"), duration("5m", "budget"), duration(60)
    (7776000.0, 129600.0, 300.0, 60.0)
    """
    if isinstance(value, np.timedelta64):
        value = float(value / np.timedelta64(1, "s"))
    elif isinstance(value, dt.timedelta):
        value = value.total_seconds()
    found = re.fullmatch(r"\s*([0-9.eE+-]+?)\s*(s|min|m|h|d|w|)\s*", str(value))
    try:
        seconds = float(found[1]) * _UNITS[found[2]] if found else math.nan
    except ValueError:
        seconds = math.nan
    if isinstance(value, bool) or not 0 < seconds < math.inf:
        message = f"{name} must be a positive duration: {value!r}"
        raise ConfigError(
            message, hint="for example 5m, 36h, 90d or 2w; a number alone is of seconds"
        )
    return seconds


def moment(value: object, name: str = "at") -> float:
    """Read a time as seconds since 1970: a number, a date, or text such as 2021-01-01 12:00.

    Without a time zone, it is of UTC.

    Examples
    --------
    >>> moment("2021-01-01"), moment(1609459200)
    (1609459200.0, 1609459200.0)
    """
    when: Any = value
    try:
        if isinstance(value, str):
            when = dt.datetime.fromisoformat(value)
        elif isinstance(value, np.datetime64):
            when = (value - np.datetime64(0, "s")) / np.timedelta64(1, "s")
        elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            when = dt.datetime(value.year, value.month, value.day)
        if isinstance(when, dt.datetime):
            when = (when if when.tzinfo else when.replace(tzinfo=dt.UTC)).timestamp()
        seconds = math.nan if isinstance(value, bool) else float(when)
    except (TypeError, ValueError):
        seconds = math.nan
    if not math.isfinite(seconds):
        message = f"{name} must be a time: {value!r}"
        raise ConfigError(message, hint="for example 2021-01-01, or seconds since 1970")
    return seconds


def formats_of(text: str) -> tuple[str, ...]:
    """Guess how a time is written that is not as ISO 8601 has it; two ways if it may be either.

    Examples
    --------
    >>> formats_of("17/10/2000 05:30"), formats_of("01.02.2024"), formats_of("yesterday")
    (('%d/%m/%Y %H:%M',), ('%d.%m.%Y', '%m.%d.%Y'), ())
    """
    return tuple(
        written
        for day in ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d")
        for sign in "/.-"
        for clock in ("", " %H:%M", " %H:%M:%S")
        if _is_written(text, written := day.format(sign) + clock)
    )


def _is_written(text: str, written: str) -> bool:
    try:
        dt.datetime.strptime(text.strip(), written)
    except ValueError:
        return False
    return True


def shown(seconds: float) -> str:
    """Write a time for people, in UTC.

    Examples
    --------
    >>> shown(1609459200.0), shown(1e15)
    ('2021-01-01 00:00:00', '1e+15')
    """
    try:
        return str(dt.datetime.fromtimestamp(int(seconds), dt.UTC).replace(tzinfo=None))
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"


def number_seconds(times: NDArray[Any]) -> Float64:
    """Take numbers as seconds, or as thousandths of them, and so on, where they are too large.

    Examples
    --------
    >>> number_seconds(np.array([1_600_000_000_000, 0]))
    array([1.6e+09, 0.0e+00])
    """
    seconds = times.astype(np.float64)
    while seconds.max(initial=0.0) > _LARGEST_SECONDS:
        seconds /= 1000
    return seconds


def decay(times: Float64, half_life: float, newest: float) -> Float64:
    """Return 2^(-age / half_life) of every time, with ages counted from the newest.

    Examples
    --------
    >>> decay(np.array([0.0, 50.0, 100.0]), 50, 100)
    array([0.25, 0.5 , 1.  ])
    """
    left = np.exp2(np.minimum((times - newest) / half_life, _MOST_DOUBLED))
    _note_odd(times, left, newest)
    return np.maximum(left, LEAST_DECAY)


def _note_odd(times: Float64, left: Float64, newest: float) -> None:
    """Warn where nearly nothing is left of most rows, or one time lies far from the rest."""
    if len(times) < _ENOUGH:
        return
    usual = float(np.quantile(times, _USUAL))
    is_far = newest == times.max() and newest - usual > usual - times.min()
    if is_far or np.median(left) < LEAST_DECAY:
        message = f"the newest time is {shown(newest)}, and " + (
            f"nearly all others are up to {shown(usual)}"
            if is_far
            else f"most rows are more than 40 half-lives older, such as {shown(usual)}"
        )
        message = (
            f"{message}: half_life leaves them hardly any weight; is a time wrong, or its unit?"
        )
        warnings.warn(message, LimelightWarning, stacklevel=4)
