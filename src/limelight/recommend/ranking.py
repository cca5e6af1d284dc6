"""Rankings of the catalogue for each user: by vectors, by items, at random, or of candidates.

Lists from vectors are exact and made in batches: scores of users x items are never held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from limelight._base.arrays import batches, factor_matrix
from limelight._base.errors import DataError
from limelight._native import kernels
from limelight.data.candidates.candidates import Candidates
from limelight.data.rows import cut_rows, row_starts
from limelight.metrics.lists import Lists
from limelight.recommend.fold_in import take_columns, take_rows
from limelight.recommend.index import ItemIndex
from limelight.solve.problem import as_matrix, padded_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.candidates.candidates import Block


def empty_lists(n_users: int, k: int) -> Lists:
    """Make lists that hold padding only.

    Examples
    --------
    >>> empty_lists(1, 2)
    Lists(ids=array([[-1, -1]], dtype=int32), scores=array([[-inf, -inf]], dtype=float32))
    """
    ids = np.full((n_users, k), -1, dtype=np.int32)
    return Lists(ids, np.full((n_users, k), -np.inf, dtype=np.float32))


@runtime_checkable
class Ranking(Protocol):
    """Users in rows, each of whom ranks the items of a catalogue in her own way."""

    n_users: int
    n_items: int
    """Of the whole catalogue."""

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users, padded with -1 and -inf."""

    def among(self, items: Int32) -> Self:
        """Return the ranking of these items alone; their numbers, which ascend, stay the same."""


class VectorRanking:
    """Scores are products of user and item vectors.

    ``user_vectors`` gives the vectors of users by their rows. Hidden items, one row a user, are
    never listed. An ``index`` of the items, if there is one, is not made anew.

    Examples
    --------
    >>> items = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    >>> users = np.array([[2.0, 1.0], [0.0, 1.0]], dtype=np.float32)
    >>> ranking = VectorRanking(items, users.__getitem__, n_users=2, hidden=None, threads=1)
    >>> ranking.top(np.array([0]), k=2).ids
    array([[2, 0]], dtype=int32)
    >>> ranking.among(np.array([0, 1], dtype=np.int32)).top(np.array([0]), k=2).ids
    array([[0, 1]], dtype=int32)
    """

    def __init__(
        self,
        item_vectors: Float32,
        user_vectors: Callable[[Int64], Float32],
        *,
        n_users: int,
        hidden: Csr | None,
        threads: int,
        index: ItemIndex | None = None,
    ) -> None:
        self.n_users, self.n_items = n_users, len(item_vectors)
        self._item_vectors, self._user_vectors = item_vectors, user_vectors
        self._hidden, self._threads = hidden, threads
        self._index = ItemIndex(item_vectors, threads) if index is None else index

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users."""
        hidden = None if self._hidden is None else take_rows(self._hidden, users)
        return self._index.search(self._user_vectors(users), k, hidden, self._threads)

    def among(self, items: Int32) -> VectorRanking:
        """Return the ranking of these items alone."""
        return VectorRanking(
            self._item_vectors,
            self._user_vectors,
            n_users=self.n_users,
            hidden=self._hidden,
            threads=self._threads,
            index=ItemIndex(self._item_vectors, self._threads, items),
        )


SCORES = 1 << 25
"""How many scores of users x items are held at a time."""


class ItemWeights(NamedTuple):
    """What every item of a history says of every other: I + matrix diag(gains) - response pulls^T.

    So a history x gives item j the score ``x_j + gains_j (x matrix)_j - pulls_j (x . response)``.
    """

    matrix: Float32
    """Symmetric; one row an item, filled up to a multiple of 16 columns."""
    gains: Float64
    pulls: Float64
    response: Float64


class ItemToItemRanking:
    """Scores are sums over a history of item weights, each times the weight of the interaction.

    ``users`` are rows of the histories. Hidden items, one row a user, are never listed; with
    ``items``, these alone are.

    Examples
    --------
    >>> from limelight.solve.problem import sparse_rows
    >>> matrix = np.zeros((3, 16), dtype=np.float32)
    >>> matrix[:, :3] = [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    >>> histories = sparse_rows(np.array([0, 1]), np.array([0]), 3)
    >>> weights = ItemWeights(matrix, np.ones(3), pulls=np.zeros(3), response=np.zeros(3))
    >>> users = np.array([0])
    >>> ranking = ItemToItemRanking(weights, histories, users, hidden=histories, threads=1)
    >>> ranking.top(users, k=2)
    Lists(ids=array([[1, 2]], dtype=int32), scores=array([[2., 1.]], dtype=float32))
    """

    def __init__(
        self,
        weights: ItemWeights,
        histories: Csr,
        users: Int64,
        *,
        hidden: Csr | None,
        threads: int,
        items: Int32 | None = None,
    ) -> None:
        self.n_users, self.n_items = len(users), len(weights.gains)
        self._weights, self._histories, self._users = weights, histories, users
        self._hidden, self._threads = hidden, threads
        self._items = np.arange(self.n_items, dtype=np.int32) if items is None else items
        width = padded_width(len(self._items))
        self._gains, self._pulls = np.zeros((2, width), dtype=np.float32)
        self._gains[: len(self._items)] = weights.gains[self._items]
        self._pulls[: len(self._items)] = weights.pulls[self._items]

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users."""
        lists, width = empty_lists(len(users), k), len(self._gains)
        for rows in batches(len(users), max(1, SCORES // max(1, width))):
            found = self._top(users[rows], min(k, len(self._items)))
            lists.ids[rows, : found.ids.shape[1]] = found.ids
            lists.scores[rows, : found.ids.shape[1]] = found.scores
        return lists

    def _top(self, users: Int64, k: int) -> Lists:
        found = empty_lists(len(users), k)
        if not k:
            return found
        histories = take_rows(self._histories, self._users[users])
        hidden = None if self._hidden is None else take_rows(self._hidden, users)
        sums = factor_matrix(len(users), len(self._gains))
        kernels.item_sums(
            histories, self._weights.matrix, columns=self._items, out=sums, threads=self._threads
        )
        kernels.rank_sums(
            sums,
            history=take_columns(histories, self._items),
            hidden=None if hidden is None else take_columns(hidden, self._items),
            gains=self._gains,
            pulls=self._pulls,
            offsets=np.asarray(as_matrix(histories) @ self._weights.response, np.float32),
            ids=found.ids,
            scores=found.scores,
            threads=self._threads,
        )
        # The padding, -1, picks the last element, which is -1 again.
        return Lists(np.append(self._items, np.int32(-1))[found.ids], found.scores)

    def among(self, items: Int32) -> ItemToItemRanking:
        """Return the ranking of these items alone."""
        return ItemToItemRanking(
            self._weights,
            self._histories,
            self._users,
            hidden=self._hidden,
            threads=self._threads,
            items=items,
        )


class RandomRanking:
    """Every user ranks the items in an order of her own, drawn by seed and row number.

    Hidden items, one row a user, are never listed; with ``items``, these alone are.

    Examples
    --------
    >>> ranking = RandomRanking(np.array([7, 9]), n_items=4, hidden=None, seed=0)
    >>> np.sort(ranking.top(np.array([0, 1]), k=4).ids)
    array([[0, 1, 2, 3],
           [0, 1, 2, 3]], dtype=int32)
    """

    def __init__(
        self,
        users: Int64,
        *,
        n_items: int,
        hidden: Csr | None,
        seed: int,
        items: Int32 | None = None,
    ) -> None:
        self.n_users, self.n_items = len(users), n_items
        self._users, self._hidden, self._seed, self._items = users, hidden, seed, items

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users."""
        found = empty_lists(len(users), k)
        for row, user in enumerate(users):
            generator = np.random.default_rng([self._seed, self._users[user]])
            draws = generator.random(self.n_items, dtype=np.float32)
            if self._hidden is not None:
                start, stop = self._hidden.indptr[user : user + 2]
                draws[self._hidden.indices[start:stop]] = -np.inf
            items = np.arange(self.n_items, dtype=np.int32) if self._items is None else self._items
            items = items[draws[items] >= 0]
            best = items[np.argsort(-draws[items], kind="stable")[:k]]
            found.ids[row, : len(best)], found.scores[row, : len(best)] = best, draws[best]
        return found

    def among(self, items: Int32) -> RandomRanking:
        """Return the ranking of these items alone."""
        return RandomRanking(
            self._users, n_items=self.n_items, hidden=self._hidden, seed=self._seed, items=items
        )


_PAIRS = 1 << 22
"""How many candidates are looked at together, which bounds what a search holds."""


class CandidateRanking:
    """Every user ranks her candidates by score, and nothing else.

    The candidates must stay open as long as this is used. With ``items``, these alone are listed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.candidates.candidates import read_candidates
    >>> table = pa.table({"user_id": [1, 1, 2], "item_id": [0, 7, 7], "score": [0.5, 0.9, 0.1]})
    >>> ranking = CandidateRanking(read_candidates(table))
    >>> ranking.top(np.array([0, 1]), k=2).ids
    array([[ 1,  0],
           [ 1, -1]], dtype=int32)
    >>> ranking.among(np.array([0], dtype=np.int32)).top(np.array([0]), k=2).ids
    array([[ 0, -1]], dtype=int32)
    """

    def __init__(self, candidates: Candidates, *, items: Int32 | None = None) -> None:
        self.n_users, self.n_items = candidates.n_users, candidates.n_items
        self._candidates = candidates
        self._is_listed: np.ndarray | None = None
        if items is not None:
            self._is_listed = np.zeros(self.n_items, dtype=np.bool_)
            self._is_listed[items] = True

    @property
    def candidates(self) -> Candidates | None:
        """The candidates, unless some of their items are not to be listed."""
        return self._candidates if self._is_listed is None else None

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users; only their candidates are read."""
        lists = empty_lists(len(users), k)
        for rows in cut_rows(row_starts(self._candidates.counts_of(users)), _PAIRS):
            block = self._listed(self._candidates.take(users[rows]))
            for found, values in ((lists.ids, block.items), (lists.scores, block.scores)):
                _put_first(values, block.indptr, found[rows])
        return lists

    def among(self, items: Int32) -> CandidateRanking:
        """Return the ranking of these items alone."""
        return CandidateRanking(self._candidates, items=items)

    def _listed(self, block: Block) -> Block:
        """Leave out what is not to be listed."""
        if self._is_listed is None:
            return block
        is_listed = self._is_listed[block.items]
        ends = np.append(0, np.cumsum(is_listed))
        return block._replace(
            indptr=ends[block.indptr], items=block.items[is_listed], scores=block.scores[is_listed]
        )


def _put_first(values: Int32 | Float32, indptr: Int64, out: np.ndarray) -> None:
    """Put the first values of each row into a row of `out`, as many as fit."""
    place = np.arange(out.shape[1])
    is_there = place < np.diff(indptr)[:, None]
    out[is_there] = values[(indptr[:-1, None] + place)[is_there]]


def as_ranking(source: Any) -> Ranking:
    """Take candidates for a ranking, and refuse what is neither.

    Examples
    --------
    >>> as_ranking([[1, 2]])
    Traceback (most recent call last):
    limelight._base.errors.DataError: a ranking or candidates are wanted, not list
    ...
    """
    if isinstance(source, Candidates):
        return CandidateRanking(source)
    if isinstance(source, Ranking):
        return source
    message = f"a ranking or candidates are wanted, not {type(source).__name__}"
    raise DataError(message, hint="pass model.ranking(...) or limelight.data.read_candidates(...)")


def own_lists(ranking: Ranking, k: int) -> Lists:
    """Return the first k items of everybody's own ranking."""
    own = empty_lists(ranking.n_users, k)
    for rows in batches(ranking.n_users, 8192):
        own.ids[rows], own.scores[rows] = ranking.top(np.arange(rows.start, rows.stop), k)
    return own
