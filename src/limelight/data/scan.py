"""The reader: chosen columns of any source, as checked arrays, batch by batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from limelight._errors import DataError
from limelight.data.columns import Chunk
from limelight.data.sources import describe, require_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from limelight.data.columns import Column
    from limelight.data.sources import Part

T = TypeVar("T")


def scan(parts: Sequence[Part], columns: Sequence[Column]) -> Iterator[list[NDArray[Any]]]:
    """Read some columns of all parts, batch by batch.

    Yields
    ------
    For each batch one array a column, of equal length.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.ids import IdColumn
    >>> from limelight.data.sources import open_parts
    >>> parts = open_parts(pa.table({"user": ["b", "a", "b"], "age": [3, 5, 3]}))
    >>> list(scan(parts, [IdColumn("user")]))
    [[array([0, 1, 0], dtype=int32)]]
    """
    for part in parts:
        require_columns(part, columns)
    is_empty = True
    for arrays in convert(parts, columns):
        is_empty = False
        yield arrays
    if is_empty:
        raise no_rows(parts)


def require_columns(part: Part, columns: Sequence[Column]) -> None:
    """Refuse a part in which a column is missing or stands twice."""
    for name in _names(columns):
        require_column(part, name)


def no_rows(parts: Sequence[Part]) -> DataError:
    """Say that there is nothing to read."""
    message = f"no rows in {describe(parts)}"
    return DataError(message, hint="the first line is the header, rows follow it")


def convert(parts: Sequence[Part], columns: Sequence[Column]) -> Iterator[list[NDArray[Any]]]:
    """Read some columns of parts that have them, be it without a single row."""
    for part, start, batch in _ahead(_batches(parts, _names(columns))):
        yield [
            column.convert(
                Chunk(
                    batch[column.name],
                    f"{part.label}, column {column.name!r}",
                    start,
                    part.is_text,
                )
            )
            for column in columns
        ]


def _names(columns: Sequence[Column]) -> list[str]:
    return list(dict.fromkeys(column.name for column in columns))


def join(batches: Iterable[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Put the arrays of all batches together, column by column.

    Examples
    --------
    >>> join([[np.array([1, 2]), np.array([7, 7])], [np.array([3]), np.array([8])]])
    [array([1, 2, 3]), array([7, 7, 8])]
    """
    columns = list(zip(*batches, strict=True))
    columns.reverse()
    # A column's batches are let go before the next column is put together.
    return [np.concatenate(columns.pop()) for _ in range(len(columns))]


def _batches(parts: Sequence[Part], names: Sequence[str]) -> Iterator[tuple[Part, int, Any]]:
    """Name the part and the first row of each batch; leave out batches without rows."""
    for part in parts:
        start = part.first_row
        for batch in part.batches(names):
            if batch.num_rows:
                yield part, start, batch
            start += batch.num_rows


def _ahead(values: Iterator[T]) -> Iterator[T]:
    """Fetch the next value in another thread while this one is used."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        fetched = thread.submit(next, values, None)
        while (value := fetched.result()) is not None:
            fetched = thread.submit(next, values, None)
            yield value
