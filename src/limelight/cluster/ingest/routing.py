"""Pairs on their way to the rank that has their user, and rows to shards of equal work.

Rare users and items are dropped where no rank has all of them: only counts go around.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from limelight._native import kernels
from limelight.cluster.collectives import all_agree, all_reduce_counts, deal
from limelight.data.filters import core_of, count_rows, frequent, new_numbers
from limelight.data.read import none_left
from limelight.data.rows import group, row_starts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Int32, Int64
    from limelight.cluster.collectives import Communicator
    from limelight.cluster.ingest.numbering import Numbering
    from limelight.data.filters import Mask
    from limelight.data.read import ReadOptions


MOST_SHARDS = 2**16
"""Interactions are sorted by shard while they are read, which short numbers do fastest."""
_ROW = 32
"""What a row costs beside its interactions, in interactions: it is solved for, or at least kept."""


def balanced_bounds(work: NDArray[Any], n_runs: int) -> Int64:
    """Cut rows into runs of about equal work, each of them perhaps empty.

    Returns the first row of each run, and the number of rows.

    Examples
    --------
    >>> balanced_bounds(np.array([1, 1, 1, 1, 8]), 3)
    array([0, 4, 5, 5])
    """
    done = np.concatenate([[0.0], np.cumsum(work, dtype=np.float64)])
    goals = done[-1] * np.arange(n_runs + 1) / n_runs
    after = np.searchsorted(done, goals).clip(max=len(work))
    before = (after - 1).clip(min=0)
    is_nearer = goals - done[before] < done[after] - goals
    bounds: Int64 = np.where(is_nearer, before, after).astype(np.int64)
    bounds[0], bounds[-1] = 0, len(work)
    return bounds


def shard_bounds(counts: NDArray[Any], n_shards: int) -> Int64:
    """Cut users or items into shards by the interactions of each.

    Examples
    --------
    >>> shard_bounds(np.array([1000, 1, 1, 1000]), 2)
    array([0, 2, 4])
    """
    return balanced_bounds(counts.astype(np.int64) + _ROW, n_shards)


if TYPE_CHECKING:
    Shard: TypeAlias = tuple[Int64, Int32]
    """Row pointers, and item numbers, sorted and unique in each row."""


_BUCKETS = 1 << 16
_BLOCK = 1 << 22
"""Pairs that a rank sends at a time."""


def route_pairs(
    pairs: list[tuple[Int32, Int32]], users: Numbering, items: Numbering, comm: Communicator
) -> tuple[list[Shard], int]:
    """Send each pair to the rank that has its user, and make rows of what comes.

    Users are cut into shards by how many pairs they have, which is only roughly equal work: how
    many of them are repeated is known when the rows are made. Pairs travel in blocks, so that a
    rank never holds a second copy of all that it read; ``pairs`` is emptied on the way. All ranks
    take as many turns as the one with the most blocks, because a collective needs all of them.

    Returns the rows of each shard of this rank, and how many repeated pairs all ranks merged.
    """
    bounds = _rough_bounds(pairs, users, comm)
    mine = deal(comm.n_shards, comm.size)[comm.rank]
    came: list[list[tuple[Int32, Int32]]] = [[] for _ in mine]
    n_blocks = -(-sum(len(codes) for codes, _ in pairs) // (_BLOCK * len(mine)))
    blocks = _blocks(pairs, users.numbers, items.numbers)
    for _ in range(int(comm.all_gather(np.array([n_blocks])).max())):
        outgoing = (_addressed(*next(blocks), bounds, comm) for _ in mine)
        for _, (lengths, user, item) in comm.all_to_all(outgoing):
            _sort_in(came, lengths, user, item)
    shards, duplicates = [], 0
    for shard in mine:
        shard_users, shard_items = _joined(came.pop(0))
        n_users = int(bounds[shard + 1] - bounds[shard])
        rows = group(shard_users - np.int32(bounds[shard]), shard_items, n_users, items.n_ids)
        shards.append((rows.indptr, rows.indices))
        duplicates += rows.duplicates
    return shards, int(comm.all_gather(np.array([duplicates])).sum())


def _rough_bounds(pairs: list[tuple[Int32, Int32]], users: Numbering, comm: Communicator) -> Int64:
    """Cut users into shards by how many pairs there are, repeated ones too, in buckets of users."""
    width = -(-users.n_ids // _BUCKETS)
    n_buckets = -(-users.n_ids // width)
    counts = np.zeros(n_buckets, np.int64)
    for codes, _ in pairs:
        counts += np.bincount(users.numbers[codes] // width, minlength=n_buckets)
    counts = all_reduce_counts(comm, counts)
    return np.minimum(balanced_bounds(counts, comm.n_shards) * width, users.n_ids)


def _blocks(
    pairs: list[tuple[Int32, Int32]], users: Int32, items: Int32
) -> Iterator[tuple[Int32, Int32]]:
    """Put batches of codes together into blocks of numbers; then, for ever, empty blocks."""
    while True:
        taken, size = [], 0
        while pairs and size < _BLOCK:
            taken.append(pairs.pop(0))
            size += len(taken[-1][0])
        user_codes, item_codes = _joined(taken)
        yield users[user_codes], items[item_codes]


def _joined(pairs: Sequence[tuple[Int32, Int32]]) -> tuple[Int32, Int32]:
    nothing = np.empty(0, np.int32)
    users, items = zip(*pairs, strict=True) if pairs else ((nothing,), (nothing,))
    return np.concatenate(users), np.concatenate(items)


def _addressed(
    users: Int32, items: Int32, bounds: Int64, comm: Communicator
) -> list[tuple[Int64, Int32, Int32]]:
    """Sort pairs by shard; for each rank: how many each of its shards gets, and the pairs."""
    shard = (np.searchsorted(bounds, users, side="right") - 1).astype(np.uint16)
    order = np.argsort(shard, kind="stable")
    users, items = users[order], items[order]
    lengths = np.bincount(shard, minlength=comm.n_shards)
    starts = row_starts(lengths)
    found = []
    for shards in deal(comm.n_shards, comm.size):
        here = slice(starts[shards.start], starts[shards.stop])
        found.append((lengths[shards.start : shards.stop], users[here], items[here]))
    return found


def _sort_in(
    came: list[list[tuple[Int32, Int32]]], lengths: Int64, users: Int32, items: Int32
) -> None:
    starts = row_starts(lengths)
    for shard, start, end in zip(came, starts, starts[1:], strict=False):
        if end > start:
            shard.append((users[start:end], items[start:end]))


def rebalance(shards: list[Shard], comm: Communicator) -> tuple[list[Shard], Int64]:
    """Move rows until the shards are of equal work; most stay where they are.

    The rows of the next rank come behind those of this one; ``shards`` is emptied on the way.
    Returns the rows of each shard of this rank, and the bounds of all shards.
    """
    lengths = [np.diff(indptr).astype(np.int32) for indptr, _ in shards]
    bounds = shard_bounds(comm.all_gather(np.concatenate(lengths)), comm.n_shards)
    n_rows = sum(map(len, lengths))
    before = comm.all_gather(np.array([n_rows]))[: comm.rank].sum()
    dealt = deal(comm.n_shards, comm.size)
    outgoing = _stretches(shards, int(before), [(bounds[s.start], bounds[s.stop]) for s in dealt])
    came = [stretch for _, stretch in comm.all_to_all(outgoing) if len(stretch[1])]
    came.sort(key=lambda stretch: int(stretch[0][0]))
    mine = dealt[comm.rank]
    lengths = [np.empty(0, np.int32), *(lengths for _, lengths, _ in came)]
    indptr = row_starts(np.concatenate(lengths))
    items = _Stretches([items for _, _, items in came])
    found = []
    for start, end in pairwise(bounds[mine.start : mine.stop + 1]):
        starts = indptr[start - bounds[mine.start] : end - bounds[mine.start] + 1]
        found.append((starts - starts[0], items.take(int(starts[-1] - starts[0]))))
    return found, bounds


def _stretches(
    shards: list[Shard], first: int, bounds: Sequence[tuple[int, int]]
) -> Iterator[list[tuple[Int64, Int32, Int32]]]:
    """For each shard of this rank and each rank: a first row, lengths of rows, and their items."""
    while shards:
        indptr, indices = shards.pop(0)
        n_rows, found = len(indptr) - 1, []
        for start, end in bounds:
            here, there = (min(max(0, int(row) - first), n_rows) for row in (start, end))
            lengths = np.diff(indptr[here : there + 1]).astype(np.int32)
            found.append((np.array([first + here]), lengths, indices[indptr[here] : indptr[there]]))
        yield found
        first += n_rows


class _Stretches:
    """Arrays to be taken from in their order, and let go as soon as they are used up."""

    def __init__(self, arrays: list[Int32]) -> None:
        self._arrays = arrays

    def take(self, size: int) -> NDArray[np.int32]:
        """Copy the next so many elements."""
        out = np.empty(size, np.int32)
        filled = 0
        while filled < size:
            piece = self._arrays[0][: size - filled]
            out[filled : filled + len(piece)] = piece
            filled += len(piece)
            rest = self._arrays.pop(0)[len(piece) :]
            if len(rest):
                self._arrays.insert(0, rest)
        return out


class FrequentRows(NamedTuple):
    """What is left of a rank's rows when rare users and items are dropped."""

    shards: list[Shard]
    users: Mask
    """Which of the users that this rank had."""
    items: Mask
    """Which of all items."""
    item_counts: Int64
    """How many pairs each of the items has that are left, on all ranks."""


def drop_rare(
    shards: list[Shard], n_items: int, options: ReadOptions, comm: Communicator
) -> FrequentRows:
    """Drop users and items with too few pairs, or none, as :func:`limelight.read` does."""
    count = partial(_count, shards, comm=comm)
    users = np.ones(sum(len(indptr) - 1 for indptr, _ in shards), dtype=bool)
    items = np.ones(n_items, dtype=bool)
    found = int(count(users, items)[1].sum())
    if options.core is not None:
        users, items = core_of(count, users, items, options.core, partial(all_agree, comm))
    elif options.min_user is not None or options.min_item is not None:
        users, items = frequent(
            count, users, items, options.min_user, options.min_item, options.filter_order
        )
    by_user, by_item = count(users, items)
    if not by_item.any():
        raise none_left(found)
    users, items = by_user > 0, by_item > 0
    return FrequentRows(_keep(shards, by_user, items), users, items, by_item[items])


def _count(
    shards: list[Shard], users: Mask, items: Mask, *, comm: Communicator
) -> tuple[Int64, Int64]:
    """Count the pairs of this rank's users, and of all items, of which both are kept."""
    by_item, counts, start = np.zeros(len(items), np.int64), [], 0
    for indptr, indices in shards:
        end = start + len(indptr) - 1
        of_users, of_items = count_rows(indptr, indices, users[start:end], items)
        counts.append(of_users)
        by_item += of_items
        start = end
    return np.concatenate(counts), all_reduce_counts(comm, by_item)


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
