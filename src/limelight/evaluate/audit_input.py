"""What an audit reads: lists, a catalogue and groups, checked and numbered.

Everything stays in columns: 20 million rows are a few arrays, never 20 million objects.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from limelight._errors import DataError
from limelight.data.columns import NumberColumn
from limelight.data.ids import IdColumn, ids_to_arrow, positions
from limelight.data.scan import join, scan
from limelight.data.sources import describe, listed, open_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from limelight.data.sources import Part, Source
    from limelight.evaluate.lists import FloatArray

IndexArray = NDArray[np.int64]

RANK = NumberColumn(
    "rank",
    "a rank must be a whole number from 1 up",
    lambda ranks: (ranks >= 1) & (ranks < 2**31) & (ranks == np.floor(ranks)),
    np.int32,
)
SCORE = NumberColumn("score", "a score must be a number", lambda scores: ~np.isnan(scores))
WEIGHT = NumberColumn(
    "weight",
    "a weight must be a finite number above 0",
    lambda weights: (weights > 0) & np.isfinite(weights),
)


class Lists(NamedTuple):
    """One entry per row of the lists, and the ids behind the numbers."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ranks: NDArray[np.int32]
    n_users: int
    item_ids: pa.Array


class Groups(NamedTuple):
    """One entry per item and group it belongs to; an item's weights add up to 1."""

    items: IndexArray
    groups: IndexArray
    weights: FloatArray
    group_ids: list[Any]
    n_ignored: int


def read_lists(source: Source) -> Lists:
    """Read lists `user_id, item_id, rank[, score]` and refuse what cannot be a ranking.

    Without ranks the scores give them, highest first, ties in the order of the rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "score": [0.2, 0.9]})
    >>> read_lists(table).ranks
    array([2, 1], dtype=int32)
    """
    parts = open_parts(source)
    order = next((column for column in (RANK, SCORE) if _has(parts, column)), None)
    if order is None:
        message = f"neither 'rank' nor 'score' in {describe(parts)}"
        columns = listed(parts[0].columns)
        hint = f"add a column `rank`, 1 for the first item; the columns are: {columns}"
        raise DataError(message, hint=hint)
    user, item = IdColumn("user_id"), IdColumn("item_id")
    users, items, ranks = join(scan(parts, [user, item, order]))
    user_ids, item_ids = user.ids(), item.ids()
    if order is RANK:
        _refuse_shared_ranks(users, ranks, user_ids)
    else:
        ranks = _ranks_from_scores(users, ranks)
    _refuse_repeated_items(users, items, user_ids, item_ids)
    return Lists(users, items, ranks, len(user_ids), item_ids)


def _has(parts: Sequence[Part], column: NumberColumn) -> bool:
    """Tell whether any part has a column; then all of them must."""
    return any(column.name in part.columns for part in parts)


def read_catalogue(catalogue: Source | Sequence[Any]) -> tuple[pa.Array, int]:
    """Read the distinct item ids of a catalogue and count the rows that repeat one.

    Examples
    --------
    >>> ids, repeats = read_catalogue(["a", "b", "a"])
    >>> ids.to_pylist(), repeats
    (['a', 'b'], 1)
    """
    if _is_sequence(catalogue):
        values = ids_to_arrow(np.asarray(catalogue))
        distinct, n_rows = values.unique(), len(values)
    else:
        column = IdColumn("item_id")
        [codes] = join(scan(open_parts(cast("Source", catalogue)), [column]))
        distinct, n_rows = column.ids(), len(codes)
    if not n_rows:
        message = "the catalogue is empty"
        raise DataError(message, hint="pass all items that could be shown")
    return distinct, n_rows - len(distinct)


def read_groups(source: Source, item_ids: pa.Array) -> Groups:
    """Read `item_id, group[, weight]` for the items of the catalogue; ignore other items.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"item_id": ["a", "a", "z"], "group": ["x", "y", "x"]})
    >>> read_groups(table, pa.array(["a", "b"])).weights
    array([0.5, 0.5])
    """
    parts = open_parts(source)
    item, group = IdColumn("item_id"), IdColumn("group")
    weighted = [WEIGHT] if _has(parts, WEIGHT) else []
    items, groups, *given = join(scan(parts, [item, group, *weighted]))
    grouped_ids, group_ids = item.ids(), group.ids()
    _refuse_repeated_groups(items, groups, grouped_ids, group_ids)
    weights = given[0] if given else np.ones(len(items))
    weights = weights / np.bincount(items, weights=weights)[items]
    numbers = positions(grouped_ids, item_ids)[items]
    known = numbers >= 0
    if not known.any():
        example = grouped_ids[0].as_py()
        message = f"no item of {describe(parts)} is in the catalogue, e.g. {example!r}"
        raise DataError(message, hint="use the same item ids in groups and lists")
    return Groups(
        numbers[known],
        groups[known].astype(np.int64),
        weights[known],
        group_ids.to_pylist(),
        int((~known).sum()),
    )


def _is_sequence(catalogue: object) -> bool:
    """Tell a plain sequence, array or series of ids from a path or a table."""
    if isinstance(catalogue, str | os.PathLike):
        return False
    return isinstance(catalogue, Sequence) or len(getattr(catalogue, "shape", ())) == 1


def _ranks_from_scores(users: NDArray[np.int32], scores: FloatArray) -> NDArray[np.int32]:
    order = np.lexsort((-scores, users))
    lengths = np.bincount(users)
    starts = np.cumsum(lengths) - lengths
    ranks = np.empty(len(users), dtype=np.int32)
    ranks[order] = np.arange(len(users)) - starts[users[order]] + 1
    return ranks


def _refuse_shared_ranks(
    users: NDArray[np.int32], ranks: NDArray[np.int32], user_ids: pa.Array
) -> None:
    if repeat := _repeated_pair(users, ranks):
        user, rank, count = repeat
        message = f"user {user_ids[user].as_py()!r} has rank {rank} twice ({count:,} such rows)"
        raise DataError(message, hint="give every row of a user its own rank")


def _refuse_repeated_items(
    users: NDArray[np.int32], items: NDArray[np.int32], user_ids: pa.Array, item_ids: pa.Array
) -> None:
    if repeat := _repeated_pair(users, items):
        user, item, count = repeat
        pair = f"user {user_ids[user].as_py()!r} has item {item_ids[item].as_py()!r}"
        message = f"{pair} twice ({count:,} such rows)"
        raise DataError(message, hint="a list may show an item once; keep its best rank")


def _refuse_repeated_groups(
    items: NDArray[np.int32], groups: NDArray[np.int32], item_ids: pa.Array, group_ids: pa.Array
) -> None:
    if repeat := _repeated_pair(items, groups):
        item, group, count = repeat
        pair = f"item {item_ids[item].as_py()!r} is in group {group_ids[group].as_py()!r}"
        message = f"{pair} twice ({count:,} such rows)"
        raise DataError(message, hint="keep one row per item and group")


def _repeated_pair(
    left: NDArray[np.int32], right: NDArray[np.int32]
) -> tuple[int, int, int] | None:
    """Find a pair of numbers that occurs again, and count the rows that repeat one."""
    span = int(right.max()) + 1
    keys = left.astype(np.int64)
    keys *= span
    keys += right
    keys.sort()
    again = keys[1:][keys[1:] == keys[:-1]]
    if not again.size:
        return None
    return (*divmod(int(again[0]), span), len(again))
