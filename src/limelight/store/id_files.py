"""Ids on disk: one column of a Parquet file, in the order of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from limelight._atomic import atomic_file
from limelight.data.ids import ids_to_arrow, table_ids
from limelight.data.sources import open_parts, plain_errors, require_column

if TYPE_CHECKING:
    import os

    from limelight.data.interactions import Ids


def write_ids(path: str | os.PathLike[str], column: str, ids: Ids) -> None:
    """Write ids as a Parquet file of one column, whole or not at all.

    Parameters
    ----------
    path
        The file; an older one is replaced.
    column
        Name of the column.
    ids
        Integers, or strings as an array of objects.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/items.parquet"
    >>> write_ids(file, "item_id", np.array(["007", "a"], dtype=object))
    >>> read_ids(file, "item_id")
    array(['007', 'a'], dtype=object)
    """
    table = pa.table({column: ids_to_arrow(ids)})
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


def read_ids(path: str | os.PathLike[str], column: str) -> Ids:
    """Read one column of ids, in its order.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/users.parquet"
    >>> write_ids(file, "user_id", np.array([30, 10]))
    >>> read_ids(file, "user_id")
    array([30, 10])
    """
    [part] = open_parts(path)
    require_column(part, column)
    with plain_errors(part.label), pq.ParquetFile(path) as file:
        # Batch by batch, because a damaged file may promise more rows than there is memory for.
        schema = pa.schema([file.schema_arrow.field(column)])
        table = pa.Table.from_batches(file.iter_batches(columns=[column]), schema)
    return table_ids(table, column, part.label)
