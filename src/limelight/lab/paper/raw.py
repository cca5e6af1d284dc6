"""The paper's data as their authors publish them: text without names of columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError
from limelight.data.files import TextFile, TextFormat, ending_of, open_file, plain_errors
from limelight.data.sources import TableSource

if TYPE_CHECKING:
    from limelight.data.sources import Source

_START = 1 << 16
"""Bytes among which the first row ends, behind the header of an archive if there is one."""
_NUL = b"\0"


class RawLayout(NamedTuple):
    """How the rows of a published text file are written."""

    columns: tuple[str, ...]
    """Their names, which the file does not have."""
    separator: str


def as_published(source: Source, layout: RawLayout | None) -> Source:
    """Read a raw file as it comes; leave any other source as it is.

    A file is raw if its first line is a row: as many fields as the layout has columns, and a
    number at the end.
    """
    if layout is None or not isinstance(source, (str, Path)):
        return source
    path = Path(source).expanduser()
    if not path.is_file() or ending_of(path) == ".parquet":
        return source
    file = open_file(path, TextFormat())
    if not isinstance(file, TextFile) or not _starts_with_a_row(file, layout):
        return source
    if layout.separator == " ":
        return _whole_numbers(file, layout)
    return TableSource(path, separator=layout.separator, columns=layout.columns)


def _starts_with_a_row(file: TextFile, layout: RawLayout) -> bool:
    with plain_errors(file.label), file.open() as stream:
        start = bytes(stream.read(_START))
    fields = _behind_archive_header(start).split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    cells = fields.split() if layout.separator == " " else fields.split(layout.separator)
    return len(cells) == len(layout.columns) and cells[-1].strip().isdigit()


def _behind_archive_header(text: bytes) -> bytes:
    """Drop what stands before the first row: a name and zeros, where the text was archived."""
    first = text.split(b"\n", 1)[0]
    return text[first.rfind(_NUL) + 1 :]


def _whole_numbers(file: TextFile, layout: RawLayout) -> Source:
    """Read rows of whole numbers between spaces; zeros fill the last block of an archive."""
    with plain_errors(file.label), file.open() as stream:
        text = _behind_archive_header(bytes(stream.read())).rstrip(_NUL)
    rows = [line.split() for line in text.splitlines()]
    rows = [row for row in rows if row]
    wrong = next((row for row in rows if not _fits(row, layout)), None)
    if wrong is not None:
        line = b" ".join(wrong).decode(errors="replace")[:80]
        message = f"a row of {file.label} is not {', '.join(layout.columns)}: {line!r}"
        raise DataError(message, hint="get the file again, or pass a table with named columns")
    values = np.array(rows, dtype=np.int64)
    columns = {name: values[:, place] for place, name in enumerate(layout.columns)}
    table: Source = pa.table(columns)
    return table


def _fits(row: list[bytes], layout: RawLayout) -> bool:
    return len(row) == len(layout.columns) and all(cell.isdigit() for cell in row)
