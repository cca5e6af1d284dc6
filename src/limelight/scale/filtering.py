"""Rare users and items dropped where no rank has all of them: only counts go around."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._native import kernels
from limelight.data.filters import core_of, count_rows, frequent, new_numbers
from limelight.data.grouping import row_starts
from limelight.data.read import none_left
from limelight.scale.talk import all_agree, sum_counts

if TYPE_CHECKING:
    from limelight._arrays import Int64
    from limelight.data.filters import Mask
    from limelight.data.read import ReadOptions
    from limelight.scale.routing import Shard
    from limelight.solve.exchange import Exchange


class Kept(NamedTuple):
    """What is left of a rank's rows."""

    shards: list[Shard]
    users: Mask
    """Which of the users that this rank had."""
    items: Mask
    """Which of all items."""
    item_counts: Int64
    """How many pairs each of the items has that are left, on all ranks."""


def drop(shards: list[Shard], n_items: int, options: ReadOptions, exchange: Exchange) -> Kept:
    """Drop who has too few pairs, and who has none, as :func:`limelight.read` does.

    Parameters
    ----------
    shards
        The rows of this rank.
    n_items
        How many items there are.
    options
        What is asked for.
    exchange
        The door to the others.
    """
    count = partial(_count, shards, exchange=exchange)
    users = np.ones(sum(len(indptr) - 1 for indptr, _ in shards), dtype=bool)
    items = np.ones(n_items, dtype=bool)
    found = int(count(users, items)[1].sum())
    if options.core is not None:
        users, items = core_of(count, users, items, options.core, partial(all_agree, exchange))
    elif options.min_user is not None or options.min_item is not None:
        users, items = frequent(
            count, users, items, options.min_user, options.min_item, options.filter_order
        )
    by_user, by_item = count(users, items)
    if not by_item.any():
        raise none_left(found)
    users, items = by_user > 0, by_item > 0
    return Kept(_keep(shards, by_user, items), users, items, by_item[items])


def _count(
    shards: list[Shard], users: Mask, items: Mask, *, exchange: Exchange
) -> tuple[Int64, Int64]:
    """Count the pairs of this rank's users, and of all items, of which both are kept."""
    by_item, counts, start = np.zeros(len(items), np.int64), [], 0
    for indptr, indices in shards:
        end = start + len(indptr) - 1
        of_users, of_items = count_rows(indptr, indices, users[start:end], items)
        counts.append(of_users)
        by_item += of_items
        start = end
    return np.concatenate(counts), sum_counts(exchange, by_item)


def _keep(shards: list[Shard], by_user: Int64, items: Mask) -> list[Shard]:
    """Keep the pairs of users who have some left with the items that are kept."""
    numbers, found, start = new_numbers(items), [], 0
    for indptr, indices in shards:
        lengths = by_user[start : start + len(indptr) - 1]
        start += len(lengths)
        users = lengths > 0
        kept = row_starts(lengths[users])
        out = np.empty(kept[-1], np.int32)
        kernels.keep_pairs(
            indptr,
            indices,
            None,
            keep_users=users,
            item_numbers=numbers,
            out_indices=out,
            out_order=None,
        )
        found.append((kept, out))
    return found
