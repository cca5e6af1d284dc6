"""Recommendation lists to one file, batch by batch, for any number of users."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from limelight._atomic import atomic_file
from limelight._errors import DataError
from limelight.data.ids import ids_to_arrow
from limelight.data.sources import DELIMITERS

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray


class ListWriter:
    """Writes lists as a table `user_id, item_id, rank, score`, rank from 1.

    The file appears when the block ends well; until then, and after an error, whatever was
    there before stays.

    Parameters
    ----------
    path
        A name that ends in .parquet, .csv or .tsv.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lists.parquet"
    >>> items = np.array(["a", "b", "c"], dtype=object)
    >>> with ListWriter(file) as writer:
    ...     ids, scores = np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.5], [0.7, -np.inf]])
    ...     writer.write(np.array([10, 11]), items, ids, scores)
    >>> pq.read_table(file).to_pydict()["item_id"]
    ['c', 'a', 'b']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._ending = self.path.suffix.lower()
        if self._ending not in {".parquet", *DELIMITERS}:
            message = f"unknown kind of file: {self.path}"
            raise DataError(message, hint="the name must end in .parquet, .csv or .tsv")
        self._stack = contextlib.ExitStack()
        self._writer: Any = None
        self._item_ids: NDArray[Any] | None = None
        self._items: pa.Array = None

    def __enter__(self) -> Self:
        self._temporary = self._stack.enter_context(atomic_file(self.path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The stack closes the writer first; only then is the file complete and renamed.
        with self._stack:
            if error is not None:
                raise error
            if self._writer is None:
                self._open(pa.large_string(), pa.large_string())

    def write(
        self,
        user_ids: NDArray[Any],
        item_ids: NDArray[Any],
        ids: NDArray[np.integer[Any]],
        scores: NDArray[np.floating[Any]],
    ) -> None:
        """Append the lists of some users.

        Parameters
        ----------
        user_ids
            One id per row of `ids`, integers or text.
        item_ids
            The ids of the whole catalogue, by item number.
        ids
            Users x k item numbers, best first; -1 is padding and is not written.
        scores
            The scores beside them.
        """
        if ids.shape != scores.shape or len(ids) != len(user_ids):
            message = f"{len(user_ids)} users, ids {ids.shape} and scores {scores.shape} differ"
            raise DataError(message, hint="pass one row of ids and of scores per user")
        users, items = ids_to_arrow(user_ids), self._catalogue(item_ids)
        rows, columns = np.nonzero(ids >= 0)
        if self._writer is None:
            self._open(users.type, items.type)
        table = pa.table(
            {
                "user_id": users.take(pa.array(rows)),
                "item_id": items.take(pa.array(ids[rows, columns])),
                "rank": pa.array((columns + 1).astype(np.int32)),
                "score": pa.array(scores[rows, columns].astype(np.float32)),
            }
        )
        if table.schema != self._schema:
            message = f"ids changed their type: {table.schema.types} after {self._schema.types}"
            raise DataError(message, hint="pass integers in every batch, or text in every batch")
        self._writer.write_table(table)

    def _catalogue(self, item_ids: NDArray[Any]) -> pa.Array:
        """Convert the catalogue once, not with every batch."""
        if self._item_ids is not item_ids:
            self._items = ids_to_arrow(item_ids)
            self._item_ids = item_ids
        return self._items

    def _open(self, user_type: pa.DataType, item_type: pa.DataType) -> None:
        self._schema = pa.schema(
            {"user_id": user_type, "item_id": item_type, "rank": pa.int32(), "score": pa.float32()}
        )
        if self._ending in DELIMITERS:
            options = pa.csv.WriteOptions(delimiter=DELIMITERS[self._ending])
            writer = pa.csv.CSVWriter(self._temporary, self._schema, write_options=options)
        else:
            writer = pq.ParquetWriter(self._temporary, self._schema)
        self._writer = self._stack.enter_context(writer)
