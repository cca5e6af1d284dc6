"""Parquet files, read in pieces that no file can make too large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from limelight._base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_TEXT_OF_ROWS = 1 << 28  # bytes that the strings of rows unpacked together may take
STRINGS = ("string", "large_string", "string_view")
"""The types of text."""
LONGEST_TEXT = 1 << 16
"""Bytes that an id may have: what is longer is not an id."""


def open_parquet(path: Path, **how: Any) -> Any:
    """Open a file that is read a megabyte at a time; left to itself, Arrow would hold it all."""
    return pa.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, **how)


def group_batches(
    path: Path, file: Any, group: int, names: Sequence[str], most: int
) -> Iterator[Any]:
    """Read a row group of an open file, fewer rows at a time than asked for if they are long.

    Parameters
    ----------
    path
        Where the file is.
    file
        The file, as :func:`open_parquet` opens it.
    group
        Which row group.
    names
        Which columns.
    most
        How many rows at a time.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "pairs.parquet"
    >>> pa.parquet.write_table(pa.table({"user": ["x", "y", "x"]}), path)
    >>> with open_parquet(path) as file:
    ...     [batch.num_rows for batch in group_batches(path, file, 0, ["user"], 2)]
    [2, 1]
    """
    types = file.schema_arrow
    texts = [name for name in names if _is_text(types.field(name).type)]
    rows = min(most, _rows_at_a_time(path, group, texts)) if texts else most
    # Without threads of Arrow's own: a batch is used while the next one is decoded, and they would
    # compete with its user for the processors.
    yield from file.iter_batches(rows, [group], columns=list(names), use_threads=False)


def _rows_at_a_time(path: Path, group: int, names: list[str]) -> int:
    """Say how many rows of a row group with these columns of text may be unpacked together.

    A dictionary holds a string once, and many rows may refer to it, so that a file of a megabyte
    may unpack to a terabyte.
    """
    longest = 1
    with open_parquet(path, read_dictionary=names) as file:
        first = next(file.iter_batches(1, [group], columns=names, use_threads=False), None)
    for column in first.columns if first is not None else ():
        if pa.types.is_dictionary(column.type) and _is_text(column.dictionary.type):
            lengths = pc.binary_length(column.dictionary)
            longest = max(longest, pc.max(lengths).as_py() or 0)
    if longest > LONGEST_TEXT:
        message = f"{path} holds a text of {longest:,} bytes in a column of ids"
        raise DataError(message, hint=f"ids have at most {LONGEST_TEXT:,} bytes")
    return _TEXT_OF_ROWS // longest


def _is_text(type_: Any) -> bool:
    return str(type_.value_type if pa.types.is_dictionary(type_) else type_) in STRINGS
