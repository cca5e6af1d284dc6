"""Arrays larger than memory, in safetensors files: written and read in stretches of rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from limelight._atomic import atomic_file
from limelight._errors import DataError
from limelight.store.arrays import unreadable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

_NAMES = ("U64", "I64", "F64", "F32", "U32", "I32", "F16", "U16", "I16", "I8", "U8", "BOOL")
"""Types as the format calls them, in the order in which its library lays their arrays out."""
_STRETCH = 1 << 26
"""Bytes that are read at a time."""


@dataclass(frozen=True)
class Stretches:
    """An array that is made piece by piece.

    Examples
    --------
    >>> Stretches((4, 2), np.dtype(np.float32), lambda: [np.zeros((3, 2)), np.ones((1, 2))]).nbytes
    32
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], Iterable[NDArray[Any]]]
    """Begins to read it: stretches of rows, one after the other."""

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def save_stretches(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any] | Stretches]
) -> None:
    """Write named arrays to a file, the same bytes as :func:`limelight.store.arrays.save_arrays`.

    Parameters
    ----------
    path
        The file; an older one is replaced.
    arrays
        Arrays of booleans, integers or floats, some of which may come in stretches.

    Examples
    --------
    >>> import tempfile
    >>> file = tempfile.mkdtemp() + "/factors.safetensors"
    >>> pieces = Stretches((2, 2), np.dtype(float), lambda: [np.ones((1, 2)), np.zeros((1, 2))])
    >>> save_stretches(file, {"user_factors": pieces})
    >>> [stretch.tolist() for stretch in read_rows(file, "user_factors")]
    [[[1.0, 1.0], [0.0, 0.0]]]
    """
    ordered = sorted(arrays.items(), key=lambda entry: (_NAMES.index(_name(entry[1])), entry[0]))
    header, end = {}, 0
    for name, array in ordered:
        place, end = end, end + array.nbytes
        header[name] = {
            "dtype": _name(array),
            "shape": list(array.shape),
            "data_offsets": [place, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, array in ordered:
            _write(file, name, array)


def read_rows(path: str | os.PathLike[str], name: str, *, first: int = 0) -> Iterator[NDArray[Any]]:
    """Read an array of a safetensors file in stretches of rows, from some row on."""
    try:
        with safe_open(path, framework="numpy") as file:
            rows = file.get_slice(name)
            shape = rows.get_shape()
            row_bytes = max(1, 8 * int(np.prod(shape[1:], dtype=np.int64)))
            step = max(1, _STRETCH // row_bytes)
            for start in range(first, shape[0], step):
                yield rows[start : min(start + step, shape[0])]
    except (SafetensorError, OSError) as error:
        raise unreadable(path, error) from error


def shape_of(path: str | os.PathLike[str], name: str) -> tuple[int, ...]:
    """Tell the shape of an array without reading it."""
    try:
        with safe_open(path, framework="numpy") as file:
            return tuple(file.get_slice(name).get_shape())
    except (SafetensorError, OSError) as error:
        raise unreadable(path, error) from error


def _name(array: NDArray[Any] | Stretches) -> str:
    kind, bits = array.dtype.kind, 8 * array.dtype.itemsize
    return "BOOL" if kind == "b" else f"{kind.upper()}{bits}"


def _write(file: Any, name: str, array: NDArray[Any] | Stretches) -> None:
    written = 0
    for stretch in array.read() if isinstance(array, Stretches) else [array]:
        plain = np.ascontiguousarray(stretch, dtype=array.dtype.newbyteorder("<"))
        file.write(plain.data)
        written += plain.nbytes
    if written != array.nbytes:
        message = f"array {name!r} has {written:,} bytes instead of {array.nbytes:,}"
        raise DataError(message, hint="its parts come from different runs; start again")
