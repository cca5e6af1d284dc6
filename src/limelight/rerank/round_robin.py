"""Handing out copies of items in turns, without ever holding users x items scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._native import kernels
from limelight.recommend.topk import batches, empty_lists
from limelight.rerank.picks import Picks

if TYPE_CHECKING:
    from limelight._arrays import Int32, Int64
    from limelight.recommend.ranking import Ranking

_BATCH = 4096
"""How many users are searched for at once, which bounds what a search holds beside the windows."""
_FEWEST = 256
"""How many at least; a search lays out the items in stock, which must pay."""
_NEARLY_EMPTY = 16
"""A window is filled again with others if fewer than one in so many of its items are left."""


class RoundRobin:
    """Users take turns; each takes the best item in stock that she does not hold.

    Every user has a window: her next best items of those in stock when it was filled. Stock only
    falls, so an item that a window has passed never comes back. When the user whose turn it is has
    an empty window, it is filled again from what is in stock, together with those of the users
    who come next and have little left. The outcome does not depend on how wide windows are.

    Parameters
    ----------
    ranking
        Who ranks what.
    order
        Who takes the turns of a round. Users who can be given nothing at all take none.
    copies
        How many copies there are of every item.
    k
        How many items a user can be given, at most.
    width
        How many items a window has; more than k.

    Attributes
    ----------
    refills, searches
        How many windows were filled again, and in how many searches.
    """

    def __init__(self, ranking: Ranking, order: Int32, copies: int, *, k: int, width: int) -> None:
        self._ranking, self._copies, self._k, self._width = ranking, copies, k, width
        n_users = ranking.n_users
        self._windows = empty_lists(n_users, width)
        self._next, self._stop = np.zeros((2, n_users), dtype=np.int32)
        self._complete = np.zeros(n_users, dtype=np.bool_)
        self._stock = np.full(ranking.n_items, copies, dtype=np.int32)
        self._own = empty_lists(n_users, k)
        self._picks = empty_lists(n_users, k)
        self.refills = self.searches = 0
        for rows in batches(n_users, _BATCH):
            self._fill(ranking, np.arange(rows.start, rows.stop))
            for own, window in zip(self._own, self._windows, strict=True):
                own[rows] = window[rows, :k]
        self._order = order[self._stop[order] > 0]

    def play(self) -> Picks:
        """Play until the copies are gone, all have k items, or somebody can take nothing."""
        last = min(self._copies * self._ranking.n_items, len(self._order) * self._k)
        game = kernels.RoundRobin(
            self._order,
            self._stock,
            ids=self._windows.ids,
            scores=self._windows.scores,
            next=self._next,
            stop=self._stop,
            complete=self._complete,
            picks=self._picks.ids,
            pick_scores=self._picks.scores,
        )
        turn, most = game.play(0, last), _BATCH
        while turn < last and not self._complete[self._order[turn % len(self._order)]]:
            users = game.nearly_empty(turn, last, max(1, self._width // _NEARLY_EMPTY), most)
            in_stock = np.flatnonzero(self._stock > 0).astype(np.int32)
            self._fill(self._ranking.among(in_stock), users)
            self.searches += 1
            self.refills += len(users)
            start, turn = turn, game.play(turn, last)
            # Where all want the same few items, a window is stale before many have had their turn.
            most = min(_BATCH, max(_FEWEST, 2 * (turn - start)))
        return Picks(self._picks, self._own, turn)

    def _fill(self, ranking: Ranking, users: Int64) -> None:
        ids, scores = ranking.top(users, self._width)
        self._windows.ids[users], self._windows.scores[users] = ids, scores
        self._next[users], self._stop[users] = 0, (ids >= 0).sum(axis=1)
        self._complete[users] = self._stop[users] < self._width
