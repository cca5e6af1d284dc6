"""What re-rankers choose from: the candidates of all users, and how relevant each is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, cast

import numpy as np

from limelight._native import kernels, resolve_threads
from limelight.data.candidates.candidates import MEMORY, Block, Candidates
from limelight.data.candidates.storage import MemoryArray, ScratchArray
from limelight.data.rows import cut_rows, pair_numbers, row_numbers
from limelight.recommend.ranking import empty_lists

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import DTypeLike

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight.data.candidates.storage import Stored
    from limelight.metrics.lists import Lists

_PAIRS = 1 << 21
"""How many candidates are looked at together, which bounds what a sweep holds."""


class Law(Protocol):
    """Gives candidates their relevance, the same whoever else is in the block."""

    def __call__(self, block: Block) -> Float32:
        """Return the relevance of some users' candidates."""


class Chosen(NamedTuple):
    """Lists of a block of users."""

    rows: slice
    ids: Int32
    """Item numbers, padded with -1."""
    scores: Float32
    """Padded with -inf."""
    relevance: Float32
    """Padded with 0."""


def ascending(places: Int32) -> Int32:
    """Return lists of places in ascending order, as the kernels take them; padding stays behind.

    Examples
    --------
    >>> ascending(np.array([[2, 0, -1]], dtype=np.int32))
    array([[ 0,  2, -1]], dtype=int32)
    """
    unsigned = np.sort(places.view(np.uint32), axis=1)  # -1 is the largest
    return unsigned.view(np.int32)


class Pool:
    """Candidates in blocks of users, each with its relevance.

    Places are in the order of relevance, the best first, and candidates of equal relevance in the
    order of their scores. Relevance is worked out once by a law and kept in memory or, if it takes
    more bytes than ``memory``, in a scratch file; so is the order, where it is not that of the
    scores. The candidates must stay open as long as this is used.
    """

    def __init__(
        self,
        candidates: Candidates,
        law: Law,
        *,
        memory: int = MEMORY,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.candidates, self.law = candidates, law
        self.n_users, self.n_items = candidates.n_users, candidates.n_items
        self.blocks = list(cut_rows(candidates.indptr, _PAIRS))
        n_pairs = candidates.n_pairs
        self._memory, self._folder = memory, folder
        self._stored = self._room(np.float32, 1)
        self._order: Stored | None = None
        self._ranked: dict[int, kernels.RankedCandidates] = {}
        # The kernels' form of a block repeats its items and relevance. It is kept from sweep to
        # sweep only where both copies fit.
        self._keeps = 3 * 4 * n_pairs <= memory
        for rows in self.blocks:
            self._keep(rows, law(candidates.block(rows.start, rows.stop)))

    def _room(self, dtype: DTypeLike, number: int) -> Stored:
        """Make room for four bytes a candidate, for the first time or the second."""
        n_pairs = self.candidates.n_pairs
        if number * 4 * n_pairs <= self._memory:
            return MemoryArray(np.empty(n_pairs, dtype=dtype))
        return ScratchArray(self._folder, dtype)

    def _keep(self, rows: slice, relevance: Float32) -> None:
        """Keep the relevance of a block, and its order where relevance rises along the scores."""
        starts = self.candidates.indptr[rows.start : rows.stop + 1]
        first, indptr = int(starts[0]), starts - starts[0]
        users = row_numbers(indptr)
        rises = (np.diff(relevance) > 0) & (np.diff(users) == 0)
        if rises.any():
            if self._order is None:
                self._order = self._room(np.int32, 2)
                for earlier in self.blocks[: self.blocks.index(rows)]:
                    self._keep_order(earlier, None)
            relevance, order = np.array(relevance), np.empty(len(relevance), dtype=np.int32)
            kernels.sort_rows(indptr, relevance, order=order, threads=resolve_threads(0))
            self._keep_order(rows, order)
        elif self._order is not None:
            self._keep_order(rows, None)
        self._stored.write(first, relevance)

    def _keep_order(self, rows: slice, order: Int32 | None) -> None:
        """Keep where the candidate of each place stands among her user's scores."""
        starts = self.candidates.indptr[rows.start : rows.stop + 1]
        if order is None:
            users = row_numbers(starts - starts[0])
            order = (np.arange(starts[0], starts[-1]) - starts[users]).astype(np.int32)
        cast("Stored", self._order).write(int(starts[0]), order)

    def _order_of(self, rows: slice) -> Int32 | None:
        if self._order is None:
            return None
        first, last = self.candidates.indptr[[rows.start, rows.stop]].tolist()
        order = np.empty(last - first, dtype=np.int32)
        self._order.read_into(first, order)
        return order

    def items_of(self, rows: slice) -> tuple[Int64, Int32]:
        """Copy the items of a block: where each user's candidates start, and items by place."""
        indptr, items = self.candidates.items_of(rows.start, rows.stop)
        if (order := self._order_of(rows)) is not None:
            items = items[indptr[row_numbers(indptr)] + order]
        return indptr, items

    def ranked(self, rows: slice) -> kernels.RankedCandidates:
        """Return the candidates of a block of users as the kernels take them."""
        if rows.start in self._ranked:
            return self._ranked[rows.start]
        indptr, items = self.items_of(rows)
        found = kernels.RankedCandidates(indptr, items, self.relevance(rows), self.n_items)
        if self._keeps:
            self._ranked[rows.start] = found
        return found

    def relevance(self, rows: slice) -> Float32:
        """Return the relevance of all candidates of a block of users."""
        first, last = self.candidates.indptr[[rows.start, rows.stop]].tolist()
        relevance = np.empty(last - first, dtype=np.float32)
        self._stored.read_into(first, relevance)
        return relevance

    def chosen(self, places: Int32) -> Iterator[Chosen]:
        """Look up lists of places, block by block."""
        for rows in self.blocks:
            held, starts = places[rows], self.candidates.indptr[rows.start : rows.stop + 1]
            is_there = held >= 0
            at = (starts[:-1, None] + held)[is_there]
            ids, scores = empty_lists(*held.shape)
            relevance, span = np.zeros(held.shape, np.float32), (int(starts[0]), int(starts[-1]))
            relevance[is_there] = self._stored.pick(at, *span)
            if self._order is not None:
                first = np.broadcast_to(starts[:-1, None], held.shape)[is_there]
                at = first + self._order.pick(at, *span)
            ids[is_there], scores[is_there] = self.candidates.pick(at, rows.start, rows.stop)
            yield Chosen(rows, ids, scores, relevance)

    def lists(self, places: Int32) -> Lists:
        """Return lists of places as lists of items with their scores."""
        lists = empty_lists(*places.shape)
        for rows, ids, scores, _ in self.chosen(places):
            lists.ids[rows], lists.scores[rows] = ids, scores
        return lists

    def places_of(self, ids: Int32) -> Int32:
        """Find lists of items among the candidates; the places of each list ascend."""
        places = np.full(ids.shape, -1, dtype=np.int32)
        for rows in self.blocks:
            indptr, items = self.items_of(rows)
            keys = pair_numbers(row_numbers(indptr), items, self.n_items)
            order = np.argsort(keys)
            row, column = np.nonzero(ids[rows] >= 0)
            wanted = pair_numbers(row, ids[rows][row, column], self.n_items)
            at = order[np.searchsorted(keys, wanted, sorter=order)]
            # Padding sorts behind every place.
            found = np.full(ids[rows].shape, np.iinfo(np.int32).max, dtype=np.int32)
            found[row, column] = at - indptr[row]
            found.sort(axis=1)
            places[rows] = np.where(found == np.iinfo(np.int32).max, -1, found)
        return places

    def own_places(self, k: int) -> Int32:
        """Return everybody's own list: her first candidates by score, in this order."""
        ranks = np.arange(k, dtype=np.int32)
        own = np.where(ranks < self.candidates.counts[:, None], ranks, np.int32(-1))
        for rows in self.blocks if self._order is not None else []:
            order, starts = self._order_of(rows), self.candidates.indptr[rows.start : rows.stop + 1]
            users = row_numbers(starts - starts[0])
            at = np.flatnonzero(cast("Int32", order) < k)
            places = (at - (starts - starts[0])[users[at]]).astype(np.int32)
            own[rows.start + users[at], cast("Int32", order)[at]] = places
        return own

    def fingerprint(self) -> str:
        """Digest who has what candidates, and how relevant they are."""
        found = hashlib.blake2b(digest_size=8)
        found.update(np.array([self.n_users, self.n_items], dtype="<i8").tobytes())
        for rows in self.blocks:
            indptr, items = self.items_of(rows)
            for array in (indptr, items, self.relevance(rows)):
                found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def close(self) -> None:
        """Free relevance and blocks for the kernels; the candidates stay open."""
        self._ranked.clear()
        self._stored.close()
        if self._order is not None:
            self._order.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
