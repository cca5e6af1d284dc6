"""The files of a ledger: a snapshot of all that was counted, and journals of what came after.

A snapshot names its generation, g. It holds everything before the journal g; the journals g, g + 1
and so on hold what came after, one record a list, with a checksum each. A new journal begins before
its snapshot is written, so a kill between the two loses nothing and counts nothing twice.
"""

from __future__ import annotations

import errno
import json
import os
import re
import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError
from limelight._base.files import write_errors
from limelight.data.ids import bytes_of_ids, ids_of_bytes, ids_to_arrow, positions
from limelight.store.arrays import load_arrays, save_arrays

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Int32

VERSION = 1
_LOCK = "lock"
SNAPSHOT = "snapshot.safetensors"
STATE = "state.json"
_NAME = re.compile(r"journal-(\d{1,15})\.log")
_MARK = b"\xa7LL\x01"
_HEAD = struct.Struct("<4sI")
_BODY = struct.Struct("<IqqqQ")
_MOST_HEADER = 4096


@dataclass(frozen=True)
class FileHead:
    """What a file of a ledger says of itself."""

    generation: int
    source: str
    """The name under which lists were counted."""
    width: float
    """Of a bucket, in seconds."""
    items: str
    """A digest of the catalogue."""
    version: int = VERSION

    def to_bytes(self) -> bytes:
        """Write it as one line of JSON."""
        return json.dumps({"limelight": "ledger", **asdict(self)}).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes, path: Path) -> FileHead:
        """Read what :meth:`to_bytes` wrote."""
        try:
            found = json.loads(line)
            if found.pop("limelight") != "ledger":
                raise ValueError("it is of something else")  # noqa: EM101, TRY301
            newer = int(found["version"]) > VERSION
            head = None if newer else cls(**found)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"not a file of a ledger: {str(path)!r}"
            raise DataError(message, hint="move it away, or name another folder") from error
        if head is None:
            message = f"{str(path)!r} is of a newer version of limelight: {found['version']}"
            raise DataError(message, hint="upgrade limelight, or name another folder")
        return head


class Record(NamedTuple):
    """One list, as a journal has it."""

    bucket: int
    plain: int
    shown: int
    key: int
    items: Int32

    def to_bytes(self) -> bytes:
        """Write it with its mark and its checksum."""
        numbers = _BODY.pack(len(self.items), self.bucket, self.plain, self.shown, self.key)
        body = numbers + self.items.astype("<i4", copy=False).tobytes()
        return _HEAD.pack(_MARK, zlib.crc32(body)) + body


class Scan(NamedTuple):
    """What is in a journal."""

    head: FileHead | None
    """None of a file that was cut short within its first line."""
    records: list[Record]
    size: int
    """Bytes up to the end of the last whole record."""
    torn: int
    """Bytes after it: of a record that was never written to its end."""


def read_journal(path: Path) -> Scan:
    """Read a journal; what a kill or a power cut left unfinished at its end is told, not read.

    Raises
    ------
    DataError
        If a record is damaged that others follow, or if the file is of a newer version.
    """
    content = path.read_bytes()
    end = content.find(b"\n", 0, _MOST_HEADER)
    if end < 0:
        if len(content) >= _MOST_HEADER or not b'{"limelight": "ledger"'.startswith(content[:22]):
            return Scan(FileHead.read(content[:_MOST_HEADER], path), [], 0, 0)  # which refuses it
        return Scan(None, [], 0, len(content))
    head = FileHead.read(content[:end], path)
    records, at = [], end + 1
    while at < len(content):
        found = _record(content, at)
        if found is None:
            _refuse_gap(content, at, path)
            break
        records.append(found[0])
        at = found[1]
    return Scan(head, records, at, len(content) - at)


def _record(content: bytes, at: int) -> tuple[Record, int] | None:
    """Read the record that begins at a place; returns None unless it is whole."""
    start = at + _HEAD.size
    if len(content) < start + _BODY.size:
        return None
    mark, checksum = _HEAD.unpack_from(content, at)
    n, bucket, plain, shown, key = _BODY.unpack_from(content, start)
    end = start + _BODY.size + 4 * n
    if mark != _MARK or end > len(content) or zlib.crc32(content[start:end]) != checksum:
        return None
    items = np.frombuffer(content, "<i4", n, start + _BODY.size).astype(np.int32)
    return Record(bucket, plain, shown, key, items), end


def _refuse_gap(content: bytes, at: int, path: Path) -> None:
    """Refuse a journal with a whole record after a damaged one: that is no unfinished write."""
    place = content.find(_MARK, at + 1)
    while place >= 0:
        if _record(content, place) is not None:
            message = f"the journal {str(path)!r} is damaged at byte {at:,}"
            hint = "restore it from a copy, or move it away: what it holds is then not counted"
            raise DataError(message, hint=hint)
        place = content.find(_MARK, place + 1)


def journals(folder: Path) -> dict[int, Path]:
    """List the journals of a folder by generation, in ascending order."""
    found = {
        int(match[1]): path for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))
    }
    return dict(sorted(found.items()))


def journal_path(folder: Path, generation: int) -> Path:
    """Return where the journal of a generation lies."""
    return folder / f"journal-{generation}.log"


class StoredLedger(NamedTuple):
    """A snapshot."""

    head: FileHead
    arrays: dict[str, NDArray[Any]]
    ids: Any
    """Of items, an Arrow array; None if the ledger was kept without them."""


def save_snapshot(
    folder: Path, head: FileHead, arrays: Mapping[str, NDArray[Any]], ids: Any
) -> None:
    """Write a snapshot, whole or not at all."""
    stored = dict(arrays)
    stored["head"] = np.frombuffer(head.to_bytes(), dtype=np.uint8)
    if ids is not None:
        stored["id_offsets"], stored["id_bytes"] = bytes_of_ids(ids)
        stored["ids_are_text"] = np.array([not pa.types.is_integer(ids.type)])
    save_arrays(folder / SNAPSHOT, stored)


def load_snapshot(folder: Path) -> StoredLedger | None:
    """Read the snapshot of a folder; None if there is none."""
    path = folder / SNAPSHOT
    if not path.exists():
        return None
    arrays = load_arrays(path)
    try:
        head = FileHead.read(arrays.pop("head").tobytes(), path)
        ids = None
        if "id_bytes" in arrays:
            kind = pa.large_string() if arrays.pop("ids_are_text").item() else pa.int64()
            ids = ids_of_bytes(arrays.pop("id_offsets"), arrays.pop("id_bytes"), kind)
        _check(arrays)
    except (KeyError, ValueError, TypeError, IndexError, pa.ArrowInvalid) as error:
        message = f"the snapshot {str(path)!r} is damaged: {error}"
        hint = "restore it from a copy, or name another folder to begin with an empty ledger"
        raise DataError(message, hint=hint) from error
    return StoredLedger(head, arrays, ids)


def _check(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays that do not go together."""
    n_parts, n_pairs = len(arrays["buckets"]), len(arrays["items"])
    fits = (
        len(json.loads(arrays["sources"].tobytes())) == n_parts == len(arrays["sizes"])
        and arrays["sums"].shape == (n_parts, 3)
        and len(arrays["amounts"]) == n_pairs == int(arrays["sizes"].sum())
        and len(arrays["events"]) == len(arrays["event_buckets"])
        and arrays["clock"].shape == (2,)
        and bool(np.isfinite(arrays["clock"]).all())
        and (n_pairs == 0 or arrays["items"].min() >= 0)
    )
    if not fits:
        raise ValueError("its arrays do not go together")  # noqa: EM101


def arrow_ids(ids: Any) -> Any:
    """Return ids as an Arrow array."""
    return ids if ids is None or isinstance(ids, pa.Array) else ids_to_arrow(ids)


def each_record(scans: list[Scan]) -> Iterator[Record]:
    """Go through the records of journals in order."""
    for scan in scans:
        yield from scan.records


def locked(folder: Path) -> int:
    """Lock a folder for this process; returns the open file."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / SNAPSHOT).exists():
            refuse_strangers(folder)
        held = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if fcntl is not None:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        if error.errno not in {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}:
            message = f"the folder {str(folder)!r} cannot be locked: {error.strerror}"
            raise DataError(message, hint="keep the ledger on a local disk") from error
        message = f"another process keeps its ledger in {str(folder)!r}"
        hint = "end it, or name another folder; several processes share a redis:// ledger"
        raise DataError(message, hint=hint) from error
    return held


def free_folder(parent: str | os.PathLike[str]) -> Path:
    """Return the first folder below another, replica-0 and so on, that no process uses.

    Processes that share a ledger and keep journals as well each take one. Who starts again takes
    over what a killed one left.
    """
    number = 0
    while True:
        folder = Path(parent) / f"replica-{number}"
        try:
            os.close(locked(folder))
        except DataError as error:
            if not isinstance(error.__cause__, BlockingIOError):
                raise
            number += 1
        else:
            return folder


def write_all(file: int, content: bytes) -> None:
    """Write to the end of an open file, and have the disk confirm it."""
    written = 0
    while written < len(content):
        written += os.write(file, memoryview(content)[written:])
    os.fsync(file)


def refuse_strangers(folder: Path) -> None:
    """Refuse a folder of something else: a wrong path must not mix a ledger with a model."""
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    strange = sorted(names - {_LOCK, STATE} - {path.name for path in journals(folder).values()})
    if strange:
        message = f"{str(folder)!r} holds something else than a ledger, e.g. {strange[0]!r}"
        raise DataError(message, hint="name a new folder")


def refuse_orphans(files: dict[int, Path]) -> None:
    """Refuse journals whose snapshot is gone; those of a first start that was killed are empty."""
    for path in files.values():
        if read_journal(path).records:
            message = f"the snapshot that belongs to {str(path)!r} is gone"
            hint = "restore it from a copy, or move the journal away: what it holds is not counted"
            raise DataError(message, hint=hint)


def refuse_strange_journals(stored: StoredLedger, chain: list[Scan], folder: Path) -> None:
    """Refuse journals that cannot follow a snapshot or each other."""
    for number, scan in enumerate(chain):
        if scan.torn and number < len(chain) - 1 and chain[-1].records:
            message = f"a journal in {str(folder)!r} ends within a record, at byte {scan.size:,}"
            hint = "restore it from a copy, or move it away: what it holds is then not counted"
            raise DataError(message, hint=hint)
        if scan.head is not None and scan.head.items != stored.head.items and scan.records:
            message = f"a journal in {str(folder)!r} is of another catalogue: {scan.head.items}"
            raise DataError(message, hint="move it away: what it holds is then not counted")


def numbers_of(
    stored: StoredLedger, digest: str, ids: Any, n_items: int, folder: Path
) -> Int32 | None:
    """Return the present numbers of the items of a snapshot; None if they are the same.

    ``digest`` and ``ids`` are of the present catalogue.
    """
    largest = int(stored.arrays["items"].max()) if len(stored.arrays["items"]) else -1
    if stored.head.items == digest and largest < n_items:
        return None
    if stored.ids is None or ids is None or largest >= len(stored.ids):
        message = f"the ledger in {str(folder)!r} is of {stored.head.items}"
        raise DataError(message, hint=f"this catalogue has {digest}; name another folder")
    return positions(stored.ids, ids).astype(np.int32)


def as_data_error(folder: Path, error: OSError | DataError) -> DataError:
    """Tell what the disk did not do in our words."""
    if isinstance(error, DataError):
        return error
    try:
        with write_errors(folder):
            raise error
    except DataError as told:
        return told
