"""From rows of a sparse matrix to the few array shapes that JAX compiles for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.data.grouping import row_numbers
from limelight.recommend.histories import take_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight._arrays import Float32, Int32, Int64
    from limelight._native._kernels import Csr

_SMALLEST = 256


class Batch(NamedTuple):
    """Histories of some users, pair by pair, padded with pairs that belong to nobody."""

    users: Int32
    """The row of each pair; padding names the row after the last."""
    items: Int32
    lengths: Float32
    """The number of items of each row; 0 where a row is padding or has no history."""


def padded_length(n: int) -> int:
    """Round a number of pairs up to a power of two: a pair costs little, another shape seconds.

    Examples
    --------
    >>> [padded_length(n) for n in (0, 256, 257, 1025)]
    [256, 256, 512, 2048]
    """
    return max(_SMALLEST, 1 << max(n - 1, 0).bit_length())


def batch_of(rows: Csr, chosen: Int64, size: int, length: int | None = None) -> Batch:
    """Gather some rows into a batch of ``size`` rows and, if need be, a given number of pairs.

    Examples
    --------
    >>> from limelight.solve.problem import sparse_rows
    >>> rows = sparse_rows(np.array([0, 2, 3]), np.array([0, 2, 1]), 3)
    >>> batch = batch_of(rows, np.array([1, 0]), size=4)
    >>> batch.users[:4], batch.items[:4], batch.lengths
    (array([0, 1, 1, 4], dtype=int32), array([1, 0, 2, 0], dtype=int32),
     array([1., 2., 0., 0.], dtype=float32))
    """
    taken = take_rows(rows, chosen)
    users = np.full(length or padded_length(taken.n_entries), size, dtype=np.int32)
    items = np.zeros(len(users), dtype=np.int32)
    users[: taken.n_entries] = row_numbers(taken.indptr)
    items[: taken.n_entries] = taken.indices
    lengths = np.zeros(size, dtype=np.float32)
    lengths[: len(chosen)] = np.diff(taken.indptr)
    return Batch(users, items, lengths)


def shuffled_batches(rows: Csr, size: int, seed: tuple[int, int]) -> Iterator[Batch]:
    """Visit every row with a history once, in an order of chance, in batches of one shape."""
    lengths = np.diff(rows.indptr)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(lengths))
    starts = np.arange(0, len(order), size)
    length = padded_length(int(np.add.reduceat(lengths[order], starts).max()))
    for start in starts:
        yield batch_of(rows, order[start : start + size], size, length)
