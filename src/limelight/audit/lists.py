"""The lists of an audit: read, checked and numbered.

Everything stays in columns: 20 million rows are a few arrays, never 20 million objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight.audit.over_time import MomentColumn, written
from limelight.data.columns import NumberColumn, join, scan
from limelight.data.ids import IdColumn
from limelight.data.names import find_column, need_column
from limelight.data.rows import repeated_pair
from limelight.data.sources import TableSource, describe, listed, open_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from limelight.data.rows import Repeat
    from limelight.data.sources import Part, Source
    from limelight.metrics.lists import FloatArray


_LAST_RANK = 1 << 24  # every rank down to the last one has a weight


class ListNames(NamedTuple):
    """The names of the columns of lists; what is None is not there."""

    user: str
    item: str
    rank: str | None
    score: str | None

    @property
    def order(self) -> NumberColumn:
        """The column that orders a list: its ranks, else its scores."""
        if self.rank is not None:
            return NumberColumn(
                self.rank,
                f"a rank must be a whole number from 1 to {_LAST_RANK:,}",
                lambda ranks: (ranks >= 1) & (ranks <= _LAST_RANK) & (ranks == np.floor(ranks)),
                np.int32,
            )
        assert self.score is not None
        rule = "a score must be a number"
        return NumberColumn(self.score, rule, lambda scores: ~np.isnan(scores))


class ListTable(NamedTuple):
    """One entry per row of the lists, and the ids behind the numbers."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ranks: NDArray[np.int32]
    lists: NDArray[np.int32]
    """The list that a row belongs to: one per user, or per user and time."""

    times: NDArray[np.int64] | None
    """Microseconds since 1970, where a column of times was named."""

    n_lists: int
    user_ids: pa.Array
    item_ids: pa.Array
    label: str
    """What messages call the lists."""

    @property
    def n_users(self) -> int:
        """How many users have a list."""
        return len(self.user_ids)

    def array(self, k: int) -> NDArray[np.int32]:
        """Return the lists, one for each user, as users x k item numbers, padded with -1."""
        ids = np.full((self.n_users, k), -1, dtype=np.int32)
        ids[self.users, self.ranks - 1] = self.items
        return ids

    def cut(self, k: int) -> ListTable:
        """Keep ranks 1 to k, though there may be none, or all; users and lists keep their numbers.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
        >>> read_lists(table).cut(1).items
        array([0], dtype=int32)
        """
        if int(self.ranks.max()) <= k:
            return self
        keep = self.ranks <= k
        return self._replace(
            users=self.users[keep],
            items=self.items[keep],
            ranks=self.ranks[keep],
            lists=self.lists[keep],
            times=None if self.times is None else self.times[keep],
        )


def check_ranks(k: int, best: int, longest: int, label: str) -> None:
    """Refuse a k that no list reaches, or that all fall short of."""
    if best > k:
        message = f"no item at rank {k} or better: the best rank is {best} in {label}"
        raise DataError(message, hint="ranks start at 1; or choose a larger k")
    if longest < k:
        message = f"k is larger than the lists are long: {k} > {longest} in {label}"
        raise ConfigError(message, hint=f"choose k <= {longest}, or leave k out")


def read_lists(source: Source, timestamp: str | None = None) -> ListTable:
    """Read lists `user_id, item_id, rank[, score]` and refuse what cannot be a ranking.

    Without ranks the scores give them, highest first, ties in the order of the rows. Where a
    column of times is named, a user has one list for each time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "score": [0.2, 0.9]})
    >>> read_lists(table).ranks
    array([2, 1], dtype=int32)
    """
    parts = open_parts(source)
    names = list_names(source, parts)
    user, item, order = IdColumn(names.user), IdColumn(names.item), names.order
    time_format = source.time_format if isinstance(source, TableSource) else None
    moment = [] if timestamp is None else [MomentColumn(timestamp, time_format)]
    users, items, ranks, *times = join(scan(parts, [user, item, order, *moment]))
    lists, n_lists = _number_lists(users, times[0]) if times else (users, int(users.max()) + 1)
    if names.rank is None:
        ranks = _ranks_from_scores(lists, ranks)
    found = ListTable(
        users=users,
        items=items,
        ranks=ranks,
        lists=lists,
        times=times[0] if times else None,
        n_lists=n_lists,
        user_ids=user.ids(),
        item_ids=item.ids(),
        label=describe(parts),
    )
    _refuse_repeats(found)
    return found


def list_names(source: Source, parts: Sequence[Part]) -> ListNames:
    """Find the columns of lists; refuse lists that have neither ranks nor scores.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user": [1], "item": ["a"], "position": [1]})
    >>> list_names(table, open_parts(table))
    ListNames(user='user', item='item', rank='position', score=None)
    """
    user, item = (need_column(source, parts, what, of="rank") for what in ("user", "item"))
    rank, score = (find_column(source, parts, what) for what in ("rank", "score"))
    if rank is None and score is None:
        message = f"neither 'rank' nor 'score' in {describe(parts)}"
        columns = listed(parts[0].columns)
        hint = (
            "name it with ll.TableSource(..., rank='...'), or add a column `rank`, 1 for the first "
            f"item; the columns are: {columns}"
        )
        raise DataError(message, hint=hint)
    return ListNames(user, item, rank, score)


def _number_lists(
    users: NDArray[np.int32], times: NDArray[np.int64]
) -> tuple[NDArray[np.int32], int]:
    """Number the pairs of user and time, in ascending order."""
    order = np.lexsort((times, users))
    ordered_users, ordered_times = users[order], times[order]
    starts = np.empty(len(users), dtype=bool)
    starts[0] = True
    starts[1:] = ordered_users[1:] != ordered_users[:-1]
    starts[1:] |= ordered_times[1:] != ordered_times[:-1]
    lists = np.empty(len(users), dtype=np.int32)
    lists[order] = np.cumsum(starts, dtype=np.int32) - 1
    return lists, int(np.count_nonzero(starts))


def _ranks_from_scores(lists: NDArray[np.int32], scores: FloatArray) -> NDArray[np.int32]:
    order = np.lexsort((-scores, lists))
    lengths = np.bincount(lists)
    starts = np.cumsum(lengths) - lengths
    ranks = np.empty(len(lists), dtype=np.int32)
    ranks[order] = np.arange(len(lists)) - starts[lists[order]] + 1
    return ranks


def _refuse_repeats(rows: ListTable) -> None:
    """Refuse a list that has a rank or an item twice."""
    if repeat := repeated_pair(rows.lists, rows.ranks):
        hint = "give every row of a list its own rank"
        raise _repeat_error(rows, repeat, f"rank {repeat.right}", hint)
    if repeat := repeated_pair(rows.lists, rows.items):
        hint = "a list may show an item once; keep its best rank"
        raise _repeat_error(rows, repeat, f"item {rows.item_ids[repeat.right].as_py()!r}", hint)


def _repeat_error(rows: ListTable, repeat: Repeat, what: str, hint: str) -> DataError:
    row = int(np.argmax(rows.lists == repeat.left))
    user = rows.user_ids[int(rows.users[row])].as_py()
    if rows.times is None:
        when = ""
        hint = f"{hint}; if users have several lists, name their times with timestamp='...'"
    else:
        when = f" at {written(rows.times[row])}"
    message = f"user {user!r} has {what} twice{when} ({repeat.rows:,} such rows) in {rows.label}"
    return DataError(message, hint=hint)
