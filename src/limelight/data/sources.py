"""Where rows come from: files, folders of files and frames, all seen as parts with columns.

A part knows its column names and reads the wanted ones into an Arrow table. Columns of text files
arrive as text, so that an id such as ``007`` is not mistaken for a number.
"""

from __future__ import annotations

import difflib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import narwhals as nw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from limelight._errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from narwhals.typing import IntoFrame

    Source: TypeAlias = str | os.PathLike[str] | IntoFrame

KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".csv.gz": "csv", ".tsv.gz": "tsv"}
PAIRS = (
    ("user_id", "item_id"),
    ("user", "item"),
    ("userId", "movieId"),
    ("userId", "itemId"),
    ("userID", "itemID"),
    ("uid", "sid"),
    ("user_id:token", "item_id:token"),
)
"""The pairs of names under which users and items are found without being named."""

_BLOCK = 16 << 20  # bytes of text parsed at a time: larger blocks repeat fewer ids
_TEXT = pa.dictionary(pa.int32(), pa.string())


class Names(NamedTuple):
    """The columns to read."""

    user: str
    item: str
    rating: str | None = None
    timestamp: str | None = None


class Part(Protocol):
    """One file, or one frame."""

    @property
    def label(self) -> str:
        """What messages call this part."""
        ...

    @property
    def is_text(self) -> bool:
        """Whether ids and ratings arrive as the text that stands in the file."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The names of all columns."""
        ...

    def read(self, names: Names) -> Any:
        """Read the wanted columns as an Arrow table."""
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


def _open_folder(path: Path) -> list[Part]:
    # Names that start so are notes of the writer (_SUCCESS, .crc), not data.
    files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
    if not files:
        message = f"the folder holds no parts: {path}"
        raise DataError(message, hint=f"parts end in {', '.join(KINDS)}")
    kinds = {kind_of(file) for file in files}
    if len(kinds) > 1:
        message = f"the folder mixes kinds of files ({', '.join(sorted(kinds))}): {path}"
        raise DataError(message, hint="keep the parts of one table, of one kind, in a folder")
    return [_open_file(file) for file in files]


def kind_of(path: Path) -> str:
    """Tell the kind of a file from the end of its name.

    Examples
    --------
    >>> kind_of(Path("ratings.CSV.gz"))
    'csv'
    """
    for ending, kind in KINDS.items():
        if path.name.lower().endswith(ending) and not path.is_dir():
            return kind
    message = f"unknown kind of file: {path}"
    raise DataError(message, hint=f"the known endings are {', '.join(KINDS)}")


def _open_file(path: Path) -> Part:
    kind = kind_of(path)
    if path.stat().st_size == 0:
        message = f"the file is empty: {path}"
        raise DataError(message, hint="write it again, with a header and at least one row")
    if kind == "parquet":
        return _Parquet(path)
    return _Text(path, "\t" if kind == "tsv" else ",")


def choose_columns(part: Part, user: str | None, item: str | None) -> tuple[str, str]:
    """Find the user and item columns of a part: as named, else by the known pairs.

    Examples
    --------
    >>> [part] = open_parts(pa.table({"userId": [1], "movieId": [2], "rating": [4.0]}))
    >>> choose_columns(part, None, None)
    ('userId', 'movieId')
    """
    columns = part.columns
    for name in (user, item):
        if name is not None:
            require_column(part, name)
    found = {(user or u, item or i) for u, i in PAIRS}
    found = {(u, i) for u, i in found if u in columns and i in columns}
    if len(found) != 1:
        what = "the user and item columns are not clear" if found else "no user and item columns"
        message = f"{what} in {part.label}: {_listed(columns)}"
        raise DataError(message, hint="name them with user='...' and item='...'")
    return found.pop()


def require_column(part: Part, name: str) -> None:
    """Refuse a part in which a named column is missing or stands twice.

    Examples
    --------
    >>> [part] = open_parts(pa.table({"userId": [1], "movieId": [2]}))
    >>> require_column(part, "userid")
    Traceback (most recent call last):
    limelight._errors.DataError: column not found in the frame: 'userid'
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
        raise DataError(message, hint=f"{guess}the columns are: {_listed(part.columns)}")


def _listed(columns: Sequence[str], most: int = 20) -> str:
    rest = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(columns[:most]) + rest


@contextmanager
def plain_errors(label: str) -> Iterator[None]:
    """Put a sentence of ours around what a reader has to say.

    Examples
    --------
    >>> with plain_errors("ratings.csv"):
    ...     raise pa.ArrowInvalid("CSV parse error: Expected 3 columns, got 2: 1,2")
    Traceback (most recent call last):
    limelight._errors.DataError: cannot read ratings.csv: CSV parse error: Expected 3 columns, ...
    """
    try:
        yield
    # A UnicodeDecodeError is a ValueError, and so is ArrowInvalid.
    except (pa.ArrowException, nw.exceptions.NarwhalsError, OSError, TypeError, ValueError) as err:
        reason = (str(err).splitlines() or [type(err).__name__])[0].strip()
        if "Empty CSV file" in reason:
            message = f"no rows in {label}"
            raise DataError(message, hint="the first line is the header, rows follow it") from err
        message = f"cannot read {label}: {reason}"
        raise DataError(message, hint="check that it is whole and of the kind it claims") from err


@dataclass(frozen=True)
class _Text:
    """A CSV or TSV file, plain or gzipped (Arrow tells by the name)."""

    path: Path
    delimiter: str
    is_text: bool = True

    @property
    def label(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label), self._stream() as stream:
            return list(stream.schema.names)

    def _stream(self) -> Any:
        options = pa.csv.ParseOptions(delimiter=self.delimiter)
        return pa.csv.open_csv(self.path, parse_options=options)

    def read(self, names: Names) -> Any:
        text = {name: _TEXT for name in names[:3] if name}
        with plain_errors(self.label):
            return pa.csv.read_csv(
                self.path,
                read_options=pa.csv.ReadOptions(block_size=_BLOCK),
                parse_options=pa.csv.ParseOptions(delimiter=self.delimiter),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=_wanted(names), column_types=text
                ),
            )


@dataclass(frozen=True)
class _Parquet:
    path: Path
    is_text: bool = False

    @property
    def label(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label), pa.parquet.ParquetFile(self.path) as file:
            return list(file.schema_arrow.names)

    def read(self, names: Names) -> Any:
        with plain_errors(self.label):
            with pa.parquet.ParquetFile(self.path) as file:
                ids = [file.schema_arrow.field(name) for name in names[:2]]
            # Strings come as codes and distinct values: no string is made twice in a row group.
            strings = [field.name for field in ids if _is_string(field.type)]
            with pa.parquet.ParquetFile(self.path, read_dictionary=strings) as file:
                return file.read(columns=_wanted(names))


@dataclass(frozen=True, eq=False)
class _Frame:
    """A frame of any library that narwhals knows, eager or lazy."""

    native: Any
    label: str = "the frame"
    is_text: bool = False

    @cached_property
    def _frame(self) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
        try:
            frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(self.native)
        except (TypeError, ValueError, nw.exceptions.NarwhalsError) as err:
            message = f"cannot read interactions from an object of type: {type(self.native)}"
            hint = "pass a path, or a pandas, polars or pyarrow frame"
            raise DataError(message, hint=hint) from err
        return frame

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label):
            return [str(name) for name in self._frame.collect_schema().names()]

    def read(self, names: Names) -> Any:
        with plain_errors(self.label):
            frame = self._frame.select(_wanted(names))
            eager = frame.collect("pyarrow") if isinstance(frame, nw.LazyFrame) else frame
            return eager.to_arrow()


def _wanted(names: Names) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))


def _is_string(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
