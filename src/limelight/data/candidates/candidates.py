"""Candidates with scores, from anybody's recommender, for any number of users."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from limelight._base.errors import ConfigError, DataError
from limelight._base.progress import progress_bar
from limelight._base.settings import is_integer
from limelight._base.text import count
from limelight.data.candidates.sorter import PairSorter
from limelight.data.catalogue import CatalogueColumn, read_catalogue
from limelight.data.columns import NumberColumn, scan
from limelight.data.ids import IdColumn, ids_from_arrow, positions
from limelight.data.names import need_column
from limelight.data.read import read
from limelight.data.read_columns import choose_columns
from limelight.data.rows import group, row_numbers, row_starts
from limelight.data.sources import check_names, describe, open_parts

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight.data.candidates.storage import PairRows
    from limelight.data.interactions import Ids
    from limelight.data.sources import Part, Source


MEMORY = 1 << 30
"""How many bytes of candidates are held in memory, unless told otherwise."""
_LEAST_MEMORY = 1 << 20
LARGEST_SCORE = 1e30
"""Of candidates: sums of lists, and what is added to scores, must fit 32 bits, too."""


class Block(NamedTuple):
    """The candidates of some users, each user's best first."""

    indptr: Int64
    """Where each user's candidates start, and where the last one's end."""
    items: Int32
    scores: Float32


class Candidates:
    """Who could be shown what, sorted by score: the highest first, ties by item number.

    Items and scores are in memory, or in scratch files that are gone once this is closed or
    collected. Close it, or use it in a ``with`` block, to give the disk back early.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user_id": [7, 7, 5], "item_id": ["a", "b", "a"], "score": [1, 2, 3]})
    >>> candidates = read_candidates(table)
    >>> candidates
    Candidates(2 users x 2 items, 3 pairs, in memory)
    >>> candidates.user_ids, candidates.counts
    (array([7, 5]), array([2, 1]))
    >>> candidates.block(0, 1)
    Block(indptr=array([0, 2]), items=array([1, 0], dtype=int32), scores=array([2., 1.], ...))
    """

    def __init__(
        self,
        indptr: Int64,
        rows: PairRows,
        user_ids: Ids,
        item_ids: Ids,
        *,
        catalogue_given: bool = True,
    ) -> None:
        self.indptr = indptr
        self.user_ids, self.item_ids = user_ids, item_ids
        self.catalogue_given = catalogue_given
        self._rows = rows
        self._is_open = True

    @property
    def n_users(self) -> int:
        """How many users have candidates."""
        return len(self.indptr) - 1

    @property
    def n_items(self) -> int:
        """How many items the catalogue has, or else how many are somebody's candidate."""
        return len(self.item_ids)

    @property
    def n_pairs(self) -> int:
        """How many candidates there are in all."""
        return int(self.indptr[-1])

    @property
    def counts(self) -> Int64:
        """How many candidates each user has."""
        return np.diff(self.indptr)

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take, the ids not counted."""
        return self.indptr.nbytes + self._rows.nbytes

    @property
    def nbytes_on_disk(self) -> int:
        """How much of the disk the scratch files take."""
        return self._rows.nbytes_on_disk

    def block(self, start: int, stop: int) -> Block:
        """Copy the candidates of the users from one number up to, not including, another."""
        self._require_open()
        starts = self.indptr[start : stop + 1]
        return Block(starts - starts[0], *self._rows.read(int(starts[0]), int(starts[-1])))

    def items_of(self, start: int, stop: int) -> tuple[Int64, Int32]:
        """Copy a block without its scores: where each user's candidates start, and the items."""
        self._require_open()
        starts = self.indptr[start : stop + 1]
        items = np.empty(starts[-1] - starts[0], dtype=np.int32)
        self._rows.items.read_into(int(starts[0]), items)
        return starts - starts[0], items

    def pick(self, at: Int64, start: int, stop: int) -> tuple[Int32, Float32]:
        """Copy the items and scores of some pairs, by number, of users from start up to stop."""
        self._require_open()
        span = int(self.indptr[start]), int(self.indptr[stop])
        return self._rows.items.pick(at, *span), self._rows.scores.pick(at, *span)

    def take(self, users: Int64) -> Block:
        """Copy the candidates of some users, by number, in any order.

        Users whose numbers follow each other are read at once.
        """
        self._require_open()
        indptr = row_starts(self.counts_of(users))
        items = np.empty(indptr[-1], dtype=np.int32)
        scores = np.empty(indptr[-1], dtype=np.float32)
        edges = np.append(np.flatnonzero(np.diff(users, prepend=-2) != 1), len(users))
        for first, last in pairwise(edges.tolist()):
            place, start = slice(indptr[first], indptr[last]), int(self.indptr[users[first]])
            self._rows.items.read_into(start, items[place])
            self._rows.scores.read_into(start, scores[place])
        return Block(indptr, items, scores)

    def counts_of(self, users: Int64) -> Int64:
        """Tell how many candidates some users have."""
        counts: Int64 = self.indptr[users + 1] - self.indptr[users]
        return counts

    def close(self) -> None:
        """Delete the scratch files, or let the memory go."""
        self._is_open = False
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        place = f"{self.nbytes_on_disk / 2**30:,.1f} GiB on disk" if self.nbytes_on_disk else ""
        sizes = f"{count(self.n_users, 'user')} x {count(self.n_items, 'item')}"
        return f"Candidates({sizes}, {count(self.n_pairs, 'pair')}, {place or 'in memory'})"

    def _require_open(self) -> None:
        if not self._is_open:
            message = "the candidates are closed"
            raise DataError(message, hint="read them again, or use them inside the `with` block")


def read_candidates(
    source: Source,
    *,
    user: str | None = None,
    item: str | None = None,
    score: str | None = None,
    catalogue: Source | Sequence[Any] | None = None,
    memory: int = MEMORY,
    folder: str | os.PathLike[str] | None = None,
    show_progress: bool | None = None,
) -> Candidates:
    """Read candidates with scores, one row a pair of user and item, in any order.

    Users are numbered in the order in which they first appear, and so are items unless there is a
    catalogue. Rows that are grouped by user are read fastest.

    Parameters
    ----------
    source
        A ``.parquet``, ``.csv`` or ``.tsv`` file (the last two also with ``.gz``), a folder of such
        parts, which are read in the order of their names, or a pandas, polars or pyarrow frame.
    user, item
        Column names. Left out, they are found if the source has one of the usual pairs, such as
        ``user_id, item_id``.
    score
        A column of finite numbers, the higher the better; ``score`` unless given.
    catalogue
        All items that could be shown, which are numbered in its order: a source with a column
        ``item_id``, or a sequence of ids. Every candidate must be among them.
    memory
        How many bytes candidates may take in memory, beside the ids and one number a user; at least
        1 MiB. What does not fit goes to scratch files: 8 bytes a pair, at times 12.
    folder
        Where these live; the system's place for temporary files, unless given.
    show_progress
        Whether to show how many parts were read; left out, where standard error is a terminal.

    Raises
    ------
    DataError
        If the source cannot be read, holds values that cannot be used, names a pair twice or an
        item that the catalogue does not have, or if a scratch file cannot be written.
    ConfigError
        If a setting cannot be used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user_id": [7, 5], "item_id": ["b", "a"], "score": [0.5, 0.25]})
    >>> with read_candidates(table, catalogue=["a", "b", "c"]) as candidates:
    ...     candidates.n_items, candidates.block(0, 2).items
    (3, array([1, 0], dtype=int32))
    """
    check_names(user=user, item=item, score=score)
    _check_memory(memory)
    parts = open_parts(source)
    user, item = choose_columns(source, parts[0], user, item, of="score")
    score = score or need_column(source, parts, "score", of="score")
    columns = _Columns(IdColumn(user), _item_column(item, catalogue), _score_column(score))
    sorter = PairSorter(memory, folder)
    try:
        with progress_bar("candidates", len(parts), show=show_progress) as advance:
            for batch in scan([_Watched(part, advance) for part in parts], columns):
                sorter.add(*batch)
        _refuse_strangers(columns.item, parts)
        indptr, rows = sorter.finish()
        ids = columns.user.ids(), columns.item.ids()
        _refuse_repeats(rows, *ids)
    except BaseException:
        sorter.close()
        raise
    user_ids, item_ids = map(ids_from_arrow, ids)
    given = catalogue is not None
    return Candidates(indptr, rows, user_ids, item_ids, catalogue_given=given)


class _Columns(NamedTuple):
    user: IdColumn
    item: IdColumn | CatalogueColumn
    score: NumberColumn


@dataclass(frozen=True)
class _Watched:
    """A part that tells when it has been read."""

    part: Part
    advance: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        yield from self.part.batches(names)
        self.advance()


def _check_memory(memory: int) -> None:
    if not is_integer(memory, _LEAST_MEMORY):
        message = f"memory must be a whole number of bytes, at least 1 MiB: {memory!r}"
        raise ConfigError(message, hint="1 << 30 is 1 GiB, which suits any number of candidates")


def _item_column(name: str, catalogue: Source | Sequence[Any] | None) -> IdColumn | CatalogueColumn:
    if catalogue is None:
        return IdColumn(name)
    return CatalogueColumn(name, read_catalogue(catalogue)[0])


def _score_column(name: str) -> NumberColumn:
    return NumberColumn(
        name,
        "a score must be a finite number from -1e30 to 1e30",
        lambda scores: np.abs(scores) <= LARGEST_SCORE,  # which NaN is not
        np.float32,
    )


def _refuse_strangers(column: IdColumn | CatalogueColumn, parts: Sequence[Part]) -> None:
    if isinstance(column, CatalogueColumn) and len(strangers := column.strangers()):
        found = f"{count(len(strangers), 'item')} of {describe(parts)}"
        message = f"not in the catalogue: {found}, such as {strangers[0].as_py()!r}"
        raise DataError(message, hint="add them to the catalogue, or drop their rows")


def _refuse_repeats(rows: PairRows, user_ids: Any, item_ids: Any) -> None:
    if rows.repeats is not None:
        user, item, n_rows = rows.repeats
        pair = f"user {user_ids[user].as_py()!r} has item {item_ids[item].as_py()!r}"
        message = f"{pair} twice ({n_rows:,} such rows)"
        raise DataError(message, hint="keep one row for each pair of user and item")


def aligned_pairs(source: Source, candidates: Candidates, what: str) -> scipy.sparse.csr_matrix:
    """Read pairs, one row for each user who has candidates; what is unknown is left out.

    The source is a file or frame, as for ``ll.read``; messages call the pairs ``what``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data import read_candidates
    >>> table = pa.table({"user_id": [7, 5], "item_id": ["b", "a"], "score": [0.5, 0.25]})
    >>> pairs = pa.table({"user_id": [5, 5, 6], "item_id": ["a", "b", "a"]})
    >>> aligned_pairs(pairs, read_candidates(table), "history").indptr
    array([0, 0, 2], ...)
    """
    data = read(source)
    users = positions(data.user_ids, candidates.user_ids)[row_numbers(data.indptr)]
    items = positions(data.item_ids, candidates.item_ids)[data.indices]
    known = (users >= 0) & (items >= 0)
    if not known.any():
        pair = f"{data.user_ids.item(0)!r}, {data.item_ids.item(0)!r}"
        message = f"no pair of the {what} has a user and an item of the candidates, such as {pair}"
        user, item = (
            np.asarray(candidates.user_ids).item(0),
            np.asarray(candidates.item_ids).item(0),
        )
        raise DataError(message, hint=f"the candidates have ids such as {user!r}, {item!r}")
    shape = candidates.n_users, candidates.n_items
    rows = group(users[known].astype(np.int32), items[known].astype(np.int32), *shape)
    values = np.ones(len(rows.indices), dtype=np.float32)
    return scipy.sparse.csr_matrix((values, rows.indices, rows.indptr), shape=shape)
