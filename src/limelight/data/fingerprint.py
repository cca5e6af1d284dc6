"""What a set of interactions is known by, whether it lies in one place or in many."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray


def fingerprint(
    indptr: Iterable[NDArray[np.int64]],
    indices: Iterable[NDArray[np.int32]],
    user_ids: Any,
    item_ids: Any,
) -> str:
    """Digest shape, pairs and ids into 16 hexadecimal digits, the same on every platform.

    Parameters
    ----------
    indptr, indices
        The pairs as rows, in as many stretches as one likes.
    user_ids, item_ids
        NumPy arrays, or Arrow arrays of int64 or large_string.

    Examples
    --------
    >>> ids = np.array([3, 4])
    >>> one = fingerprint([np.array([0, 1, 2])], [np.array([0, 1])], ids, ids)
    >>> one == fingerprint([np.array([0]), np.array([1, 2])], [np.array([0, 1])], ids, ids)
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    digest.update(np.array([len(user_ids), len(item_ids)], dtype="<i8").tobytes())
    for stretches, kind in ((indptr, "<i8"), (indices, "<i4")):
        for stretch in stretches:
            digest.update(np.ascontiguousarray(stretch, dtype=kind).data)
    for ids in (user_ids, item_ids):
        for piece in _bytes_of(ids):
            digest.update(piece)
    return digest.hexdigest()


def _bytes_of(ids: Any) -> Iterator[Any]:
    """Give ids as bytes; lengths come first, so that ("ab", "c") and ("a", "bc") differ."""
    if isinstance(ids, pa.LargeStringArray):
        _, offsets, content = ids.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
        yield b"s"
        yield np.ascontiguousarray(np.diff(ends), dtype="<i8").data
        yield np.frombuffer(content or b"", dtype=np.uint8)[ends[0] : ends[-1]].data
    elif isinstance(ids, np.ndarray) and ids.dtype == object:
        encoded = [str(name).encode() for name in ids]
        yield b"s" + np.array([len(name) for name in encoded], "<i8").tobytes()
        yield b"".join(encoded)
    else:
        yield b"i" + np.ascontiguousarray(ids, dtype="<i8").tobytes()
