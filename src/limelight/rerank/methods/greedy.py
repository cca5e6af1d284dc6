"""xQuAD and calibrated popularity: less popular items by each user's own taste for them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import rel_entr

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import Settings, check_number, hyperparameters, setting
from limelight.data.interactions import Interactions, as_interactions
from limelight.data.rows import row_numbers
from limelight.metrics.popularity import item_counts, popularity_bins
from limelight.recommend.ranking import empty_lists
from limelight.rerank.reranker import RankingReranker

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight._base.arrays import Float64, Int64
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking


def bin_shares(counts: Float64, bins: Int64, n_bins: int) -> Float64:
    """Return the share of all interactions that every bin holds.

    Examples
    --------
    >>> bin_shares(np.array([6.0, 3.0, 1.0]), np.array([0, 1, 1]), 2)
    array([0.6, 0.4])
    """
    return np.asarray(np.bincount(bins, weights=counts, minlength=n_bins) / counts.sum())


def user_tastes(histories: Any, bins: Int64, shares: Float64) -> Float64:
    """Return the share of every bin in each user's history, users x bins.

    A user without a history is taken to like bins by the given shares.

    Examples
    --------
    >>> from scipy import sparse
    >>> histories = sparse.csr_matrix([[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]])
    >>> user_tastes(histories, np.array([0, 1, 1, 1]), np.array([0.8, 0.2]))
    array([[0.25, 0.75],
           [1.  , 0.  ],
           [0.8 , 0.2 ]])
    """
    data = as_interactions(histories)
    if data.n_items != len(bins):
        message = f"profiles have {data.n_items:,} columns, popularity has {len(bins):,} items"
        raise DataError(message, hint="use the same item numbering in both")
    cells = row_numbers(data.indptr).astype(np.int64) * len(shares) + bins[data.indices]
    counts = np.bincount(cells, minlength=data.n_users * len(shares))
    counts = counts.reshape(data.n_users, len(shares))
    totals = counts.sum(axis=1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1), shares)


_ROWS = 8192
"""How many users are re-ranked at once."""
_ROUNDING = 1e-12
"""Values this close count as equal, so that lists do not depend on the last bit of a logarithm."""
_CUTS = {"xquad": (0.8,), "xquad_binary": (0.8,), "calibrated": (0.2, 0.8)}
"""Head and tail for xQuAD; head, middle and tail for calibrated popularity."""


@dataclass(frozen=True, kw_only=True)
class GreedyConfig(Settings):
    """The settings of :class:`Greedy`, beside popularity and profiles."""

    method: Literal["xquad", "xquad_binary", "calibrated"] = setting(
        "xquad", "xQuAD (its smooth form, or the binary one), or calibrated popularity."
    )
    strength: float = setting(
        0.5,
        "From 0, relevance alone, to 1, popularity bins alone; the papers' lambda.",
        at_most=1,
        hint="1 leaves relevance out of account",
    )
    candidates: int = setting(
        100,
        "How many of each user's first items may enter her list; at least as many as it has "
        "places.",
        at_least=1,
    )
    cuts: tuple[float, ...] | None = setting(
        None,
        "Where bins end, as shares of all interactions: 0.8 (xQuAD), 0.2 and 0.8 (calibrated).",
    )

    def check_own_settings(self) -> None:
        """Check the ends of the bins."""
        _check_cuts(self.bin_ends)

    @property
    def bin_ends(self) -> tuple[float, ...]:
        """The cuts, or else the method's own."""
        return _CUTS[self.method] if self.cuts is None else self.cuts


def _check_cuts(cuts: object) -> None:
    hint = "(0.8,) ends the head at 80 % of all interactions"
    if not isinstance(cuts, tuple):
        message = f"cuts must be a tuple of numbers: {cuts!r}"
        raise ConfigError(message, hint=hint)
    for cut in cuts:
        check_number("cuts", cut, above=0)
    if not all(low < high for low, high in pairwise((*cuts, 1))):
        message = f"cuts must ascend and stay below 1: {cuts!r}"
        raise ConfigError(message, hint=hint)


_configure = hyperparameters(GreedyConfig)


class Greedy(RankingReranker):
    """Fills each list place by place, weighing relevance against the popularity of what it shows.

    Items fall into bins by popularity: a head and a tail, or more. p_c is the share of bin c in a
    user's profile, S her list so far, and s_i her score of item i, scaled so that her candidates
    run from 0 to 1. The next place goes to the candidate with the largest (1 - strength) s_i +
    strength g_c, where c is the bin of i and g_c is

    - ``"xquad"``: p_c (1 - share of c in S), the share being 0 as long as S is empty;
    - ``"xquad_binary"``: p_c if S has no item of c, and 0 if it has;
    - ``"calibrated"``: minus the Jensen-Shannon divergence, in bits, between p and the shares of
      the bins in S with i.

    Equal values go to the item that ranks higher. Lists stay in the order in which they were
    filled, so that the first places of a list are the list that fewer places would give; the
    scores, which are those of the ranking, need not descend. Nobody's list depends on who else is
    served.

    Parameters
    ----------
    popularity : array, Interactions or sparse matrix
        How many interactions every item has, by number, or the interactions to count.
    profiles : Interactions or sparse matrix, optional
        What each user of the ranking chose so far, one row each, in its order. Users without any
        are taken to like every bin by its share of all interactions; without profiles, all are.
    **settings
        The fields of :class:`~limelight.rerank.methods.greedy.GreedyConfig`.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.Popularity().fit(data)
    >>> counts = np.bincount(data.indices)
    >>> for strength in (0, 0.8, 1):
    ...     greedy = ll.Greedy(popularity=counts, profiles=data, strength=strength)
    ...     ids, scores = greedy.rerank(model.ranking(), k=10)
    ...     print(strength, round(counts[ids].mean()))
    0 89
    0.8 84
    1 82
    """

    serves = "alone"
    config: GreedyConfig

    def __init__(
        self, *, popularity: ArrayLike | Interactions, profiles: Any = None, **settings: Any
    ) -> None:
        _configure(self, **settings)
        counts, cuts = item_counts(popularity), self.config.bin_ends
        self._bins = popularity_bins(counts, cuts)
        self._shares = bin_shares(counts, self._bins, len(cuts) + 1)
        self._tastes: Float64 | None = None
        if profiles is not None:
            self._tastes = user_tastes(profiles, self._bins, self._shares)

    def _lists(self, ranking: Ranking, k: int) -> Lists:
        tastes = self._tastes_of(ranking)
        width = min(max(k, self.config.candidates), ranking.n_items)
        lists = empty_lists(ranking.n_users, k)
        for rows in batches(ranking.n_users, _ROWS):
            own = ranking.top(np.arange(rows.start, rows.stop), width)
            places = self._fill(own, tastes[rows], k)
            is_filled = places >= 0
            for found, values in ((lists.ids, own.ids), (lists.scores, own.scores)):
                found[rows][is_filled] = np.take_along_axis(values, places, axis=1)[is_filled]
        return lists

    def _tastes_of(self, ranking: Ranking) -> Float64:
        if ranking.n_items != len(self._bins):
            message = f"popularity is of {len(self._bins):,} items, not of {ranking.n_items:,}"
            raise DataError(message, hint="give one number for each item that the ranking has")
        if self._tastes is None:
            return np.broadcast_to(self._shares, (ranking.n_users, len(self._shares)))
        if ranking.n_users != len(self._tastes):
            message = f"profiles are of {len(self._tastes):,} users, not of {ranking.n_users:,}"
            raise DataError(message, hint="give one row for each user of the ranking, in its order")
        return self._tastes

    def _fill(self, own: Lists, tastes: Float64, k: int) -> Int64:
        """Return where in her own ranking the items of each user's new list stand; -1 is padding.

        What an item adds depends on its score and its bin alone. So only the first item of each bin
        that is not in the list yet can be next: the candidates are a queue for every bin.
        """
        n_bins, width = tastes.shape[1], own.ids.shape[1]
        bins = np.where(own.ids >= 0, self._bins[own.ids], n_bins)
        queues = np.argsort(bins, axis=1, kind="stable")
        lengths = np.stack([(bins == each).sum(axis=1) for each in range(n_bins)], axis=1)
        starts = np.cumsum(lengths, axis=1) - lengths
        relevance = (1 - self.config.strength) * _scaled(own)
        taken = np.zeros_like(lengths)
        filled = np.full((len(bins), k), -1)
        for place in range(min(k, width)):
            is_left = taken < lengths
            first = np.take_along_axis(queues, np.minimum(starts + taken, width - 1), axis=1)
            gain = self.config.strength * self._gain(tastes, taken, place)
            value = np.where(is_left, np.take_along_axis(relevance, first, axis=1) + gain, -np.inf)
            is_best = value >= value.max(axis=1, keepdims=True) - _ROUNDING
            chosen = np.where(is_best & is_left, first, width).min(axis=1, keepdims=True)
            filled[:, place] = np.where(chosen < width, chosen, -1)[:, 0]
            taken += is_left & (first == chosen)
        return filled

    def _gain(self, tastes: Float64, taken: Int64, place: int) -> Float64:
        """Return g_c for each user and bin, given how many items of each her list has."""
        if self.config.method == "xquad":
            return tastes * (1 - taken / max(place, 1))
        if self.config.method == "xquad_binary":
            return np.where(taken == 0, tastes, 0)
        with_one_more = (taken[:, None, :] + np.eye(taken.shape[1])) / (place + 1)
        return np.asarray(-_divergence(tastes[:, None, :], with_one_more))


def _scaled(lists: Lists) -> Float64:
    """Scale the scores of each list, whose best comes first, to run from 1 to 0."""
    is_item = lists.ids >= 0
    best = np.where(is_item[:, :1], lists.scores[:, :1], 0).astype(np.float64)
    scores = np.where(is_item, lists.scores, best)
    low = scores.min(axis=1, keepdims=True)
    return np.asarray((scores - low) / np.where(best > low, best - low, 1))


def _divergence(p: Float64, q: Float64) -> Float64:
    """Jensen-Shannon divergence over the last axis, in bits: from 0, the same, to 1."""
    middle = (p + q) / 2
    entropies = rel_entr(p, middle) + rel_entr(q, middle)
    return np.asarray(entropies.sum(axis=-1) / (2 * np.log(2)))
