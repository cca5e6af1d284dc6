"""What processes that share a ledger tell each other, and the interface of what carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from limelight._native import kernels
from limelight.data.ids import bytes_of_ids, ids_from_arrow
from limelight.serve.ledger.journal_files import arrow_ids
from limelight.serve.ledger.parts import SourcePart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limelight._base.arrays import Int32

Pair = tuple[int, str]
"""A bucket and a source."""
Event = tuple[int, int]
"""A bucket and the key of an event."""


class Report(NamedTuple):
    """What a source has counted in a bucket, of some items or of all."""

    bucket: int
    source: str
    amounts: dict[str, int]
    """Sums by item id."""
    lists: int
    plain: int
    shown: int

    @property
    def pair(self) -> Pair:
        """The bucket and the source."""
        return self.bucket, self.source

    def updated(self, other: Report) -> Report:
        """Return what both say together, whichever is the later one: sums only grow.

        The amounts of this report change with it.

        Examples
        --------
        >>> Report(7, "a", {"x": 2}, 2, 0, 0).updated(Report(7, "a", {"x": 1, "y": 1}, 1, 0, 0))
        Report(bucket=7, source='a', amounts={'x': 2, 'y': 1}, lists=2, plain=0, shown=0)
        """
        amounts = self.amounts
        for item, amount in other.amounts.items():
            if amount > amounts.get(item, 0):
                amounts[item] = amount
        later = self if self.lists > other.lists else other
        return later._replace(amounts=amounts)

    def copy(self) -> Report:
        """Return a report that stays as this one is now."""
        return self._replace(amounts=dict(self.amounts))


def portions(reports: Iterable[Report], most: int) -> list[list[Report]]:
    """Cut reports into portions of not more than so many sums; there is at least one.

    Examples
    --------
    >>> report = Report(7, "a", {"x": 2, "y": 3, "z": 4}, 2, 0, 0)
    >>> [[list(piece.amounts) for piece in portion] for portion in portions([report], 2)]
    [[['x', 'y']], [['z']]]
    """
    found: list[list[Report]] = [[]]
    room = most
    for report in reports:
        sums = list(report.amounts.items())
        for start in range(0, max(len(sums), 1), most):
            some = dict(sums[start : start + most])
            if len(some) > room:
                found.append([])
                room = most
            found[-1].append(report._replace(amounts=some))
            room -= len(some)
    return found


class ReplicaNews(NamedTuple):
    """What a transport has heard."""

    reports: list[Report]
    events: list[Event]
    """Of others."""
    whole: frozenset[Pair] = frozenset()
    """Of what the reports hold all that the other side has."""
    present: frozenset[Pair] | None = None
    """All that the other side holds; None if it cannot tell."""
    lost: frozenset[Pair] = frozenset()
    """What this process wrote and the other side does not have any more."""
    state: str | None = None
    """What a process wrote beside its sums last; only when everything is read."""
    notes: tuple[str, ...] = ()


class Transport(Protocol):
    """Takes the sums of this process to others, and theirs to this one.

    Methods raise :class:`~limelight._base.errors.DataError` when the others cannot be reached. They
    are called by one thread at a time. What one process writes of a source never replaces what
    another one wrote of it: a reader hears both.
    """

    def write(
        self,
        reports: Sequence[Report],
        events: Sequence[Event],
        *,
        announce: bool,
        state: str | None = None,
    ) -> None:
        """Store sums. Others need to hear of them only when they are announced."""
        ...

    def read(self, oldest: int) -> ReplicaNews:
        """Return what others told since the last time, from a bucket on."""
        ...

    def known_events(self, keys: Sequence[int]) -> set[int]:
        """Return those of some events that others wrote not long ago."""
        ...

    def forget(self) -> None:
        """Read everything the next time, as at the first."""
        ...

    def close(self) -> None:
        """Let go of the other side."""
        ...


class Catalogue:
    """Item ids as text, both ways. Ids that it does not have get numbers above all others.

    Examples
    --------
    >>> Catalogue([7, 5]).names(np.array([1], dtype=np.int32))
    ['5']
    >>> Catalogue(["a", "b"]).part(Report(0, "", {"c": 1, "b": 9, "a": 3}, 1, 0, 0)).amounts
    array([3, 9])
    """

    def __init__(self, item_ids: Any) -> None:
        ids = arrow_ids(item_ids)
        self.n_items = len(ids)
        self._ids = ids_from_arrow(ids)
        self._table = kernels.IdTable()
        self._encode(ids.cast(pa.large_string()))

    def _encode(self, ids: Any) -> Int32:
        codes = np.empty(len(ids), dtype=np.int32)
        self._table.encode(*bytes_of_ids(ids), codes)
        return codes

    def names(self, items: Int32) -> list[str]:
        """Return the ids of items."""
        return list(map(str, self._ids[items].tolist()))

    def report(self, bucket: int, source: str, part: SourcePart) -> Report:
        """Return what a source has counted, by id."""
        amounts = dict(zip(self.names(part.items), part.amounts.tolist(), strict=True))
        return Report(bucket, source, amounts, part.lists, part.plain, part.shown)

    def part(self, report: Report) -> SourcePart:
        """Return a report in numbers; what this catalogue does not have is left out."""
        items = self._encode(pa.array(list(report.amounts), pa.large_string()))
        amounts = np.array(list(report.amounts.values()), dtype=np.int64)
        kept = items < self.n_items
        items, amounts = items[kept], amounts[kept]
        order = np.argsort(items)
        return SourcePart(items[order], amounts[order], report.lists, report.plain, report.shown)
