"""From the columns of a table to checked arrays: ids as codes, ratings and times as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from limelight.data.interactions import Ids

_STRINGS = ("string", "large_string", "string_view")
_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_NUMBER = r"^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class Place(NamedTuple):
    """A column of a part, for messages."""

    label: str
    column: str

    def refuse(self, row: int, what: str, value: object, hint: str) -> NoReturn:
        """Raise for one value; rows count from 1, the header not counted."""
        message = f"{self.label}, column {self.column!r}, row {row + 1}: {what}, got: {value}"
        raise DataError(message, hint=hint)

    def refuse_type(self, what: str, type_: Any, hint: str) -> NoReturn:
        """Raise for a column of the wrong type."""
        message = f"{self.label}, column {self.column!r}: {what}, got type: {type_}"
        raise DataError(message, hint=hint)


class Coded(NamedTuple):
    """A run of rows as codes into values: ``values[codes]`` is the column. Values may repeat."""

    codes: NDArray[np.integer]
    values: Any
    is_text: bool


def code_ids(column: Any, place: Place, *, is_text: bool = False) -> list[Coded]:
    """Code an id column, chunk by chunk, so that no row becomes a Python object.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Integers or strings, plain or dictionary-encoded.
    place
        Where the column stands, for messages.
    is_text
        Whether strings come from a text file and so may mean integers.

    Examples
    --------
    >>> column = pa.chunked_array([["b", "a", "b"]])
    >>> [run] = code_ids(column, Place("ratings.csv", "user"))
    >>> run.codes, run.values.to_pylist()
    (array([0, 1, 0], dtype=int32), ['b', 'a'])
    """
    runs, start = [], 0
    for chunk in column.iterchunks():
        _refuse_missing(chunk, place, start, "an id is an integer or a string")
        if not pa.types.is_dictionary(chunk.type):
            chunk = _plain_values(chunk, place).dictionary_encode()  # noqa: PLW2901
        codes = chunk.indices.to_numpy()
        values = _plain_values(chunk.dictionary, place)
        empty = -1 if pa.types.is_integer(values.type) else values.index("").as_py()
        if empty >= 0 and (rows := np.flatnonzero(codes == empty)).size:
            hint = "give every row an id, or drop such rows"
            place.refuse(start + int(rows[0]), "an id must not be empty", repr(""), hint)
        runs.append(Coded(codes, values, is_text))
        start += len(chunk)
    return runs


def _plain_values(values: Any, place: Place) -> Any:
    """Cast ids to int64 or large_string, and refuse every other type."""
    type_ = values.type
    if pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and type_.scale == 0):
        try:
            return values.cast(pa.int64())
        except pa.ArrowInvalid:
            place.refuse_type("integer ids must fit 64 bits", type_, "cast the ids to strings")
    if str(type_) not in _STRINGS:
        hint = "cast the column to integers or strings first"
        place.refuse_type("ids are integers or strings", type_, hint)
    return values.cast(pa.large_string())


def number_ids(runs: Sequence[Coded]) -> tuple[NDArray[np.int32], Ids]:
    """Give every id of all runs its number, in ascending order.

    Text becomes integers only when every id is the usual spelling of one: ``7`` is, ``007`` is not.

    Returns
    -------
    tuple
        The number of each row's id, and the ids by number.

    Examples
    --------
    >>> column = pa.chunked_array([["10", "9"], ["10"]])
    >>> number_ids(code_ids(column, Place("ratings.csv", "user"), is_text=True))
    (array([1, 0, 1], dtype=int32), array([ 9, 10]))
    """
    if len({run.values.type for run in runs}) > 1:
        message = "ids are integers in one part and strings in another"
        raise DataError(message, hint="cast them to one type in all parts")
    values = pa.concat_arrays([run.values for run in runs])
    number, ids = _rank(values, may_be_integers=all(run.is_text for run in runs))
    numbered, start = [], 0
    for run in runs:
        numbered.append(number[start : start + len(run.values)][run.codes])
        start += len(run.values)
    return np.concatenate(numbered), ids


def _rank(values: Any, *, may_be_integers: bool) -> tuple[NDArray[np.int32], Ids]:
    """Give each value its place among the sorted distinct values."""
    if pa.types.is_integer(values.type):
        ids, place = np.unique(values.to_numpy(), return_inverse=True)
        return place.astype(np.int32), ids
    coded = values.dictionary_encode()
    codes, distinct = coded.indices.to_numpy(), coded.dictionary
    integers = integers_of(distinct) if may_be_integers else None
    if integers is not None:
        ids, place = np.unique(integers, return_inverse=True)
        return place.astype(np.int32)[codes], ids
    ascending = pc.sort_indices(distinct)
    place = np.empty(len(distinct), dtype=np.int32)
    place[ascending.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
    return place[codes], distinct.take(ascending).to_numpy(zero_copy_only=False)


def integers_of(strings: Any) -> NDArray[np.int64] | None:
    """Convert strings to int64 if every one is the usual spelling of an integer, else None.

    Examples
    --------
    >>> integers_of(pa.array(["-3", "0", "12"]))
    array([-3,  0, 12])
    >>> integers_of(pa.array(["007", "12"])) is None
    True
    """
    if not pc.all(pc.match_substring_regex(strings, _INTEGER)).as_py():
        return None
    try:
        integers: NDArray[np.int64] = strings.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:  # an integer beyond 64 bits stays a string
        return None
    return integers


def ratings_of(column: Any, place: Place, *, is_text: bool = False) -> NDArray[np.float64]:
    """Turn a rating column into numbers; refuse what is missing, negative or not finite.

    Examples
    --------
    >>> ratings_of(pa.chunked_array([[4, 5]]), Place("ratings.csv", "rating"))
    array([4., 5.])
    """
    what, hint = "a rating must be a finite number from 0 up", "correct or drop such rows"
    ratings = []
    start = 0
    for chunk in column.iterchunks():
        _refuse_missing(chunk, place, start, what)
        numbers = _text_numbers(chunk, place, start) if is_text else _numbers(chunk, place, what)
        bad = np.flatnonzero(~np.isfinite(numbers) | (numbers < 0))
        if bad.size:
            place.refuse(start + int(bad[0]), what, numbers[bad[0]], hint)
        ratings.append(numbers)
        start += len(chunk)
    return np.concatenate(ratings) if ratings else np.empty(0)


def _text_numbers(chunk: Any, place: Place, start: int) -> NDArray[np.float64]:
    """Convert the distinct spellings once and spread them over the rows."""
    codes, spellings = chunk.indices.to_numpy(), pc.utf8_trim_whitespace(chunk.dictionary)
    wrong = ~pc.match_substring_regex(spellings, _NUMBER).to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.flatnonzero(wrong[codes])[0])
        what, hint = "a rating must be a finite number from 0 up", "correct or drop such rows"
        place.refuse(start + row, what, repr(spellings[codes[row]].as_py()), hint)
    numbers: NDArray[np.float64] = spellings.cast(pa.float64()).to_numpy()[codes]
    return numbers


def _numbers(chunk: Any, place: Place, what: str) -> NDArray[np.float64]:
    type_ = chunk.type
    if not (
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    ):
        place.refuse_type(what, type_, "cast the column to numbers first")
    numbers: NDArray[np.float64] = chunk.cast(pa.float64(), safe=False).to_numpy()
    return numbers


def times_of(column: Any, place: Place) -> tuple[str, NDArray[Any]]:
    """Turn a timestamp column into numbers that sort in time; refuse what is missing.

    Returns
    -------
    tuple
        What the numbers mean (two parts can be compared only if it is the same), and the numbers.

    Examples
    --------
    >>> times_of(pa.chunked_array([[30, 10]]), Place("ratings.csv", "timestamp"))
    ('number', array([30, 10]))
    """
    what, hint = "a timestamp must be a number or a time", "correct or drop such rows"
    _refuse_missing(column, place, 0, what)
    type_ = column.type
    if not len(column):  # a text file without rows has no types
        return "nothing", np.empty(0, dtype=np.int64)
    if pa.types.is_timestamp(type_) or pa.types.is_date64(type_):
        return str(type_), column.cast(pa.int64()).to_numpy()
    if pa.types.is_date32(type_):
        return str(type_), column.cast(pa.int32()).to_numpy()
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        place.refuse_type(what, type_, "write times as numbers or as YYYY-MM-DD HH:MM:SS")
    numbers = column.to_numpy()
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        place.refuse(int(bad[0]), what, numbers[bad[0]], hint)
    return "number", numbers


def _refuse_missing(values: Any, place: Place, start: int, what: str) -> None:
    if values.null_count:
        missing = np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))
        place.refuse(start + int(missing[0]), what, "null", "fill or drop the rows without a value")
