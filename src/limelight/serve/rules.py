"""Items that are never shown: a rule of the house, read from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError
from limelight.data.columns import join, scan
from limelight.data.ids import IdColumn, positions
from limelight.data.names import need_column
from limelight.data.sources import describe, open_parts

if TYPE_CHECKING:
    from limelight._base.arrays import Int32
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source


class NeverShown(NamedTuple):
    """Items that no list shows."""

    numbers: Int32
    """Of those in the catalogue, ascending."""
    strangers: frozenset[str] = frozenset()
    """Ids of the others, which a request may have among its own candidates."""


def read_never_show(source: Source, item_ids: Ids) -> NeverShown:
    """Read the items of a table, which may be older or newer than a model.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read_never_show(pa.table({"item_id": ["b", "z"]}), np.array(["a", "b"], dtype=object))
    NeverShown(numbers=array([1], dtype=int32), strangers=frozenset({'z'}))
    """
    parts = open_parts(source)
    column = IdColumn(need_column(source, parts, "item"))
    join(scan(parts, [column]))
    ids = column.ids()
    places = positions(ids, item_ids)
    found = np.unique(places[places >= 0]).astype(np.int32)
    if len(found) == len(item_ids):
        message = f"{describe(parts)} names all {len(item_ids):,} items, so nothing could be shown"
        raise DataError(message, hint="name only the items that are never to be shown")
    strangers = ids.filter(pa.array(places < 0)).to_pylist()
    return NeverShown(found, frozenset(map(str, strangers)))
