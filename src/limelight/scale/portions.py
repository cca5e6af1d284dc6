"""Which rank reads what: files, and row groups of Parquet files, in runs of about equal size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.data.scan import require_columns
from limelight.data.sources import piece_of, piece_sizes
from limelight.scale.cuts import cut
from limelight.scale.talk import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._arrays import Int64
    from limelight.data.columns import Column
    from limelight.data.sources import Part
    from limelight.solve.exchange import Exchange


def my_pieces(parts: Sequence[Part], columns: Sequence[Column], exchange: Exchange) -> list[Part]:
    """Look at all files together, and return the pieces that this rank is to read.

    Parameters
    ----------
    parts
        All files, in the order in which one machine would read them.
    columns
        What every file must have.
    exchange
        The door to the others.

    Returns
    -------
    list of Part
        A run of pieces: those of the next rank come behind them.
    """
    pieces = exchange.gather_items(_inspect(parts, columns, exchange))
    bounds = cut(pieces[:, 2], exchange.size)
    first, end = bounds[exchange.rank], bounds[exchange.rank + 1]
    return [_joined(parts, pieces, number, first, end) for number in _files(pieces[first:end])]


def _inspect(parts: Sequence[Part], columns: Sequence[Column], exchange: Exchange) -> Int64:
    """List the pieces of some files: the number of the file, that of the piece, and its size."""
    ends = [len(parts) * rank // exchange.size for rank in range(exchange.size + 1)]
    found = [np.empty((0, 3), np.int64)]
    with together(exchange):
        for number in range(ends[exchange.rank], ends[exchange.rank + 1]):
            require_columns(parts[number], columns)
            sizes = np.array(piece_sizes(parts[number]), np.int64)
            found.append(np.stack([np.full_like(sizes, number), np.arange(len(sizes)), sizes], 1))
    return np.concatenate(found)


def _files(pieces: Int64) -> list[int]:
    return [int(number) for number in np.unique(pieces[:, 0])]


def _joined(parts: Sequence[Part], pieces: Int64, number: int, first: int, end: int) -> Part:
    """Take those pieces of a file that stand in a stretch of all pieces."""
    start, stop = np.searchsorted(pieces[:, 0], [number, number + 1])
    first, end = max(first, start), min(end, stop)
    rows_before = int(pieces[start:first, 2].sum())
    return piece_of(parts[number], range(int(first - start), int(end - start)), rows_before)
