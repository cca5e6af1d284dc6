"""Where rows come from: files, folders of files and frames, all seen as parts with columns.

A part knows its column names and reads the wanted ones batch by batch. Columns of text files
arrive as text, so that an id such as ``007`` is not mistaken for a number.
"""

from __future__ import annotations

import difflib
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import narwhals as nw
import pyarrow as pa
import pyarrow.csv

from limelight._base.errors import DataError
from limelight._base.text import first_words
from limelight.data.parquet import group_batches, open_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from narwhals.typing import IntoFrame

    Source: TypeAlias = str | os.PathLike[str] | IntoFrame

DELIMITERS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".parquet", *DELIMITERS, *(f"{ending}.gz" for ending in DELIMITERS))
"""How the names of files end that can be read."""
_TEXT_BYTES = 1 << 20  # text parsed at a time
_ROWS = 1 << 16  # rows of Parquet and of frames converted at a time
_MOST_COLUMNS = 10_000
_MANY_ROWS, _ROWS_A_BYTE = 1 << 26, 100  # more rows than this, in so few bytes, repeat


class Part(Protocol):
    """One file, or one frame."""

    @property
    def label(self) -> str:
        """What messages call this part."""
        ...

    @property
    def is_text(self) -> bool:
        """Whether all columns arrive as the text that stands in the file."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The names of all columns."""
        ...

    @property
    def first_row(self) -> int:
        """How many rows of its file stand before this part."""
        ...

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        ...


def open_parts(source: Source) -> list[Part]:
    """List the parts of a source: a file, the files of a folder by name, or one frame.

    Examples
    --------
    >>> [part] = open_parts(pa.table({"user": [1], "item": [2]}))
    >>> part.label, part.columns
    ('the frame', ['user', 'item'])
    """
    if not isinstance(source, (str, os.PathLike)):
        return [_Frame(source)]
    path = Path(source).expanduser()
    if path.is_dir():
        return _open_folder(path)
    if not path.exists():
        message = f"no such file or folder: {path}"
        raise DataError(message, hint=f"relative paths start from {Path.cwd()}")
    return [_open_file(path)]


def piece_sizes(part: Part) -> list[int]:
    """List how large the pieces of a part are that can be read alone.

    Row groups of a Parquet file count in rows, anything else is one piece.

    Examples
    --------
    >>> piece_sizes(open_parts(pa.table({"user": [1]}))[0])
    [1]
    """
    if isinstance(part, _Parquet):
        return part.group_sizes()
    return [part.path.stat().st_size if isinstance(part, _Text) else 1]


def piece_of(part: Part, pieces: range, first_row: int) -> Part:
    """Take some pieces of a part, behind its first so many rows."""
    if isinstance(part, _Parquet):
        return replace(part, groups=pieces, first_row=first_row)
    return part


def describe(parts: Sequence[Part]) -> str:
    """Name all parts together, for messages."""
    first = parts[0].label
    return first if len(parts) == 1 else f"the {len(parts):,} parts from {first} on"


def files_of(path: Path) -> list[Path]:
    """List the files of a source: itself, or the parts of a folder by name."""
    if not path.is_dir():
        return [path]
    # Names that start so are notes of the writer (_SUCCESS, .crc), not data.
    return sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))


def _open_folder(path: Path) -> list[Part]:
    files = files_of(path)
    if not files:
        message = f"the folder holds no parts: {path}"
        raise DataError(message, hint=f"parts end in {', '.join(ENDINGS)}")
    kinds = {ending_of(file).removesuffix(".gz") for file in files}
    if len(kinds) > 1:
        message = f"the folder mixes kinds of files ({', '.join(sorted(kinds))}): {path}"
        raise DataError(message, hint="keep the parts of one table, of one kind, in a folder")
    return [_open_file(file) for file in files]


def ending_of(path: Path) -> str:
    """Tell the kind of a file from the end of its name.

    Examples
    --------
    >>> ending_of(Path("ratings.CSV.gz"))
    '.csv.gz'
    """
    for ending in ENDINGS:
        if path.name.lower().endswith(ending) and not path.is_dir():
            return ending
    message = f"unknown kind of file: {path}"
    raise DataError(message, hint=f"the known endings are {', '.join(ENDINGS)}")


def _open_file(path: Path) -> Part:
    ending = ending_of(path)
    if path.stat().st_size == 0:
        message = f"the file is empty: {path}"
        raise DataError(message, hint="write it again, with a header and at least one row")
    if ending == ".parquet":
        return _Parquet(path)
    return _Text(path, DELIMITERS[ending.removesuffix(".gz")])


def require_column(part: Part, name: str) -> None:
    """Refuse a part in which a named column is missing or stands twice.

    Examples
    --------
    >>> [part] = open_parts(pa.table({"userId": [1], "movieId": [2]}))
    >>> require_column(part, "userid")
    Traceback (most recent call last):
    limelight._base.errors.DataError: column not found in the frame: 'userid'
    <BLANKLINE>
    hint: did you mean 'userId'? the columns are: userId, movieId
    """
    found = list(part.columns).count(name)
    if found > 1:
        message = f"column stands {found} times in {part.label}: {name!r}"
        raise DataError(message, hint="rename all but one of them")
    if found == 0:
        message = f"column not found in {part.label}: {name!r}"
        by_lower = {column.lower(): column for column in part.columns}
        close = difflib.get_close_matches(name.lower(), by_lower, n=1)
        guess = f"did you mean {by_lower[close[0]]!r}? " if close else ""
        raise DataError(message, hint=f"{guess}the columns are: {listed(part.columns)}")


def listed(columns: Sequence[str], most: int = 20) -> str:
    """List column names for a message, cut short where there are many.

    Examples
    --------
    >>> listed(["user", "item", "rating"], most=2)
    'user, item and 1 more'
    """
    rest = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(columns[:most]) + rest


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
    except (pa.ArrowException, nw.exceptions.NarwhalsError, OSError, TypeError, ValueError) as err:
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
        message = f"{path} unpacks to more rows than its {size:,} bytes can tell apart: {n_rows:,}"
        raise DataError(message, hint="its rows repeat; write it again without repeats")


@dataclass(frozen=True)
class _Text:
    """A CSV or TSV file, plain or gzipped."""

    path: Path
    delimiter: str
    is_text: bool = True
    first_row: int = 0

    @property
    def label(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label):
            self._refuse_many_columns()
            with self._open() as stream:
                return list(stream.schema.names)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        text = dict.fromkeys(names, pa.large_string())
        n_rows = 0
        with plain_errors(self.label), self._open(include_columns=names, column_types=text) as rows:
            for batch in rows:
                n_rows += batch.num_rows
                _require_plausible(n_rows, self.path)
                yield batch

    def _refuse_many_columns(self) -> None:
        """Count the columns before a reader makes room for each of them."""
        with self._stream() as stream:
            header = stream.read(_TEXT_BYTES).split(b"\n", 1)[0]
        found = header.count(self.delimiter.encode()) + 1
        if found > _MOST_COLUMNS:
            message = (
                f"{self.path} has more columns than the {_MOST_COLUMNS:,} that are read: {found:,}"
            )
            raise DataError(message, hint="write one row for each pair of user and item")

    def _stream(self) -> Any:
        is_gzip = self.path.suffix.lower() == ".gz"
        return pa.input_stream(self.path, compression="gzip" if is_gzip else None)

    def _open(self, **convert: Any) -> Any:
        return pa.csv.open_csv(
            self._stream(),
            read_options=pa.csv.ReadOptions(block_size=_TEXT_BYTES),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(**convert),
        )


@dataclass(frozen=True)
class _Parquet:
    path: Path
    is_text: bool = False
    groups: range | None = None
    """The row groups that belong to this part; None: all."""
    first_row: int = 0

    @property
    def label(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label), open_parquet(self.path) as file:
            return list(file.schema_arrow.names)

    def group_sizes(self) -> list[int]:
        with plain_errors(self.label), open_parquet(self.path) as file:
            about = file.metadata
            return [about.row_group(group).num_rows for group in range(file.num_row_groups)]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        with plain_errors(self.label), open_parquet(self.path) as file:
            _require_plausible(file.metadata.num_rows, self.path)
            for group in range(file.num_row_groups) if self.groups is None else self.groups:
                yield from group_batches(self.path, file, group, names, _ROWS)


@dataclass(frozen=True, eq=False)
class _Frame:
    """A frame of any library that narwhals knows, eager or lazy."""

    native: Any
    label: str = "the frame"
    is_text: bool = False
    first_row: int = 0

    @cached_property
    def _frame(self) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
        try:
            frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(self.native)
        except (TypeError, ValueError, nw.exceptions.NarwhalsError) as err:
            message = f"cannot read a table from an object of type: {type(self.native)}"
            hint = "pass a path, or a pandas, polars or pyarrow frame"
            raise DataError(message, hint=hint) from err
        return frame

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label):
            # A frame of pandas may have other things than text for names; nobody can ask for those.
            names = self._frame.collect_schema().names()
            return [name for name in names if isinstance(name, str)]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        with plain_errors(self.label):
            frame = self._frame.select(names)
            eager = frame.collect("pyarrow") if isinstance(frame, nw.LazyFrame) else frame
            yield from eager.to_arrow().to_batches(max_chunksize=_ROWS)


def has(parts: Sequence[Part], name: str) -> bool:
    """Tell whether any part has a column; then all of them must."""
    return any(name in part.columns for part in parts)
