"""Several processes that count into one ledger: each tells its own sums, and adds those of others.

A process counts under a name that no other has. What it tells are its sums, by bucket and by item
id, never differences: a message that comes twice, late or out of order changes nothing. A process
that is started again takes a new name; what it counted under the old one stays.
"""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError, LimelightError
from limelight._native import kernels
from limelight.data.ids import bytes_of_ids, ids_from_arrow
from limelight.serve.journal_files import arrow_ids
from limelight.serve.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limelight._base.arrays import Int32
    from limelight.serve.ledger import Ledger

Pair = tuple[int, str]
"""A bucket and a source."""
_AT_ONCE, _AT_ONCE_OF_GROUP = 0.02, 0.05
_MOST_AT_A_TIME = 50_000
"""So many sums that the server lost are written with one flush, because that takes time."""
_FIRST_REST, _LONGEST_REST = 0.1, 5.0


class Report(NamedTuple):
    """What a source has counted in a bucket, of some items or of all."""

    bucket: int
    source: str
    ids: list[str]
    amounts: list[int]
    lists: int
    plain: int
    shown: int
    is_own: bool = True
    """Whether the source is one of this process, which may overwrite what was told before."""

    def updated(self, later: Report) -> Report:
        """Return the same with what a later report has in place of it."""
        amounts = dict(zip(self.ids, self.amounts, strict=True))
        amounts.update(zip(later.ids, later.amounts, strict=True))
        return later._replace(ids=list(amounts), amounts=list(amounts.values()))


class News(NamedTuple):
    """What a transport has heard."""

    reports: list[Report]
    events: list[tuple[int, int]]
    """Buckets and keys of events that others counted."""
    present: frozenset[Pair] | None = None
    """All that the other side holds; None if it cannot tell."""
    lost: frozenset[Pair] = frozenset()
    """What this process wrote and the other side does not have any more."""


class Transport(Protocol):
    """Takes the sums of this process to others, and theirs to this one.

    Methods raise :class:`DataError` when the others cannot be reached. They are called by one
    thread at a time.
    """

    def write(
        self, reports: Sequence[Report], events: Sequence[tuple[int, int]], *, announce: bool
    ) -> None:
        """Store sums. Others need to hear of them only when they are announced."""
        ...

    def read(self, source: str, oldest: int) -> News:
        """Return what other sources told since the last time, from a bucket on."""
        ...

    def forget(self) -> None:
        """Read everything the next time, as at the first."""
        ...

    def close(self) -> None:
        """Let go of the other side."""
        ...


class NoTransport:
    """There is only this process.

    Examples
    --------
    >>> NoTransport().read("own", 0).reports
    []
    """

    def write(
        self, reports: Sequence[Report], events: Sequence[tuple[int, int]], *, announce: bool
    ) -> None:
        """Do nothing."""

    def read(self, source: str, oldest: int) -> News:
        """Return nothing."""
        del source, oldest
        return News([], [])

    def forget(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def new_source() -> str:
    """Make a name that no other process has."""
    return secrets.token_hex(8)


def lists_at_same_prices(lists: float, k: int, n_candidates: int, n_groups: int = 0) -> float:
    """Return how many lists may be made before prices must follow; at least one.

    The rule of the re-ranker's market: all of them together could move no item by more than 2 % of
    what it may expect in the window, even if every list that has it for a candidate took it, and no
    group by more than 5 %.

    Parameters
    ----------
    lists
        In the window.
    k
        Places of a list.
    n_candidates
        Of a list.
    n_groups
        That have caps or floors; all lists may give all their places to one of them.

    Examples
    --------
    >>> lists_at_same_prices(100_000, k=20, n_candidates=500)
    80.0
    """
    bound = _AT_ONCE * lists * k / max(n_candidates, k)
    if n_groups:
        bound = min(bound, _AT_ONCE_OF_GROUP * lists / n_groups)
    return max(bound, 1.0)


class _Catalogue:
    """Item ids as text, both ways. Ids that it does not have get numbers above all others."""

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
        return list(map(str, self._ids[items].tolist()))

    def part(self, report: Report) -> Part:
        """Return a report in numbers; what this catalogue does not have is left out."""
        items = self._encode(pa.array(report.ids, pa.large_string()))
        kept = items < self.n_items
        items, amounts = items[kept], np.array(report.amounts, dtype=np.int64)[kept]
        order = np.argsort(items)
        return Part(items[order], amounts[order], report.lists, report.plain, report.shown)


class Replicas:
    """Shares a ledger with other processes.

    A thread writes and reads every ``every`` seconds; so much of what a process counted is lost if
    it is killed, and so late do others hear of it. With ``durable``, :meth:`flush` writes at once
    what was counted since the last time, and whoever answers after it loses nothing. While the
    other side cannot be reached, nobody waits: lists are counted, the thread tries again after a
    rest of up to 5 seconds, and what was counted meanwhile is written then. Whoever must not lose
    it to a kill in that time either keeps a journal as well.

    What the other side has lost, each process writes again: its own sums, and of others what it
    knows of them and nobody else has written. What it knows of others it never takes back.

    The thread that uses the ledger calls the methods, :meth:`flush` every second or so.

    Parameters
    ----------
    ledger
        Counts under a new name from now on.
    transport
        How others are reached.
    item_ids
        Of the ledger's items. Processes may have different catalogues.
    every
        Seconds.
    durable
        Whether :meth:`flush` waits for the other side.
    lineage
        Earlier names of this ledger, from its journal, which this process may write for.
    k, n_candidates
        Of a list, for the bound of :meth:`staleness_bound`.

    Attributes
    ----------
    error : LimelightError or None
        Why others cannot be reached.
    """

    def __init__(
        self,
        ledger: Ledger,
        transport: Transport,
        *,
        item_ids: Any,
        every: float = 1.0,
        durable: bool = False,
        lineage: Iterable[str] = (),
        k: int = 20,
        n_candidates: int = 500,
    ) -> None:
        self.ledger, self.transport = ledger, transport
        self.every, self.durable, self.k, self.n_candidates = every, durable, k, n_candidates
        self.error: LimelightError | None = None
        self._own = {*lineage}
        self._catalogue = _Catalogue(item_ids)
        self._lock, self._io, self._ended = threading.Lock(), threading.Lock(), threading.Event()
        self._outgoing: dict[Pair, Report] = {}
        self._events: list[tuple[int, int]] = []
        self._incoming: list[tuple[_Catalogue, News, list[tuple[int, str, Part]]]] = []
        self._last_good: float | None = None
        self._rest, self._not_before = _FIRST_REST, 0.0
        self._oldest = ledger.oldest
        self._take_name()
        self._exchange()
        self.flush(ledger.time)
        self._thread = threading.Thread(target=self._run, name="limelight-replicas", daemon=True)
        self._thread.start()

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_name(self) -> None:
        """Count under a new name; earlier ones stay this process's own."""
        if any(source == self.ledger.source for _, source, _ in self.ledger.parts()):
            self._own.add(self.ledger.source)
        self.ledger.rename(new_source())
        self._own.add(self.ledger.source)
        self._source = self.ledger.source
        self.ledger.track()

    # What the ledger's thread calls

    def flush(self, time: float = 0.0) -> None:
        """Hand over what was counted, and take in what others told.

        With ``durable`` it returns when the other side has it, unless that cannot be reached.
        """
        del time
        changes, events = self.ledger.take_changes(), self.ledger.take_events()
        self._oldest = self.ledger.oldest
        reports = [self._report(b, self._source, part) for b, part in changes.items()]
        self._hand_over(reports, events)
        self._take_in()
        if self.durable:
            self._exchange(only_write=True)

    def renumbered(self, item_ids: Any) -> None:
        """Take notice that the ledger has another catalogue now; :meth:`flush` before it changes.

        Sums of items that are gone stay with others under the old name.
        """
        with self._io, self._lock:
            self._catalogue = _Catalogue(item_ids)
            self._incoming.clear()
            self.transport.forget()
        self._take_name()

    def close(self) -> None:
        """Write what was counted, and let go."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        self.flush(self.ledger.time)
        self._exchange()
        self._take_in()
        self.transport.close()

    @property
    def staleness(self) -> float:
        """Seconds since others were heard of last; infinite if they never were."""
        return float("inf") if self._last_good is None else time.monotonic() - self._last_good

    def staleness_bound(self, rate: float | None = None) -> float:
        """Return after how many seconds without news prices are too old.

        Parameters
        ----------
        rate
            Lists a second, of all processes; by default the mean rate of the window.
        """
        ledger, n_groups = self.ledger, len(self.ledger.group_totals)
        most = lists_at_same_prices(ledger.lists, self.k, self.n_candidates, n_groups)
        seconds = ledger.window or (ledger.half_life or 1.0) / np.log(2)
        mean = max(float(ledger.lists), 1.0) / seconds
        return float(max(most / max(mean if rate is None else rate, 1e-9), self.every))

    @property
    def is_stale(self) -> bool:
        """Whether prices are too old."""
        return self.staleness > self.staleness_bound()

    # Between the threads

    def _report(self, bucket: int, source: str, part: Part) -> Report:
        ids, is_own = self._catalogue.names(part.items), source in self._own
        sums = part.lists, part.plain, part.shown
        return Report(bucket, source, ids, part.amounts.tolist(), *sums, is_own)

    def _hand_over(self, reports: Iterable[Report], events: Iterable[tuple[int, int]] = ()) -> None:
        with self._lock:
            for report in reports:
                pair = report.bucket, report.source
                known = self._outgoing.get(pair)
                self._outgoing[pair] = report if known is None else known.updated(report)
            self._events.extend(events)

    def _take_in(self) -> None:
        """Merge what the thread has heard."""
        with self._lock:
            incoming, self._incoming = self._incoming, []
        for catalogue, news, parts in incoming:
            if catalogue is not self._catalogue:
                continue
            for bucket, source, part in parts:
                if source in self._own:
                    self._tell_what_is_missing(bucket, source, part)
                if source != self._source:
                    self.ledger.merge(bucket, source, part)
            self.ledger.know_events(news.events)
        if incoming:
            self._repair(incoming[-1][1])

    def _tell_what_is_missing(self, bucket: int, source: str, part: Part) -> None:
        """Tell of a source of this process what the journal has and the other side has not."""
        known = self.ledger.part(bucket, source)
        more = known.amounts > part.of(known.items)
        if more.any() or known.lists > part.lists:
            items, amounts = known.items[more], known.amounts[more]
            sums = known.lists, known.plain, known.shown
            self._hand_over([self._report(bucket, source, Part(items, amounts, *sums))])

    def _repair(self, news: News) -> None:
        """Tell what is known here and not on the other side."""
        if news.present is None:
            return
        told = 0
        for bucket, source, part in self.ledger.parts():
            pair = bucket, source
            with self._lock:
                is_under_way = pair in self._outgoing
            if told > _MOST_AT_A_TIME or is_under_way or bucket < self.ledger.oldest:
                continue
            if pair in news.lost or pair not in news.present:
                self._hand_over([self._report(bucket, source, part)])
                told += len(part.items) + 1

    # The thread

    def _run(self) -> None:
        while not self._ended.wait(self.every):
            self._exchange()

    def _exchange(self, *, only_write: bool = False) -> None:
        """Write and read once, unless the other side rests."""
        with self._io:
            if time.monotonic() < self._not_before:
                return
            with self._lock:
                outgoing, self._outgoing = self._outgoing, {}
                events, self._events = self._events, []
                catalogue = self._catalogue
            kept = {p: r for p, r in outgoing.items() if r.bucket >= self._oldest}
            try:
                if kept or not only_write:
                    self.transport.write(list(kept.values()), events, announce=not only_write)
                if not only_write:
                    self._read(catalogue)
            except DataError as error:
                self._failed(error, kept, events)
            else:
                self.error, self._rest, self._not_before = None, _FIRST_REST, 0.0

    def _read(self, catalogue: _Catalogue) -> None:
        news = self.transport.read(self._source, self._oldest)
        parts = [(r.bucket, r.source, catalogue.part(r)) for r in news.reports]
        with self._lock:
            self._incoming.append((catalogue, news._replace(reports=[]), parts))
            # Nobody takes in what was heard: the newest word on what is there is enough.
            for number in range(len(self._incoming) - 1):
                known, older, heard = self._incoming[number]
                self._incoming[number] = known, older._replace(present=None), heard
        self._last_good = time.monotonic()

    def _failed(
        self, error: DataError, outgoing: dict[Pair, Report], events: list[tuple[int, int]]
    ) -> None:
        """Keep what could not be written, and rest before the next attempt."""
        self.error = error
        with self._lock:
            newer, self._outgoing = self._outgoing, outgoing
            self._events[:0] = events[-_MOST_AT_A_TIME:]
        self._hand_over(newer.values())
        self._not_before = time.monotonic() + self._rest * (0.5 + secrets.randbelow(1000) / 1000)
        self._rest = min(2 * self._rest, _LONGEST_REST)
