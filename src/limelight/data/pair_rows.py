"""Where sorted rows of pairs stand: in memory or on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.data.pair_keys import (
    Repeats,
    cut_rows,
    decode,
    repeated_items,
    sort_rows,
)
from limelight.data.scratch import MemoryArray, ScratchArray

if TYPE_CHECKING:
    import os

    from limelight._arrays import Float32, Int32, Int64
    from limelight.data.scratch import Stored

PAIR_BYTES = 8
"""What a pair takes: an item and a score."""

_CHUNK = 1 << 16
"""Pairs that are sorted and written at a time; they fit the processor's cache."""


class PairRows:
    """Rows of items and scores, one after the other.

    Parameters
    ----------
    items, scores
        Where they are stored.

    Attributes
    ----------
    repeats : Repeats | None
        Pairs that stand more than once in the rows that were placed.

    Examples
    --------
    >>> from limelight.data.pair_keys import encode
    >>> rows = PairRows.in_memory(3)
    >>> keys = encode(np.array([5, 7, 6], np.int32), np.array([0.1, 0.3, 0.2], np.float32))
    >>> rows.place(keys, np.array([0, 2, 3]), first_row=0, at=0)
    >>> rows.read(0, 3)
    (array([7, 5, 6], dtype=int32), array([0.3, 0.1, 0.2], dtype=float32))
    """

    def __init__(self, items: Stored, scores: Stored) -> None:
        self.items, self.scores = items, scores
        self.repeats: Repeats | None = None

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
        """Sort some rows and put them where they belong.

        Parameters
        ----------
        keys
            Of the pairs. They may be sorted in place.
        indptr
            Where each row starts, from 0.
        first_row
            The number of the first row.
        at
            Where its first pair shall stand.
        order
            Which key comes where, if the keys are not in the order of the rows.
        """
        for rows in cut_rows(indptr, _CHUNK):
            starts = indptr[rows.start : rows.stop + 1]
            pairs = slice(int(starts[0]), int(starts[-1]))
            chunk = keys[pairs] if order is None else keys[order[pairs]]
            starts = starts - pairs.start
            sort_rows(starts, chunk)
            items, scores = decode(chunk)
            self._note(repeated_items(starts, items), first_row + rows.start)
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

    def _note(self, found: Repeats | None, first_row: int) -> None:
        if found is not None and self.repeats is None:
            self.repeats = found._replace(user=found.user + first_row)
        elif found is not None and self.repeats is not None:
            self.repeats = self.repeats._replace(n_rows=self.repeats.n_rows + found.n_rows)
