"""What re-rankers choose from: the candidates of all users, and how relevant each is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from limelight._native import kernels
from limelight.data.candidates.candidates import MEMORY, Block, Candidates
from limelight.data.candidates.storage import MemoryArray, ScratchArray
from limelight.data.rows import cut_rows, pair_numbers, row_numbers
from limelight.recommend.ranking import empty_lists

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from limelight._base.arrays import Float32, Int32
    from limelight.metrics.lists import Lists

_PAIRS = 1 << 21
"""How many candidates are looked at together, which bounds what a sweep holds."""


class Law(Protocol):
    """Gives candidates their relevance, which must not rise along a user's candidates."""

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


class Pool:
    """Candidates in blocks of users, each with its relevance.

    Relevance is worked out once by a law and kept in memory or, if it takes more bytes than
    ``memory``, in a scratch file. The candidates must stay open as long as this is used.
    """

    def __init__(
        self,
        candidates: Candidates,
        law: Law,
        *,
        memory: int = MEMORY,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.candidates = candidates
        self.n_users, self.n_items = candidates.n_users, candidates.n_items
        self.blocks = list(cut_rows(candidates.indptr, _PAIRS))
        n_pairs = candidates.n_pairs
        self._stored: MemoryArray | ScratchArray
        if 4 * n_pairs <= memory:
            self._stored = MemoryArray(np.empty(n_pairs, dtype=np.float32))
        else:
            self._stored = ScratchArray(folder, np.float32)
        self._ranked: dict[int, kernels.RankedCandidates] = {}
        # The kernels' form of a block repeats its items and relevance. It is kept from sweep to
        # sweep only where both copies fit.
        self._keeps = 3 * 4 * n_pairs <= memory
        for rows in self.blocks:
            block = candidates.block(rows.start, rows.stop)
            self._stored.write(int(candidates.indptr[rows.start]), law(block))

    def ranked(self, rows: slice) -> kernels.RankedCandidates:
        """Return the candidates of a block of users as the kernels take them."""
        if rows.start in self._ranked:
            return self._ranked[rows.start]
        indptr, items = self.candidates.items_of(rows.start, rows.stop)
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
            relevance = np.zeros(held.shape, dtype=np.float32)
            ids[is_there], scores[is_there] = self.candidates.pick(at, rows.start, rows.stop)
            relevance[is_there] = self._stored.pick(at, int(starts[0]), int(starts[-1]))
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
            indptr, items = self.candidates.items_of(rows.start, rows.stop)
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
        """Return everybody's own list: her first candidates."""
        ranks = np.arange(k, dtype=np.int32)
        return np.where(ranks < self.candidates.counts[:, None], ranks, np.int32(-1))

    def fingerprint(self) -> str:
        """Digest who has what candidates, and how relevant they are."""
        found = hashlib.blake2b(digest_size=8)
        found.update(np.array([self.n_users, self.n_items], dtype="<i8").tobytes())
        for rows in self.blocks:
            indptr, items = self.candidates.items_of(rows.start, rows.stop)
            for array in (indptr, items, self.relevance(rows)):
                found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def close(self) -> None:
        """Free relevance and blocks for the kernels; the candidates stay open."""
        self._ranked.clear()
        self._stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
