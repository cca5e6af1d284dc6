"""The array types that signatures name, and memory for factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
_CACHE_LINE = 64
BLOCK_ROWS = 1 << 20


def factor_matrix(n_rows: int, width: int) -> Float32:
    """Make a matrix, not filled, that starts at a cache line.

    NumPy starts large arrays 16 bytes into one, and every wide load from them then takes two lines:
    steps that read rows at random are up to 1.4 times slower.

    Examples
    --------
    >>> matrix = factor_matrix(3, 16)
    >>> matrix.shape, matrix.ctypes.data % 64
    ((3, 16), 0)
    """
    size = n_rows * width * np.dtype(np.float32).itemsize
    memory = np.empty(size + _CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size].view(np.float32).reshape(n_rows, width)


def batches(n_rows: int, size: int) -> Iterator[slice]:
    """Cut rows into slices of at most ``size``.

    Examples
    --------
    >>> list(batches(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def blocks(n_rows: int) -> Iterator[slice]:
    """Walk over rows in blocks, so that temporary arrays stay small."""
    return batches(n_rows, BLOCK_ROWS)
