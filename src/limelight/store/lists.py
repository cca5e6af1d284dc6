"""Recommendation lists on disk, written batch by batch for any number of users.

A :class:`ListWriter` writes the table that people read. :class:`ListParts` holds the lists that
were made so far in a checkpoint, so that making them can go on after a kill.
"""

from __future__ import annotations

import contextlib
import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limelight._base.errors import DataError
from limelight._base.files import atomic_file, atomic_folder, refuse_stranger
from limelight._base.signals import Terminated, finishing
from limelight.data.files import DELIMITERS
from limelight.data.ids import ids_to_arrow
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.checkpoint import GOES_ON

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Int32
    from limelight.store.checkpoint import Checkpoint

COLUMNS = ("user_id", "item_id", "rank", "score")
_PART_ROWS = 1 << 22
"""A part is closed once it has so many rows."""
_PART_NAME = re.compile(r"part-\d{5,}\.parquet")


class ListWriter:
    """Writes lists as a table `user_id, item_id, rank, score`, rank from 1.

    The file or folder appears when the block ends well; until then, and after an error, whatever
    was there before stays. A folder is replaced only if it holds nothing but lists.

    Parameters
    ----------
    path
        A name that ends in .parquet, .csv or .tsv. A name without an ending is a folder, for
        Parquet files part-00000.parquet, part-00001.parquet, ...

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
        if self._ending not in {"", ".parquet", *DELIMITERS}:
            message = f"unknown kind of file: {str(self.path)!r}"
            hint = "the name must end in .parquet, .csv or .tsv; without an ending it is a folder"
            raise DataError(message, hint=hint)
        self._stack, self._open_part = contextlib.ExitStack(), contextlib.ExitStack()
        self._writer: Any = None
        self._schema: pa.Schema = None
        self._n_parts = self._n_rows = 0
        self._item_ids: NDArray[Any] | None = None
        self._items: pa.Array = None

    def check(self) -> None:
        """Refuse a folder that may not be replaced, before the work begins."""
        if not self._ending:
            refuse_stranger(self.path, _holds_lists)

    def __enter__(self) -> Self:
        if self._ending:
            place = atomic_file(self.path)
        else:
            place = atomic_folder(self.path, replace_if=_holds_lists)
        self._temporary = self._stack.enter_context(place)
        self._stack.enter_context(self._open_part)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The stack closes the part first; only then is the output complete and renamed.
        with self._stack:
            if error is not None:
                raise error
            if self._schema is None:
                self._schema = _schema(pa.large_string(), pa.large_string())
                self._open()

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
        values = (
            users.take(pa.array(rows)),
            items.take(pa.array(ids[rows, columns])),
            pa.array((columns + 1).astype(np.int32)),
            pa.array(scores[rows, columns].astype(np.float32)),
        )
        table = pa.table(dict(zip(COLUMNS, values, strict=True)))
        if self._schema is None:
            self._schema = table.schema
        if table.schema != self._schema:
            message = f"ids changed their type: {table.schema.types} after {self._schema.types}"
            raise DataError(message, hint="pass integers in every batch, or text in every batch")
        self._append(table)

    def _append(self, table: pa.Table) -> None:
        if self._writer is None:
            self._open()
        self._writer.write_table(table)
        self._n_rows += table.num_rows
        if not self._ending and self._n_rows >= _PART_ROWS:
            self._open_part.close()
            self._writer, self._n_rows = None, 0

    def _catalogue(self, item_ids: NDArray[Any]) -> pa.Array:
        """Convert the catalogue once, not with every batch."""
        if self._item_ids is not item_ids:
            self._items = ids_to_arrow(item_ids)
            self._item_ids = item_ids
        return self._items

    def _open(self) -> None:
        """Open the file, or the next part."""
        file = self._temporary
        if not self._ending:
            file /= part_name(self._n_parts)
            self._n_parts += 1
        if self._ending in DELIMITERS:
            options = pa.csv.WriteOptions(delimiter=DELIMITERS[self._ending])
            writer = pa.csv.CSVWriter(file, self._schema, write_options=options)
        else:
            writer = pq.ParquetWriter(file, self._schema)
        self._writer = self._open_part.enter_context(writer)


def part_name(number: int) -> str:
    """Name a part of a folder of lists.

    Examples
    --------
    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05}.parquet"


def gather_parts(path: str | os.PathLike[str], parts: Iterable[Path]) -> None:
    """Make a folder of lists of parts that were written elsewhere on its disk, which are moved.

    Parameters
    ----------
    path
        The folder; one that holds nothing but lists is replaced.
    parts
        Files that a `ListWriter` wrote, named by `part_name`.
    """
    with atomic_folder(path, replace_if=_holds_lists) as temporary:
        for part in parts:
            part.replace(temporary / part.name)


def _schema(user_type: pa.DataType, item_type: pa.DataType) -> pa.Schema:
    types = (user_type, item_type, pa.int32(), pa.float32())
    return pa.schema(list(zip(COLUMNS, types, strict=True)))


def _holds_lists(folder: Path) -> bool:
    """Tell whether all of a folder are parts of lists."""
    return all(_is_part(file) for file in folder.iterdir())


def _is_part(file: Path) -> bool:
    if not (_PART_NAME.fullmatch(file.name) and file.is_file()):
        return False
    try:
        return tuple(pq.read_schema(file).names) == COLUMNS
    except pa.ArrowException:
        return False


_MOST = 1 << 23
"""Entries of lists that are held in memory before they are written as a part."""


class StoredLists(NamedTuple):
    """The lists of some users, in the order of the rows."""

    ids: Int32
    scores: Float32


class ListParts:
    """The lists of the first so many users, in files of their own within a checkpoint.

    Parameters
    ----------
    checkpoint
        Where they are kept.
    about
        What the lists are of. Those of anything else are refused.
    """

    def __init__(self, checkpoint: Checkpoint, about: Mapping[str, Any]) -> None:
        self._checkpoint = checkpoint
        self._is_open = checkpoint.load(about) is not None
        self._files = sorted(checkpoint.path.glob("part-*.safetensors")) if self._is_open else []
        self._new: list[StoredLists] = []
        self._written = time.monotonic()

    def stored(self) -> Iterator[StoredLists]:
        """Give what was kept before, part by part."""
        for file in self._files:
            arrays = load_arrays(file)
            ids, scores = arrays.get("ids"), arrays.get("scores")
            if ids is None or scores is None or ids.ndim != 2 or ids.shape != scores.shape:
                message = f"damaged lists in the checkpoint: {str(file)!r}"
                raise DataError(message, hint="delete the checkpoint to start from the beginning")
            yield StoredLists(ids, scores)

    @contextmanager
    def keeping(self) -> Iterator[Self]:
        """Save the lists made so far before a signal ends the work."""
        try:
            with finishing() as self._is_asked:
                yield self
        except (KeyboardInterrupt, Terminated) as end:
            if self._checkpoint.exists:
                end.add_note(GOES_ON)
            raise

    def keep(self, ids: Int32, scores: Float32) -> bool:
        """Keep the lists of the next users; true if a signal waits for the end of the block."""
        self._new.append(StoredLists(ids, scores))
        held = sum(one.ids.size for one in self._new)
        if self._is_asked() or held >= _MOST or self._checkpoint.is_due_since(self._written):
            self._write()
        return self._is_asked()

    def _write(self) -> None:
        if not self._is_open:
            self._checkpoint.save({}, {})
            self._is_open = True
        file = self._next_file()
        ids, scores = (np.concatenate(parts) for parts in zip(*self._new, strict=True))
        save_arrays(file, {"ids": ids, "scores": scores})
        self._files.append(file)
        self._new, self._written = [], time.monotonic()

    def _next_file(self) -> Path:
        return self._checkpoint.path / f"part-{len(self._files):05d}.safetensors"
