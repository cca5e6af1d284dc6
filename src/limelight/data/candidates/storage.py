"""Where sorted rows of pairs stand: in memory, or in scratch files.

A scratch file is read and written piece by piece and never mapped, so that a process holds no more
of it than it asked for. It has no name from the start, so nothing is left behind, whatever happens.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limelight._base.errors import DataError
from limelight._base.files import write_errors
from limelight.data.candidates.keys import decode, sort_rows
from limelight.data.rows import cut_rows, repeated_pair, row_numbers

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight.data.rows import Repeat


_FULL = "free some space there, or let the variable TMPDIR name a folder on a larger disk"


class MemoryArray:
    """An array in memory, behind the interface of one in a file.

    Examples
    --------
    >>> array, out = MemoryArray(np.arange(5)), np.empty(2, dtype=np.int64)
    >>> array.read_into(3, out)
    >>> out
    array([3, 4])
    """

    nbytes_on_disk = 0

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values
        self.nbytes = values.nbytes

    def read_into(self, start: int, out: NDArray[Any]) -> None:
        """Copy the stretch that begins somewhere, as long as `out`."""
        out[:] = self._values[start : start + len(out)]

    def pick(self, at: NDArray[np.int64], start: int, stop: int) -> NDArray[Any]:
        """Copy some elements."""
        return self._values[at]

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Put values where a stretch begins."""
        self._values[start : start + len(values)] = values

    def close(self) -> None:
        """Let go of the array."""
        self._values, self.nbytes = self._values[:0], 0


class ScratchArray:
    """An array in a file without a name, which is gone when this is closed or collected.

    The file lives in a folder, or in the system's place for temporary files.

    Examples
    --------
    >>> with_file = ScratchArray(None, np.int32)
    >>> with_file.write(0, np.array([7, 8, 9], dtype=np.int32))
    >>> out = np.empty(2, dtype=np.int32)
    >>> with_file.read_into(1, out)
    >>> out
    array([8, 9], dtype=int32)
    >>> with_file.close()
    """

    nbytes = 0

    def __init__(self, folder: str | os.PathLike[str] | None, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._length = 0
        self._folder = tempfile.gettempdir() if folder is None else folder
        with write_errors(self._folder, full=_FULL):
            file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        self._handle = file.fileno()
        self.close = weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes_on_disk(self) -> int:
        """How large the file is."""
        return self._length * self.dtype.itemsize

    def read_into(self, start: int, out: NDArray[Any]) -> None:
        """Copy the stretch that begins somewhere, as long as `out`."""
        place, rest = start * self.dtype.itemsize, _bytes_of(out)
        # The system reads and writes at most 2 GiB at once.
        while rest:
            n_read = os.preadv(self._handle, [rest], place)
            if n_read == 0:
                message = f"a scratch file in {os.fspath(self._folder)!r} ends at byte {place:,}"
                raise DataError(message, hint="something cut it short; start again")
            place, rest = place + n_read, rest[n_read:]

    def pick(self, at: NDArray[np.int64], start: int, stop: int) -> NDArray[Any]:
        """Copy some elements, all of them from one stretch, which is read at once."""
        stretch = np.empty(stop - start, dtype=self.dtype)
        self.read_into(start, stretch)
        return stretch[at - start]

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Put values where a stretch begins; the array grows as needed."""
        place = start * self.dtype.itemsize
        rest = _bytes_of(np.ascontiguousarray(values, dtype=self.dtype))
        with write_errors(self._folder, full=_FULL):
            while rest:
                n_written = os.pwrite(self._handle, rest, place)
                place, rest = place + n_written, rest[n_written:]
        self._length = max(self._length, start + len(values))

    def truncate(self, length: int) -> None:
        """Forget the end of the array and give its place on the disk back."""
        os.ftruncate(self._handle, length * self.dtype.itemsize)
        self._length = length


def _bytes_of(values: NDArray[Any]) -> memoryview:
    return values.view(np.uint8).data


Stored: TypeAlias = MemoryArray | ScratchArray
"""A long array of which stretches can be read and written."""
PAIR_BYTES = 8
"""What a pair takes: an item and a score."""
_CHUNK = 1 << 16
"""Pairs that are sorted and written at a time; they fit the processor's cache."""


class PairRows:
    """Rows of items and scores, one after the other.

    ``repeats`` tells of pairs that stand more than once in the rows that were placed.

    Examples
    --------
    >>> from limelight.data.candidates.keys import encode
    >>> rows = PairRows.in_memory(3)
    >>> keys = encode(np.array([5, 7, 6], np.int32), np.array([0.1, 0.3, 0.2], np.float32))
    >>> rows.place(keys, np.array([0, 2, 3]), first_row=0, at=0)
    >>> rows.read(0, 3)
    (array([7, 5, 6], dtype=int32), array([0.3, 0.1, 0.2], dtype=float32))
    """

    def __init__(self, items: Stored, scores: Stored) -> None:
        self.items, self.scores = items, scores
        self.repeats: Repeat | None = None

    @classmethod
    def in_memory(cls, n_pairs: int) -> PairRows:
        """Make room in memory."""
        items, scores = np.empty(n_pairs, dtype=np.int32), np.empty(n_pairs, dtype=np.float32)
        return cls(MemoryArray(items), MemoryArray(scores))

    @classmethod
    def on_disk(cls, folder: str | os.PathLike[str] | None) -> PairRows:
        """Make room in scratch files."""
        return cls(ScratchArray(folder, np.int32), ScratchArray(folder, np.float32))

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return self.items.nbytes + self.scores.nbytes

    @property
    def nbytes_on_disk(self) -> int:
        """How much of the disk the rows take."""
        return self.items.nbytes_on_disk + self.scores.nbytes_on_disk

    def place(
        self, keys: Int64, indptr: Int64, *, first_row: int, at: int, order: Int64 | None = None
    ) -> None:
        """Sort some rows and put them where they belong; the keys may be sorted in place.

        ``first_row`` is the number of the first row, ``at`` where its first pair shall stand.
        ``order`` says which key comes where, if the keys are not in the order of the rows.
        """
        for rows in cut_rows(indptr, _CHUNK):
            starts = indptr[rows.start : rows.stop + 1]
            pairs = slice(int(starts[0]), int(starts[-1]))
            chunk = keys[pairs] if order is None else keys[order[pairs]]
            starts = starts - pairs.start
            sort_rows(starts, chunk)
            items, scores = decode(chunk)
            self._note(repeated_pair(row_numbers(starts), items), first_row + rows.start)
            self.items.write(at + pairs.start, items)
            self.scores.write(at + pairs.start, scores)

    def read(self, start: int, stop: int) -> tuple[Int32, Float32]:
        """Copy the items and scores of a stretch of pairs."""
        items, scores = np.empty(stop - start, np.int32), np.empty(stop - start, np.float32)
        self.items.read_into(start, items)
        self.scores.read_into(start, scores)
        return items, scores

    def load(self, n_pairs: int) -> PairRows:
        """Move all pairs into memory."""
        rows = PairRows(*(MemoryArray(values) for values in self.read(0, n_pairs)))
        rows.repeats = self.repeats
        self.close()
        return rows

    def close(self) -> None:
        """Let go of what is stored."""
        self.items.close()
        self.scores.close()

    def _note(self, found: Repeat | None, first_row: int) -> None:
        """Keep the first pair that is repeated, and count the rows of all."""
        if found is not None and self.repeats is None:
            self.repeats = found._replace(left=found.left + first_row)
        elif found is not None and self.repeats is not None:
            self.repeats = self.repeats._replace(rows=self.repeats.rows + found.rows)
