"""Best response: users choose their lists again and again, at prices that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.settings import Settings, check_integer, check_number, hyperparameters, setting
from limelight._native import resolve_threads
from limelight.rerank.market.market import Market, OwnListSurvey
from limelight.rerank.methods import register
from limelight.rerank.reranker import PoolConfig, Reranker, RerankerState
from limelight.rerank.welfare import LOG, Welfare, WelfareName, as_welfare

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32
    from limelight.data.candidates.candidates import Candidates
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Pool


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
        self, pool: Pool, k: int, survey: OwnListSurvey | None = None, *, by_place: bool = False
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


@dataclass(frozen=True)
class MarketOutcome:
    """What the last call of ``rerank`` did."""

    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""
    changed: int
    """How many lists changed in the last sweep."""


@register(BestResponseConfig)
class BestResponse(Reranker):
    """Makes the lists of many users together, at the best trade-off known.

    Everybody starts with her own list. In random order users choose again: an item's subsidy is
    what exposure is worth to it, which falls with every list that shows it. Each takes the k
    candidates of the largest relevance plus subsidy, in the order of their relevance. It is a game
    in which everybody's choice serves relevance and welfare together, and it settles; three sweeps
    are close.

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

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Let everybody choose until lists are about settled."""
        market = self.config.market(pool, k, by_place=self.config.thorough)
        market.ledger.open()
        own, changed = market.ledger.relevance(), 0
        for factor in _COOLING if self.config.thorough else (1.0,):
            for _ in range(self.config.sweeps):
                changed = market.sweep(factor * self.config.strength)
        loss = 1 - market.ledger.relevance() / own if own else 0.0
        self.outcome_ = MarketOutcome(loss, changed)
        return market.ledger.places


@dataclass(frozen=True, eq=False)
class OnlineState(RerankerState):
    """The exposure that users got so far, and what strength is in units of."""

    served: float
    unit: float
    total: float
    exposure: Float64
    merit: Float64


@register(MarketConfig)
class Online(Reranker):
    """Serves users one after the other, each once, knowing only who came before.

    It is one pass of :class:`BestResponse` in which nobody chooses again. Its state is the exposure
    of every item, and how many users were served; calls of :meth:`rerank` go on from there.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.best_response.MarketConfig`, by name.

    Attributes
    ----------
    exposure_ : float64 array
        Of every item so far.
    served_ : float
        How many users it is of.
    survey_ : OwnListSurvey
        What strength is in units of: what the own lists of the first users came to, who should be
        many. Warm up before single requests are served.

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
    state_type = OnlineState
    config: MarketConfig
    exposure_: Float64
    served_: float
    survey_: OwnListSurvey
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
        if users is None:
            users = min(float(ranking.n_users), max(1.0, ranking.n_items / k))
        check_number("users", users)
        self.reset()
        self.rerank(ranking, k)
        self.exposure_ *= users / max(self.served_, 1.0)
        self.served_ = float(users)
        return self

    def state(self) -> RerankerState:
        """Return who was served so far."""
        if not hasattr(self, "exposure_"):
            return RerankerState()
        return OnlineState(self.served_, *self.survey_[:2], self.exposure_, self.survey_.merit)

    def restore(self, state: OnlineState, n_items: int) -> None:
        """Go on from where another one was."""
        if not state.is_empty:
            exposure = state.array("exposure", (n_items,)).astype(np.float64)
            self.exposure_, self.served_ = np.maximum(exposure, 0), state.number("served")
            merit = state.array("merit", (n_items,)).astype(np.float64)
            self.survey_ = OwnListSurvey(state.number("unit"), state.number("total"), merit)

    def reset(self) -> None:
        """Forget who was served."""
        for name in ("exposure_", "served_", "survey_"):
            self.__dict__.pop(name, None)

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Serve the users in the order of the rows, after those who were served before."""
        market = self.config.market(pool, k, getattr(self, "survey_", None))
        if hasattr(self, "exposure_"):
            market.resume(self.exposure_, self.served_)
        market.serve(self.config.strength)
        self.exposure_, self.served_ = market.ledger.exposure, market.ledger.served
        self.survey_ = market.survey
        return market.ledger.places
