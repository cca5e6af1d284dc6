"""Replicas that share a ledger over a Valkey or Redis server.

What a process tells of a source in a bucket is a hash of its own, sums by item id; a reader merges
what several tell of the same source. Writing is one transaction: HSET of the sums that changed, so
that a retry changes nothing, and one entry in a stream that tells the others what changed. Reading
is one transaction as well: the news in the stream, and an index of the version of every hash, which
shows what the news left out; only such hashes are read whole. So a flush costs two round trips and
the sums that changed, whatever the catalogue and the window are.

Everything expires some time after the window. Ids of events are kept for 10 to 20 minutes.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from limelight._base.errors import DataError
from limelight._base.text import first_words
from limelight.serve.ledger.parts import new_source
from limelight.serve.replicas.connection import connect, public_address
from limelight.serve.replicas.reports import ReplicaNews, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from limelight.serve.replicas.reports import Event, Pair

Made = TypeVar("Made")

_FORMAT = 1
_OTHER_FORMAT = (
    "processes of another version of limelight use the same ledger; what they show is not counted"
)
_TIMEOUT = 1.0
_FIELDS = 4096
"""At most so many fields go into one command, because the server does nothing else meanwhile."""
_NEWS, _NEWS_SECONDS = 512, 120
"""The stream keeps about so many entries of so long; who was away for longer reads whole hashes."""
_AUDIT = 30
"""After so many readings all hashes are looked for: a server may have dropped some."""
_SLOT = 600
"""Seconds of which one set holds the ids of events."""
_LARGEST = 1 << 62


class _Hash(NamedTuple):
    """What a process tells of a source in a bucket."""

    bucket: int
    source: str
    teller: str

    @property
    def pair(self) -> Pair:
        return self.bucket, self.source

    def __str__(self) -> str:
        return f"{self.bucket}:{self.source}:{self.teller}"

    @classmethod
    def of(cls, name: bytes) -> _Hash:
        bucket, _, rest = name.decode().partition(":")
        source, _, teller = rest.rpartition(":")
        return cls(int(bucket), source, teller)


class _Versions(NamedTuple):
    """Of a hash: of what others were told in the stream, and of what is there."""

    announced: int
    written: int

    def __str__(self) -> str:
        return f"{self.announced} {self.written}"

    @classmethod
    def of(cls, text: bytes) -> _Versions:
        announced, written = text.split()
        return cls(int(announced), int(written))


class ValkeyTransport:
    """Takes sums to a Valkey or Redis server, and from there.

    Parameters
    ----------
    url
        ``redis://``, ``rediss://``, ``valkey://``, ``valkeys://`` or ``unix://``, with a user and a
        password if need be. They are never part of a message.
    namespace
        What is shared: processes of the same model and window.
    width
        Of a bucket, in seconds.
    n_buckets
        Of the window.
    timeout
        Seconds that one answer of the server may take.
    """

    def __init__(
        self,
        url: str,
        *,
        namespace: str,
        width: float,
        n_buckets: int,
        timeout: float = _TIMEOUT,
    ) -> None:
        self.address = public_address(url)
        self._client, self._broken, self._errors = connect(url, timeout, self.address)
        # Keys in braces lie on one node of a cluster, as a transaction needs it.
        self._family = f"limelight:{{{namespace}:{width:.6g}}}"
        self._width, self._n_buckets = width, n_buckets
        self._keep = int(1000 * width * (n_buckets + 2))
        self._teller, self._version = new_source(), 0
        self._own: dict[_Hash, _Versions] = {}
        self._lost: set[Pair] = set()
        self._news: dict[Pair, Report] = {}
        self._new_events: list[Event] = []
        self._clock: float | None = None
        self.forget()

    def forget(self) -> None:
        """Read everything the next time, as at the first."""
        self._known: dict[_Hash, int] = {}
        self._tails: dict[_Hash, int] = {}
        self._read_tails: dict[_Hash, int] = {}
        self._last: str | None = None
        self._readings = 0

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def known_events(self, keys: Sequence[int]) -> set[int]:
        """Return those of some events that any process wrote in the last ten minutes."""

        def ask() -> set[int]:
            pipe = self._client.pipeline(transaction=False)
            for slot in self._event_slots():
                pipe.smismember(slot, [str(key) for key in keys])
            return {
                key
                for answers in pipe.execute()
                for key, is_known in zip(keys, answers, strict=True)
                if is_known
            }

        return self._ask(ask) if keys else set()

    # Writing

    def write(
        self,
        reports: Sequence[Report],
        events: Sequence[Event],
        *,
        announce: bool,
        state: str | None = None,
    ) -> None:
        """Store sums, and tell others of them if they are announced."""
        self._ask(lambda: self._write(reports, events, state, announce=announce))

    def _write(
        self,
        reports: Sequence[Report],
        events: Sequence[Event],
        state: str | None,
        *,
        announce: bool,
    ) -> None:
        # No version is used twice, also not after an attempt of which nobody knows what it did:
        # what has another content must have another version.
        self._version += 1
        pipe = self._client.pipeline(transaction=True)
        versions: dict[_Hash, _Versions] = {}
        for report in reports:
            told = _Hash(*report.pair, self._teller)
            announced = self._own.get(told, _Versions(0, 0)).announced
            versions[told] = _Versions(announced, self._version)
            pipe.hget(self._key(str(told)), "version")
        before = list(versions)
        for report in reports:
            self._put(pipe, _Hash(*report.pair, self._teller), report)
        if events:
            slot = self._event_slots()[0]
            pipe.sadd(slot, *(str(key) for _, key in events))
            pipe.pexpire(slot, 2000 * _SLOT)
        news, new_events = _joined(self._news, reports), [*self._new_events, *events]
        if announce and (news or new_events):
            versions |= self._announce(pipe, news, new_events)
        if versions:
            pipe.hset(self._key("index"), mapping={str(h): str(v) for h, v in versions.items()})
            pipe.pexpire(self._key("index"), self._keep)
        if state is not None:
            pipe.set(self._key("state"), state, px=self._keep)
        answers = pipe.execute() if pipe.command_stack else []
        # What was written here before and is not there any more is now there in part only.
        for told, found in zip(before, answers, strict=False):
            if int(found or 0) != self._own.get(told, _Versions(0, 0)).written:
                self._lost.add(told.pair)
        self._own |= versions
        self._news, self._new_events = ({}, []) if announce else (news, new_events)
        if announce:
            self._known |= {told: version.announced for told, version in versions.items()}

    def _put(self, pipe: Any, told: _Hash, report: Report) -> None:
        key = self._key(str(told))
        sums = {"lists": report.lists, "plain": report.plain, "shown": report.shown}
        sums["version"] = self._version
        fields = {f"i:{item}": amount for item, amount in report.amounts.items()}
        for some in _portions([*sums.items(), *fields.items()], _FIELDS):
            pipe.hset(key, mapping=dict(some))
        pipe.pexpire(key, self._keep)

    def _announce(
        self, pipe: Any, news: dict[Pair, Report], events: list[Event]
    ) -> dict[_Hash, _Versions]:
        """Add to the stream what was written since that was last done."""
        told, found = [], {}
        for pair, report in news.items():
            own = _Hash(*pair, self._teller)
            announced = self._own.get(own, _Versions(0, 0)).announced
            found[own] = _Versions(self._version, self._version)
            told.append([*report, announced, self._version])
        entry = {"news": json.dumps([self._teller, told, events], separators=(",", ":"))}
        pipe.xadd(self._key("news"), entry, maxlen=_NEWS, approximate=True)
        oldest = int(1000 * (self._now() - _NEWS_SECONDS))
        pipe.xtrim(self._key("news"), minid=max(oldest, 0), approximate=True)
        pipe.pexpire(self._key("news"), self._keep)
        return found

    # Reading

    def read(self, oldest: int) -> ReplicaNews:
        """Return what other processes told since the last time."""
        return self._ask(lambda: self._read(oldest))

    def _read(self, oldest: int) -> ReplicaNews:
        is_first, format_ = self._last is None, str(_FORMAT)
        pipe = self._client.pipeline(transaction=True)
        pipe.xread({self._key("news"): self._last or "0-0"})
        pipe.hgetall(self._key("index"))
        pipe.time()
        pipe.hgetall(f"{self._family}:formats")
        pipe.get(self._key("state")) if is_first else pipe.echo("")
        if self._clock is not None:
            pipe.hset(f"{self._family}:formats", format_, int(self._now()))
            pipe.pexpire(f"{self._family}:formats", self._keep)
        heard, found, (seconds, _), formats, state, *_ = pipe.execute()
        self._clock = int(seconds) - time.monotonic()
        index = {_Hash.of(name): _Versions.of(text) for name, text in found.items()}
        reports, events = self._news_of(heard, oldest)
        behind = [told for told in index if told.bucket >= oldest and self._is_behind(told, index)]
        reports += self._whole(behind)
        self._known |= {told: index[told].announced for told in behind}
        self._read_tails |= {told: index[told].written for told in behind}
        self._tails = {told: versions.written for told, versions in index.items()}
        self._last, self._readings = self._last or "0-0", self._readings + 1
        self._clean(index, oldest)
        others = {name for name, when in formats.items() if int(when) > int(seconds) - 60}
        is_alone = others <= {format_.encode()}
        lost, self._lost = self._lost, set()
        lost |= {told.pair for told, known in self._own.items() if index.get(told) != known}
        return ReplicaNews(
            reports,
            events,
            whole=frozenset(told.pair for told in behind),
            present=frozenset(told.pair for told in index),
            lost=frozenset(lost),
            state=state.decode() if state else None,
            notes=() if is_alone else (_OTHER_FORMAT,),
        )

    def _news_of(self, heard: Any, oldest: int) -> tuple[list[Report], list[Event]]:
        """Return what the stream tells; a report that others came before is left out."""
        reports, events = [], []
        is_first = self._last is None
        for _, entries in heard or []:
            for entry, fields in entries:
                self._last = entry.decode()
                teller, told, some_events = json.loads(fields[b"news"])
                if teller == self._teller:
                    continue
                events += [(int(bucket), int(key)) for bucket, key in some_events]
                for bucket, source, amounts, *sums, old, new in told:
                    hash_ = _Hash(int(bucket), str(source), teller)
                    # What is missed shows in the index; at first, everything is read from there.
                    if is_first or hash_.bucket < oldest or self._known.get(hash_, 0) != old:
                        continue
                    self._known[hash_] = int(new)
                    reports.append(_report(hash_, amounts, *sums))
        return reports, events

    def _is_behind(self, told: _Hash, index: dict[_Hash, _Versions]) -> bool:
        """Tell whether a hash has something that is not known."""
        announced, written = index[told]
        if told.teller == self._teller:
            return told not in self._known
        if self._known.get(told) != announced:
            return True
        # What was written and not announced for a whole interval was left by a process that is
        # gone.
        is_left = written != announced and self._tails.get(told) == written
        return is_left and self._read_tails.get(told) != written

    def _whole(self, hashes: Iterable[_Hash]) -> list[Report]:
        """Read hashes whole."""
        found = []
        for some in _portions(list(hashes), 64):
            pipe = self._client.pipeline(transaction=False)
            for told in some:
                pipe.hgetall(self._key(str(told)))
            for told, fields in zip(some, pipe.execute(), strict=True):
                amounts = {name[2:].decode(): n for name, n in fields.items() if name[:2] == b"i:"}
                sums = (fields.get(name, 0) for name in (b"lists", b"plain", b"shown"))
                found.append(_report(told, amounts, *sums))
        return found

    def _clean(self, index: dict[_Hash, _Versions], oldest: int) -> None:
        """Forget what left the window, and what the server dropped; whoever knows it tells it."""
        for kept in (self._own, self._known, self._read_tails):
            for told in [told for told in kept if told.bucket < oldest]:
                del kept[told]
        # A whole window later, and not by the clock of this process alone: it may be wrong.
        by_server = int(self._now() // self._width) - self._n_buckets
        gone = [told for told in index if told.bucket < min(oldest, by_server) - self._n_buckets]
        if self._readings % _AUDIT == 0:
            there = [told for told in index if told.bucket >= oldest]
            pipe = self._client.pipeline(transaction=False)
            for told in there:
                pipe.exists(self._key(str(told)))
            answers = zip(there, pipe.execute(), strict=True)
            gone += [told for told, exists in answers if not exists]
        if gone:
            self._client.hdel(self._key("index"), *map(str, gone))

    # Names, time and errors

    def _key(self, name: str) -> str:
        return f"{self._family}:{_FORMAT}:{name}"

    def _now(self) -> float:
        """Return the server's time, as far as it is known."""
        if self._clock is None:
            self._clock = int(self._client.time()[0]) - time.monotonic()
        return time.monotonic() + self._clock

    def _event_slots(self) -> list[str]:
        """Return the sets of events of this and the last ten minutes, by the server's clock."""
        now = int(self._now()) // _SLOT
        return [self._key(f"events:{slot}") for slot in (now, now - 1)]

    def _ask(self, call: Callable[[], Made]) -> Made:
        """Talk to the server; its failures, and those of the way to it, are told as our own."""
        try:
            try:
                return call()
            except self._broken:
                # The server may only have closed the connection, such as when it was restarted.
                return call()
        except self._errors as error:
            message = f"the ledger at {self.address} cannot be used: {first_words(error)}"
            hint = "answers go on; see that the server runs, and that its address is right"
            raise DataError(message, hint=hint) from error


def _report(told: _Hash, amounts: dict[str, Any], lists: Any, plain: Any, shown: Any) -> Report:
    """Make a report of what was read; refuses what nobody of us writes."""
    found = {str(item): int(amount) for item, amount in amounts.items()}
    report = Report(*told.pair, found, int(lists), int(plain), int(shown))
    least = min(report.lists, *found.values(), 0)
    largest = max(report.lists, *found.values(), abs(report.plain), abs(report.shown))
    if least < 0 or largest >= _LARGEST:
        message = f"sums that cannot be: {least}, {largest}"
        raise ValueError(message)
    return report


def _joined(known: dict[Pair, Report], reports: Iterable[Report]) -> dict[Pair, Report]:
    found = {pair: report.copy() for pair, report in known.items()}
    for report in reports:
        pair = report.pair
        found[pair] = found[pair].updated(report) if pair in found else report
    return found


def _portions(entries: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
