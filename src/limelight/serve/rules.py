"""Items that are never shown: a rule of the house, read from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import DataError
from limelight.data.columns import join, scan
from limelight.data.ids import IdColumn, positions
from limelight.data.sources import describe, open_parts

if TYPE_CHECKING:
    from limelight._base.arrays import Int32
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source


def read_never_show(source: Source, item_ids: Ids) -> Int32:
    """Read the column ``item_id`` of a table; return the numbers of these items, ascending.

    Items that the catalogue does not have are passed over, because such lists are older or newer
    than a model.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read_never_show(pa.table({"item_id": ["b", "z"]}), np.array(["a", "b"], dtype=object))
    array([1], dtype=int32)
    """
    parts = open_parts(source)
    column = IdColumn("item_id")
    join(scan(parts, [column]))
    found = np.unique(positions(column.ids(), item_ids)).astype(np.int32)
    found = found[found >= 0]
    if len(found) == len(item_ids):
        message = f"{describe(parts)} names all {len(item_ids):,} items, so nothing could be shown"
        raise DataError(message, hint="name only the items that are never to be shown")
    return found
