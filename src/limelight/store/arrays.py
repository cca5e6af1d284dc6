"""Named arrays in one safetensors file: no pickle, nothing that could run code."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from limelight._atomic import atomic_file
from limelight._errors import DataError
from limelight._short import first_words, short

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

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
    # What NumPy has no type or shape for, the library lets NumPy complain of.
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    # What only a header that somebody made can do.
    OverflowError,
    RecursionError,
)


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
            save_file(ready, temporary)
            # The library makes a file for its owner alone; others may read ours as any other file.
            temporary.chmod(mode)
        except SafetensorError as error:
            # The library wraps what the system says; atomic_file tells it as our own error.
            raise _system_error(error) from error


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
