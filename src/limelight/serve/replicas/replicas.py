"""Several processes that count into one ledger: each tells its own sums, and adds those of others.

A process counts under a name that no other has. What it tells are its sums, by bucket and by item
id, never differences: a message that comes twice, late or out of order changes nothing. A process
that is started again takes a new name; what it counted under the old one stays.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from math import inf
from typing import TYPE_CHECKING, Any

from limelight._base.errors import DataError, LimelightError
from limelight._base.text import first_words
from limelight.serve.ledger.buckets import event_key
from limelight.serve.ledger.parts import SourcePart, new_source
from limelight.serve.replicas.reports import Catalogue, portions
from limelight.serve.replicas.staleness import staleness_bound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limelight.serve.ledger.ledger import Ledger
    from limelight.serve.replicas.reports import Event, Pair, ReplicaNews, Report, Transport

_MOST_AT_A_TIME = 50_000
"""So many sums are written at a time, because the other side must answer in time."""
_FIRST_REST, _LONGEST_REST = 0.1, 5.0
_STATE_EVERY = 10.0
_PATIENCE = 3
"""So many readings a process waits for others to tell what it could tell in their place."""


class Replicas:
    """Shares a ledger with other processes.

    A thread writes and reads every ``every`` seconds; so much of what a process counted is lost if
    it is killed, and so late do others hear of it. With ``durable``, :meth:`flush` writes at once
    what was counted since the last time, and whoever answers after it loses nothing. While the
    other side cannot be reached, nobody waits: lists are counted, the thread tries again after a
    rest of up to 5 seconds, and what was counted meanwhile is written then. Whoever must not lose
    it to a kill in that time either keeps a journal as well.

    What the other side has lost, each process writes again: its own sums at once, and after some
    readings what it knows of other sources and nobody else has written. What it knows of others it
    never takes back.

    The thread that uses the ledger calls the methods, :meth:`flush` every second or so.

    Parameters
    ----------
    ledger
        Counts under a new name from now on. What it has already, from a journal or of a model, is
        told as far as others do not have it.
    transport
        How others are reached.
    item_ids
        Of the ledger's items. Processes may have different catalogues.
    every
        Seconds.
    durable
        Whether :meth:`flush` waits for the other side.
    k, n_candidates
        Of a list, for the bound of :meth:`staleness_bound`.

    Attributes
    ----------
    error : LimelightError or None
        Why others cannot be reached.
    is_journaled : bool
        Whether a journal keeps what is counted while they cannot.
    start_notes : list of str
        What else is to be said at the start.
    """

    def __init__(
        self,
        ledger: Ledger,
        transport: Transport,
        *,
        item_ids: Any,
        every: float = 1.0,
        durable: bool = False,
        k: int = 20,
        n_candidates: int = 500,
    ) -> None:
        self.is_journaled, self.start_notes = False, list[str]()
        self.ledger, self.transport = ledger, transport
        self.every, self.durable, self.k, self.n_candidates = every, durable, k, n_candidates
        self.error: LimelightError | None = None
        self._catalogue = self._read_for = Catalogue(item_ids)
        self._lock, self._io, self._ended = threading.Lock(), threading.Lock(), threading.Event()
        # Between the threads, under the lock
        self._outgoing: dict[Pair, Report] = {}
        self._events: list[Event] = []
        self._incoming: list[tuple[Catalogue, ReplicaNews, list[tuple[int, str, SourcePart]]]] = []
        self._state: dict[str, Any] | None = None
        # Of the ledger's thread
        self._early: dict[Pair, SourcePart] = {}
        self._short: set[Pair] = set()
        self._lost: set[Pair] = set()
        self._waits: dict[Pair, int] = {}
        self._notes: tuple[str, ...] = ()
        # Of whoever has the transport
        self._last_good: float | None = None
        self._found_state: str | None = None
        self._written_state: dict[str, Any] | None = None
        self._state_at = -inf
        self._rest, self._not_before = _FIRST_REST, 0.0
        self._oldest = ledger.oldest
        self._take_name()
        ledger.track()
        self._exchange()
        self.flush(ledger.time)
        self._thread = threading.Thread(target=self._run, name="limelight-replicas", daemon=True)
        self._thread.start()

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_name(self) -> None:
        self._source = new_source()
        self.ledger.rename(self._source)

    # What the ledger's thread calls

    def flush(self, now: float = 0.0) -> None:
        """Hand over what was counted, and take in what others told.

        With ``durable`` it returns when the other side has it, unless that cannot be reached.
        """
        self._now = now or self.ledger.time
        self._hand_over_changes()
        self._take_in()
        if self.durable:
            self._exchange(only_write=True)

    def learn(self, events: Iterable[str | None]) -> None:
        """Find out which events another process counted just now; called before they are counted.

        Only with ``durable``. Otherwise others hear of an event after ``every`` seconds at most.
        """
        if not self.durable:
            return
        known = self.ledger.events
        keys = [event_key(event) for event in events if event is not None]
        keys = [key for key in keys if key not in known]
        with self._io:
            if not keys or time.monotonic() < self._not_before:
                return
            try:
                found = self.transport.known_events(keys)
            except DataError as error:
                self._failed(error, {}, [])
                return
        bucket = self.ledger.bucket_of(self.ledger.time)
        self.ledger.know_events((bucket, key) for key in found)

    def renumbered(self, item_ids: Any) -> None:
        """Take notice that the ledger has another catalogue now; :meth:`flush` before it changes.

        The process counts under a new name from then on. Sums of items that are gone stay with
        others under the old one.
        """
        with self._lock:
            self._catalogue = Catalogue(item_ids)
            self._incoming.clear()
        self._early.clear()
        self._short.clear()
        self._lost.clear()
        self._hand_over_changes()
        self._take_name()

    def write_state(self, state: dict[str, Any]) -> None:
        """Keep something small for whoever is started next; the last process to write wins."""
        self._state = state

    def read_state(self) -> dict[str, Any] | None:
        """Return what any process kept last, as it was found at the start; None if nothing was."""
        try:
            found = None if self._found_state is None else json.loads(self._found_state)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def close(self) -> None:
        """Write what was counted, and let go."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        self._hand_over_changes()
        self._exchange(at_once=True)
        # Nobody else may know what the other side has lost, and this process cannot wait.
        self._take_in(is_last=True)
        if self._outgoing and self.error is None:
            self._exchange(at_once=True)
        self.transport.close()

    # What is known of the others

    def status(self) -> dict[str, Any]:
        """Say how old the news of others is, and what is wrong."""
        staleness = self.staleness
        return {
            "stale_seconds": None if self._last_good is None else round(staleness, 3),
            "notes": self._status_notes(staleness),
            "start_notes": [self.start_note(), *self.start_notes],
        }

    def _status_notes(self, staleness: float) -> list[str]:
        notes, error = [*self.ledger.clock_notes(self._now), *self._notes], self.error
        if error is not None:
            notes.append(error.message)
            if self.durable and not self.is_journaled:
                notes.append("until then, a kill of this process loses what it counts")
        if self.is_stale:
            age = "nothing was heard" if staleness == inf else f"{staleness:,.0f} s old"
            bound = self.staleness_bound()
            said = f"figures of other processes are older than {bound:,.1f} s: {age}"
            notes.append(said)
        ahead = max((bucket for bucket, _ in self._early), default=0)
        ahead -= self.ledger.bucket_of(self.ledger.time)
        if ahead > 0:
            seconds = f"{ahead * self.ledger.width:,.0f} s"
            notes.append(f"the clock of another process is ahead: {seconds}")
        return notes

    def start_note(self) -> str:
        """Say how often others are heard, and how old what is known of them may become."""
        bound = self.staleness_bound()
        said = f"shares its ledger every {self.every:g} s; prices may be {bound:,.1f} s old"
        return said if bound >= self.every else f"{said}: write more often, or take a longer window"

    @property
    def staleness(self) -> float:
        """Seconds since others were heard of last; infinite if they never were."""
        return inf if self._last_good is None else time.monotonic() - self._last_good

    def staleness_bound(self, rate: float | None = None) -> float:
        """Return after how many seconds without news prices are too old, at a rate of lists."""
        return staleness_bound(self.ledger, self.k, self.n_candidates, rate)

    @property
    def is_stale(self) -> bool:
        """Whether prices are too old, and not only because it is not yet time to read again."""
        return self.staleness > max(self.staleness_bound(), 3 * self.every)

    # Between the threads

    def _hand_over_changes(self) -> None:
        changes, events = self.ledger.take_changes(), self.ledger.take_events()
        self._oldest = self.ledger.oldest
        reports = [self._catalogue.report(b, self._source, part) for b, part in changes.items()]
        with self._lock:
            self._add(reports)
            self._events.extend(events)

    def _add(self, reports: Iterable[Report]) -> None:
        """Put reports with those that are still to be written; the lock is held."""
        for report in reports:
            known = self._outgoing.get(report.pair)
            self._outgoing[report.pair] = report if known is None else known.updated(report)

    def _take_in(self, *, is_last: bool = False) -> None:
        """Merge what the thread has heard."""
        with self._lock:
            incoming, self._incoming = self._incoming, []
        early, self._early = self._early, {}
        for (bucket, source), part in early.items():
            self._merge(bucket, source, part)
        for catalogue, news, parts in incoming:
            if catalogue is self._catalogue:
                self._take_in_news(news, parts)
        if incoming and incoming[-1][0] is self._catalogue:
            news = incoming[-1][1]
            self._notes = news.notes
            self._tell_what_others_lost(news, patience=0 if is_last else _PATIENCE)

    def _take_in_news(self, news: ReplicaNews, parts: list[tuple[int, str, SourcePart]]) -> None:
        told: dict[Pair, SourcePart] = {}
        for bucket, source, part in parts:
            if source == self._source:
                continue
            self._merge(bucket, source, part)
            pair = bucket, source
            told[pair] = part.merged(told[pair]) if pair in told else part
        for pair in news.whole:
            if pair[1] == self._source:
                continue  # what is lost of it, the transport knows
            if self.ledger.part(*pair).exceeds(told.get(pair, SourcePart())):
                self._short.add(pair)
            else:
                self._short.discard(pair)
        self._lost |= news.lost
        self.ledger.know_events(news.events)

    def _merge(self, bucket: int, source: str, part: SourcePart) -> None:
        """Merge a part; one whose time has not come, because clocks differ, waits for it."""
        if not self.ledger.merge(bucket, source, part) and bucket > self.ledger.oldest:
            pair = bucket, source
            known = self._early.get(pair)
            self._early[pair] = part if known is None else known.merged(part)

    def _tell_what_others_lost(self, news: ReplicaNews, *, patience: int) -> None:
        """Tell what is known here and not on the other side."""
        if news.present is None:
            return
        missing = self._short | {pair for pair in self.ledger.others() if pair not in news.present}
        waits = {
            pair: self._waits.get(pair, patience + secrets.randbelow(_PATIENCE)) - 1
            for pair in missing
        }
        self._waits = waits
        due = [*self._lost]
        due += [pair for pair, left in waits.items() if min(left, patience) <= 0]
        told = 0
        for bucket, source in due:
            if told > _MOST_AT_A_TIME and patience:
                break
            part = self.ledger.part(bucket, source)
            with self._lock:
                self._add([self._catalogue.report(bucket, source, part)])
            told += len(part.items) + 1
            self._lost.discard((bucket, source))
            self._short.discard((bucket, source))
            self._waits.pop((bucket, source), None)

    # The thread

    def _run(self) -> None:
        while not self._ended.wait(self.every):
            self._exchange()

    def _exchange(self, *, only_write: bool = False, at_once: bool = False) -> None:
        """Write and read once, unless the other side rests."""
        with self._io:
            if time.monotonic() < self._not_before and not at_once:
                return
            with self._lock:
                outgoing, self._outgoing = self._outgoing, {}
                events, self._events = self._events, []
                catalogue = self._catalogue
            if catalogue is not self._read_for:
                self._read_for = catalogue
                self.transport.forget()
            state = None if only_write else self._state_to_write(at_once=at_once)
            kept = {pair: r for pair, r in outgoing.items() if r.bucket >= self._oldest}
            try:
                if kept or events or not only_write:
                    *more, last = portions(kept.values(), _MOST_AT_A_TIME)
                    for reports in more:
                        self.transport.write(reports, [], announce=not only_write)
                    self.transport.write(last, events, announce=not only_write, state=state)
                if not only_write:
                    self._read(catalogue)
            except DataError as error:
                self._failed(error, kept, events)
            except Exception as error:  # whatever it is, the thread goes on
                said = f"what other processes told cannot be read: {first_words(error)}"
                self._failed(DataError(said), kept, events)
            else:
                self.error, self._rest, self._not_before = None, _FIRST_REST, 0.0

    def _read(self, catalogue: Catalogue) -> None:
        news = self.transport.read(self._oldest)
        parts = [(r.bucket, r.source, catalogue.part(r)) for r in news.reports]
        with self._lock:
            self._incoming.append((catalogue, news._replace(reports=[]), parts))
        self._found_state = news.state or self._found_state
        self._last_good = time.monotonic()

    def _state_to_write(self, *, at_once: bool) -> str | None:
        """Return what is kept beside the sums, if it is another one and time to write it."""
        state, now = self._state, time.monotonic()
        is_due = at_once or now - self._state_at >= _STATE_EVERY
        if not is_due or state == self._written_state:
            return None
        self._written_state, self._state_at = state, now
        return json.dumps(state)

    def _failed(self, error: DataError, outgoing: dict[Pair, Report], events: list[Event]) -> None:
        """Keep what could not be written, and rest before the next attempt."""
        self.error, self._written_state = error, None
        with self._lock:
            self._add(outgoing.values())
            self._events[:0] = events[-_MOST_AT_A_TIME:]
        self._not_before = time.monotonic() + self._rest * (0.5 + secrets.randbelow(1000) / 1000)
        self._rest = min(2 * self._rest, _LONGEST_REST)
