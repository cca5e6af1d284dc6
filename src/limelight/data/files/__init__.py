"""Files of tables: their kinds, and text and Parquet read batch by batch.

Text files are separated by commas, tabs, semicolons, bars or ``::``, plain or compressed. Their
columns arrive as text, so that an id such as ``007`` is not mistaken for a number.
"""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import pyarrow as pa
import pyarrow.csv

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import first_words
from limelight.data.files.parquet import group_batches, open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""What separates the columns of a text file that limelight writes."""
_USUAL = {**DELIMITERS, ".dat": "::", ".txt": "\t"}
"""What separates columns, by the kind of file, unless its first line has another separator."""
SEPARATORS = (",", ";", "\t", "::", "|")
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zip": "zip"}
ENDINGS = (
    ".parquet",
    *_USUAL,
    *(kind + packed for kind in _USUAL for packed in _COMPRESSIONS),
    ".zip",
)
"""How the names of files end that can be read."""
KNOWN_ENDINGS = ".parquet, .csv, .tsv, .txt, .dat, and the last four also as .gz, .bz2, .zst, .zip"
_TEXT_BYTES = 1 << 20  # text parsed at a time
ROWS = 1 << 16
"""How many rows of Parquet and of frames are converted at a time."""
_MOST_COLUMNS = 10_000
_MANY_ROWS, _ROWS_A_BYTE = 1 << 26, 100  # more rows than this, in so few bytes, repeat
_UNIT_SEPARATOR = "\x1f"
"""Takes the place of a separator of two characters, because the parser takes one."""


class TextFormat(NamedTuple):
    """How a text file is written; what is None is found out from its first line."""

    separator: str | None = None
    columns: tuple[str, ...] | None = None
    """The names of the columns of a file that has no header."""
    preferred: str | None = None
    """A separator to look for before the usual ones."""

    def check(self) -> None:
        """Refuse a separator or names that cannot be meant."""
        separator = self.separator or self.preferred
        if separator is not None and separator not in SEPARATORS:
            message = f"unknown separator: {separator!r}"
            known = " ".join(map(repr, SEPARATORS))
            raise ConfigError(message, hint=f"choose one of {known}")
        if self.columns is not None and (
            not all(isinstance(name, str) and name for name in self.columns)
            or len(set(self.columns)) < len(self.columns)
        ):
            message = f"columns must be different names: {list(self.columns)!r}"
            raise ConfigError(message, hint="give one name for each column, in their order")


def files_of(path: Path) -> list[Path]:
    """List the files of a source: itself, or the parts of a folder by name."""
    if not path.is_dir():
        return [path]
    # Names that start so are notes of the writer (_SUCCESS, .crc), not data.
    return sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))


def ending_of(path: Path) -> str:
    """Tell the kind of a file from the end of its name.

    Examples
    --------
    >>> from pathlib import Path
    >>> ending_of(Path("ratings.CSV.gz"))
    '.csv.gz'
    """
    for ending in ENDINGS:
        if path.name.lower().endswith(ending) and not path.is_dir():
            return ending
    message = f"unknown kind of file: {path}"
    raise DataError(message, hint=f"the known endings are {KNOWN_ENDINGS}")


def kind_of_file(ending: str) -> str:
    """Tell the kind of a table from the ending of its file, compressed or not.

    Examples
    --------
    >>> kind_of_file(".csv.bz2"), kind_of_file(".parquet")
    ('.csv', '.parquet')
    """
    return next((kind for kind in (".parquet", *_USUAL) if ending.startswith(kind)), ending)


def open_file(path: Path, text: TextFormat) -> TextFile | ParquetFile:
    """Open a file by its kind; refuse an empty one."""
    ending = ending_of(path)
    if path.stat().st_size == 0:
        message = f"the file is empty: {path}"
        raise DataError(message, hint="write it again, with a header and at least one row")
    return ParquetFile(path) if ending == ".parquet" else TextFile(path, text)


@contextmanager
def plain_errors(label: str) -> Iterator[None]:
    """Raise the errors of readers as a DataError that names what was read.

    Examples
    --------
    >>> with plain_errors("ratings.csv"):
    ...     raise pa.ArrowInvalid("CSV parse error: Expected 3 columns, got 2: 1,2")
    Traceback (most recent call last):
    limelight._base.errors.DataError: cannot read ratings.csv: CSV parse error: Expected 3 ...
    """
    try:
        yield
    # A UnicodeDecodeError is a ValueError, and so is ArrowInvalid.
    except (
        pa.ArrowException,
        nw.exceptions.NarwhalsError,
        zipfile.BadZipFile,
        OSError,
        TypeError,
        ValueError,
    ) as err:
        reason = first_words(err)
        if "straddling object" in reason:
            message = f"cannot read {label}: a row has more than {_TEXT_BYTES:,} bytes"
            raise DataError(message, hint="check its line ends and quotation marks") from err
        if "Empty CSV file" in reason:
            message = f"no rows in {label}"
            raise DataError(message, hint="the first line is the header, rows follow it") from err
        message = f"cannot read {label}: {reason}"
        raise DataError(message, hint="check that it is whole and of the kind it claims") from err


def _require_plausible(n_rows: int, path: Path) -> None:
    """Refuse a file that unpacks to far more rows than different pairs could be packed into it."""
    size = path.stat().st_size
    if n_rows > max(_MANY_ROWS, _ROWS_A_BYTE * size):
        message = (
            f"{path} has only {size:,} bytes for {n_rows:,} rows, so most of these are repeats"
        )
        raise DataError(message, hint="write it again without repeats")


@dataclass(frozen=True)
class TextFile:
    """A text file, plain or compressed."""

    path: Path
    text: TextFormat = field(default=TextFormat())
    is_text: bool = True
    first_row: int = 0

    @property
    def label(self) -> str:
        """What messages call the file."""
        return str(self.path)

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes of the file are not those of its text."""
        return self.compression is not None

    @property
    def compression(self) -> str | None:
        """How the text is compressed, by the ending of the file."""
        return _COMPRESSIONS.get(self.path.suffix.lower())

    @cached_property
    def separator(self) -> str:
        """What stands between two columns: as told, else by the first line, else by the ending."""
        if self.text.separator is not None:
            return self.text.separator
        usual = _USUAL.get(kind_of_file(ending_of(self.path)), ",")
        line, first = self._first_line, self.text.preferred or usual
        return next((mark for mark in (first, usual, *SEPARATORS) if mark.encode() in line), usual)

    @property
    def delimiter(self) -> str:
        """The one character that separates columns for the parser."""
        return self.separator if len(self.separator) == 1 else _UNIT_SEPARATOR

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns."""
        with plain_errors(self.label):
            found = self._first_line.count(self.separator.encode()) + 1
            if found > _MOST_COLUMNS:
                most = f"{_MOST_COLUMNS:,}"
                message = f"{self.path} has more columns than the {most} that are read: {found:,}"
                raise DataError(message, hint="write one row for each pair of user and item")
            named = self.text.columns
            # A quoted field may hold the separator, so that more of them are no proof.
            if named and found != len(named) and b'"' not in self._first_line:
                message = f"{self.path} has {found:,} columns, but {len(named):,} were named"
                hint = f"name all of them in order; what separates them is {self.separator!r}"
                raise DataError(message, hint=hint)
            with self._parse() as stream:
                return list(stream.schema.names)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        wanted = {
            "include_columns": names,
            "column_types": dict.fromkeys(names, pa.large_string()),
        }
        n_rows = 0
        with plain_errors(self.label), self._parse(**wanted) as rows:
            for batch in rows:
                n_rows += batch.num_rows
                _require_plausible(n_rows, self.path)
                yield batch

    @cached_property
    def _first_line(self) -> bytes:
        with plain_errors(self.label), self.open() as stream:
            return bytes(stream.read(_TEXT_BYTES)).split(b"\n", 1)[0]

    def open(self) -> Any:
        """Open the text, unpacked."""
        if self.compression == "zip":
            return _open_zip(self.path)
        return pa.input_stream(self.path, compression=self.compression)

    def _parse(self, **convert: Any) -> Any:
        stream, is_double = self.open(), len(self.separator) > 1
        if is_double:
            stream = pa.PythonFile(_OneCharacter(stream, self.separator), mode="r")
        return pa.csv.open_csv(
            stream,
            read_options=pa.csv.ReadOptions(
                block_size=_TEXT_BYTES,
                column_names=None if self.text.columns is None else list(self.text.columns),
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=not is_double,
                # Files with :: quote nothing: a quotation mark there belongs to a title.
                quote_char=False if is_double else '"',
            ),
            convert_options=pa.csv.ConvertOptions(**convert),
        )


def _open_zip(path: Path) -> Any:
    """Open the one table of a zip file."""
    archive = zipfile.ZipFile(path)
    names = [name for name in archive.namelist() if name.lower().endswith(tuple(_USUAL))]
    if len(names) != 1:
        archive.close()
        message = f"a zip file must hold one text file, and {path} holds {len(names):,}"
        raise DataError(message, hint="unpack it, and name the file that you mean")
    return pa.PythonFile(archive.open(names[0]), mode="r")


class _OneCharacter:
    """A stream in which one character takes the place of a separator of two."""

    def __init__(self, stream: Any, separator: str) -> None:
        self._stream = stream
        self._double = separator.encode()
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        text = bytes(self._stream.read(size) if size >= 0 else self._stream.read())
        if size >= 0 and text.endswith(self._double[:1]):
            text += bytes(self._stream.read(1))  # so that no separator is cut in two
        return text.replace(self._double, _UNIT_SEPARATOR.encode())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self._stream.close()
        self.closed = True


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file, or some of its row groups."""

    path: Path
    is_text: bool = False
    groups: range | None = None
    """The row groups that belong to this part; None: all."""
    first_row: int = 0

    @property
    def label(self) -> str:
        """What messages call the file."""
        return str(self.path)

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns."""
        with plain_errors(self.label), open_parquet(self.path) as file:
            return list(file.schema_arrow.names)

    def group_sizes(self) -> list[int]:
        """List how many rows each row group has."""
        with plain_errors(self.label), open_parquet(self.path) as file:
            about = file.metadata
            return [about.row_group(group).num_rows for group in range(file.num_row_groups)]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        with plain_errors(self.label), open_parquet(self.path) as file:
            _require_plausible(file.metadata.num_rows, self.path)
            for group in range(file.num_row_groups) if self.groups is None else self.groups:
                yield from group_batches(self.path, file, group, names, ROWS)
