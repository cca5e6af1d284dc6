"""Ids on disk: one column of a Parquet file, in the order of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limelight._base.files import atomic_file
from limelight.data.columns import Chunk
from limelight.data.ids import distinct_ids, ids_from_arrow, ids_to_arrow, plain_ids

if TYPE_CHECKING:
    import os

    from limelight.data.interactions import Ids


def write_ids(path: str | os.PathLike[str], column: str, ids: Ids | pa.Array) -> None:
    """Write ids as a Parquet file of one column, whole or not at all.

    Parameters
    ----------
    path
        The file; an older one is replaced.
    column
        Name of the column.
    ids
        Integers, or strings as an array of objects; or either as an Arrow array.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/items.parquet"
    >>> write_ids(file, "item_id", np.array(["007", "a"], dtype=object))
    >>> read_ids(file, "item_id")
    array(['007', 'a'], dtype=object)
    """
    values = ids if isinstance(ids, pa.Array) else ids_to_arrow(ids)
    table = pa.table({column: values})
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


read_ids = distinct_ids


def read_some_ids(path: str | os.PathLike[str], column: str, start: int, stop: int) -> Ids:
    """Read the ids from one number up to, not including, another, and hardly any beside them.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/users.parquet"
    >>> write_ids(file, "user_id", np.array([30, 10, 20]))
    >>> read_some_ids(file, "user_id", 1, 3)
    array([10, 20])
    """
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left"))
        groups = list(range(first, min(last + 1, len(sizes))))
        ids = file.read_row_groups(groups, [column]).column(column).combine_chunks()
    before = int(ends[first - 1]) if first else 0
    return ids_from_arrow(plain_ids(Chunk(ids.slice(start - before, stop - start), str(path))))
