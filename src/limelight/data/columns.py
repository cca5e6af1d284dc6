"""Chosen columns of any source, as checked arrays of numbers or times, batch by batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._base.errors import DataError
from limelight._base.text import short
from limelight.data.files.parquet import STRINGS
from limelight.data.sources import describe, require_column
from limelight.data.times import formats_of, number_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64
    from limelight.data.sources import Part

TIMES = (
    pa.int64(),
    pa.float64(),
    *(pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("us", "ns")),
)
"""What the text of a timestamp may mean, the first that fits."""
_SECONDS = {"day": 86_400.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1.0}
"""Seconds of the units in which Arrow writes times."""


CORRECT = "correct or drop such rows"
_MISSING = ("", "null", "none", "nan", "na", "n/a", r"\n")
"""What text files write where a number is missing, in small letters."""


class Chunk(NamedTuple):
    """Some rows of a column, and where they stand."""

    values: Any
    where: str
    start: int = 0
    is_text: bool = False
    """Whether the values stand in a text file, where numbers are text too."""

    def error(self, row: int, what: str, hint: str = CORRECT) -> DataError:
        """Say what is wrong with a value; rows count from 1, the header not counted."""
        value = self.values[row].as_py()
        shown = "null" if value is None else short(value)
        message = f"{self.where}, row {self.start + row + 1}: {what}, got: {shown}"
        return DataError(message, hint=hint)

    def type_error(self, what: str, hint: str) -> DataError:
        """Say what is wrong with the type of the values."""
        return DataError(f"{self.where}: {what}, got type: {self.values.type}", hint=hint)

    def require_all(self, holds: NDArray[np.bool_], what: str, hint: str = CORRECT) -> None:
        """Refuse the first row that is wrong, if there is one."""
        if not holds.all():
            raise self.error(int(np.argmin(holds)), what, hint)

    def require_values(self, what: str, hint: str = CORRECT) -> None:
        """Refuse the first row without a value, if there is one."""
        if self.values.null_count:
            self.require_all(pc.is_valid(self.values).to_numpy(zero_copy_only=False), what, hint)


class Column(Protocol):
    """A column that is wanted of a source."""

    @property
    def name(self) -> str:
        """Name of the column."""
        ...

    def convert(self, chunk: Chunk) -> NDArray[Any]:
        """Check the values of some rows and turn them into an array."""
        ...


@dataclass(frozen=True)
class NumberColumn:
    """Numbers that obey a rule.

    Examples
    --------
    >>> column = NumberColumn("rating", "a rating must be a number from 0 up", lambda x: x >= 0)
    >>> column.convert(Chunk(pa.array([" 4", "5.5"]), "ratings.csv", is_text=True))
    array([4. , 5.5])
    """

    name: str
    rule: str
    obeys: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
    dtype: type[np.number[Any]] = np.float64
    may_be_missing: bool = False
    """Whether a row without a number is one with NaN, not a mistake."""
    hint: str = CORRECT
    """What to do about a row that does not obey the rule."""

    def convert(self, chunk: Chunk) -> NDArray[Any]:
        """Check every number."""
        if self.may_be_missing:
            chunk = chunk._replace(values=_missing_as_nan(chunk))
        chunk.require_values(self.rule, self.hint)
        if chunk.is_text:
            hint_of = partial(_say_missing, self.hint)
            values = parse_text(chunk, [pa.float64()], self.rule, hint_of)
        elif _is_number(chunk.values.type) or pa.types.is_decimal(chunk.values.type):
            values = chunk.values.cast(pa.float64(), safe=False)
        else:
            raise chunk.type_error(self.rule, "cast the column to numbers first")
        numbers = values.to_numpy()
        hint = CORRECT if np.isposinf(numbers).any() else self.hint  # infinity is not missing
        chunk.require_all(self.obeys(numbers), self.rule, hint)
        return np.asarray(numbers, dtype=self.dtype)


def _missing_as_nan(chunk: Chunk) -> Any:
    """Put NaN where a number is missing, which in text may be an empty field or a word."""
    values = chunk.values
    if chunk.is_text:
        text = pc.ascii_trim_whitespace(pc.fill_null(values, ""))
        is_missing = pc.is_in(pc.ascii_lower(text), pa.array(_MISSING, text.type))
        return pc.if_else(is_missing, "nan", text)
    is_number = _is_number(values.type) or pa.types.is_decimal(values.type)
    if not values.null_count or not is_number:
        return values
    return pc.fill_null(values.cast(pa.float64(), safe=False), float("nan"))


class TimeColumn:
    """Numbers or times, as int32, int64 or float64 that sort in time.

    Examples
    --------
    >>> column = TimeColumn("time")
    >>> column.convert(Chunk(pa.array(["2024-01-02"]), "ratings.csv", is_text=True))
    array([1704153600000000])
    >>> column.seconds(_)
    array([1.7041536e+09])
    """

    rule = "a timestamp must be a finite number from 0 up, or a time"

    def __init__(self, name: str, time_format: str | None = None) -> None:
        self.name = name
        self._format = time_format
        self._kind = ""

    def parse(self, chunk: Chunk) -> Any:
        """Turn text into numbers or times, by the format where one was named."""
        text = chunk.values
        if self._format is None or str(text.type) not in STRINGS:
            return parse_text(chunk, TIMES, self.rule, _say_format) if chunk.is_text else text
        trimmed = pc.ascii_trim_whitespace(text)
        times = pc.strptime(trimmed, format=self._format, unit="us", error_is_null=True)
        rule = f"a timestamp must be written as {self._format!r}"
        is_time = pc.is_valid(times).to_numpy(zero_copy_only=False)
        if not is_time.all():
            row = int(np.argmin(is_time))
            raise chunk.error(row, rule, _say_format(trimmed[row].as_py()))
        return times

    def convert(self, chunk: Chunk) -> NDArray[Any]:
        """Check every time, and that it can be compared with those before."""
        chunk.require_values(self.rule)
        values = self.parse(chunk)
        kind = "number" if _is_number(values.type) else str(values.type)
        if self._kind not in {"", kind}:
            message = f"{chunk.where}: timestamps are written in two ways: {self._kind}, {kind}"
            raise DataError(message, hint="cast them to one type in all rows")
        self._kind = kind
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        elif pa.types.is_date64(values.type) or pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        elif kind != "number":
            raise chunk.type_error(self.rule, "write times as numbers or as YYYY-MM-DD HH:MM:SS")
        times: NDArray[Any] = values.to_numpy()
        # Dates before 1970 are times; a negative number is more likely a mark for "unknown".
        is_time = np.isfinite(times) & (times >= 0) if kind == "number" else np.isfinite(times)
        chunk.require_all(is_time, self.rule)
        return times.astype(_lean_type(times), copy=False)

    def seconds(self, times: NDArray[Any]) -> Float64:
        """Turn all the times that were converted into seconds since 1970."""
        if self._kind == "number":
            return number_seconds(times)
        unit = next(unit for unit in _SECONDS if f"[{unit}" in self._kind)
        return np.asarray(times * _SECONDS[unit], np.float64)


def _lean_type(times: NDArray[Any]) -> type[np.number[Any]]:
    """Choose the type that holds some times; seconds since 1970 and dates fit 32 bits."""
    if times.dtype.kind == "f":
        return np.float64
    limits = np.iinfo(np.int32)
    fits = limits.min <= times.min() and times.max() <= limits.max
    return np.int32 if fits else np.int64


def _is_number(type_: Any) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _say_format(text: str) -> str:
    """Say what to do about a time that cannot be read, with the formats that it may have."""
    known = formats_of(text) or ("%d/%m/%Y",)
    written = ", or ".join(f"time_format={one!r}" for one in known)
    return f"{CORRECT}, or say how times are written: {written}"


def _say_missing(hint: str, text: str) -> str:
    """Say what to do about text that is no number; a hint about missing ones may not help."""
    return hint if text.lower() in _MISSING else CORRECT


def parse_text(chunk: Chunk, types: Sequence[Any], what: str, hint_of: Callable[[str], str]) -> Any:
    """Read text as the first type that fits all rows; refuse a row that fits none."""
    text = pc.ascii_trim_whitespace(chunk.values)
    for type_ in types:
        with suppress(pa.ArrowInvalid):
            return text.cast(type_)
    row = max(_first_misfit(text, type_) for type_ in types)
    raise chunk.error(row, what, hint_of(text[row].as_py()))


def _first_misfit(text: Any, type_: Any) -> int:
    """Find the first value that is not of a type, by halves."""
    first = 0
    while len(text) > 1:
        half = len(text) // 2
        try:
            text[:half].cast(type_)
        except pa.ArrowInvalid:
            text = text[:half]
        else:
            text = text[half:]
            first += half
    return first


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
    """Read some columns of parts that are known to have them; parts may have no rows."""
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
