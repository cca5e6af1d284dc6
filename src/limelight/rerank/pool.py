"""Who could be shown what, and how relevant it would be: what re-rankers choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from limelight._native import kernels
from limelight.data.candidates import MEMORY, Block, Candidates
from limelight.data.pair_keys import cut_rows
from limelight.data.pair_sorter import PairSorter
from limelight.data.scratch import MemoryArray, ScratchArray
from limelight.recommend.candidate_ranking import CandidateRanking
from limelight.recommend.topk import Lists, batches, empty_lists

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from limelight._arrays import Float32, Int32
    from limelight.recommend.ranking import Ranking

_PAIRS = 1 << 22
"""How many candidates are looked at together, which bounds what a sweep holds."""
_ROWS = 4096
"""How many users are searched for at once."""
_MOST_PAIRS = 1 << 29
"""How many candidates are kept for the users of a model, unless told otherwise."""
_FEWEST, _MOST = 500, 4000
"""How many each of them has, at least and at most."""


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

    Relevance is worked out once and kept in memory, or in a scratch file if it would not fit.

    Parameters
    ----------
    candidates
        Of all users. They must stay open as long as this is used.
    law
        Gives relevance.
    memory
        How many bytes of relevance may be held.
    folder
        Where scratch files live; the system's place for temporary files, unless given.
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
        self._crowds: dict[int, kernels.Crowd] = {}
        # Twice in memory, here and there, would be once too often.
        self._keeps = 3 * 4 * n_pairs <= memory
        for rows in self.blocks:
            block = candidates.block(rows.start, rows.stop)
            self._stored.write(int(candidates.indptr[rows.start]), law(block))

    def crowd(self, rows: slice) -> kernels.Crowd:
        """Return a block of users as the kernels see it."""
        if rows.start in self._crowds:
            return self._crowds[rows.start]
        indptr, items = self.candidates.items_of(rows.start, rows.stop)
        crowd = kernels.Crowd(indptr, items, self.relevance(rows), self.n_items)
        if self._keeps:
            self._crowds[rows.start] = crowd
        return crowd

    def relevance(self, rows: slice) -> Float32:
        """Return the relevance of all candidates of a block of users."""
        first, last = self.candidates.indptr[[rows.start, rows.stop]].tolist()
        relevance = np.empty(last - first, dtype=np.float32)
        self._stored.read_into(first, relevance)
        return relevance

    def chosen(self, places: Int32) -> Iterator[Chosen]:
        """Look up lists of places, block by block."""
        for rows in self.blocks:
            block, held = self.candidates.block(rows.start, rows.stop), places[rows]
            is_there = held >= 0
            at = (block.indptr[:-1, None] + held)[is_there]
            ids, scores = empty_lists(*held.shape)
            relevance = np.zeros(held.shape, dtype=np.float32)
            ids[is_there], scores[is_there] = block.items[at], block.scores[at]
            relevance[is_there] = self.relevance(rows)[at]
            yield Chosen(rows, ids, scores, relevance)

    def lists(self, places: Int32) -> Lists:
        """Return lists of places as lists of items with their scores."""
        lists = empty_lists(*places.shape)
        for rows, ids, scores, _ in self.chosen(places):
            lists.ids[rows], lists.scores[rows] = ids, scores
        return lists

    def own_places(self, k: int) -> Int32:
        """Return everybody's own list: her first candidates."""
        ranks = np.arange(k, dtype=np.int32)
        return np.where(ranks < self.candidates.counts[:, None], ranks, np.int32(-1))

    def close(self) -> None:
        """Let go of relevance and of what was kept ready; the candidates stay open."""
        self._crowds.clear()
        self._stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stage(
    ranking: Ranking,
    width: int | None = None,
    *,
    memory: int = MEMORY,
    folder: str | os.PathLike[str] | None = None,
) -> Candidates:
    """Keep the first items of everybody's ranking as candidates.

    Parameters
    ----------
    ranking
        Who ranks what. The candidates of a :class:`CandidateRanking` are returned as they are.
    width
        How many items to keep for each user. Unless given, all of a small catalogue; of a large one
        500 to 4,000, the fewer the more users there are.
    memory, folder
        As for :func:`limelight.data.read_candidates`.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.Popularity().fit(ll.marketplace(50, 20, 300).interactions)
    >>> stage(model.ranking(), width=5)
    Candidates(50 users x 20 items, 250 pairs, in memory)
    """
    if isinstance(ranking, CandidateRanking) and ranking.candidates is not None:
        return ranking.candidates
    if width is None:
        width = int(np.clip(_MOST_PAIRS // max(ranking.n_users, 1), _FEWEST, _MOST))
    width = min(width, ranking.n_items)
    sorter = PairSorter(memory, folder)
    try:
        counts = np.zeros(ranking.n_users, dtype=np.int64)
        for rows in batches(ranking.n_users, _ROWS):
            users = np.arange(rows.start, rows.stop)
            ids, scores = ranking.top(users, width)
            row, column = np.nonzero(ids >= 0)
            counts[rows] = (ids >= 0).sum(axis=1)
            sorter.add(users[row].astype(np.int32), ids[row, column], scores[row, column])
        _, stored = sorter.finish()
    except BaseException:
        sorter.close()
        raise
    indptr = np.append(0, np.cumsum(counts))
    users, items = np.arange(ranking.n_users), np.arange(ranking.n_items)
    return Candidates(indptr, stored, users, items)
