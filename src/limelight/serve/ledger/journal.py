"""A ledger that outlives its process: a journal of lists, with a snapshot now and then."""

from __future__ import annotations

import errno
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError, LimelightError
from limelight._base.files import sync
from limelight._base.text import count
from limelight.serve.ledger.journal_files import (
    FileHead,
    Record,
    arrow_ids,
    as_data_error,
    each_record,
    journal_path,
    journals,
    load_snapshot,
    locked,
    numbers_of,
    read_journal,
    refuse_orphans,
    refuse_strange_journals,
    refuse_strangers,
    save_snapshot,
    write_all,
)
from limelight.serve.ledger.parts import new_source
from limelight.serve.ledger.state_file import StateFile
from limelight.store.checkpoint import digest_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from limelight._base.arrays import Int32
    from limelight.serve.ledger.journal_files import StoredLedger
    from limelight.serve.ledger.ledger import Ledger

_MOST_BYTES = 1 << 26
"""A journal that is longer gets a snapshot: half a million lists of 20."""
_STATE_EVERY = 10.0
"""Seconds between writings of what is kept beside the lists, which need not be the newest."""


class _Turn(NamedTuple):
    """A journal ends here: what its snapshot is to hold, and what is still to be written to it."""

    arrays: Callable[[], dict[str, NDArray[Any]]]
    last: bytes


class Journal:
    """Keeps a ledger in a folder, and takes up what the folder has.

    Every list that the ledger counts goes into a buffer. A thread writes that to the disk, and has
    the disk confirm it, every ``flush_every`` seconds: so much may be lost by a kill. With
    ``durable``, :meth:`flush` does it at once, for all lists since the last time; whoever answers
    after it loses nothing.

    If the disk is full or fails, lists are counted all the same. :attr:`error` says what is wrong
    until it is over; then everything is written.

    Only one process may use a folder. The thread that uses the ledger calls the methods.

    Parameters
    ----------
    folder
        Made if need be. What limelight did not write is left alone.
    ledger
        An empty one. It takes up what the folder holds, also of another catalogue (by item id) and
        of another window.
    item_ids
        Of the ledger's items. Without them the catalogue must always be the same.
    flush_every
        Seconds.
    durable
        Whether :meth:`flush` waits for the disk.

    Attributes
    ----------
    error : LimelightError or None
        Why what was counted last is not on the disk.
    notes : list of str
        What was found when the folder was opened.

    Examples
    --------
    >>> import tempfile
    >>> from limelight.serve.ledger.ledger import Ledger
    >>> folder = tempfile.mkdtemp()
    >>> ledger = Ledger(3, window=3600)
    >>> with Journal(folder, ledger) as journal:
    ...     is_counted = ledger.count(np.array([2], dtype=np.int32), time=100.0)
    >>> again = Ledger(3, window=3600)
    >>> with Journal(folder, again):
    ...     again.totals
    array([      0,       0, 1048576])
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        ledger: Ledger,
        *,
        item_ids: Any = None,
        flush_every: float = 1.0,
        durable: bool = False,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        if not flush_every > 0:
            message = f"the flush interval of a journal must be above 0 seconds: {flush_every}"
            raise ConfigError(message, hint="1 is usual; durable=True loses nothing")
        self.folder, self.ledger = Path(folder), ledger
        self.flush_every, self.durable = flush_every, durable
        self.error: LimelightError | None = None
        self.notes: list[str] = []
        self._most_bytes, self._generation = most_bytes, 0
        self._set_ids(item_ids)
        self._buffer, self._buffer_lock = bytearray(), threading.Lock()
        self._turn: _Turn | None = None
        self._io, self._ended = threading.RLock(), threading.Event()
        self._file, self._good, self._is_stalled = -1, 0, False
        self._saving: threading.Thread | None = None
        self._saving_error: LimelightError | None = None
        self._revision = self._since = 0
        self._state = StateFile(self.folder)
        self._held = locked(self.folder)
        try:
            self._recover()
            self._checkpoint()
            self._refuse_error()
        except BaseException:
            self._let_go()
            raise
        self._now = ledger.time
        ledger.witness = self
        self._thread = threading.Thread(target=self._run, name="limelight-journal", daemon=True)
        self._thread.start()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_error(self) -> None:
        if self.error is not None:
            raise self.error

    def _set_ids(self, item_ids: Any) -> None:
        self._ids = arrow_ids(item_ids)
        if self._ids is not None and len(self._ids) != self.ledger.n_items:
            message = f"a ledger of {self.ledger.n_items:,} items has {len(self._ids):,} ids"
            raise ConfigError(message, hint="pass the ids of the catalogue, in its order")
        known = self._ids
        self._digest = (
            f"{self.ledger.n_items} items" if known is None else digest_ids(known.to_pylist())
        )

    # What the ledger's thread calls

    def counted(self, bucket: int, items: Int32, plain: int, shown: int, key: int) -> None:
        """Take down a list that the ledger has counted."""
        if self.ledger.revision != self._revision:
            self._checkpoint()  # which has this list, too
            return
        if self._is_stalled:
            return  # the next snapshot has it
        record = Record(bucket, plain, shown, key, items).to_bytes()
        with self._buffer_lock:
            self._buffer += record
            self._since += len(record)
            is_long = self._since >= self._most_bytes and self._turn is None
            if is_long and not (self._saving and self._saving.is_alive()):
                self._turn = _Turn(self.ledger.freeze(), bytes(self._buffer))
                self._buffer.clear()
                self._since = 0
            elif len(self._buffer) >= 2 * self._most_bytes:
                # The disk has taken nothing for long; all is written once it does.
                self._buffer.clear()
                self._is_stalled = True

    def flush(self, now: float = 0.0) -> None:
        """Write what must not be lost; without ``durable``, only what the thread cannot do."""
        self._now = now or self.ledger.time
        if self._is_stalled or self.ledger.revision != self._revision:
            self._checkpoint()
        elif self.durable:
            self._write()

    def learn(self, events: Iterable[str | None]) -> None:
        """Do nothing: only this process counts."""

    def renumbered(self, item_ids: Any) -> None:
        """Take notice that the ledger has another catalogue now."""
        self._set_ids(item_ids)
        self._checkpoint()

    def close(self) -> None:
        """Write everything and let go of the folder."""
        if self._held < 0:
            return
        self._ended.set()
        self._thread.join()
        if self.ledger.revision != self._revision or self._is_stalled:
            self._checkpoint()
        else:
            self._write()
        self._state.write()
        if self._saving is not None:
            self._saving.join()
        if self.ledger.witness is self:
            self.ledger.witness = None
        self._let_go()

    def status(self) -> dict[str, Any]:
        """Say what is wrong with the disk, if anything is, and what was found at the start."""
        wrong = self.ledger.clock_notes(self._now)
        if self.error is not None:
            wrong.append(f"The ledger could not be written: {self.error.message}")
        if self._state.error is not None:
            wrong.append(
                f"The state of the target could not be written: {self._state.error.message}"
            )
        return {"notes": wrong, "start_notes": list(self.notes)}

    def write_state(self, state: dict[str, Any]) -> None:
        """Keep a small object beside the lists; the thread writes it, if it changed."""
        self._state.state = state

    def read_state(self) -> dict[str, Any] | None:
        """Return the object that was kept last; None if there is none that can be read."""
        return self._state.read(self.notes)

    # Writing

    def _run(self) -> None:
        while not self._ended.wait(self.flush_every):
            if not self._is_stalled:
                self._write()
                if time.monotonic() - self._state.written_at >= _STATE_EVERY:
                    self._state.write()

    def _write(self) -> None:
        """Append what was counted to the file, and have the disk confirm it."""
        with self._io:
            with self._buffer_lock:
                turn, lists = self._turn, bytes(self._buffer)
                self._buffer.clear()
            try:
                if turn is not None:
                    self._append(turn.last)
                    self._turn = turn._replace(last=b"")
                    self._begin_next()
                    self._turn = None
                    self._save_beside(turn.arrays)
                self._append(lists)
                self.error = self._saving_error
            except OSError as error:
                self._failed(error, lists)

    def _append(self, content: bytes) -> None:
        if not content:
            return
        write_all(self._file, content)
        self._good += len(content)

    def _failed(self, error: OSError, lists: bytes) -> None:
        """Keep what could not be written, and take back what was written of it."""
        self.error = as_data_error(self.folder, error)
        with self._buffer_lock:
            self._buffer[:0] = lists
        try:
            os.ftruncate(self._file, self._good)
            os.lseek(self._file, self._good, os.SEEK_SET)
        except OSError:
            self._is_stalled = True
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            # After such an error nobody knows what is on the disk, so all is written anew.
            self._is_stalled = True

    def _checkpoint(self) -> None:
        """Write a snapshot now, and begin a journal after it."""
        with self._io:
            if self._file >= 0 and not self._is_stalled:
                self._write()
            if self._saving is not None:
                self._saving.join()
            revision, arrays = self.ledger.revision, self.ledger.freeze()
            self._saving_error = None
            with self._buffer_lock:
                self._buffer.clear()
                self._turn, self._since, self._revision = None, 0, revision
            try:
                self._begin_next()
                save_snapshot(self.folder, self._head(), arrays(), self._ids)
                self.error, self._is_stalled = None, False
                self._sweep(self._generation)
            except (OSError, DataError) as error:
                self.error = (
                    error if isinstance(error, DataError) else as_data_error(self.folder, error)
                )
                self._is_stalled = True

    def _save_beside(self, arrays: Callable[[], dict[str, NDArray[Any]]]) -> None:
        """Write a snapshot in a thread of its own, because the journal must not wait for it."""
        head, ids = self._head(), self._ids

        def save() -> None:
            try:
                save_snapshot(self.folder, head, arrays(), ids)
                self._sweep(head.generation)
                self._saving_error = None
            except (OSError, DataError) as error:
                # The journals since the last snapshot are still there.
                self._saving_error = as_data_error(self.folder, error)

        self._saving = threading.Thread(target=save, name="limelight-snapshot")
        self._saving.start()

    def _head(self) -> FileHead:
        ledger = self.ledger
        return FileHead(self._generation, ledger.source, ledger.width, self._digest)

    def _begin_next(self) -> None:
        """Begin the journal of the next generation."""
        head = replace(self._head(), generation=self._generation + 1)
        path = journal_path(self.folder, head.generation)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            line = head.to_bytes()
            write_all(file, line)
            sync(self.folder)
        except BaseException:
            os.close(file)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._good, self._generation = file, len(line), head.generation

    def _sweep(self, generation: int) -> None:
        """Delete the journals that a snapshot has made needless."""
        for number, path in journals(self.folder).items():
            if number < generation:
                path.unlink(missing_ok=True)

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        os.close(self._held)
        self._file = self._held = -1

    # Reading

    def _recover(self) -> None:
        """Take up what the folder holds."""
        stored, files = load_snapshot(self.folder), journals(self.folder)
        self._generation = max(files, default=0)
        if stored is None:
            refuse_strangers(self.folder)
            refuse_orphans(files)
            # A name of its own, should it ever be shared with others.
            self.ledger.rename(new_source())
            return
        self._generation = max(self._generation, stored.head.generation)
        chain = [read_journal(p) for g, p in files.items() if g >= stored.head.generation]
        refuse_strange_journals(stored, chain, self.folder)
        numbers = numbers_of(stored, self._digest, self._ids, self.ledger.n_items, self.folder)
        if numbers is not None:
            gone = int((numbers < 0).sum())
            self.notes.append(f"the catalogue has changed; {gone:,} items are gone")
        self.ledger.source = stored.head.source
        self.ledger.restore(stored.arrays, numbers)
        n_lists = sum(self._replay(record, stored, numbers) for record in each_record(chain))
        if n_lists:
            self.notes.append(f"taken up from the journal: {count(n_lists, 'list')}")
        if torn := sum(scan.torn for scan in chain):
            self.notes.append(f"{torn:,} bytes of an unfinished record were left out")

    def _replay(self, record: Record, stored: StoredLedger, numbers: Int32 | None) -> bool:
        items = record.items
        if numbers is not None:
            known = (items >= 0) & (items < len(numbers))
            items = np.where(known, numbers[np.where(known, items, 0)], -1).astype(np.int32)
        bucket = self.ledger.same_bucket(record.bucket, stored.head.width)
        return self.ledger.count_in(bucket, items, record.plain, record.shown, record.key)
