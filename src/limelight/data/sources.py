"""Where rows come from: files, folders of files and frames, all seen as parts with columns.

A part knows its column names and reads the wanted ones batch by batch.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import narwhals as nw
import pyarrow as pa

from limelight._base.errors import ConfigError, DataError
from limelight.data import files
from limelight.data.files import (
    KNOWN_ENDINGS,
    ParquetFile,
    TextFile,
    TextFormat,
    ending_of,
    files_of,
    kind_of_file,
    open_file,
    plain_errors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from narwhals.typing import IntoFrame

    Source: TypeAlias = "str | os.PathLike[str] | IntoFrame | TableSource"

NAMED_COLUMNS = ("user", "item", "rank", "score", "group", "title", "weight", "timestamp")
"""The columns of tables that can be named."""


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


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table whose columns have names of their own, or whose text is written in its own way.

    Every function that takes a table takes this in its place. What is left out is found under the
    usual names.

    Parameters
    ----------
    source
        A file, a folder of parts, or a frame.
    user, item, rank, score, group, title, weight, timestamp
        The names of its columns.
    separator
        What separates the columns of a text file: ``","``, ``";"``, a tab, ``"::"`` or ``"|"``.
        Left out, its first line tells.
    columns
        The names of all columns of a text file that has no header: a list, or ``"user,item"``.
    time_format
        How times are written where they are text, such as ``"%d/%m/%Y"``.

    Examples
    --------
    >>> import limelight as ll
    >>> sellers = pa.table({"sku": ["a", "b"], "shop": ["x", "y"]})
    >>> lists = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
    >>> found = ll.audit(lists, groups=ll.TableSource(sellers, item="sku", group="shop"))
    >>> [group.group for group in found.groups]
    ['x', 'y']
    """

    source: Any
    user: str | None = None
    item: str | None = None
    rank: str | None = None
    score: str | None = None
    group: str | None = None
    title: str | None = None
    weight: str | None = None
    timestamp: str | None = None
    separator: str | None = None
    columns: str | Sequence[str] | None = None
    time_format: str | None = None
    preferred: Mapping[str, str] = field(default_factory=dict)
    """Names to look for before the usual ones, and a separator, where the table has them."""
    argument: str = ""
    """Of a table among several, what it was given as, such as ``groups``; hints then say so."""

    def __post_init__(self) -> None:
        """Refuse a table of a table, and names that are not text."""
        if isinstance(self.source, TableSource):
            message = "a TableSource cannot be the source of another one"
            raise ConfigError(message, hint="name all columns in one of them")
        check_names(**{name: getattr(self, name) for name in NAMED_COLUMNS})
        self.text.check()

    def __fspath__(self) -> str:
        """Return the path, where the source has one."""
        return str(os.fspath(self.source))

    def __str__(self) -> str:
        """Name the table as messages do."""
        return str(self.source) if is_file_source(self) else "the frame"

    def named(self, part: Part, what: str) -> str | None:
        """Return the name that a column was given; refuse one that the table does not have."""
        name: str | None = getattr(self, what)
        if name is not None:
            require_column(part, name)
            return name
        preferred = self.preferred.get(what)
        return preferred if preferred in part.columns else None

    @property
    def text(self) -> TextFormat:
        """How its files are written, if they are text."""
        names = self.columns
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        told = None if names is None else tuple(names)
        return TextFormat(self.separator, told, self.preferred.get("separator"))


def names_in(table: TableSource) -> dict[str, Any]:
    """Return what a table was told but its source, as other processes can be told.

    Examples
    --------
    >>> names_in(TableSource("sellers.csv", item="sku", separator=";"))
    {'item': 'sku', 'separator': ';'}
    """
    given = {own.name: getattr(table, own.name) for own in fields(table) if own.name != "source"}
    return {name: value for name, value in given.items() if value}


def check_names(**columns: object) -> None:
    """Refuse names of columns that are not text."""
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            message = f"{name} must be the name of a column, in text: {column!r}"
            raise ConfigError(message, hint="rename columns that have numbers for names")


def open_parts(source: Source) -> list[Part]:
    """List the parts of a source: a file, the files of a folder by name, or one frame.

    Examples
    --------
    >>> [part] = open_parts(pa.table({"user": [1], "item": [2]}))
    >>> part.label, part.columns
    ('the frame', ['user', 'item'])
    """
    text = source.text if isinstance(source, TableSource) else TextFormat()
    plain = source.source if isinstance(source, TableSource) else source
    if not isinstance(plain, (str, os.PathLike)):
        return [_Frame(plain)]
    path = Path(plain).expanduser()
    if path.is_dir():
        return _open_folder(path, text)
    if not path.exists():
        message = f"no such file or folder: {path}"
        raise DataError(message, hint=f"relative paths start from {Path.cwd()}")
    return [open_file(path, text)]


def is_file_source(source: object) -> bool:
    """Tell whether a source is a file or a folder, not a frame."""
    plain = source.source if isinstance(source, TableSource) else source
    return isinstance(plain, (str, os.PathLike))


def at_path(source: Source, path: Path) -> Source:
    """Name another file that is written as a source is, such as one of its parts."""
    return replace(source, source=path) if isinstance(source, TableSource) else path


def piece_sizes(part: Part) -> list[int]:
    """List how large the pieces of a part are that can be read alone.

    Row groups of a Parquet file count in rows, anything else is one piece.

    Examples
    --------
    >>> piece_sizes(open_parts(pa.table({"user": [1]}))[0])
    [1]
    """
    if isinstance(part, ParquetFile):
        return part.group_sizes()
    return [part.path.stat().st_size if isinstance(part, TextFile) else 1]


def piece_of(part: Part, pieces: range, first_row: int) -> Part:
    """Take some pieces of a part, behind its first so many rows."""
    if isinstance(part, ParquetFile):
        return replace(part, groups=pieces, first_row=first_row)
    return part


def describe(parts: Sequence[Part]) -> str:
    """Name all parts together, for messages."""
    first = parts[0].label
    return first if len(parts) == 1 else f"the {len(parts):,} parts from {first} on"


def _open_folder(path: Path, text: TextFormat) -> list[Part]:
    found = files_of(path)
    if not found:
        message = f"the folder holds no parts: {path}"
        raise DataError(message, hint=f"parts end in {KNOWN_ENDINGS}")
    kinds = {kind_of_file(ending_of(file)) for file in found}
    if len(kinds) > 1:
        message = f"the folder mixes kinds of files ({', '.join(sorted(kinds))}): {path}"
        raise DataError(message, hint="keep the parts of one table, of one kind, in a folder")
    return [open_file(file, text) for file in found]


def guess(part: Part, name: str) -> str:
    """Ask whether the column with the nearest name is meant, if one is near."""
    by_lower = {column.lower(): column for column in part.columns}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}? " if close else ""


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
        message = f"{part.label} has {found} columns named {name!r}"
        raise DataError(message, hint="rename all but one of them")
    if found == 0:
        message = f"column not found in {part.label}: {name!r}"
        hint = f"{guess(part, name)}the columns are: {listed(part.columns)}"
        raise DataError(message, hint=hint)


def listed(columns: Sequence[str], most: int = 20) -> str:
    """List column names for a message, cut short where there are many.

    Examples
    --------
    >>> listed(["user", "item", "rating"], most=2)
    'user, item and 1 more'
    """
    rest = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(columns[:most]) + rest


@dataclass(frozen=True, eq=False)
class _Frame:
    """A frame of any library that narwhals knows, eager or lazy, or a dict of columns."""

    native: Any
    label: str = "the frame"
    is_text: bool = False
    first_row: int = 0

    @cached_property
    def _frame(self) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
        try:
            native = pa.table(self.native) if isinstance(self.native, dict) else self.native
            frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(native)
        except (TypeError, ValueError, nw.exceptions.NarwhalsError, pa.ArrowException) as err:
            raise _no_table(self.native, err) from err
        return frame

    @cached_property
    def columns(self) -> list[str]:
        with plain_errors(self.label):
            _refuse_repeated_columns(self.native)
            # A frame of pandas may have other things than text for names; nobody can ask for those.
            names = self._frame.collect_schema().names()
            return [name for name in names if isinstance(name, str)]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        with plain_errors(self.label):
            frame = self._frame.select(names)
            eager = frame.collect("pyarrow") if isinstance(frame, nw.LazyFrame) else frame
            yield from eager.to_arrow().to_batches(max_chunksize=files.ROWS)


def _no_table(native: object, error: Exception) -> DataError:
    """Say what to pass instead of an object that is no table."""
    if hasattr(native, "tocsr"):
        message = f"a sparse matrix has no ids to read: {type(native).__name__}"
        hint = "use ll.Interactions.from_matrix(matrix), or pass it to a model: model.fit(matrix)"
        return DataError(message, hint=hint)
    if isinstance(native, dict):
        message = f"cannot read a table from a dict: {str(error).splitlines()[0]}"
        return DataError(message, hint="pass columns of the same length: {'user': [...], ...}")
    message = f"cannot read a table from an object of type: {type(native)}"
    return DataError(message, hint="pass a path, or a pandas, polars or pyarrow frame")


def _refuse_repeated_columns(native: Any) -> None:
    """Say which column a frame of pandas has twice; other libraries refuse such frames."""
    is_pandas = type(native).__module__.startswith("pandas")
    names = [name for name in native.columns if isinstance(name, str)] if is_pandas else []
    for name in names:
        if names.count(name) > 1:
            message = f"the frame has {names.count(name)} columns named {name!r}"
            raise DataError(message, hint="rename or drop all but one of them")


def has(parts: Sequence[Part], name: str) -> bool:
    """Tell whether any part has a column; then all of them must."""
    return any(name in part.columns for part in parts)
