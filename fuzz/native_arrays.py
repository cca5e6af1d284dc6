"""Arrays for kernels, drawn from the bytes of the fuzzer: sound ones, and ones with a fault."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import atheris
    from numpy.typing import NDArray

_ODD = [np.nan, np.inf, -np.inf, -0.0, 1e-42, 3e38, -3e38, 1e308, -1e308, 2.0**31, -1.0, 1e-30]
_ANY = np.concatenate([np.linspace(-3, 3, 256 - len(_ODD)), _ODD])
_TAME = np.concatenate([np.linspace(0, 3, 200), np.linspace(-3, 0, 56)])

# Arrays are cut out of a pool, at a place that the fuzzer chooses: quick, and as good as drawing
# every number. Floats are small ones, or have the odd ones among them that break sorts and sums.
_PLACES = 1 << 16
_POOL = np.random.default_rng(0).integers(0, 256, 2 * _PLACES)
with np.errstate(over="ignore"):
    _FLOATS = {
        dtype: [table.astype(dtype)[_POOL] for table in (_TAME, _ANY)]
        for dtype in (np.float32, np.float64)
    }
_TYPES = ("f4", "f8", "i4", "i8", "u1", "?", "O", ">i4", "f2")
_WILD = (-1, 0, 1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63), 255, 4096)
_STRANGERS = (None, 0, "text", b"bytes", [1, 2], {}, 1.5, object(), np.float32(1), np.array([None]))


class Draw:
    """Decisions and arrays from the bytes of one run."""

    def __init__(self, source: atheris.FuzzedDataProvider) -> None:
        self._source = source

    def number(self, low: int, high: int) -> int:
        """Draw a whole number, both ends included."""
        return self._source.ConsumeIntInRange(low, high)

    def one_in(self, n: int) -> bool:
        """Decide, rarely; no, once the bytes are used up."""
        return self._source.ConsumeIntInRange(0, n - 1) == n - 1

    def size(self) -> int:
        """Draw a number of rows; rarely so many that several threads get some."""
        return self.number(257, 1100) if self.one_in(250) else self.number(0, 20)

    def threads(self) -> int:
        """Draw a number of threads, mostly one, for speed; rarely a wrong one."""
        if self.one_in(8):
            return self.number(-1, 3)
        return 1

    def whole(self, *, wild: bool) -> int:
        """Draw a whole number, perhaps one at the edge of a type."""
        return _WILD[self.number(0, len(_WILD) - 1)] if wild else self.number(0, 40)

    def _cut(self, pool: NDArray[Any], size: int) -> NDArray[Any]:
        place = self.number(0, _PLACES - 1)
        return pool[place : place + size]

    def ints(self, size: int, below: int, dtype: Any = np.int32) -> NDArray[Any]:
        """Draw numbers from 0 up."""
        return (self._cut(_POOL, size) % max(below, 1)).astype(dtype)

    def floats(self, *shape: int, dtype: Any = np.float32) -> NDArray[Any]:
        """Draw numbers; in one array of four there may be any."""
        pool = _FLOATS[dtype][self.one_in(4)]
        return self._cut(pool, math.prod(shape)).reshape(shape).copy()

    def flags(self, size: int) -> NDArray[np.bool_]:
        """Draw yes or no."""
        return self._cut(_POOL, size) % 2 == 1

    def rows(self, n_rows: int, n_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Draw a sparse matrix with ascending columns."""
        lengths = np.minimum(self.ints(n_rows, 7), n_columns)
        indptr = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(lengths, out=indptr[1:])
        first = self.ints(n_rows, 256) % (n_columns - lengths + 1)
        places = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        return indptr, (places + np.repeat(first, lengths)).astype(np.int32)

    def spoil(self, arguments: dict[str, Any]) -> None:
        """Spoil an argument or two, in two runs of three."""
        names = list(arguments)
        for _ in range(self.number(0, 2)):
            name = names[self.number(0, len(names) - 1)]
            value = arguments[name]
            if isinstance(value, np.ndarray) and value.dtype != object:
                arguments[name] = self._spoilt(value, list(arguments.values()))
            elif self.one_in(4):
                arguments[name] = _STRANGERS[self.number(0, len(_STRANGERS) - 1)]
            elif isinstance(value, int) and not isinstance(value, bool) and self.one_in(4):
                arguments[name] = self.whole(wild=True)

    def _spoilt(self, array: NDArray[Any], others: list[Any]) -> Any:  # noqa: C901, PLR0911, PLR0912
        match self.number(0, 13):
            case 0:
                return array[:-1].copy()
            case 1:
                return np.concatenate([array, array[:1]]) if len(array) else np.resize(array, 3)
            case 2:
                return np.repeat(array, 2, axis=0)[::2]
            case 3:
                return array[::-1]
            case 4:
                with np.errstate(invalid="ignore", over="ignore"):
                    return array.astype(_TYPES[self.number(0, len(_TYPES) - 1)])
            case 5:
                return array[None]
            case 6:
                return array.ravel()
            case 7:
                return np.asfortranarray(array.T)
            case 8:
                array.flags.writeable = False
                return array
            case 9:
                return _misaligned(array)
            case 10:
                return _STRANGERS[self.number(0, len(_STRANGERS) - 1)]
            case 11:
                other = others[self.number(0, len(others) - 1)]
                return _seen_as(other, array) if isinstance(other, np.ndarray) else array
            case 12 if array.dtype == bool:
                return self.ints(array.size, 4, np.uint8).view(bool).reshape(array.shape)
            case _:
                return self._with_wild_entry(array)

    def _with_wild_entry(self, array: NDArray[Any]) -> NDArray[Any]:
        """Put one number where it does not belong."""
        if array.size and array.flags.writeable:
            at = self.number(0, array.size - 1)
            if array.dtype.kind == "f":
                array.flat[at] = _ODD[self.number(0, 6)]
            elif array.dtype.kind in "iub":
                array.flat[at] = np.int64(self.whole(wild=not self.one_in(3))).astype(array.dtype)
        return array


def _misaligned(array: NDArray[Any]) -> NDArray[Any]:
    """Put an array one byte beside where its numbers should stand."""
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def _seen_as(other: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """Let two arguments share memory."""
    if other.dtype == object or not other.flags.c_contiguous or other.nbytes < array.nbytes:
        return array
    return other.reshape(-1).view(np.uint8)[: array.nbytes].view(array.dtype).reshape(array.shape)
