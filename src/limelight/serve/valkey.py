"""Replicas that share a ledger over a Valkey or Redis server.

What a source has counted in a bucket is a hash, its sums by item id. Writing is one transaction:
HSET of the sums that changed, so that a retry changes nothing, and one entry in a stream that tells
the others what changed. Reading is one transaction as well: the news in the stream, and an index of
the version of every hash, which shows what the news left out; only such hashes are read whole. So a
flush costs two round trips and the sums that changed, whatever the catalogue and the window are.

Everything expires some time after the window. Ids of events are kept for 10 to 20 minutes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import first_words
from limelight.serve.replicas import News, Pair, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix")
_FORMAT = 1
_TIMEOUT = 1.0
_FIELDS = 4096
"""At most so many fields go into one command, because the server does nothing else meanwhile."""
_NEWS = 512
"""The stream keeps about so many entries; whoever was away for longer reads whole hashes."""
_AUDIT = 30
"""After so many readings, own hashes are looked at: a server may have dropped some."""


class _Versions(NamedTuple):
    """Of a hash that this process writes."""

    written: int
    announced: int


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
        self._client, self._errors = _connect(url, timeout, self.address)
        # Keys in braces lie on one node of a cluster, as a transaction needs it.
        self._root = f"limelight:{_FORMAT}:{{{namespace}:{width:.6g}}}"
        self._keep = int(1000 * width * (n_buckets + 2))
        self._n_buckets = n_buckets
        self._own: dict[Pair, _Versions] = {}
        self._news: dict[Pair, Report] = {}
        self._new_events: list[tuple[int, int]] = []
        self.forget()

    def forget(self) -> None:
        """Read everything the next time, as at the first."""
        self._known: dict[Pair, int] = {}
        self._last: str | None = None
        self._readings = 0

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def known_events(self, keys: Sequence[int]) -> set[int]:
        """Return those of some events that any process counted in the last ten minutes."""
        if not keys:
            return set()
        with self._told():
            slots = self._event_slots()
            found = self._client.pipeline(transaction=False)
            for slot in slots:
                found.smismember(slot, [str(key) for key in keys])
            return {
                key
                for answers in found.execute()
                for key, is_known in zip(keys, answers, strict=True)
                if is_known
            }

    # Writing

    def write(
        self, reports: Sequence[Report], events: Sequence[tuple[int, int]], *, announce: bool
    ) -> None:
        """Store sums, and tell others of them if they are announced."""
        with self._told():
            pipe = self._client.pipeline(transaction=True)
            slots = self._event_slots() if events else []
            versions = {}
            for report in reports:
                pair = report.bucket, report.source
                known = self._own.get(pair, _Versions(0, 0))
                versions[pair] = _Versions(known.written + 1, known.announced)
                self._put(pipe, report, versions[pair].written)
            if events:
                pipe.sadd(slots[0], *(str(key) for _, key in events))
                pipe.pexpire(slots[0], 1_200_000)
            news = _joined(self._news, reports)
            all_events = [*self._new_events, *events]
            if announce and (news or all_events):
                versions |= self._announce(pipe, news, all_events, {**self._own, **versions})
            if pipe.command_stack:
                pipe.execute()
            self._own |= versions
            self._news, self._new_events = ({}, []) if announce else (news, all_events)

    def _put(self, pipe: Any, report: Report, version: int) -> None:
        key = self._hash(report.bucket, report.source)
        sums = {"lists": report.lists, "plain": report.plain, "shown": report.shown}
        fields = {f"i:{item}": n for item, n in zip(report.ids, report.amounts, strict=True)}
        if report.is_own:
            for some in _chunks({**sums, "version": version, **fields}):
                pipe.hset(key, mapping=some)
        else:
            # The source may be alive and know more: it is not overwritten, and finds a version
            # that is not its own.
            for name, value in {**sums, "version": -1, **fields}.items():
                pipe.hsetnx(key, name, value)
        pipe.pexpire(key, self._keep)

    def _announce(
        self,
        pipe: Any,
        news: dict[Pair, Report],
        events: list[tuple[int, int]],
        versions: dict[Pair, _Versions],
    ) -> dict[Pair, _Versions]:
        """Add to the stream and to the index what was written since that was last done."""
        told, found = [], {}
        for pair, report in news.items():
            old, new = versions[pair].announced, versions[pair].written
            found[pair] = _Versions(new, new)
            if report.is_own:
                told.append([*report[:7], old, new])
                pipe.hset(self._key("index"), _field(pair), new)
            else:
                pipe.hsetnx(self._key("index"), _field(pair), -1)
        entry = {"news": json.dumps([told, events], separators=(",", ":"))}
        pipe.xadd(self._key("news"), entry, maxlen=_NEWS, approximate=True)
        for name in ("index", "news"):
            pipe.pexpire(self._key(name), self._keep)
        return found

    # Reading

    def read(self, source: str, oldest: int) -> News:
        """Return what other sources told since the last time."""
        with self._told():
            last = self._last or self._end_of_news()
            pipe = self._client.pipeline(transaction=True)
            pipe.xread({self._key("news"): last}, count=2 * _NEWS)
            pipe.hgetall(self._key("index"))
            heard, index = pipe.execute()
            versions = dict(_index(index))
            reports, events, last = self._news_of(heard, source, oldest, last)
            behind = [
                pair
                for pair, version in versions.items()
                if pair[0] >= oldest and pair[1] != source and self._known.get(pair) != version
            ]
            reports += self._whole(behind)
            self._known |= {pair: versions[pair] for pair in behind}
            self._last = last
            lost = self._lost(versions, oldest)
            self._forget_old(versions, oldest)
        return News(reports, events, frozenset(versions), lost)

    def _end_of_news(self) -> str:
        newest = self._client.xrevrange(self._key("news"), count=1)
        return newest[0][0].decode() if newest else "0-0"

    def _news_of(
        self, heard: Any, source: str, oldest: int, last: str
    ) -> tuple[list[Report], list[tuple[int, int]], str]:
        """Return what the stream tells; a report that others came before is left out."""
        reports, events = [], []
        for _, entries in heard or []:
            for entry, fields in entries:
                last = entry.decode()
                told, some_events = json.loads(fields[b"news"])
                events += [(int(bucket), int(key)) for bucket, key in some_events]
                for *parts, old, new in told:
                    report = Report(*parts)
                    pair = report.bucket, report.source
                    is_next = self._known.get(pair, 0) == old
                    if report.source == source or report.bucket < oldest or not is_next:
                        continue  # what is missed shows in the index
                    self._known[pair] = new
                    reports.append(report)
        return reports, events, last

    def _whole(self, pairs: Iterable[Pair]) -> list[Report]:
        """Read hashes whole."""
        found = []
        for some in _portions(list(pairs), 64):
            pipe = self._client.pipeline(transaction=False)
            for pair in some:
                pipe.hgetall(self._hash(*pair))
            for (bucket, source), fields in zip(some, pipe.execute(), strict=True):
                items = {n[2:].decode(): int(v) for n, v in fields.items() if n[:2] == b"i:"}
                sums = (int(fields.get(name, 0)) for name in (b"lists", b"plain", b"shown"))
                found.append(Report(bucket, source, list(items), list(items.values()), *sums))
        return found

    def _lost(self, versions: dict[Pair, int], oldest: int) -> frozenset[Pair]:
        """Find own hashes that the server does not have as they were written."""
        own = [pair for pair, known in self._own.items() if pair[0] >= oldest and known.announced]
        lost = {pair for pair in own if versions.get(pair) != self._own[pair].announced}
        self._readings += 1
        if self._readings % _AUDIT == 1:
            pipe = self._client.pipeline(transaction=False)
            for pair in own:
                pipe.hget(self._hash(*pair), "version")
            for pair, version in zip(own, pipe.execute(), strict=True):
                if version is None or int(version) != self._own[pair].written:
                    lost.add(pair)
        return frozenset(lost)

    def _forget_old(self, versions: dict[Pair, int], oldest: int) -> None:
        """Forget what left the window; in the index a whole window later, should a clock be off."""
        self._own = {pair: known for pair, known in self._own.items() if pair[0] >= oldest}
        self._known = {pair: known for pair, known in self._known.items() if pair[0] >= oldest}
        old = [_field(pair) for pair in versions if pair[0] < oldest - self._n_buckets]
        if old:
            self._client.hdel(self._key("index"), *old)

    # Names and errors

    def _key(self, name: str) -> str:
        return f"{self._root}:{name}"

    def _hash(self, bucket: int, source: str) -> str:
        return f"{self._root}:{bucket}:{source}"

    def _event_slots(self) -> list[str]:
        """Return the sets of events of this and the last ten minutes, by the server's clock."""
        now = int(self._client.time()[0]) // 600
        return [self._key(f"events:{slot}") for slot in (now, now - 1)]

    def _told(self) -> _Told:
        return _Told(self._errors, self.address)


class _Told:
    """Tells of failures of the server or the way to it as our own error."""

    def __init__(self, errors: tuple[type[Exception], ...], address: str) -> None:
        self._errors, self._address = errors, address

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, self._errors):
            message = f"the ledger at {self._address} cannot be used: {first_words(error)}"
            hint = "answers go on; see that the server runs, and that its address is right"
            raise DataError(message, hint=hint) from error


def public_address(url: str) -> str:
    """Return an address without its user and password.

    Examples
    --------
    >>> public_address("redis://me:secret@example.org:6379/0?password=secret")
    'redis://example.org:6379/0'
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        message = f"not the address of a Valkey or Redis server, by its scheme: {scheme[:20]!r}"
        raise ConfigError(message, hint="such as redis://localhost:6379/0")
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    return f"{scheme}://{place.rpartition('@')[2]}"


def _connect(url: str, timeout: float, address: str) -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        import valkey
    except ImportError as error:
        message = f"the ledger at {address} needs the package valkey"
        raise ConfigError(message, hint="pip install 'limelight[serve]'") from error
    try:
        client = valkey.Valkey.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout, socket_keepalive=True
        )
    except (ValueError, TypeError) as error:
        message = f"not the address of a server: {address}"
        raise ConfigError(message, hint="such as redis://localhost:6379/0") from error
    # What is not in our form, because somebody else wrote it, counts as a server that is away.
    return client, (valkey.ValkeyError, OSError, ValueError, KeyError, TypeError)


def _joined(known: dict[Pair, Report], reports: Iterable[Report]) -> dict[Pair, Report]:
    found = dict(known)
    for report in reports:
        pair = report.bucket, report.source
        found[pair] = found[pair].updated(report) if pair in found else report
    return found


def _field(pair: Pair) -> str:
    return f"{pair[0]}:{pair[1]}"


def _index(fields: dict[bytes, bytes]) -> Iterator[tuple[Pair, int]]:
    for name, version in fields.items():
        bucket, _, source = name.decode().partition(":")
        yield (int(bucket), source), int(version)


def _chunks(fields: dict[str, int]) -> Iterator[dict[str, int]]:
    for some in _portions(list(fields.items()), _FIELDS):
        yield dict(some)


def _portions(entries: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
