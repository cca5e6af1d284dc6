"""Who asks for a list, and what ranks the catalogue for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from limelight.recommend.histories import take_columns, take_rows
from limelight.recommend.topk import ItemIndex, Lists, empty_lists

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._arrays import Float32, Int32, Int64
    from limelight._native._kernels import Csr


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

    Parameters
    ----------
    item_vectors
        One row an item.
    user_vectors
        Gives the vectors of users by their rows.
    n_users
        How many users there are.
    hidden
        Items that are never listed, one row a user.
    threads
        How many threads a search may use.
    items
        The only items to list; all, unless given.

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
        items: Int32 | None = None,
    ) -> None:
        self.n_users, self.n_items = n_users, len(item_vectors)
        self._item_vectors, self._user_vectors = item_vectors, user_vectors
        self._hidden, self._threads, self._items = hidden, threads, items
        self._index = ItemIndex(item_vectors if items is None else item_vectors[items], threads)

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users."""
        hidden = None if self._hidden is None else take_rows(self._hidden, users)
        if self._items is None:
            return self._index.search(self._user_vectors(users), k, hidden)
        if hidden is not None:
            hidden = take_columns(hidden, self._items)
        ids, scores = self._index.search(self._user_vectors(users), k, hidden)
        # The padding is -1, which finds the last element.
        return Lists(np.append(self._items, np.int32(-1))[ids], scores)

    def among(self, items: Int32) -> VectorRanking:
        """Return the ranking of these items alone."""
        return VectorRanking(
            self._item_vectors,
            self._user_vectors,
            n_users=self.n_users,
            hidden=self._hidden,
            threads=self._threads,
            items=items,
        )


class RandomRanking:
    """Every user ranks the items in an order of her own, drawn by seed and row number.

    Parameters
    ----------
    users
        The row number of each user, which draws her order.
    n_items
        How many items there are.
    hidden
        Items that are never listed, one row a user.
    seed
        Of the orders.
    items
        The only items to list; all, unless given.

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
