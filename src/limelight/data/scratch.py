"""Arrays that are kept elsewhere while nobody looks at them: in a file without a name.

The file is read and written piece by piece and never mapped, so that a process holds no more of it
than it asked for. It has no name from the start, so nothing is left behind, whatever happens.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from limelight._atomic import write_errors
from limelight._errors import DataError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_FULL = "free some space there, or let the variable TMPDIR name a folder on a larger disk"


class Stored(Protocol):
    """A long array of which stretches can be read and written."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""

    @property
    def nbytes_on_disk(self) -> int:
        """How much of the disk it takes."""

    def read_into(self, start: int, out: NDArray[Any]) -> None:
        """Copy the stretch that begins somewhere, as long as `out`."""

    def pick(self, at: NDArray[np.int64], start: int, stop: int) -> NDArray[Any]:
        """Copy some elements, all of them from one stretch."""

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Put values where a stretch begins."""

    def close(self) -> None:
        """Let go of what is stored."""


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

    Parameters
    ----------
    folder
        Where the file lives; the system's place for temporary files, unless given.
    dtype
        Of the elements.

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
