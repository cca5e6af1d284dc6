"""A catalogue: the items that could be shown, and a column whose ids must be among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError
from limelight.data.columns import Chunk, join, scan
from limelight.data.ids import IdColumn, ids_to_arrow, plain_ids
from limelight.data.names import need_column
from limelight.data.sources import open_parts

if TYPE_CHECKING:
    from limelight._base.arrays import Int32
    from limelight.data.sources import Source


def read_catalogue(catalogue: Source | Sequence[Any]) -> tuple[pa.Array, int]:
    """Read the distinct item ids of a catalogue and count the rows that repeat one.

    Parameters
    ----------
    catalogue
        A source with a column of items, or a sequence of ids.

    Examples
    --------
    >>> ids, repeats = read_catalogue(["a", "b", "a"])
    >>> ids.to_pylist(), repeats
    (['a', 'b'], 1)
    """
    distinct, n_rows = read_distinct(catalogue, "item")
    if not n_rows:
        message = "the catalogue is empty"
        raise DataError(message, hint="pass all items that could be shown")
    return distinct, n_rows - len(distinct)


def read_distinct(source: Source | Sequence[Any], what: str) -> tuple[pa.Array, int]:
    """Read the distinct ids of a table's users or items, or of a sequence, and count all rows."""
    if _is_sequence(source):
        values = ids_to_arrow(np.asarray(source))
        return values.unique(), len(values)
    table = cast("Source", source)
    parts = open_parts(table)
    column = IdColumn(need_column(table, parts, what))
    [codes] = join(scan(parts, [column]))
    return column.ids(), len(codes)


def _is_sequence(catalogue: object) -> bool:
    """Tell a plain sequence, array or series of ids from a path or a table."""
    if isinstance(catalogue, str | os.PathLike):
        return False
    return isinstance(catalogue, Sequence) or len(getattr(catalogue, "shape", ())) == 1


class CatalogueColumn:
    """A column of ids that are numbered as in a catalogue; others come after those.

    Integers and strings are compared as strings, so that 7 in one file is '7' in another.

    Parameters
    ----------
    name
        Of the column.
    catalogue
        Distinct ids, as an Arrow array of int64 or large_string.

    Examples
    --------
    >>> column = CatalogueColumn("item", pa.array([30, 20, 10]))
    >>> column.convert(Chunk(pa.array(["20", "7", "10"]), "the frame"))
    array([1, 3, 2], dtype=int32)
    >>> column.strangers().to_pylist()
    ['7']
    """

    def __init__(self, name: str, catalogue: pa.Array) -> None:
        self.name = name
        self._catalogue = catalogue
        self._ids: IdColumn | None = None
        self._type: Any = None

    def convert(self, chunk: Chunk) -> Int32:
        """Give each row the number of its id."""
        ids = plain_ids(chunk)
        if self._ids is None:
            self._ids = IdColumn(self.name)
            self._type = ids.type if ids.type == self._catalogue.type else pa.large_string()
            self._ids.convert(Chunk(self._catalogue.cast(self._type), "the catalogue"))
        return self._ids.convert(chunk._replace(values=ids.cast(self._type), is_text=False))

    def ids(self) -> pa.Array:
        """List the ids of the catalogue."""
        return self._catalogue

    def strangers(self) -> pa.Array:
        """List the ids that were met and are not in the catalogue."""
        return self._catalogue[:0] if self._ids is None else self._ids.ids()[len(self._catalogue) :]
