"""Named arrays in safetensors files, ids in Parquet files: nothing that could run code.

Arrays larger than memory are written and read in stretches of rows. Ids are one column, in the
order of their numbers.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save, save_file

from limelight._base.errors import DataError
from limelight._base.files import atomic_file
from limelight._base.text import first_words, short
from limelight.data.columns import Chunk
from limelight.data.files import DELIMITERS
from limelight.data.ids import distinct_ids, ids_from_arrow, ids_to_arrow, plain_ids

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from limelight.data.interactions import Ids


_KINDS = "biuf"

_TYPES = {
    "BOOL": "?",
    **{
        f"{letter}{8 * size}": f"<{kind}{size}"
        for letter, kind in (("I", "i"), ("U", "u"))
        for size in (1, 2, 4, 8)
    },
    **{f"F{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}
"""What the file format calls the types of NumPy."""
_UNREADABLE = (
    SafetensorError,
    OSError,
    # The library passes a type or a shape that NumPy does not have on to NumPy.
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    # A header that was written by hand may hold numbers of any size and be nested to any depth.
    OverflowError,
    RecursionError,
)


_AT_ONCE = 1 << 28
"""Up to so many bytes are put together in memory. For more, the library streams them to a temporary
file of its own, which a killed process leaves in the folder."""


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays of numbers to a safetensors file, whole or not at all.

    Parameters
    ----------
    path
        The file; an older one is replaced.
    arrays
        Arrays of booleans, integers or floats, of any shape and layout, also empty.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "factors.safetensors"
    >>> save_arrays(file, {"user_factors": np.eye(2)})
    >>> load_arrays(file)["user_factors"]
    array([[1., 0.],
           [0., 1.]])
    """
    ready = {name: _plain(name, array) for name, array in arrays.items()}
    with atomic_file(path) as temporary:
        mode = temporary.stat().st_mode
        try:
            if sum(array.nbytes for array in ready.values()) <= _AT_ONCE:
                temporary.write_bytes(save(ready))
            else:
                save_file(ready, temporary)
            # The library makes a file for its owner alone; others may read ours as any other file.
            temporary.chmod(mode)
        except SafetensorError as error:
            # The library wraps what the system says; atomic_file tells it as our own error.
            raise _system_error(error) from error


def check_table_path(path: str | os.PathLike[str]) -> None:
    """Refuse a name that :func:`write_table` could not write to, before the work begins.

    Examples
    --------
    >>> check_table_path("items.parquet")
    """
    if Path(path).suffix.lower() not in {".parquet", *DELIMITERS}:
        message = f"unknown kind of file: {str(path)!r}"
        raise DataError(message, hint="the name must end in .parquet, .csv or .tsv")


def write_table(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Write a table as .parquet, .csv or .tsv, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "shares.tsv"
    >>> write_table(file, pa.table({"group": ["x"], "share": [0.5]}))
    >>> file.read_text().split()
    ['"group"', '"share"', '"x"', '0.5']
    """
    check_table_path(path)
    ending = Path(path).suffix.lower()
    with atomic_file(path) as temporary:
        if ending in DELIMITERS:
            options = pa.csv.WriteOptions(delimiter=DELIMITERS[ending])
            pa.csv.write_csv(table, temporary, write_options=options)
        else:
            pq.write_table(table, temporary)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read all arrays of a safetensors file.

    Parameters
    ----------
    path
        A file that `save_arrays` wrote.

    Raises
    ------
    DataError
        If the file is missing, cut short or not a safetensors file, or if its header tells of
        arrays that it does not have.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "seen.safetensors"
    >>> save_arrays(file, {"indptr": np.array([0, 2, 3])})
    >>> load_arrays(file)
    {'indptr': array([0, 2, 3])}
    """
    with _reading(path):
        arrays = load_file(path)
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            message = (
                f"array {short(name)} of {str(path)!r} is of a type that is not read: {array.dtype}"
            )
            raise DataError(message, hint="limelight writes booleans, integers and floats")
    return {name: np.require(array, requirements=["W"]) for name, array in arrays.items()}


def map_arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Open all arrays of a safetensors file, to be read where they are looked at and not before.

    Parameters
    ----------
    path
        A file that `save_arrays` wrote. It must stay as it is while the arrays are used.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "factors.safetensors"
    >>> save_arrays(file, {"user_factors": np.arange(6.0).reshape(3, 2)})
    >>> np.array(map_arrays(file)["user_factors"][1:2])
    array([[2., 3.]])
    """
    with _reading(path):
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        return {
            name: _mapped(path, 8 + length, **about)
            for name, about in header.items()
            if name != "__metadata__"
        }


def _mapped(
    path: str | os.PathLike[str],
    start: int,
    *,
    dtype: str,
    shape: list[int],
    data_offsets: tuple[int, int],
) -> NDArray[Any]:
    kind = _TYPES[dtype]
    if not np.prod(shape):
        return np.empty(shape, dtype=kind)  # the system maps no empty stretch
    return np.memmap(path, kind, "r", start + data_offsets[0], tuple(shape))


@contextlib.contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Tell of a file that cannot be read as our own error."""
    try:
        yield
    except _UNREADABLE as error:
        raise unreadable(path, error) from error


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in C order and native bytes: safetensors copies memory as it lies."""
    values = np.asarray(array)
    if values.dtype.kind not in _KINDS or values.dtype.itemsize > 8:
        message = f"cannot store array {name!r} of type {values.dtype}"
        raise DataError(message, hint="store booleans, integers or floats of at most 64 bits")
    return np.asarray(values, dtype=values.dtype.newbyteorder("="), order="C")


def _system_error(error: SafetensorError) -> OSError:
    """Find the number of the system error in a text such as "... (os error 28)"."""
    found = re.search(r"(?:os error|code:) (\d+)", str(error))
    return OSError(int(found[1]), str(error)) if found else OSError(str(error))


def unreadable(path: str | os.PathLike[str], error: Exception) -> DataError:
    """Say that a file has no arrays, or not those that it should."""
    if not Path(path).exists():
        return DataError(f"file not found: {str(path)!r}", hint="check the path")
    message = f"cannot read arrays from {str(path)!r}: {first_words(error)}"
    return DataError(message, hint="the file is damaged or not a safetensors file; write it anew")


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
    with _reading(path), safe_open(path, framework="numpy") as file:
        rows = file.get_slice(name)
        shape = rows.get_shape()
        row_bytes = max(1, 8 * int(np.prod(shape[1:], dtype=np.int64)))
        step = max(1, _STRETCH // row_bytes)
        for start in range(first, shape[0], step):
            yield rows[start : min(start + step, shape[0])]


def shape_of(path: str | os.PathLike[str], name: str) -> tuple[int, ...]:
    """Tell the shape of an array without reading it."""
    with _reading(path), safe_open(path, framework="numpy") as file:
        return tuple(file.get_slice(name).get_shape())


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


def write_ids(path: str | os.PathLike[str], column: str, ids: Ids | pa.Array) -> None:
    """Write ids as a Parquet file of one column, whole or not at all.

    Parameters
    ----------
    path
        The file; an older one is replaced.
    column
        Name of the column.
    ids
        Integers, or strings as an array of objects; or either as an Arrow array.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/items.parquet"
    >>> write_ids(file, "item_id", np.array(["007", "a"], dtype=object))
    >>> read_ids(file, "item_id")
    array(['007', 'a'], dtype=object)
    """
    values = ids if isinstance(ids, pa.Array) else ids_to_arrow(ids)
    table = pa.table({column: values})
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


read_ids = distinct_ids


def read_some_ids(path: str | os.PathLike[str], column: str, start: int, stop: int) -> Ids:
    """Read the ids from one number up to, not including, another, and hardly any beside them.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/users.parquet"
    >>> write_ids(file, "user_id", np.array([30, 10, 20]))
    >>> read_some_ids(file, "user_id", 1, 3)
    array([10, 20])
    """
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left"))
        groups = list(range(first, min(last + 1, len(sizes))))
        ids = file.read_row_groups(groups, [column]).column(column).combine_chunks()
    before = int(ends[first - 1]) if first else 0
    return ids_from_arrow(plain_ids(Chunk(ids.slice(start - before, stop - start), str(path))))
