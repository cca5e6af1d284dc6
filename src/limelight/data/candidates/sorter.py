"""Pairs of user and item in any order become rows, sorted by score, in bounded memory.

Pairs gather in a buffer. If they never fill it, they are sorted there. Otherwise full buffers go
to disk: those of a file that is grouped by user straight to where they shall stand, others as runs,
each sorted by user. Runs are merged at the end, from the last user to the first: the end of a run
is given back to the disk once it is read, and rows that were placed before can move up in place.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.arrays import blocks
from limelight.data.candidates.keys import encode, order_by_user
from limelight.data.candidates.storage import PAIR_BYTES, PairRows, ScratchArray
from limelight.data.rows import cut_rows, row_numbers, row_starts

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Int32, Int64

BUFFER_BYTES = 32
"""The most memory that a pair takes while it is sorted."""
_ENTRY = np.dtype([("user", np.int32), ("key", np.int64)])
_PIECE = 1 << 18
"""Pairs that are written to a run at a time."""


class PairSorter:
    """Gathers pairs and sorts them by user, score and item.

    More than so many bytes of ``memory`` go to scratch files.

    Examples
    --------
    >>> sorter = PairSorter(memory=1 << 20)
    >>> users, items = np.array([0, 1, 0], np.int32), np.array([5, 6, 7], np.int32)
    >>> sorter.add(users, items, np.array([0.1, 0.2, 0.3], np.float32))
    >>> indptr, rows = sorter.finish()
    >>> indptr, rows.read(0, 3)[0]
    (array([0, 2, 3]), array([7, 5, 6], dtype=int32))
    """

    def __init__(self, memory: int, folder: str | os.PathLike[str] | None = None) -> None:
        self._memory, self._folder = memory, folder
        self._capacity = min(max(2, memory // BUFFER_BYTES), 1 << 31)  # places have 32 bits
        # The system gives memory when it is first written to, so an empty buffer costs nothing.
        self._users = np.empty(self._capacity, dtype=np.int32)
        self._keys = np.empty(self._capacity, dtype=np.int64)
        self._held = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._rows: PairRows | None = None
        self._runs: list[_Run] = []

    def add(self, users: Int32, items: Int32, scores: Float32) -> None:
        """Take in some pairs, in any order; a new user has the next number."""
        keys = encode(items, scores)
        while len(users):
            place = slice(self._held, min(self._capacity, self._held + len(users)))
            n_taken = place.stop - place.start
            self._users[place], self._keys[place] = users[:n_taken], keys[:n_taken]
            users, keys = users[n_taken:], keys[n_taken:]
            self._held = place.stop
            if self._held == self._capacity:
                self._spill()

    def finish(self) -> tuple[Int64, PairRows]:
        """Sort what was taken in, and return where each row starts, and the rows."""
        if self._rows is None and not self._runs:
            return self._sort_in_memory()
        if self._continues_rows():
            self._append(self._held)
        elif self._held:
            self._start_run()
        self._users, self._keys = self._users[:0].copy(), self._keys[:0].copy()
        indptr = row_starts(self._counts)
        rows = self._merge(indptr) if self._runs else self._rows_on_disk()
        if indptr[-1] * PAIR_BYTES <= self._memory:
            rows = self._rows = rows.load(int(indptr[-1]))
        return indptr, rows

    def close(self) -> None:
        """Let go of the scratch files; what `finish` returned is lost, too."""
        for stored in (self._rows, *self._runs):
            if stored is not None:
                stored.close()

    def _sort_in_memory(self) -> tuple[Int64, PairRows]:
        users, keys = self._users[: self._held], self._keys[: self._held]
        self._count(users)
        indptr = row_starts(self._counts)
        rows = self._rows = PairRows.in_memory(self._held)
        order = None if _ascend(users) else order_by_user(users)
        rows.place(keys, indptr, first_row=0, at=0, order=order)
        return indptr, rows

    def _spill(self) -> None:
        """Put the full buffer on disk."""
        # The row of the last user may go on in the next buffer, so her pairs stay in this one.
        last = int(np.searchsorted(self._users, self._users[-1])) if self._continues_rows() else 0
        if last > 0:
            self._append(last)
        else:
            self._start_run()

    def _continues_rows(self) -> bool:
        """Tell whether the buffer is grouped by user and goes on where the rows on disk end."""
        if self._runs or not self._held:
            return False
        users = self._users[: self._held]
        return bool(users[0] == len(self._counts)) and _ascend(users)

    def _append(self, n_pairs: int) -> None:
        """Put the first pairs of the buffer, which are whole rows, behind those on disk."""
        first, end = len(self._counts), int(self._counts.sum())
        self._count(self._users[:n_pairs])
        starts = row_starts(self._counts[first:])
        self._rows_on_disk().place(self._keys[:n_pairs], starts, first_row=first, at=end)
        rest = slice(n_pairs, self._held)
        self._held -= n_pairs
        for buffer in (self._users, self._keys):
            buffer[: self._held] = buffer[rest].copy()

    def _start_run(self) -> None:
        """Put the buffer on disk, sorted by user."""
        if not self._runs:
            self._placed = row_starts(self._counts)
        users, keys = self._users[: self._held], self._keys[: self._held]
        self._count(users)
        self._runs.append(_Run(self._folder))
        self._runs[-1].write(users, keys)
        self._held = 0

    def _merge(self, indptr: Int64) -> PairRows:
        """Merge the runs into the rows that were placed before, from the last user down.

        Rows that came grouped already stand at the front of the file, close together; the pairs of
        runs belong between them, so every row must move towards the end. From the last user down, a
        block is always written at or behind the place that it was read from: nothing that is still
        to be read is overwritten, and no second file is needed. The runs are sorted by user, so the
        pairs of a block are the end of each, which is cut off once it is read. Disk space grows by
        the block, not by the whole.
        """
        rows = self._rows_on_disk()
        # Half a buffer, because pairs are held twice while they are put together.
        for block in reversed(list(cut_rows(indptr, self._capacity // 2))):
            pieces = [self._placed_pairs(block), *(run.take(block.start) for run in self._runs)]
            users, keys = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
            del pieces
            starts = indptr[block.start : block.stop + 1]
            rows.place(
                keys,
                starts - starts[0],
                first_row=block.start,
                at=int(starts[0]),
                order=order_by_user(users),
            )
        for run in self._runs:
            run.close()
        return rows

    def _placed_pairs(self, block: slice) -> tuple[Int32, Int64]:
        """Read the pairs of some users that came grouped, before the first run."""
        starts = self._placed[block.start : block.stop + 1]
        if len(starts) < 2:
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        keys = encode(*self._rows_on_disk().read(int(starts[0]), int(starts[-1])))
        return row_numbers(starts) + np.int32(block.start), keys

    def _rows_on_disk(self) -> PairRows:
        if self._rows is None:
            self._rows = PairRows.on_disk(self._folder)
        return self._rows

    def _count(self, users: Int32) -> None:
        """Add to the pairs of each user; in pieces, because counting takes memory."""
        n_users = max(len(self._counts), int(users.max(initial=-1)) + 1)
        self._counts = np.concatenate(
            [self._counts, np.zeros(n_users - len(self._counts), dtype=np.int64)]
        )
        for block in blocks(len(users)):
            first = int(users[block].min())
            counts = np.bincount(users[block] - first)
            self._counts[first : first + len(counts)] += counts


class _Run:
    """Pairs on disk, sorted by user."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._pairs = ScratchArray(folder, _ENTRY)

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, place: int) -> int:
        return int(self._read(place, place + 1)["user"][0])

    def write(self, users: Int32, keys: Int64) -> None:
        order = order_by_user(users)
        for start in range(0, len(users), _PIECE):
            piece = order[start : start + _PIECE]
            pairs = np.empty(len(piece), dtype=_ENTRY)
            pairs["user"], pairs["key"] = users[piece], keys[piece]
            self._pairs.write(start, pairs)

    def take(self, first_user: int) -> tuple[Int32, Int64]:
        """Read the pairs from a user on, and forget them."""
        start = bisect_left(self, first_user)
        pairs = self._read(start, len(self))
        self._pairs.truncate(start)
        return pairs["user"], pairs["key"]

    def close(self) -> None:
        self._pairs.close()

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        pairs = np.empty(stop - start, dtype=_ENTRY)
        self._pairs.read_into(start, pairs)
        return pairs


def _ascend(users: Int32) -> bool:
    return bool((users[1:] >= users[:-1]).all())
