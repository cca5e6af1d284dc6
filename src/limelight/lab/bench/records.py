"""What a benchmark leaves behind: races, and in each race one entry for whoever ran."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ClockName: TypeAlias = Literal["cpu", "wall"]


@dataclass(frozen=True)
class Entry:
    """One candidate of a race; what was not measured is None."""

    who: str
    seconds: float | None = None
    """The fastest round."""
    rounds: tuple[float, ...] = ()
    """Every round, in the order in which they ran."""
    flops: float | None = None
    """Operations that the method needs, for the share of the machine's peak."""
    n_bytes: int | None = None
    """Peak memory beyond what was there before."""
    objective: float | None = None
    ndcg: float | None = None
    """What came of the work, so that one sees that it was the same."""

    @property
    def cost(self) -> float:
        """What candidates are compared by: seconds, or bytes where memory was measured."""
        cost = self.seconds if self.seconds is not None else self.n_bytes
        return float("nan") if cost is None else float(cost)


@dataclass(frozen=True)
class Race:
    """Candidates that did the same work, alternating in one process.

    Examples
    --------
    >>> race = Race("exact", "ml-1m", (Entry("limelight", 1.0), Entry("irspack", 4.0)), factors=64)
    >>> race.ratio(race.entries[1])
    0.25
    """

    job: str
    data: str
    entries: tuple[Entry, ...]
    """The first one is compared with each of the others."""
    factors: int | None = None
    threads: int = 1
    clock: ClockName = "cpu"
    part: str = ""
    """What distinguishes several races of one job, such as what doubles."""
    peak: float | None = None
    """Operations a second of a matrix product, measured between the same rounds."""

    @property
    def key(self) -> tuple[str, str, int | None, int, str]:
        """What a later race must share to take this one's place."""
        return self.job, self.data, self.factors, self.threads, self.part

    def with_results(self, **columns: Iterable[float]) -> Race:
        """Add to each entry what came of its work, such as ``objective=[...]``, in their order."""
        rows = zip(self.entries, *columns.values(), strict=True)
        entries = [replace(entry, **dict(zip(columns, row, strict=True))) for entry, *row in rows]
        return replace(self, entries=tuple(entries))

    def ratio(self, entry: Entry) -> float:
        """Return what the first candidate costs, as a share of what another one does."""
        return self.entries[0].cost / entry.cost

    def rate(self, entry: Entry) -> float | None:
        """Return the operations a second of a candidate whose operations are known."""
        return entry.flops / entry.seconds if entry.flops and entry.seconds else None

    def share_of_peak(self, entry: Entry) -> float | None:
        """Return a candidate's rate as a share of the matrix product's."""
        rate = self.rate(entry)
        return rate / self.peak if rate and self.peak else None


@dataclass(frozen=True)
class Results:
    """Everything that was measured on one machine."""

    machine: Mapping[str, Any]
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each data set is, by its name."""
    races: tuple[Race, ...] = ()
    large: Mapping[str, Any] | None = None
    """The large run, if there was one."""

    def with_race(self, race: Race) -> Results:
        """Add a race; an earlier one of the same key gives way, in its place.

        Examples
        --------
        >>> first, again = (Race("exact", "ml-1m", (Entry("limelight", s),)) for s in (2.0, 1.0))
        >>> Results({}).with_race(first).with_race(again).races[0].entries[0].seconds
        1.0
        """
        keys = [known.key for known in self.races]
        if race.key not in keys:
            return replace(self, races=(*self.races, race))
        place = keys.index(race.key)
        return replace(self, races=(*self.races[:place], race, *self.races[place + 1 :]))

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values for JSON."""
        return {
            "machine": dict(self.machine),
            "data": {name: dict(facts) for name, facts in self.data.items()},
            "races": [asdict(race) for race in self.races],
            "large": None if self.large is None else dict(self.large),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Results:
        """Take back what :meth:`to_dict` returned, after its way through JSON.

        Examples
        --------
        >>> race = Race("exact", "ml-1m", (Entry("limelight", 1.0, (1.0, 2.0)),))
        >>> results = Results({}, {}, (race,))
        >>> Results.from_dict(results.to_dict()) == results
        True
        """
        races = []
        for race in record["races"]:
            entries = [Entry(**{**one, "rounds": tuple(one["rounds"])}) for one in race["entries"]]
            races.append(Race(**{**race, "entries": tuple(entries)}))
        return cls(record["machine"], record["data"], tuple(races), record["large"])
