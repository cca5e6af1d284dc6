"""Features of items: columns of a table, or a matrix, as numbers that a linear map can take.

Text becomes one indicator for each word, and so do lists, and text with ``|`` between words.
Numbers are standardised and also cut into ten bins, because what people like is rarely linear in
them. A missing value has an indicator of its own. Words of fewer than three items tell nothing:
they are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from limelight._base.errors import DataError
from limelight._base.text import count, short
from limelight.data.columns import Chunk, no_rows
from limelight.data.ids import IdColumn, ids_from_arrow
from limelight.data.names import need_column
from limelight.data.sources import describe, listed, open_parts, require_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float64
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source

MOST = 2048
"""How many features there may be: a map is learnt in time that grows with their cube."""
_RARE = 3
_BINS = 10
_HINT = "features are numbers, text, or lists of text"


class ItemFeatures(NamedTuple):
    """What is known of some items: a row for each, and how the rows were made."""

    ids: Ids
    matrix: scipy.sparse.csr_array
    """Items x features; the first is 1 for all."""
    encoding: Encoding


def read_item_features(
    given: Any, item_ids: Ids | None = None, *, encoding: Encoding | None = None
) -> ItemFeatures:
    """Read features of items from a matrix or a table.

    Parameters
    ----------
    given
        A sparse or dense matrix with a row for each of ``item_ids``, or anything that ``ll.read``
        takes: a table with a column of item ids under a usual name, every other one a feature.
    item_ids
        What the rows of a matrix stand for.
    encoding
        How features were read before; without it, the features themselves decide.

    Examples
    --------
    >>> table = pa.table({"item_id": [7, 8, 9], "genre": ["a|b", "a", "a"], "pages": [1, 2, 3]})
    >>> found = read_item_features(table)
    >>> found.matrix.toarray()[:, :3]
    array([[ 1.        ,  1.        , -1.22474487],
           [ 1.        ,  1.        ,  0.        ],
           [ 1.        ,  1.        ,  1.22474487]])
    """
    if scipy.sparse.issparse(given) or isinstance(given, np.ndarray):
        if item_ids is None:
            message = f"a matrix does not say which items its rows are: {type(given).__name__}"
            raise DataError(message, hint="pass a table with a column item_id")
        return _of_matrix(given, item_ids, encoding)
    ids, table = _read_table(given, encoding)
    if encoding is None:
        encoding = _learnt(table)
    parts = [column.encode(table[column.name]) for column in encoding.columns]
    return ItemFeatures(ids, _with_constant(parts, len(ids)), encoding)


def _of_matrix(given: Any, item_ids: Ids, encoding: Encoding | None) -> ItemFeatures:
    shape = given.shape
    if len(shape) != 2 or shape[0] != len(item_ids):
        message = f"item features must have a row for each of {len(item_ids):,} items: {shape}"
        raise DataError(message, hint="rows are items, in the order of the columns of the data")
    if given.dtype.kind not in "biuf":
        message = f"item features must be numbers: {given.dtype}"
        raise DataError(message, hint="pass a table, where text is allowed")
    _check_width(shape[1])
    if encoding is not None and (encoding.columns or encoding.width != shape[1]):
        message = f"the model knows items by other features: {encoding}, not {shape[1]:,} numbers"
        raise DataError(message, hint="pass features of the kind that it was fitted with")
    matrix = scipy.sparse.csr_array(given, dtype=np.float64)
    if not np.isfinite(matrix.data).all():
        message = f"item features must be finite: {matrix.data[~np.isfinite(matrix.data)][0]}"
        raise DataError(message, hint="pass a table, where a value may be missing")
    found = Encoding((), shape[1])
    return ItemFeatures(item_ids, _with_constant([matrix], len(item_ids)), found)


def _check_width(width: int) -> None:
    if not width:
        message = "there are no item features"
        raise DataError(message, hint=f"{_HINT}; words of fewer than {_RARE} items do not count")
    if width > MOST:
        message = f"more than {MOST:,} item features: {width:,}"
        raise DataError(message, hint="reduce them, for instance by a truncated SVD")


def _with_constant(parts: Sequence[Any], n_items: int) -> scipy.sparse.csr_array:
    constant = scipy.sparse.csr_array(np.ones((n_items, 1)))
    return scipy.sparse.csr_array(scipy.sparse.hstack([constant, *parts], format="csr"))


class Encoding(NamedTuple):
    """How features are read: column by column of a table; of a matrix, as they are."""

    columns: tuple[FeatureColumn, ...]
    width: int
    """How many features there are, the constant not counted."""

    def __str__(self) -> str:
        """Name the columns."""
        return listed([column.name for column in self.columns]) or f"{self.width:,} numbers"

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"columns": [column._asdict() for column in self.columns], "width": self.width}

    @classmethod
    def of(cls, record: Any) -> Encoding:
        """Take over what :meth:`record` returned; refuse anything else.

        Examples
        --------
        >>> Encoding.of(Encoding((), 3).record())
        Encoding(columns=(), width=3)
        """
        try:
            columns = tuple(
                FeatureColumn(
                    str(one["name"]),
                    tuple(map(str, one["words"])),
                    tuple(map(float, one["numbers"])),
                    bool(one["has_missing"]),
                )
                for one in record["columns"]
            )
            found = cls(columns, int(record["width"]))
        except (TypeError, KeyError, ValueError) as error:
            message = f"item features are described in an unknown way: {short(record)}"
            raise DataError(message, hint="save the model again") from error
        if columns and sum(column.width for column in columns) != found.width:
            message = f"item features do not add up to {found.width:,}: {found}"
            raise DataError(message, hint="save the model again")
        return found


class FeatureColumn(NamedTuple):
    """One column of a table, and the features that it becomes."""

    name: str
    words: tuple[str, ...] = ()
    """One indicator each."""
    numbers: tuple[float, ...] = ()
    """Mean, standard deviation and the edges of bins, if the column holds numbers."""
    has_missing: bool = False
    """Whether there is an indicator of missing values."""

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return (len(self.numbers) or len(self.words)) + self.has_missing

    def encode(self, column: _Column) -> scipy.sparse.csr_array:
        """Turn values into features; words that were not met before count for nothing."""
        if self.numbers:
            parts, missing = self._encode_numbers(column.numbers())
        else:
            rows, words, missing = column.words()
            place = pc.index_in(words, pa.array(self.words, pa.large_string()))
            at = np.asarray(pc.fill_null(place, -1))
            known = at >= 0
            parts = [_indicators(rows[known], at[known], (len(missing), len(self.words)))]
        if self.has_missing:
            parts.append(scipy.sparse.csr_array(missing[:, None].astype(np.float64)))
        return scipy.sparse.csr_array(scipy.sparse.hstack(parts, format="csr"))

    def _encode_numbers(self, values: Float64) -> tuple[list[scipy.sparse.csr_array], np.ndarray]:
        mean, deviation, *edges = self.numbers
        missing = np.isnan(values)
        standard = np.where(missing, 0.0, (values - mean) / deviation)
        bins = np.searchsorted(edges, values[~missing], side="right")
        shape = (len(values), len(edges) + 1)
        return [
            scipy.sparse.csr_array(standard[:, None]),
            _indicators(np.flatnonzero(~missing), bins, shape),
        ], missing


def _indicators(rows: Any, columns: Any, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape)


class _Column(NamedTuple):
    """The values of a column, and where they stand."""

    values: pa.Array
    where: str
    is_text: bool

    @property
    def is_numbers(self) -> bool:
        """Whether it holds numbers; in a text file, whether all that is there reads like one."""
        type_ = self.values.type
        if self.is_text:
            return _as_floats(self.values) is not None
        return any(
            is_of(type_)
            for is_of in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        )

    def numbers(self) -> Float64:
        """Return the numbers, those that are missing as NaN."""
        found = _as_floats(self.values)
        if found is None:
            message = f"{self.where}: the model knows numbers here, got type: {self.values.type}"
            raise DataError(message, hint="pass features of the kind that it was fitted with")
        if np.isinf(found).any():
            message = f"{self.where}: a feature must be finite"
            raise DataError(message, hint="leave it empty if it is unknown")
        return found

    def words(self) -> tuple[Any, Any, Any]:
        """Return row and word of every indicator, once each, and which rows have none."""
        values, type_ = self.values, self.values.type
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            lists = values
        else:
            try:
                lists = pc.split_pattern(values.cast(pa.large_string()), "|")
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                message = f"{self.where}: a feature of another kind, got type: {type_}"
                raise DataError(message, hint=_HINT) from error
        rows = np.asarray(pc.list_parent_indices(lists))
        try:
            flat = pc.fill_null(pc.list_flatten(lists).cast(pa.large_string()), "")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            message = f"{self.where}: a list of another kind, got type: {type_}"
            raise DataError(message, hint=_HINT) from error
        pairs = pa.table({"row": rows, "word": pc.utf8_trim_whitespace(flat)})
        pairs = pairs.filter(pc.field("word") != "")
        table = pairs.group_by(["row", "word"], use_threads=False).aggregate([])
        rows = np.asarray(table["row"])
        missing = np.ones(len(values), dtype=bool)
        missing[rows] = False
        return rows, table["word"].combine_chunks(), missing


def _as_floats(values: pa.Array) -> Float64 | None:
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        values = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    try:
        floats = values.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return np.asarray(pc.fill_null(floats, np.nan).to_numpy(zero_copy_only=False), np.float64)


def _read_table(source: Source, encoding: Encoding | None) -> tuple[Ids, dict[str, _Column]]:
    """Read the item ids and the columns of features; refuse an item that stands twice."""
    parts = open_parts(source)
    key = need_column(source, parts, "item")
    names = [name for name in parts[0].columns if name != key]
    if encoding is not None:
        if not encoding.columns:
            message = f"the model knows items by a matrix of {encoding}, not by a table"
            raise DataError(message, hint="pass features of the kind that it was fitted with")
        names = [column.name for column in encoding.columns]
    ids, batches = IdColumn(key), []
    n_rows = 0
    for part in parts:
        for name in (key, *names):
            require_column(part, name)
        for batch in part.batches([key, *names]):
            where = f"{part.label}, column {key!r}"
            n_rows += len(ids.convert(Chunk(batch[key], where, n_rows, part.is_text)))
            batches.append(pa.table({name: batch[name] for name in names}))
    if not n_rows:
        raise no_rows(parts)
    found = ids.ids()
    if len(found) != n_rows:
        items = count(len(found), "different item")
        message = f"{describe(parts)} has {n_rows:,} rows, but {items}"
        raise DataError(message, hint="keep one row for each item; join several values by |")
    if not names:
        message = f"no features beside {key!r} in {describe(parts)}"
        raise DataError(message, hint=_HINT)
    table = pa.concat_tables(batches, promote_options="permissive").unify_dictionaries()
    return ids_from_arrow(found), {
        name: _Column(_plain(table[name]), f"{describe(parts)}, column {name!r}", parts[0].is_text)
        for name in names
    }


def _plain(values: Any) -> Any:
    plain = values.combine_chunks()
    return plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain


def _learnt(table: dict[str, _Column]) -> Encoding:
    """Decide how columns become features, and count more words as rare if there are too many."""
    least, columns = _RARE, _columns_of(table, _RARE)
    while sum(column.width for column in columns) > MOST and any(one.words for one in columns):
        least *= 2
        columns = _columns_of(table, least)
    width = sum(column.width for column in columns)
    _check_width(width)
    return Encoding(tuple(columns), width)


def _columns_of(table: dict[str, _Column], least: int) -> list[FeatureColumn]:
    found = [_column_of(name, column, least) for name, column in table.items()]
    return [column for column in found if column.width]


def _column_of(name: str, column: _Column, least: int) -> FeatureColumn:
    if not column.is_numbers:
        _, words, missing = column.words()
        counts = words.value_counts()
        common = pc.filter(counts.field("values"), pc.greater_equal(counts.field("counts"), least))
        has_missing = bool(_RARE <= missing.sum() < len(missing))
        return FeatureColumn(name, tuple(sorted(common.to_pylist())), has_missing=has_missing)
    values = column.numbers()
    missing = np.isnan(values)
    known = values[~missing]
    if not len(known):
        return FeatureColumn(name)
    edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS))
    numbers = (known.mean(), known.std() or 1.0, *edges)
    has_missing = bool(missing.sum() >= _RARE)
    return FeatureColumn(name, numbers=tuple(map(float, numbers)), has_missing=has_missing)
