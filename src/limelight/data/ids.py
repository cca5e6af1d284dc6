"""Ids: integers or strings, as columns of a source, as arrays, and in each other's numbering."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from limelight._base.errors import DataError
from limelight._base.text import first_words
from limelight._native import kernels
from limelight.data.columns import Chunk
from limelight.data.files.parquet import LONGEST_TEXT, STRINGS
from limelight.data.sources import open_parts, require_column

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from limelight.data.interactions import Ids

_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_IS_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]*)\Z", re.ASCII).match
_LARGEST_WHOLE = 2.0**53
"""The largest number up to which floats tell all whole numbers apart."""
_LONGEST_INTEGER = 20
"""How many characters an integer of 64 bits has, at most."""


class IdColumn:
    """A column of ids. They become codes as they come, so that each id is held once.

    Examples
    --------
    >>> column = IdColumn("item")
    >>> column.convert(Chunk(pa.array(["b", "a", "b"]), "the frame"))
    array([0, 1, 0], dtype=int32)
    >>> column.ids().to_pylist()
    ['b', 'a']
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._table = kernels.IdTable()
        self._type: Any = None
        self._is_text = False

    def convert(self, chunk: Chunk) -> NDArray[np.int32]:
        """Give each row the code of its id."""
        ids = plain_ids(chunk)
        if self._type not in {None, ids.type}:
            message = f"{chunk.where}: ids are integers in one part and strings in another"
            raise DataError(message, hint="cast them to one type in all parts")
        self._type, self._is_text = ids.type, chunk.is_text
        codes = np.empty(len(ids), dtype=np.int32)
        self._table.encode(*bytes_of_ids(ids), codes)
        return codes

    def as_met(self) -> Any:
        """List the distinct ids by code as they stand in the source, be it text or not."""
        return ids_of_bytes(*self._table.ids(), self._type)

    def ids(self) -> Any:
        """List the distinct ids by code, as an Arrow array of int64 or large_string.

        What a text file holds becomes integers if every id is the usual spelling of one: ``7`` is,
        ``007`` is not.
        """
        strings = self.as_met()
        if pa.types.is_integer(strings.type):
            return strings
        _require_utf8(strings, self.name)
        integers = integers_of(strings) if self._is_text else None
        return strings if integers is None else integers

    def ascending(self) -> tuple[NDArray[np.int32], Ids]:
        """Number the distinct ids in ascending order.

        Returns
        -------
        tuple
            The number of each code, and the ids by number.
        """
        ids = self.ids()
        codes = self.ascending_codes(ids)
        return places(codes), ids_from_arrow(ids.take(pa.array(codes)))

    def ascending_codes(self, ids: Any) -> NDArray[np.integer]:
        """List the codes in the ascending order of their ids, in either form of those."""
        is_integer = pa.types.is_integer(ids.type)
        return np.argsort(ids.to_numpy()) if is_integer else self._table.ascending()


def places(order: NDArray[np.integer]) -> NDArray[np.int32]:
    """Say at which place of an order each number stands.

    Examples
    --------
    >>> places(np.array([2, 0, 1]))
    array([1, 2, 0], dtype=int32)
    """
    found = np.empty(len(order), dtype=np.int32)
    found[order] = np.arange(len(order), dtype=np.int32)
    return found


def _require_utf8(strings: Any, name: str) -> None:
    """Refuse strings that are not UTF-8, because a Parquet file may hold any bytes."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        message = f"column {name!r} holds ids that are not UTF-8 text: {first_words(error)}"
        raise DataError(message, hint="write the ids again, in UTF-8") from error


def bytes_of_ids(ids: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Share the memory of plain ids as offsets and bytes; an integer is a string of eight bytes.

    Examples
    --------
    >>> bytes_of_ids(pa.array(["b", "an"], pa.large_string()))
    (array([0, 1, 3]), array([ 98,  97, 110], dtype=uint8))
    """
    if pa.types.is_integer(ids.type):
        return np.arange(0, 8 * len(ids) + 1, 8), ids.to_numpy().view(np.uint8)
    _, offsets, content = ids.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[ids.offset :]
    return ends[: len(ids) + 1], np.frombuffer(content or b"", dtype=np.uint8)


def ids_of_bytes(offsets: NDArray[np.int64], content: NDArray[np.uint8], type_: Any) -> Any:
    """Make plain ids of offsets and bytes; they share the memory.

    Examples
    --------
    >>> ids_of_bytes(*bytes_of_ids(pa.array([7, 5])), pa.int64()).to_pylist()
    [7, 5]
    """
    if pa.types.is_integer(type_):
        return pa.array(content.view(np.int64))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def plain_ids(chunk: Chunk) -> Any:
    """Turn ids into an Arrow array of int64 or large_string; refuse what cannot be one.

    Examples
    --------
    >>> plain_ids(Chunk(pa.array([3, 1], pa.int8()), "the frame")).type
    DataType(int64)
    """
    if pa.types.is_dictionary(chunk.values.type):
        chunk = chunk._replace(values=chunk.values.dictionary_decode())
    chunk = chunk._replace(values=_plainer(chunk.values))
    chunk.require_values("an id is an integer or a string")
    type_ = chunk.values.type
    if pa.types.is_floating(type_):
        return _whole_numbers(chunk)
    if pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and type_.scale == 0):
        with suppress(pa.ArrowInvalid):
            return chunk.values.cast(pa.int64())
        what, hint = "integer ids must fit 64 bits", "cast the ids to strings"
        raise chunk.type_error(what, hint)
    if str(type_) not in STRINGS:
        what, hint = "ids are integers or strings", "cast the column to integers or strings first"
        raise chunk.type_error(what, hint)
    strings = chunk.values.cast(pa.large_string())
    offsets, _ = bytes_of_ids(strings)
    lengths = np.diff(offsets)
    chunk.require_all(lengths > 0, "an id must not be empty")
    chunk.require_all(lengths <= LONGEST_TEXT, f"an id has at most {LONGEST_TEXT:,} bytes")
    return strings


def _plainer(values: Any) -> Any:
    """Write UUIDs as people do; other values stay."""
    if str(values.type) in {"extension<arrow.uuid>", "uuid"}:
        found = (value if value is None else str(value) for value in values.to_pylist())
        return pa.array(found, pa.large_string())
    return values


def _whole_numbers(chunk: Chunk) -> Any:
    """Take floats that are whole: libraries make them of integers where a value is missing."""
    numbers = chunk.values.cast(pa.float64()).to_numpy()
    is_whole = (numbers == np.floor(numbers)) & (np.abs(numbers) <= _LARGEST_WHOLE)
    chunk.require_all(is_whole, "an id that is a number must be whole")
    return chunk.values.cast(pa.int64())


class OptionalIdColumn(IdColumn):
    """A column of ids that may be missing: null, or empty text. Those get the code -1.

    Examples
    --------
    >>> column = OptionalIdColumn("group")
    >>> column.convert(Chunk(pa.array(["x", None, "", "y"]), "the frame"))
    array([ 0, -1, -1,  1], dtype=int32)
    """

    def convert(self, chunk: Chunk) -> NDArray[np.int32]:
        """Give each row the code of its id, or -1."""
        values = chunk.values
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        is_there = pc.is_valid(values)
        if str(values.type) in STRINGS:
            is_there = pc.and_(is_there, pc.not_equal(pc.fill_null(values, ""), ""))
        elif pa.types.is_floating(values.type):  # NaN is not equal to itself
            is_there = pc.and_kleene(is_there, pc.equal(values, values))
        kept = values.filter(is_there)
        codes = np.full(len(values), -1, dtype=np.int32)
        if len(kept):
            found = super().convert(chunk._replace(values=kept))
            codes[is_there.to_numpy(zero_copy_only=False)] = found
        return codes


def distinct_ids(path: str | os.PathLike[str], name: str) -> Ids:
    r"""Read a column of a file whose ids differ from each other, in its order.

    Each is held once, however often a damaged file may repeat it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "items.csv"
    >>> size = file.write_text("item_id\nb\na\n")
    >>> distinct_ids(file, "item_id")
    array(['b', 'a'], dtype=object)
    """
    [part] = open_parts(path)
    require_column(part, name)
    column, n_rows = IdColumn(name), 0
    for batch in part.batches([name]):
        where = f"{part.label}, column {name!r}"
        n_rows += len(column.convert(Chunk(batch[name], where, n_rows, part.is_text)))
    if not n_rows:
        type_ = pa.parquet.read_schema(path).field(name).type
        return ids_from_arrow(pa.array([], type_))
    ids = column.ids()
    if len(ids) != n_rows:
        message = f"{part.label} has {n_rows:,} ids, of which {len(ids):,} are distinct"
        raise DataError(message, hint="an id may occur only once")
    return ids_from_arrow(ids)


def integers_of(strings: Any) -> Any:
    """Convert strings to int64 if every one is the usual spelling of an integer, else None.

    Examples
    --------
    >>> integers_of(pa.array(["-3", "0", "12"])).to_pylist()
    [-3, 0, 12]
    >>> integers_of(pa.array(["007", "12"])) is None
    True
    """
    if not pc.all(pc.match_substring_regex(strings, _INTEGER)).as_py():
        return None
    try:
        return strings.cast(pa.int64())
    except pa.ArrowInvalid:  # an integer beyond 64 bits stays a string
        return None


def positions(ids: Any, catalogue: Any) -> NDArray[np.int64]:
    """Give the place of each id in the catalogue, -1 if it is not there.

    Both may be NumPy or Arrow arrays. Integers and strings are compared as strings, so that 7 in
    one file is '7' in another.

    Examples
    --------
    >>> positions(np.array([7, 9]), pa.array(["8", "7"]))
    array([ 1, -1])
    """
    ids, catalogue = (
        values if isinstance(values, pa.Array) else ids_to_arrow(values)
        for values in (ids, catalogue)
    )
    if ids.type != catalogue.type:
        ids, catalogue = ids.cast(pa.large_string()), catalogue.cast(pa.large_string())
    places = pc.fill_null(pc.index_in(ids, value_set=catalogue), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def ids_to_arrow(ids: NDArray[Any]) -> Any:
    """Turn ids into an Arrow array of int64 or large_string.

    Examples
    --------
    >>> ids_to_arrow(np.array([3, 1], dtype=np.int32)).type
    DataType(int64)
    """
    values = np.asarray(ids)
    try:
        if values.dtype.kind not in "iu":
            values = pa.array(values.tolist(), type=None if values.size else pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        message = f"ids must be all integers or all strings: {error}"
        raise DataError(message, hint="make every id a string, or every id an integer") from error
    return plain_ids(Chunk(pa.array(values), "the ids"))


def ids_from_arrow(values: Any) -> Ids:
    """Turn an Arrow array of ids into int64, or strings as objects.

    Examples
    --------
    >>> ids_from_arrow(pa.array(["a", "b"]))
    array(['a', 'b'], dtype=object)
    """
    ids: Ids = values.to_numpy(zero_copy_only=False)
    return ids.copy() if pa.types.is_integer(values.type) else ids


_CLOSE = 4
"""Numbers lie close together if there are at most so many of them for each that is used."""


class IdLookup:
    """The place of ids in a catalogue that stays the same, for many small questions.

    Integers and strings are compared as strings, as :func:`positions` does. What is no id, such as
    a truth value, is not in the catalogue.

    Examples
    --------
    >>> lookup = IdLookup(np.array(["8", "7"], dtype=object))
    >>> lookup.positions([7, "8", "x", None])
    array([ 1,  0, -1, -1], dtype=int32)
    >>> IdLookup(np.array([30, 10])).positions(["10", "010", 30])
    array([ 1, -1,  0], dtype=int32)
    """

    def __init__(self, catalogue: Ids) -> None:
        self._places = {id_: place for place, id_ in enumerate(np.asarray(catalogue).tolist())}
        self._has_integers = catalogue.dtype.kind in "iu"
        # What needs no second look: a truth value is an integer, but not of this type.
        self._type = int if self._has_integers else str
        self._table = self._tabulate(np.asarray(catalogue))

    def position(self, id_: object) -> int:
        """Return the place of one id, -1 if it is not there."""
        if isinstance(id_, bool) or not isinstance(id_, int | str):
            return -1
        if not self._has_integers:
            return self._places.get(str(id_), -1)
        if isinstance(id_, str):
            # Only the usual spelling is the same id; long digits are none that fits 64 bits.
            if len(id_) > _LONGEST_INTEGER or not _IS_INTEGER(id_):
                return -1
            id_ = int(id_)
        return self._places.get(id_, -1)

    def positions(self, ids: Iterable[object]) -> NDArray[np.int32]:
        """Return the places of ids, -1 for those that are not there."""
        given = list(ids)
        if set(map(type, given)) != {self._type}:
            return np.fromiter(map(self.position, given), np.int32, len(given))
        if self._table is not None:
            with suppress(OverflowError):
                # Read without a sign, what is below the first number is far above the last.
                at = (np.array(given, dtype=np.int64) - self._first).view(np.uint64)
                return self._table[np.minimum(at, len(self._table) - 1)]
        return np.fromiter(map(self._places.get, given, repeat(-1)), np.int32, len(given))

    def _tabulate(self, catalogue: NDArray[np.integer]) -> NDArray[np.int32] | None:
        """List places by number where numbers lie close together: a tenth of the cache misses."""
        if not len(catalogue) or not self._has_integers:
            return None
        self._first, last = int(catalogue.min()), int(catalogue.max())
        if last - self._first >= _CLOSE * len(catalogue):
            return None
        table = np.full(last - self._first + 2, -1, dtype=np.int32)
        table[catalogue.astype(np.int64) - self._first] = np.arange(len(catalogue))
        return table
