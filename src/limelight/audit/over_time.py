"""Exposure over time: the lists of each day, week or month, and all lists up to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from limelight._base.errors import ConfigError
from limelight.data.columns import Chunk, TimeColumn
from limelight.metrics.accumulate import floor_of, tally
from limelight.metrics.exposure import coverage, gini, top_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from limelight.audit.lists import ListTable
    from limelight.metrics.accumulate import Tally
    from limelight.metrics.lists import FloatArray

    GroupShares: TypeAlias = Callable[[FloatArray], dict[int | str, float]]

Every: TypeAlias = Literal["day", "week", "month"]
_MICROSECONDS = 1_000_000
_DAY = 86_400 * _MICROSECONDS
_EARLIEST = 1e8
"""Seconds in March 1973. A smaller number is a day or a week by its number, or 20240131."""
_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (np.inf, 1e-3))
"""Numbers below the first are seconds, then milli-, micro- and nanoseconds; to microseconds."""


@dataclass(frozen=True)
class Period:
    """The lists of one period, and of all periods up to its end (`cumulative_...`)."""

    start: str
    """The first day of the period, in UTC; weeks start on Monday."""

    lists: int
    gini: float
    gini_floor: float
    coverage: float
    top_share: float
    cumulative_gini: float
    cumulative_coverage: float
    cumulative_top_share: float
    groups: dict[int | str, float] = field(default_factory=dict)
    """The share of the period's exposure that each group has, where groups were given."""


class MomentColumn:
    """A column of times, as microseconds since 1970.

    Numbers are seconds since 1970, or milli-, micro- or nanoseconds if they are so large that
    seconds would lie beyond the year 5000.

    Examples
    --------
    >>> MomentColumn("time").convert(Chunk(pa.array([1704153600]), "lists.parquet"))
    array([1704153600000000])
    """

    def __init__(self, name: str, time_format: str | None = None) -> None:
        self.name = name
        self._checks = TimeColumn(name, time_format)

    def convert(self, chunk: Chunk) -> NDArray[np.int64]:
        """Check every time and express it in microseconds."""
        self._checks.convert(chunk)
        values = self._checks.parse(chunk)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            numbers = values.cast(pa.float64(), safe=False).to_numpy()
            rule = "a timestamp must be a time, or a number of seconds since 1970"
            chunk.require_all(numbers >= _EARLIEST, f"{rule} that lies after March 1973")
            limits, factors = np.array(_UNITS).T
            return np.asarray(numbers * factors[np.searchsorted(limits, numbers, "right")], "int64")
        zone = values.type.tz if pa.types.is_timestamp(values.type) else None
        # Finer than a microsecond is cut off: no two requests of a user are so near.
        fine = values.cast(pa.timestamp("us", zone), safe=False)
        return np.asarray(fine.cast(pa.int64()).to_numpy())


def written(moment: int) -> str:
    """Write a moment as people do.

    Examples
    --------
    >>> written(1704153600_000000)
    '2024-01-02T00:00:00'
    """
    return str(np.datetime64(int(moment), "us").astype("datetime64[s]"))


def check_every(every: str | None, timestamp: str | None) -> None:
    """Refuse a period that is not known, or that has no times to go with.

    Examples
    --------
    >>> check_every("week", timestamp="shown_at")
    """
    if every is None:
        return
    known = get_args(Every)
    if every not in known:
        message = f"unknown period: every={every!r}"
        raise ConfigError(message, hint=f"choose one of {', '.join(known)}")
    if timestamp is None:
        message = f"periods need a column of times: every={every!r}"
        raise ConfigError(message, hint="name it with timestamp='...'")


def choose_every(times: NDArray[np.int64]) -> Every:
    """Choose days for up to a month, weeks for up to half a year, months beyond.

    Examples
    --------
    >>> choose_every(np.array([0, 40 * 86_400_000_000]))
    'week'
    """
    days = (int(times.max()) - int(times.min())) / _DAY
    return "day" if days <= 31 else "week" if days <= 183 else "month"


def period_starts(times: NDArray[np.int64], every: Every) -> NDArray[np.int32]:
    """Give the first day of each moment's period, in days since 1970.

    Examples
    --------
    >>> tuesday = np.array([1704153600_000000])  # 2 January 2024
    >>> str(np.datetime64(int(period_starts(tuesday, "week")[0]), "D"))
    '2024-01-01'
    """
    days = np.floor_divide(times, _DAY).astype(np.int32)
    if every == "week":
        # 1970 began on a Thursday, three days after a Monday.
        return np.asarray((days + 3) // 7 * 7 - 3, dtype=np.int32)
    if every == "month":
        months = days.astype("datetime64[D]").astype("datetime64[M]")
        return np.asarray(months.astype("datetime64[D]").astype(np.int32))
    return days


def by_period(
    rows: ListTable, n_items: int, every: Every | None, shares: GroupShares | None = None
) -> list[Period]:
    """Measure the lists of every period that has any, in order of time.

    ``shares`` gives the groups' shares of the exposure of items.
    """
    if rows.times is None:
        return []
    starts = period_starts(rows.times, every or choose_every(rows.times))
    order = np.argsort(starts, kind="stable")
    days, firsts = np.unique(starts[order], return_index=True)
    periods, so_far = [], None
    for day, own in zip(days, np.split(order, firsts[1:]), strict=True):
        now = tally(rows.items[own], rows.ranks[own], n_items)
        so_far = now if so_far is None else so_far.plus(now)
        n_lists = len(np.unique(rows.lists[own]))
        of_groups = {} if shares is None else shares(now.weighted)
        start = str(np.datetime64(int(day), "D"))
        periods.append(_period(start, n_lists, now, so_far, of_groups))
    return periods


def _period(
    start: str, n_lists: int, now: Tally, so_far: Tally, groups: dict[int | str, float]
) -> Period:
    return Period(
        start=start,
        lists=n_lists,
        gini=gini(now.weighted),
        gini_floor=floor_of(now),
        coverage=coverage(now.shown),
        top_share=top_share(now.weighted),
        cumulative_gini=gini(so_far.weighted),
        cumulative_coverage=coverage(so_far.shown),
        cumulative_top_share=top_share(so_far.weighted),
        groups=groups,
    )
