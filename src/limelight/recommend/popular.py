"""What users without a history are shown: the items that most users have."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import LimelightWarning
from limelight._base.text import count
from limelight.data.rows import row_numbers
from limelight.recommend.fold_in import take_rows
from limelight.recommend.ranking import VectorRanking, empty_lists

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking


class PopularForSome:
    """A ranking in which some users, who have no history, rank by popularity.

    Examples
    --------
    >>> items, users = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    >>> own = VectorRanking(items, users.__getitem__, n_users=3, hidden=None, threads=1)
    >>> shares = np.array([0.1, 0.3, 0.9], dtype=np.float32)
    >>> ranking = PopularForSome.over(own, np.array([1]), shares, hidden=None, threads=1)
    >>> ranking.top(np.arange(3), k=1).ids.ravel()
    array([0, 2, 2], dtype=int32)
    """

    def __init__(self, own: Ranking, popular: Ranking, places: Int64) -> None:
        self.n_users, self.n_items = own.n_users, own.n_items
        self._own, self._popular, self._places = own, popular, places

    @classmethod
    def over(
        cls, own: Ranking, users: Int64, shares: Float32, *, hidden: Csr | None, threads: int
    ) -> PopularForSome:
        """Let these users of a ranking rank by the shares of all users who have each item."""
        places = np.full(own.n_users, -1, dtype=np.int64)
        places[users] = np.arange(len(users))
        popular = VectorRanking(
            shares[:, None],
            lambda rows: np.ones((len(rows), 1), dtype=np.float32),
            n_users=len(users),
            hidden=None if hidden is None else take_rows(hidden, users),
            threads=threads,
        )
        return cls(own, popular, places)

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users."""
        places, found = self._places[users], empty_lists(len(users), k)
        for ranking, rows, at in (
            (self._own, users, places < 0),
            (self._popular, places, places >= 0),
        ):
            if at.any():
                found.ids[at], found.scores[at] = ranking.top(rows[at], k)
        return found

    def among(self, items: Int32) -> PopularForSome:
        """Return the ranking of these items alone."""
        return PopularForSome(self._own.among(items), self._popular.among(items), self._places)


def with_popular(
    own: Ranking,
    known: Csr,
    known_items: NDArray[np.bool_],
    shares: Callable[[], Float32 | None],
    *,
    hidden: Csr | None,
    threads: int,
) -> Ranking:
    """Let users of whose history the model knows nothing rank by popularity, and warn of it.

    Parameters
    ----------
    own
        How a model ranks for all users.
    known
        The history of each user.
    known_items
        Which items the model has learnt something of; others say nothing of their users.
    shares
        Gives the share of the training users who have each item; None if nobody knows.
    hidden
        What must not be shown, one row a user.
    threads
        How many threads to use.
    """
    given = lengths = np.diff(known.indptr)
    if not known_items.all():
        says_something = known_items[known.indices]
        lengths = np.bincount(row_numbers(known.indptr)[says_something], minlength=len(given))
    without = told = np.flatnonzero(lengths == 0)
    if not len(without):
        return own
    if hidden is not None:
        # A user of whom more is hidden than was shown to the model has a history.
        told = without[np.diff(hidden.indptr)[without] <= given[without]]
    verb = "has" if len(told) == 1 else "have"
    start = f"{len(told):,} of {count(own.n_users, 'user')} {verb} no history that the model knows"
    found = shares()
    if found is None:
        # Folders of earlier versions have no counts. The lists of these users hold items in the
        # order of their numbers, or nearly so.
        if len(told):
            _warn(f"{start}, and the model does not know which items are popular: fit it again")
        return own
    if len(told):
        _warn(f"{start}: they get the most popular items")
    return PopularForSome.over(own, without, found, hidden=hidden, threads=threads)


def _warn(message: str) -> None:
    # The place that is shown is where `recommend` was called.
    warnings.warn(message, LimelightWarning, stacklevel=8)
