"""Results as Markdown tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from limelight._base.documents import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight.benchmarks.records import Entry, Race

T = TypeVar("T")


class Column(NamedTuple):
    """A column of a table of races: its head, and what it says of an entry; None is a blank."""

    head: str
    cell: Callable[[Race, Entry], str | None]


def details(races: Sequence[Race]) -> str:
    """Write one line for each entry, and only columns that say something.

    Examples
    --------
    >>> from limelight.benchmarks.records import Entry, Race
    >>> race = Race("exact", "ml-1m", (Entry("limelight", 0.1), Entry("irspack", 0.4)), factors=64)
    >>> print(details([race]))
    | data | factors | threads | who | time | ratio |
    |---|---|---|---|--:|--:|
    | ml-1m | 64 | 1 | limelight | 100 ms |  |
    | ml-1m | 64 | 1 | irspack | 400 ms | 0.25 |
    """
    entries = [(race, entry) for race in races for entry in race.entries]
    columns = [
        (column.head, [column.cell(race, entry) or "" for race, entry in entries])
        for column in COLUMNS
    ]
    used = [(head, cells) for head, cells in columns if any(cells)]
    heads = [head for head, _ in used]
    rows = list(zip(*(cells for _, cells in used), strict=True))
    return Table(heads, rows, left=heads.index("who") + 1).markdown()


def glance(races: Sequence[Race]) -> str:
    """Write the ratios of a job that ran at several numbers of factors, one column for each.

    Examples
    --------
    >>> from limelight.benchmarks.records import Entry, Race
    >>> race = Race("exact", "ml-1m", (Entry("limelight", 0.1), Entry("irspack", 0.4)), factors=64)
    >>> print(glance([race]))
    | data | threads | against | 64 factors |
    |---|---|---|--:|
    | ml-1m | 1 | irspack | 0.25 |
    """
    sizes = sorted({race.factors for race in races if race.factors})
    lines: dict[tuple[str, str, str], dict[int | None, str]] = {}
    for race in races:
        for entry in race.entries[1:]:
            line = lines.setdefault((race.data, str(race.threads), entry.who), {})
            line[race.factors] = f"{race.ratio(entry):.2f}"
    heads = ["data", "threads", "against", *(f"{size} factors" for size in sizes)]
    rows = [(*start, *(line.get(size, "") for size in sizes)) for start, line in lines.items()]
    return Table(heads, rows, left=3).markdown()


def duration(seconds: float) -> str:
    """Write a time with three digits.

    Examples
    --------
    >>> duration(0.01234), duration(12.34)
    ('12.3 ms', '12.3 s')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms"


def mebibytes(n_bytes: float) -> str:
    """Write a number of bytes in MiB.

    Examples
    --------
    >>> mebibytes(3 * 2**20)
    '3.0 MiB'
    """
    return f"{n_bytes / 2**20:,.1f} MiB"


def giga(rate: float) -> str:
    """Write operations a second in billions."""
    return f"{rate / 1e9:.1f}"


def percent(share: float) -> str:
    """Write a share of 1."""
    return f"{share:.0%}"


def six_digits(value: float) -> str:
    """Write an objective with at least six digits, and no exponent.

    Examples
    --------
    >>> six_digits(0.7227421), six_digits(1027370.0)
    ('0.722742', '1,027,370')
    """
    return f"{value:,.0f}" if value >= 1e5 else f"{value:.6g}"


def four_places(value: float) -> str:
    """Write an nDCG."""
    return f"{value:.4f}"


def _ratio(race: Race, entry: Entry) -> str | None:
    return None if entry is race.entries[0] else f"{race.ratio(entry):.2f}"


def _whole(value: int | None) -> str | None:
    return None if value is None else str(value)


def _applied(write: Callable[[T], str], value: T | None) -> str | None:
    return None if value is None else write(value)


COLUMNS = (
    Column("data", lambda race, _: race.data),
    Column("factors", lambda race, _: _whole(race.factors)),
    Column("threads", lambda race, _: str(race.threads)),
    Column("what", lambda race, _: race.part or None),
    Column("who", lambda _, entry: entry.who),
    Column("time", lambda _, entry: _applied(duration, entry.seconds)),
    Column("memory", lambda _, entry: _applied(mebibytes, entry.n_bytes)),
    Column("ratio", _ratio),
    Column("GFLOP/s", lambda race, entry: _applied(giga, race.rate(entry))),
    Column("of peak", lambda race, entry: _applied(percent, race.share_of_peak(entry))),
    Column("objective", lambda _, entry: _applied(six_digits, entry.objective)),
    Column("nDCG@20", lambda _, entry: _applied(four_places, entry.ndcg)),
)
