"""What an audit reads: lists, a catalogue and groups, checked and numbered.

Everything stays in columns: 20 million rows are a few arrays, never 20 million objects.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from limelight._errors import DataError
from limelight.store.tables import Source, column_names, describe, ids_to_arrow, read_columns

if TYPE_CHECKING:
    from limelight.evaluate.lists import FloatArray

IndexArray = NDArray[np.int64]
_LARGEST_RANK = 2**31 - 1


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
    >>> table = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "score": [0.2, 0.9]})
    >>> read_lists(table).ranks
    array([2, 1], dtype=int32)
    """
    columns = column_names(source)
    order = next((name for name in ("rank", "score") if name in columns), None)
    if order is None:
        message = f"neither 'rank' nor 'score' in {describe(source)}"
        hint = f"add a column `rank`, 1 for the first item; columns found: {', '.join(columns)}"
        raise DataError(message, hint=hint)
    table = read_columns(source, ids=["user_id", "item_id"], numbers=[order])
    users, user_ids = _codes(table, "user_id")
    items, item_ids = _codes(table, "item_id")
    if order == "rank":
        ranks = _whole_ranks(table["rank"].to_numpy())
        _refuse_shared_ranks(users, ranks, user_ids)
    else:
        ranks = _ranks_from_scores(users, table["score"].to_numpy())
    _refuse_repeated_items(users, items, user_ids, item_ids)
    return Lists(users, items, ranks, len(user_ids), item_ids)


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
        column = read_columns(catalogue, ids=["item_id"])["item_id"].chunk(0)
        distinct, n_rows = column.dictionary, len(column)
    if not n_rows:
        message = "the catalogue is empty"
        raise DataError(message, hint="pass all items that could be shown")
    return distinct, n_rows - len(distinct)


def read_groups(source: Source, item_ids: pa.Array) -> Groups:
    """Read `item_id, group[, weight]` for the items of the catalogue; ignore other items.

    Examples
    --------
    >>> table = pa.table({"item_id": ["a", "a", "z"], "group": ["x", "y", "x"]})
    >>> read_groups(table, pa.array(["a", "b"])).weights
    array([0.5, 0.5])
    """
    table = read_columns(source, ids=["item_id", "group"], numbers=["weight"], optional=["weight"])
    items, grouped_ids = _codes(table, "item_id")
    groups, group_ids = _codes(table, "group")
    _refuse_repeated_groups(items, groups, grouped_ids, group_ids)
    weights = np.ones(len(items))
    if "weight" in table.column_names:
        weights = table["weight"].to_numpy()
        wrong = ~((weights > 0) & np.isfinite(weights))
        _refuse(wrong, weights, "weight of a group is not above 0", "drop the rows without weight")
    weights = weights / np.bincount(items, weights=weights)[items]
    numbers = positions(grouped_ids, item_ids)[items]
    known = numbers >= 0
    if not known.any():
        example = grouped_ids[0].as_py()
        message = f"no item of {describe(source)} is in the catalogue, e.g. {example!r}"
        raise DataError(message, hint="use the same item ids in groups and lists")
    return Groups(
        numbers[known],
        groups[known].astype(np.int64),
        weights[known],
        group_ids.to_pylist(),
        int((~known).sum()),
    )


def positions(ids: pa.Array, catalogue: pa.Array) -> IndexArray:
    """Give the place of each id in the catalogue, -1 if it is not there.

    Integers and text are compared as text, so that 7 in one file is '7' in another.

    Examples
    --------
    >>> positions(pa.array([7, 9]), pa.array(["8", "7"]))
    array([ 1, -1])
    """
    if ids.type != catalogue.type:
        ids, catalogue = ids.cast(pa.large_string()), catalogue.cast(pa.large_string())
    places = pc.fill_null(pc.index_in(ids, value_set=catalogue), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def _codes(table: pa.Table, column: str) -> tuple[NDArray[np.int32], pa.Array]:
    encoded = table[column].chunk(0)
    return encoded.indices.to_numpy(), encoded.dictionary


def _is_sequence(catalogue: object) -> bool:
    """Tell a plain sequence, array or series of ids from a path or a table."""
    if isinstance(catalogue, str | os.PathLike):
        return False
    return isinstance(catalogue, Sequence) or len(getattr(catalogue, "shape", ())) == 1


def _whole_ranks(ranks: FloatArray) -> NDArray[np.int32]:
    hint = "ranks are whole numbers, 1 for the first item of each user"
    _refuse(np.isnan(ranks), ranks, "rank is missing", hint)
    _refuse(ranks < 1, ranks, "rank is below 1", hint)
    _refuse(ranks > _LARGEST_RANK, ranks, "rank is too large", hint)
    _refuse(ranks != np.floor(ranks), ranks, "rank is not a whole number", hint)
    return ranks.astype(np.int32)


def _ranks_from_scores(users: NDArray[np.int32], scores: FloatArray) -> NDArray[np.int32]:
    _refuse(np.isnan(scores), scores, "score is missing", "every row needs a score or a rank")
    order = np.lexsort((-scores, users))
    lengths = np.bincount(users)
    starts = np.cumsum(lengths) - lengths
    ranks = np.empty(len(users), dtype=np.int32)
    ranks[order] = np.arange(len(users)) - starts[users[order]] + 1
    return ranks


def _refuse(wrong: NDArray[np.bool_], values: FloatArray, complaint: str, hint: str) -> None:
    """Refuse rows with something wrong in them: name the first and count them."""
    if wrong.any():
        row = int(np.argmax(wrong))
        message = f"{complaint}: {values[row]:g} in row {row + 1:,} ({wrong.sum():,} such rows)"
        raise DataError(message, hint=hint)


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
