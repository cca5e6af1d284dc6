"""Best response: users choose their lists again and again, at prices that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from limelight._base.settings import Settings, check_integer, check_number, hyperparameters, setting
from limelight._native import resolve_threads
from limelight.metrics.lists import position_weights
from limelight.rerank.market.market import Market, OwnListSurvey
from limelight.rerank.methods import register
from limelight.rerank.reranker import PoolConfig, Reranker, RerankerState
from limelight.rerank.welfare import LOG, Welfare, WelfareName, as_welfare

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32
    from limelight.data.candidates.candidates import Candidates
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Pool


_LONGEST = 1000
"""How long lists are at most, where their length has to be told from their exposure."""
_COOLING = (4.0, 2.5, 1.6, 1.0)
"""Strengths of thorough lists, as multiples of the given one. Users first choose at too large a
strength and then at smaller ones, which ends at better lists than a start from own lists."""


@dataclass(frozen=True, kw_only=True)
class SubsidyConfig(Settings):
    """How strongly items are subsidised, and for what."""

    strength: float = setting(
        0.1, "How much exposure counts against relevance; 0 gives the plain lists."
    )
    welfare: Welfare | WelfareName = setting(LOG, "What shared exposure is worth.")


@dataclass(frozen=True, kw_only=True)
class MarketConfig(PoolConfig, SubsidyConfig):
    """The settings of re-rankers in which items are subsidised."""

    def check_own_settings(self) -> None:
        """Check that welfare and relevance are known."""
        as_welfare(self.welfare)
        PoolConfig.check_own_settings(self)

    def market(
        self,
        pool: Pool,
        k: int,
        survey: OwnListSurvey | None = None,
        *,
        by_place: bool = False,
        offsets: Float64 | None = None,
    ) -> Market:
        """Make a market with these settings."""
        check_integer("k", k, least=1)
        return Market(
            pool,
            k,
            as_welfare(self.welfare),
            threads=resolve_threads(self.num_threads),
            seed=self.random_state,
            survey=survey,
            by_place=by_place,
            offsets=offsets,
        )


@dataclass(frozen=True, kw_only=True)
class BestResponseConfig(MarketConfig):
    """The settings of :class:`BestResponse`."""

    sweeps: int = setting(
        3,
        "How often everybody chooses; for thorough lists, at each of four strengths.",
        at_least=1,
    )
    thorough: bool = setting(
        # Users first choose at higher strengths, which then fall, and help is what one more place
        # is worth.
        False,
        "Whether to take four times as long for better lists. It pays where users are few.",
    )


def _length_of(exposure: float) -> int:
    """Tell how long the lists are that give some exposure each, where nobody wrote it down.

    Examples
    --------
    >>> _length_of(position_weights(20).sum())
    20
    """
    given = np.cumsum(position_weights(_LONGEST))
    return int(np.argmin(np.abs(given - exposure))) + 1


@dataclass(frozen=True)
class MarketOutcome:
    """What the last call of ``rerank`` did."""

    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""
    changed: int
    """How many lists changed in the last sweep."""


@dataclass(frozen=True, eq=False)
class MarketState(RerankerState):
    """The exposure that a population's lists give, and what strength is in units of."""

    served: float
    unit: float
    total: float
    exposure: Float64
    merit: Float64
    length: float | None = None
    """Of the lists that the exposure is of."""
    offsets: Float64 | None = None
    """What is added to the relevance of each item, where groups of items have prices."""


class MarketReranker(Reranker):
    """A re-ranker in which items are subsidised, by the exposure of a population that it knows.

    Attributes
    ----------
    exposure_ : float64 array
        Of every item, by the lists of the population.
    served_ : float
        How many users it is of.
    survey_ : OwnListSurvey
        What strength is in units of: what the own lists of the population came to.
    length_ : int
        Of the lists.
    offsets_ : float64 array or None
        What is added to the relevance of each item, where groups of items have prices.
    """

    state_type = MarketState
    config: MarketConfig
    exposure_: Float64
    served_: float
    survey_: OwnListSurvey
    length_: int
    offsets_: Float64 | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it knows a population."""
        return hasattr(self, "exposure_")

    def know(self, exposure: Float64, served: float, survey: OwnListSurvey, k: int) -> Self:
        """Serve beside so many users, whose lists of length k gave some exposure."""
        self.exposure_, self.served_, self.survey_, self.length_ = exposure, served, survey, k
        return self

    def _remember(self, market: Market, users: float | None = None) -> Self:
        """Know whom a market served; they count for so many users, as they are by default."""
        ledger = market.ledger
        served = ledger.served if users is None else float(users)
        exposure = ledger.exposure * (served / max(ledger.served, 1.0))
        return self.know(exposure, served, market.survey, len(ledger.weights))

    def state(self) -> RerankerState:
        """Return who was served so far."""
        if not self.is_settled:
            return RerankerState()
        survey, length = self.survey_, float(self.length_)
        return MarketState(
            self.served_, *survey[:2], self.exposure_, survey.merit, length, self.offsets_
        )

    def restore(self, state: MarketState, n_items: int) -> None:
        """Go on from where another one was."""
        if not state.is_empty:
            exposure = state.array("exposure", (n_items,)).astype(np.float64)
            self.exposure_, self.served_ = np.maximum(exposure, 0), state.number("served")
            merit = state.array("merit", (n_items,)).astype(np.float64)
            self.survey_ = OwnListSurvey(state.number("unit"), state.number("total"), merit)
            self.length_ = _length_of(exposure.sum() / max(self.served_, 1.0))
            if state.length is not None:
                check_number("length", state.length, above=0)
                self.length_ = int(state.length)
            if state.offsets is not None:
                self.offsets_ = state.array("offsets", (n_items,)).astype(np.float64)

    def reset(self) -> None:
        """Forget who was served."""
        for name in ("exposure_", "served_", "survey_", "length_"):
            self.__dict__.pop(name, None)

    def _market(self, pool: Pool, k: int, *, by_place: bool = False) -> Market:
        """Make the market in which users choose, beside the population if there is one."""
        if not self.is_settled:
            return self.config.market(pool, k, by_place=by_place, offsets=self.offsets_)
        survey = self.survey_._replace(total=self.survey_.total * self._ratio(k))
        return self.config.market(pool, k, survey, by_place=by_place, offsets=self.offsets_)

    def _ratio(self, k: int) -> float:
        """Return how much exposure a list of length k gives, beside one of the population."""
        if k == self.length_:
            return 1.0
        return float(position_weights(k).sum() / position_weights(self.length_).sum())


@register(BestResponseConfig)
class BestResponse(MarketReranker):
    """Makes the lists of many users together, at the best trade-off known.

    Everybody starts with her own list. In random order users choose again: an item's subsidy is
    what exposure is worth to it, which falls with every list that shows it. Each takes the k
    candidates of the largest relevance plus subsidy, in the order of their relevance. It is a game
    in which everybody's choice serves relevance and welfare together, and it settles; three sweeps
    are close.

    Once it knows a population, by :meth:`settle`, it serves whoever comes as a part of that: all
    others keep their lists, so that one user, a hundred or all of them get lists that give the
    exposure of the population together.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.best_response.BestResponseConfig`, by name.

    Attributes
    ----------
    outcome_ : MarketOutcome
        What the last call of :meth:`rerank` gave up, and how settled it is.

    Examples
    --------
    >>> import limelight as ll
    >>> market = ll.marketplace(600, 100, 9000)
    >>> split = ll.split_users(market.interactions, validation=50, test=100)
    >>> model = ll.IALS(factors=8).fit(split.train)
    >>> fair = ll.BestResponse(strength=0.3).over(model)
    >>> plain, shared = (ll.evaluate(m, split.test, k=10) for m in (model, fair))
    >>> shared["gini@10"] < plain["gini@10"]
    True
    """

    method = "best-response"
    config: BestResponseConfig
    outcome_: MarketOutcome
    __init__ = hyperparameters(BestResponseConfig)

    def settle(self, ranking: Ranking | Candidates, k: int, *, users: float | None = None) -> Self:
        """Know the users of a ranking, so that whoever comes is served as one of them.

        Parameters
        ----------
        ranking
            Who ranks what: all users, or a sample.
        k
            Length of the lists.
        users
            How many users they stand for; as many as they are, unless given.
        """
        check_integer("k", k, least=1)
        self.reset()
        with self.pool(ranking) as pool:
            return self._remember(self._settled(pool, k), users)

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Let everybody choose until lists are about settled; without strength nothing changes."""
        places = self._settled(pool, k).ledger.places
        return places if self.config.strength else pool.own_places(k)

    def _settled(self, pool: Pool, k: int) -> Market:
        market = self._market(pool, k, by_place=self.config.thorough)
        market.ledger.open()
        own, changed = market.ledger.relevance(), 0
        if self.is_settled:
            others = max(self.served_ - pool.n_users, 0.0) / max(self.served_, 1.0)
            market.ledger.exposure += others * self._ratio(k) * self.exposure_
            market.ledger.served = max(self.served_, float(pool.n_users))
        for factor in _COOLING if self.config.thorough else (1.0,):
            for _ in range(self.config.sweeps):
                changed = market.sweep(factor * self.config.strength)
        loss = 1 - market.ledger.relevance() / own if own else 0.0
        self.outcome_ = MarketOutcome(loss, changed)
        return market


@register(MarketConfig)
class Online(MarketReranker):
    """Serves users one after the other, each once, knowing only who came before.

    It is one pass of :class:`BestResponse` in which nobody chooses again. Its state is the exposure
    of every item, and how many users were served; calls of :meth:`rerank` go on from there.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.best_response.MarketConfig`, by name.

    Strength is in units of what the own lists of the first users came to, who should be many: warm
    up before single requests are served.

    Examples
    --------
    >>> import limelight as ll
    >>> market = ll.marketplace(600, 100, 9000)
    >>> split = ll.split_users(market.interactions, validation=50, test=100)
    >>> model = ll.IALS(factors=8).fit(split.train)
    >>> online = ll.Online(strength=0.3).warm_up(model.ranking(split.validation.history), k=10)
    >>> first, second = split.test.history[:60], split.test.history[60:]
    >>> for histories in (first, second):
    ...     ids, scores = online.rerank(model.ranking(histories), k=10)
    >>> online.served_
    110.0
    """

    method, serves = "online", "stream"
    config: MarketConfig
    __init__ = hyperparameters(MarketConfig)

    def warm_up(
        self, ranking: Ranking | Candidates, k: int, *, users: float | None = None
    ) -> Online:
        """Start with the exposure that other users, such as yesterday's, would have given.

        Parameters
        ----------
        ranking
            Who ranks what.
        k
            Length of the lists.
        users
            How many users that exposure shall count for: the more, the longer it is remembered.
            Unless given, so many that every item could be shown once.
        """
        check_integer("k", k, least=1)
        with self.pool(ranking) as pool:
            return self.warm_up_from(pool, k, users=users)

    def warm_up_from(self, pool: Pool, k: int, *, users: float | None = None) -> Online:
        """Start as :meth:`warm_up` does, from a pool that stays open."""
        if users is None:
            users = min(float(pool.n_users), max(1.0, pool.n_items / k))
        check_number("users", users)
        self.reset()
        return self._remember(self._served(pool, k), users)

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Serve the users in the order of the rows, after those who were served before."""
        market = self._served(pool, k)
        self._remember(market)
        return market.ledger.places if self.config.strength else pool.own_places(k)

    def _served(self, pool: Pool, k: int) -> Market:
        market = self._market(pool, k)
        if self.is_settled:
            market.resume(self._ratio(k) * self.exposure_, self.served_)
        market.serve(self.config.strength)
        return market
