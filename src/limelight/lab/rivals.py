"""Re-rankers of other authors, written here from their papers, to compare with.

All of them serve users one after the other. Every account (an item, or a provider of items) has a
bonus, which depends on what was shown before. A user is shown the k candidates of the largest score
plus bonus, in the order of their scores. ``strength`` is the weight of fairness in each paper; at 0
everybody gets her own list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import entropy, skew

from limelight.data.rows import cut_rows
from limelight.metrics.lists import position_weights
from limelight.recommend.ranking import empty_lists

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int64
    from limelight.data.candidates.candidates import Candidates
    from limelight.metrics.lists import Lists

_PAIRS = 1 << 21
_HEAD = 0.2  # of the accounts are popular, in CP-Fair
_SMOOTHING = 0.1  # of the mean exposure, in OFFR
_ANCHOR = 0.5  # which account is the norm in ElasticRank: the median
_EVEN = 1e-9


class Traffic(NamedTuple):
    """Who is to be served: what a method may know beforehand."""

    n_users: int
    k: int
    popularity: Float64
    """In how many own lists each account would stand."""


class Rival(ABC):
    """A stream that gives accounts a bonus, and learns from what was shown."""

    def __init__(self, traffic: Traffic, strength: float) -> None:
        self.traffic, self.strength = traffic, strength
        self.n_accounts = len(traffic.popularity)
        self.shown = np.zeros(self.n_accounts)

    @abstractmethod
    def bonus(self, scores: Float64) -> Float64:
        """Return the bonus of every account for a user, whose candidates have these scores."""

    def learn(self, accounts: Int64, scores: Float64) -> None:
        """Take note of a list: whose items it shows, in their order, and their scores."""
        del scores
        np.add.at(self.shown, accounts, 1.0)


class MinRegularizer(Rival):
    """The baseline of Xu et al. (2023): what an account has beyond the poorest one is a malus.

    bonus = strength (min(e) - e) / (m / n), for e lists so far, m users and n accounts.
    """

    def bonus(self, scores: Float64) -> Float64:
        """Return how far each account is beyond the poorest."""
        del scores
        beyond = self.shown.min() - self.shown
        return np.asarray(self.strength * beyond * self.n_accounts / self.traffic.n_users)


class PMMF(Rival):
    """P-MMF: provider max-min fairness by online mirror descent (Xu et al., WWW 2023).

    It maximises the scores plus strength x min(e / even share). Its dual has a price for every
    account, here without a cap on what one may have, so that prices are subsidies s >= 0 with
    mean(s) <= strength. After every user s rises by a step for what the account should have had,
    falls for what it had, and is projected back. The gradient has momentum.
    """

    _MOMENTUM = 0.5

    def __init__(self, traffic: Traffic, strength: float) -> None:
        super().__init__(traffic, strength)
        self.subsidy, self._gradient = np.zeros((2, self.n_accounts))
        # An account that is never shown reaches the bound long before the last user comes.
        self._step = strength * self.n_accounts / (traffic.k * np.sqrt(max(traffic.n_users, 1)))

    def bonus(self, scores: Float64) -> Float64:
        """Return the subsidies."""
        del scores
        return self.subsidy

    def learn(self, accounts: Int64, scores: Float64) -> None:
        """Move the subsidies by what was shown."""
        del scores
        due = np.full(self.n_accounts, self.traffic.k / self.n_accounts)
        np.subtract.at(due, accounts, 1.0)
        self._gradient = self._MOMENTUM * self._gradient + (1 - self._MOMENTUM) * due
        moved = np.maximum(self.subsidy + self._step * self._gradient, 0)
        self.subsidy = project(moved, self.strength * self.n_accounts)


def project(values: Float64, total: float) -> Float64:
    """Return the nearest values from 0 up whose sum is at most so much.

    Examples
    --------
    >>> project(np.array([3.0, 1.0, 0.0]), 2.0)
    array([2., 0., 0.])
    """
    threshold = 0.0
    while (excess := np.maximum(values - threshold, 0).sum() - total) > _EVEN * (total + 1):
        # Newton's method: the sum falls by the number of values above the threshold, and that
        # number falls, so it comes from below and ends after few steps.
        threshold += excess / (values > threshold).sum()
    return np.maximum(values - threshold, 0)


class CPFair(Rival):
    """CP-Fair: popular against other producers (Naghiaei et al., SIGIR 2022), greedy.

    It maximises the scores minus strength x |mean exposure of the popular fifth of the accounts -
    that of the others|. Greedily, users are served as long as the popular ones are ahead with a
    bonus for all others.
    """

    def __init__(self, traffic: Traffic, strength: float) -> None:
        super().__init__(traffic, strength)
        n_popular = max(1, round(_HEAD * self.n_accounts))
        self.is_popular = np.zeros(self.n_accounts, dtype=np.bool_)
        self.is_popular[np.argsort(-traffic.popularity, kind="stable")[:n_popular]] = True

    def bonus(self, scores: Float64) -> Float64:
        """Return the strength for accounts of the part that is behind."""
        del scores
        popular = self.shown[self.is_popular].mean()
        others = self.shown[~self.is_popular].mean() if (~self.is_popular).any() else popular
        behind = self.is_popular if popular < others else ~self.is_popular
        return np.where(behind, self.strength, 0.0)


class OFFR(Rival):
    """Fast online ranking with fairness of exposure (Usunier, Do, Dohmatob, FAccT 2022).

    Online Frank-Wolfe on the mean score plus strength x the welfare sum(log(eta + e / mean(e))), of
    exposure e by place: the bonus is the gradient of the welfare at the exposure so far.
    """

    def __init__(self, traffic: Traffic, strength: float) -> None:
        super().__init__(traffic, strength)
        self._weights = position_weights(traffic.k)

    def bonus(self, scores: Float64) -> Float64:
        """Return the gradient."""
        del scores
        mean = self.shown.mean()
        return self.strength / (_SMOOTHING + (self.shown / mean if mean else self.shown))

    def learn(self, accounts: Int64, scores: Float64) -> None:
        """Add exposure by place."""
        del scores
        np.add.at(self.shown, accounts, self._weights[: len(accounts)])


class ElasticRank(Rival):
    """ElasticRank (Xu et al., SIGIR 2025), with the utilities of accounts as their sums of scores.

    For shares v of all utility, that of the median account a, and a tax rate t,
    bonus = strength (a^(1-t) - v^(1-t)) (1 - t) v^-t.
    """

    tax = 0.5

    def __init__(self, traffic: Traffic, strength: float) -> None:
        super().__init__(traffic, strength)
        self.shown += 1.0

    def bonus(self, scores: Float64) -> Float64:
        """Return how far the curved utility of the median is ahead."""
        del scores
        share, t = self.shown / self.shown.sum(), self.tax
        place = int(_ANCHOR * self.n_accounts)
        anchor = np.partition(share, place)[place]
        ahead = anchor ** (1 - t) - share ** (1 - t)
        return np.asarray(self.strength * ahead * (1 - t) * share**-t)

    def learn(self, accounts: Int64, scores: Float64) -> None:
        """Add utility."""
        np.add.at(self.shown, accounts, np.maximum(scores, 0))


class ManifoldRank(ElasticRank):
    """ManifoldRank (of FairDiverse, 2026): a step along the gradient of a generalised mean.

    For utilities v = 1 + the sum of scores shown, and G = sum(v^b), the gradient is
    f = v^(b-1) (1 + (a - 1) v^b / G), scaled to a sum of 1. It enters with the sign of the
    curvature, (a - 1) b v^b + (b - 1) G, times -1. How long a step is depends on the user: the
    wider her scores are spread, which their entropy and skewness tell, the shorter.
    """

    exponents = (-3.0, -1.5)
    """a and b"""
    _SPREAD, _SKEWNESS, _NORM = 0.7, 0.5, 21.0
    _BASE, _LEAST_SCORE = 1.2, 1e-2
    _STEPS = (0.08, 10.0)

    def bonus(self, scores: Float64) -> Float64:
        """Return the step of a user."""
        a, b = self.exponents
        powers = self.shown**b
        total = powers.sum()
        gradient = powers / self.shown * (1 + (a - 1) * powers / total)
        sign = np.sign(a * b * ((a - 1) * b * powers + (b - 1) * total))
        step = -np.sign(a * b) * self.strength * self._length(scores)
        return np.asarray(step * sign * gradient / gradient.sum())

    def _length(self, scores: Float64) -> float:
        own = scores[scores > self._LEAST_SCORE]
        if len(own) == 0:
            return self._STEPS[0]
        spread = entropy(np.exp(own - own.max()), base=self._BASE)
        skewness = skew(own) if own.min() < own.max() else 0.0
        length = self._SPREAD * (spread - self._NORM) - self._SKEWNESS * skewness
        return float(np.clip(length, *self._STEPS))


RIVALS: dict[str, type[Rival]] = {
    "P-MMF": PMMF,
    "CP-Fair": CPFair,
    "min-regularizer": MinRegularizer,
    "OFFR": OFFR,
    "ElasticRank": ElasticRank,
    "ManifoldRank": ManifoldRank,
}
"""By the names that their authors gave them."""


def serve(
    rival: type[Rival], candidates: Candidates, k: int, strength: float, accounts: Int64
) -> Lists:
    """Serve all users in the order of their rows; ``accounts`` has the account of every item.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data import read_candidates
    >>> rows = {"user_id": [1, 1, 2, 2], "item_id": [0, 1, 0, 1], "score": [0.9, 0.8, 0.9, 0.8]}
    >>> candidates = read_candidates(pa.table(rows))
    >>> serve(OFFR, candidates, 1, strength=0.1, accounts=np.arange(2)).ids.ravel()
    array([0, 1], dtype=int32)
    """
    n_accounts = int(accounts.max(initial=-1)) + 1
    lists = empty_lists(candidates.n_users, k)
    popularity = np.zeros(n_accounts)
    stream: Rival | None = None
    for is_served in (False, True):
        for rows in cut_rows(candidates.indptr, _PAIRS):
            indptr, items, scores = candidates.block(rows.start, rows.stop)
            for user in range(rows.stop - rows.start):
                own = slice(indptr[user], indptr[user + 1])
                if stream is None:
                    np.add.at(popularity, accounts[items[own][:k]], 1.0)
                    continue
                found = _serve_one(stream, accounts[items[own]], scores[own], k)
                row = rows.start + user
                lists.ids[row, : len(found)] = items[own][found]
                lists.scores[row, : len(found)] = scores[own][found]
        if not is_served:
            stream = rival(Traffic(candidates.n_users, k, popularity), strength)
    return lists


def _serve_one(stream: Rival, accounts: Int64, scores: Float32, k: int) -> Int64:
    """Return the places of a user's list among her candidates, which the stream learns."""
    values = scores.astype(np.float64)
    total = values + stream.bonus(values)[accounts]
    # Candidates come by score, so that a stable order prefers the higher score among equals.
    found = np.sort(np.argsort(-total, kind="stable")[:k])
    stream.learn(accounts[found], values[found])
    return found
