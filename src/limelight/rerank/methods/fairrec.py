"""FairRec: every item in a guaranteed number of lists (Patro et al. 2020).

Copies of items are handed out in turns, without ever holding users x items scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError
from limelight._base.settings import Settings, hyperparameters, setting
from limelight._native import kernels
from limelight.metrics.lists import Lists
from limelight.recommend.ranking import empty_lists, own_lists
from limelight.rerank.methods import register
from limelight.rerank.methods.fairrec_plus import play_envy_free
from limelight.rerank.reranker import RankingReranker

if TYPE_CHECKING:
    from limelight._base.arrays import Int32, Int64
    from limelight.recommend.ranking import Ranking


_FILLED = 1024
"""How many users are filled up at once; each takes k x k comparisons."""
_BATCH = 4096
"""How many users are searched for at once, which bounds what a search holds beside the windows."""
_FEWEST = 256
"""How many at least; a search lays out the items in stock, which must pay."""
_NEARLY_EMPTY = 16
"""A window is filled again with others if fewer than one in so many of its items are left."""


class Picks(NamedTuple):
    """What the first phase handed out."""

    lists: Lists
    """In the order in which it was handed out."""
    own: Lists
    """The first k items of every user's own ranking, which fill up the lists."""
    handed_out: int
    """How many copies were handed out."""


class RoundRobin:
    """Users take turns; each takes the best item in stock that she does not hold.

    Every user has a window: her next best items of those in stock when it was filled. Stock only
    falls, so an item that a window has passed never comes back. When the user whose turn it is has
    an empty window, it is filled again from what is in stock, together with those of the users
    who come next and have little left. The outcome does not depend on how wide windows are.

    ``order`` says who takes the turns of a round; users who can be given nothing at all take none.
    There are so many ``copies`` of every item, or of each item, and a user can be given ``k`` items
    at most. A window has room for ``width`` items, more than k.
    """

    def __init__(
        self, ranking: Ranking, order: Int32, copies: int | Int32, *, k: int, width: int
    ) -> None:
        self._ranking, self._k, self._width = ranking, k, width
        n_users = ranking.n_users
        self._windows = empty_lists(n_users, width)
        self._next, self._stop = np.zeros((2, n_users), dtype=np.int32)
        self._complete = np.zeros(n_users, dtype=np.bool_)
        self._stock = np.full(ranking.n_items, copies, dtype=np.int32)
        self._own = empty_lists(n_users, k)
        self._picks = empty_lists(n_users, k)
        for rows in batches(n_users, _BATCH):
            self._fill(ranking, np.arange(rows.start, rows.stop))
            for own, window in zip(self._own, self._windows, strict=True):
                own[rows] = window[rows, :k]
        self._order = order[self._stop[order] > 0]

    def play(self) -> Picks:
        """Play until the copies are gone, all have k items, or somebody can take nothing."""
        last = min(int(self._stock.sum()), len(self._order) * self._k)
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
            start, turn = turn, game.play(turn, last)
            # Where all want the same few items, these are gone after a few turns, and windows that
            # were filled for many users are filled in vain. So fewer are filled the next time.
            most = min(_BATCH, max(_FEWEST, 2 * (turn - start)))
        return Picks(self._picks, self._own, turn)

    def _fill(self, ranking: Ranking, users: Int64) -> None:
        ids, scores = ranking.top(users, self._width)
        self._windows.ids[users], self._windows.scores[users] = ids, scores
        self._next[users], self._stop[users] = 0, (ids >= 0).sum(axis=1)
        self._complete[users] = self._stop[users] < self._width


def fill_up(picks: Picks, *, by_score: bool) -> Lists:
    """Fill up what was handed out with each user's own best items.

    At most h of a user's own first k items are among the h that she was handed, so those k are
    enough to fill a list of k. Lists are sorted by score, equal scores by number; or else what was
    handed out comes first.

    Examples
    --------
    >>> handed = Lists(np.array([[4, -1]], np.int32), np.array([[0.1, -np.inf]], np.float32))
    >>> own = Lists(np.array([[2, 0]], np.int32), np.array([[0.9, 0.5]], np.float32))
    >>> fill_up(Picks(handed, own, 1), by_score=True).ids
    array([[2, 4]], dtype=int32)
    """
    n_users, k = picks.lists.ids.shape
    lists = empty_lists(n_users, k)
    for rows in batches(n_users, _FILLED):
        handed, own = (Lists(part.ids[rows], part.scores[rows]) for part in picks[:2])
        repeated = (own.ids[:, :, None] == handed.ids[:, None, :]).any(axis=2)
        ids = np.hstack([handed.ids, np.where(repeated, -1, own.ids)])
        scores = np.hstack([handed.scores, own.scores])
        _keep(ids, scores, np.argsort(ids < 0, axis=1, kind="stable")[:, :k], lists, rows)
        if by_score:
            ids, scores = lists.ids[rows], lists.scores[rows]
            _keep(ids, scores, np.lexsort((ids, -scores)), lists, rows)
    return lists


def _keep(ids: np.ndarray, scores: np.ndarray, places: np.ndarray, out: Lists, rows: slice) -> None:
    """Put the entries at some places of each row into lists."""
    chosen = np.take_along_axis(ids, places, axis=1)
    out.scores[rows] = np.where(chosen < 0, -np.inf, np.take_along_axis(scores, places, axis=1))
    out.ids[rows] = chosen


@dataclass(frozen=True, kw_only=True)
class FairRecConfig(Settings):
    """The settings of :class:`FairRec`."""

    alpha: float = setting(
        1.0,
        "Share, from 0 to 1, of an even distribution of all places that every item is guaranteed.",
        at_most=1,
        hint="1 shares all places evenly; nobody can have more",
    )
    guarantee: float | None = setting(
        None,
        "In how many lists every item should stand, instead of a share; 2.4 is 2 lists, and 3 for "
        "40 % of the items, drawn at random.",
    )
    order: Literal["relevance", "forced"] = setting(
        "relevance",
        "What comes first in a list: the highest score, or what the guarantee put there.",
    )
    envy_free: bool = setting(
        False,
        "Whether users who like each other's items better swap them after every round (FairRec+).",
    )
    candidates: int | None = setting(
        None,
        "How many items are kept ready for each user; memory and speed depend on it, lists do not.",
        at_least=2,
    )
    random_state: int = setting(
        0, "Seed of the order in which users take turns, and of who gets a fraction."
    )

    def check_own_settings(self) -> None:
        """Refuse a guarantee that is given twice."""
        if self.guarantee is not None and self.alpha != 1:
            message = f"alpha and guarantee were both given: {self.alpha!r}, {self.guarantee!r}"
            raise ConfigError(message, hint="alpha is a share of the places, guarantee a count")


def largest_guarantee(n_users: int, k: int, n_items: int) -> float:
    """Return the largest guarantee: all places of so many lists, shared evenly.

    Examples
    --------
    >>> largest_guarantee(500, 20, 4000)
    2.5
    """
    return n_users * min(k, n_items) / n_items if n_items else 0.0


@dataclass(frozen=True)
class FairRecOutcome:
    """What the last call of :meth:`FairRec.rerank` did."""

    guarantee: float
    """In how many lists every item should stand, on average."""
    copies: int
    """How many places that takes: the guarantee times the number of items, rounded."""
    handed_out: int
    """How many of them were handed out."""

    @property
    def kept(self) -> bool:
        """Whether every item stands in as many lists as guaranteed, because all was handed out."""
        return self.handed_out == self.copies


@register(FairRecConfig)
class FairRec(RankingReranker):
    """Guarantees every item a number of lists, and shares the rest by relevance.

    There are l = floor(alpha m k / n) copies of each of the n items for the lists of m users.
    Users take turns, in random order, and take the item that they like best of those in stock that
    they do not hold. That ends when the copies are gone or somebody can take none of those left.
    Then everybody's list is filled up with her own best items. With ``guarantee``, l is what it
    says; of a fraction, floor(l) copies of all items, and one more of so many, drawn at random,
    that there are round(l n) in all.

    Where nothing is hidden from anybody, all items but at most k - 1 get their l lists, and all
    items do if the copies ran out; see ``outcome_``.

    Parameters are the fields of :class:`~limelight.rerank.methods.fairrec.FairRecConfig`, by name.

    Attributes
    ----------
    outcome_ : FairRecOutcome
        The guarantee of the last call of :meth:`rerank`, and how much of it was handed out.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.IALS(factors=8, epochs=5).fit(data)
    >>> fair = ll.FairRec(alpha=0.5)
    >>> ids, scores = fair.rerank(model.ranking(), k=10)
    >>> fair.outcome_
    FairRecOutcome(guarantee=15, copies=1500, handed_out=1500)
    >>> int(np.bincount(ids.ravel()).min())
    15
    """

    method, strength_setting = "fairrec", "guarantee"
    config: FairRecConfig
    outcome_: FairRecOutcome
    __init__ = hyperparameters(FairRecConfig)

    def _lists(self, ranking: Ranking, k: int) -> Lists:
        places = min(k, ranking.n_items)
        guarantee = self._guarantee(ranking, places)
        picks = self._hand_out(ranking, guarantee, places)
        copies = round(guarantee * ranking.n_items)
        self.outcome_ = FairRecOutcome(guarantee, copies, picks.handed_out)
        filled = fill_up(picks, by_score=self.config.order == "relevance")
        lists = empty_lists(ranking.n_users, k)
        lists.ids[:, :places], lists.scores[:, :places] = filled
        return lists

    def _guarantee(self, ranking: Ranking, places: int) -> float:
        n_users, n_items = ranking.n_users, ranking.n_items
        # In fractions: 0.3 is three tenths here, and not the nearest binary number below.
        share = Fraction(str(float(self.config.alpha)))
        if self.config.guarantee is None:
            return int(share * n_users * places / n_items) if n_items else 0
        guarantee = self.config.guarantee
        if guarantee > largest_guarantee(n_users, places, n_items):
            message = (
                f"guarantee is too large for {n_users:,} lists of {places:,} places "
                f"and {n_items:,} items: {guarantee:,}"
            )
            most = 100 * n_users * places // max(n_items, 1) / 100  # not above what is possible
            raise ConfigError(message, hint=f"use at most {most:,g}, more users, or longer lists")
        return int(guarantee) if guarantee == int(guarantee) else guarantee

    def _hand_out(self, ranking: Ranking, guarantee: float, places: int) -> Picks:
        total = round(guarantee * ranking.n_items)
        if total == 0:
            own = own_lists(ranking, places)
            return Picks(empty_lists(*own.ids.shape), own, 0)
        generator = np.random.default_rng(self.config.random_state)
        order = generator.permutation(ranking.n_users).astype(np.int32)
        copies = np.full(ranking.n_items, int(guarantee), dtype=np.int32)
        more = total - int(copies.sum())
        if more:
            # A permutation, so that a larger fraction gives to the same items and to others.
            copies[generator.permutation(ranking.n_items)[:more]] += 1
        if self.config.envy_free:
            return Picks(*play_envy_free(ranking, order, copies, k=places))
        width = min(self._width(places), ranking.n_items)
        return RoundRobin(ranking, order, copies, k=places, width=width).play()

    def _width(self, places: int) -> int:
        if self.config.candidates is None:
            return max(4 * places, 128)
        # A window must have room for what its user holds already, and something new.
        return max(self.config.candidates, places + 1)
