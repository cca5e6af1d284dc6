"""Ids on disk: one column of a Parquet file, in the order of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from limelight._atomic import atomic_file
from limelight.data.ids import distinct_ids, ids_to_arrow

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


def read_ids(path: str | os.PathLike[str], column: str) -> Ids:
    """Read one column of distinct ids, in its order.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/users.parquet"
    >>> write_ids(file, "user_id", np.array([30, 10]))
    >>> read_ids(file, "user_id")
    array([30, 10])
    """
    return distinct_ids(path, column)
