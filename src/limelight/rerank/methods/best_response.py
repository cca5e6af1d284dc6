"""Best response: users choose their lists again and again, at prices that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limelight._base.errors import DataError
from limelight._base.settings import check_integer, check_number, hyperparameters
from limelight.data.groups import Groups
from limelight.metrics.lists import position_weights
from limelight.rerank.market.market import Market, OwnListSurvey, cooling_plan
from limelight.rerank.methods import register
from limelight.rerank.methods.market_config import (
    AccountsConfig,
    BestResponseConfig,
    GroupAccountsReranker,
)
from limelight.rerank.reranker import RerankerState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64, Int32
    from limelight.data.candidates.candidates import Candidates
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Pool


_LONGEST = 1000
"""How long lists are at most, where their length has to be told from their exposure."""


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
    groups: Mapping[Any, float] | None = None
    """The number of each group, where groups have accounts."""
    members: Float64 | None = None
    """A row for each item and group it belongs to: their numbers, and the weight."""

    def members_of(self, n_items: int) -> Groups | None:
        """Return which items belong to which groups, if groups have accounts."""
        if self.groups is None or self.members is None:
            return None
        rows = self.array("members", (len(self.members), 3)).astype(np.float64)
        items, groups = rows[:, :2].astype(np.int64).T
        bounds = (n_items, len(self.groups))
        inside = all(
            (numbers >= 0).all() and (numbers < bound).all()
            for numbers, bound in zip((items, groups), bounds, strict=True)
        )
        if not inside or not (rows[:, 2] >= 0).all():
            message = f"members are not of {n_items:,} items and {len(self.groups):,} groups"
            raise DataError(message, hint="save the model again")
        return Groups(items, groups, rows[:, 2].copy(), list(self.groups), 0)


class MarketReranker(GroupAccountsReranker):
    """A re-ranker in which items are subsidised, by the exposure of a population that it knows.

    Attributes
    ----------
    exposure_ : float64 array
        Of every item, by the lists of the population.
    served_ : float
        How many users it is of; a stream that starts cold counts its head start as well.
    survey_ : OwnListSurvey
        What strength is in units of: what the own lists of the population came to.
    length_ : int
        Of the lists.
    offsets_ : float64 array or None
        What is added to the relevance of each item, where groups of items have prices.
    """

    state_type = MarketState
    config: AccountsConfig
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
        """Return who was served so far, and whose accounts are kept."""
        known: dict[str, Any] = {}
        if self.groups_ is not None:
            items, groups, weights, names, _ = self.groups_
            known["groups"] = {name: number for number, name in enumerate(names)}
            known["members"] = np.column_stack([items, groups, weights]).astype(np.float64)
        if self.is_settled:
            known |= self.survey_._asdict() | {"served": self.served_, "exposure": self.exposure_}
            known |= {"length": float(self.length_), "offsets": self.offsets_}
        return MarketState.of(known) if known else RerankerState()

    def restore(self, state: MarketState, n_items: int) -> None:
        """Go on from where another one was."""
        if (members := state.members_of(n_items)) is not None:
            self.groups_ = members
        if not state.is_empty and (members is None or state.exposure is not None):
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
        for name in ("exposure_", "served_", "survey_", "length_", "law_"):
            self.__dict__.pop(name, None)

    def _market(self, pool: Pool, k: int, *, by_place: bool = False) -> Market:
        """Make the market in which users choose, beside the population if there is one."""
        survey = None
        if self.is_settled:
            survey = self.survey_._replace(total=self.survey_.total * self._ratio(k))
        known = {"by_place": by_place, "offsets": self.offsets_, **self._accounts(pool.n_items)}
        return self.config.market(pool, k, survey, **known)

    def _ratio(self, k: int) -> float:
        """Return how much exposure a list of length k gives, beside one of the population."""
        if k == self.length_:
            return 1.0
        if self.config.places == "uniform":
            return k / self.length_
        return float(position_weights(k).sum() / position_weights(self.length_).sum())


@register(BestResponseConfig)
class BestResponse(MarketReranker):
    """Makes the lists of many users together, at the best trade-off known.

    Everybody starts with her own list. In random order users choose again: an item's subsidy is
    what exposure is worth to it, which falls with every list that shows it. Each takes the k
    candidates of the largest relevance plus subsidy, in the order that ``order`` says. It is a game
    in which everybody's choice serves relevance and welfare together, and it settles. Subsidies are
    first larger than the strength says and then fall, which ends at better lists.

    Once it knows a population, by :meth:`settle`, it serves whoever comes as a part of that: all
    others keep their lists, so that one user, a hundred or all of them get lists that give the
    exposure of the population together.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.market_config.BestResponseConfig`, by name.

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
        market = self._market(pool, k, by_place=True)
        market.ledger.open()
        own = market.ledger.relevance()
        if self.is_settled:
            others = max(self.served_ - pool.n_users, 0.0) / max(self.served_, 1.0)
            market.ledger.exposure += others * self._ratio(k) * self.exposure_
            market.ledger.served = max(self.served_, float(pool.n_users))
        # Beside a population that keeps its lists, prices hardly move, whatever these users choose.
        plan = cooling_plan(self.config.sweeps, thorough=self.config.thorough)
        if self.is_settled:
            plan = ((1.0, False),) * self.config.sweeps
        changed = market.settle(self.config.strength, plan)
        loss = 1 - market.ledger.relevance() / own if own else 0.0
        self.outcome_ = MarketOutcome(loss, changed)
        return market


@register(AccountsConfig)
class Online(MarketReranker):
    """Serves users one after the other, each once, knowing only who came before.

    It is one pass of :class:`BestResponse` in which nobody chooses again. Its state is the exposure
    of every item, and how many users were served; calls of :meth:`rerank` go on from there.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.market_config.AccountsConfig`, by name.

    Strength is in units of what the own lists of the first users came to, who should be many: warm
    up before single requests are served. Without a warm-up all items, or groups, get the same head
    start, because help would otherwise follow the first few lists.

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
    config: AccountsConfig
    __init__ = hyperparameters(AccountsConfig)

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
        self.reset()
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
        else:
            market.start_even(k)
        market.serve(self.config.strength)
        return market
