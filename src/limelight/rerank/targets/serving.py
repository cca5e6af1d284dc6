"""Controls whose re-rankers go on to serve: over all users of a pool, and then over anybody."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from limelight.recommend.candidates import sample_users
from limelight.rerank.market.grouped import GroupedMarket
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.targets.controls import BestResponseControl, PoolControl

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float64, Int32
    from limelight.data.groups import Groups
    from limelight.data.interactions import Ids
    from limelight.rerank.market.pool import Law
    from limelight.rerank.methods.market_config import GroupAccountsReranker
    from limelight.rerank.reranker import Reranker
    from limelight.rerank.targets.controls import SearchContext
    from limelight.rerank.targets.groups import Wishes
    from limelight.rerank.targets.providers import ProvidersOf
    from limelight.rerank.targets.search import Trial
    from limelight.rerank.welfare import WelfareName

    Kind = TypeVar("Kind", bound=GroupAccountsReranker)

Serve = Literal["batch", "stream", "stateless"]
"""Many users together, one after the other, or by machines that share nothing."""
SERVES: tuple[Serve, ...] = ("batch", "stream", "stateless")
GroupsOf: TypeAlias = "Callable[[Ids], tuple[Groups, Wishes]]"
"""Tells which of some items are in which groups, and what shares these may have."""
_FIRST_SWEEPS, _SWEEPS = 5, 3
"""How often users choose where prices of groups follow, at the first strength and at later ones."""
_HOW = ("order", "thorough")
"""Settings of best response that a search has to know."""
_KNOWN = 10_000
"""How many users, at most, find prices that serve anybody."""


@dataclass(frozen=True)
class Served:
    """How users are served: the way, what a candidate is worth, and what shared exposure is."""

    serve: Serve
    law: Law
    welfare: WelfareName = "log"
    settings: dict[str, Any] = field(default_factory=dict)
    """Further settings of the re-ranker."""
    groups: GroupsOf | None = None
    """Which of some items are in which groups, and what shares these may have, if that is asked."""

    providers: ProvidersOf | None = None
    """Which of some items are whose, where exposure is to be shared among providers."""

    def control(self, context: SearchContext) -> ServingControl:
        """Return the control of this way over the users of a pool."""
        if self.providers is not None:
            providers = self.providers(np.asarray(context.pool.candidates.item_ids))
            context = replace(context, providers=providers)
        kinds = _CONTROLS if self.groups is None else _GROUPED
        found: ServingControl = kinds[self.serve](context, self)
        return found


class ServingControl(PoolControl):
    """Makes the lists of a population, and what serves any part of it."""

    served: Served

    @abstractmethod
    def reranker(self, strength: float, places: Int32, users: float) -> Reranker:
        """Return what serves others as one of a pool's users, who chose some places.

        They stand for so many ``users``.
        """

    def missed(self, strength: float) -> list[Any]:
        """Return the groups whose wishes do not hold at a strength that was tried."""
        del strength
        return []

    def _of(self, kind: type[Kind], strength: float, **more: Any) -> Kind:
        """Make a re-ranker of a strength, for providers if these are to share exposure."""
        known = {"strength": strength, "relevance": self.served.law, **self.served.settings, **more}
        found, providers = kind(**known), self.context.providers
        return found if providers is None else providers.helped_by(found)


class BatchControl(BestResponseControl, ServingControl):
    """Best response; whoever comes later is served beside the lists of the others."""

    def __init__(self, context: SearchContext, served: Served) -> None:
        how = {name: served.settings[name] for name in _HOW if name in served.settings}
        super().__init__(context, served.welfare, **how)
        self.served = served

    def reranker(self, strength: float, places: Int32, users: float) -> BestResponse:
        """Return best response that knows what the lists give."""
        found: BestResponse = self._of(BestResponse, strength, welfare=self.served.welfare)
        exposure = self._ledger.exposure_of(places) * (users / max(self.context.pool.n_users, 1))
        return found.know(exposure, users, self._market.survey, self.context.k)


class GroupedControl(BatchControl):
    """Best response in which groups of items have prices, so that their wishes hold as well."""

    def __init__(self, context: SearchContext, served: Served) -> None:
        super().__init__(context, served)
        assert served.groups is not None
        members, wishes = served.groups(np.asarray(context.pool.candidates.item_ids))
        self.grouped = GroupedMarket(self._market, members, wishes)
        # A search may come back to a strength that it tried before the last one.
        self._prices: dict[float, tuple[Float64, list[Any]]] = {}

    def try_at(self, strength: float) -> Trial:
        """Make everybody's list; at strength 0 groups have prices, too."""
        return self.measured(strength, self._respond(self.context, strength))

    def _respond(self, context: SearchContext, strength: float) -> Int32:
        del context
        fresh = not self.grouped.ledger.served
        self.grouped.settle(strength, _FIRST_SWEEPS if fresh else _SWEEPS)
        self._prices[strength] = self.grouped.offsets, self.grouped.missed
        return self.grouped.ledger.places.copy()

    def reranker(self, strength: float, places: Int32, users: float) -> BestResponse:
        """Return best response that knows what the lists give, and the prices of groups."""
        found = super().reranker(strength, places, users)
        found.offsets_ = self.offsets(strength)
        return found

    def offsets(self, strength: float) -> Float64:
        """Return what the prices of groups add to the relevance of items, at a strength tried."""
        return self._prices[strength][0]

    def missed(self, strength: float) -> list[Any]:
        """Return the groups whose wishes do not hold at a strength that was tried."""
        return self._prices[strength][1]


class StreamControl(ServingControl):
    """Users one after the other, after a warm-up by the same users."""

    def __init__(self, context: SearchContext, served: Served) -> None:
        super().__init__(context, self._serve)
        self.served = served

    def reranker(self, strength: float, places: Int32, users: float) -> Online:
        """Return a stream that is warm, and has served nobody."""
        del places, users
        return self._warm(strength)

    def _warm(self, strength: float) -> Online:
        found: Online = self._of(Online, strength, welfare=self.served.welfare)
        found.offsets_ = self._offsets(strength)
        return found.warm_up_from(self.context.pool, self.context.k)

    def _offsets(self, strength: float) -> Float64 | None:
        """Return what the prices of groups add to the relevance of items."""
        del strength
        return None

    def _serve(self, context: SearchContext, strength: float) -> Int32:
        return self._warm(strength).places_from(context.pool, context.k)


class GroupedStreamControl(StreamControl):
    """A stream at the prices of groups that a batch of the same users finds."""

    def __init__(self, context: SearchContext, served: Served) -> None:
        super().__init__(context, served)
        self._batch = GroupedControl(context, served)

    def try_at(self, strength: float) -> Trial:
        """Serve everybody in turn; at strength 0 groups have prices, too."""
        self._batch.try_at(strength)
        return self.measured(strength, self._serve(self.context, strength))

    def _offsets(self, strength: float) -> Float64 | None:
        return self._batch.offsets(strength)

    def missed(self, strength: float) -> list[Any]:
        """Return the groups whose wishes do not hold for a batch of the same users."""
        return self._batch.missed(strength)


class StatelessControl(ServingControl):
    """Prices that some of the users find, and that serve all of them."""

    def __init__(self, context: SearchContext, served: Served) -> None:
        super().__init__(context, self._serve)
        self.served = served
        self._prices = lru_cache(maxsize=1)(self._find)

    def reranker(self, strength: float, places: Int32, users: float) -> Prices:
        """Return the prices of a strength."""
        del places, users
        return self._prices(strength)

    def _find(self, strength: float) -> Prices:
        pool, k = self.context.pool, self.context.k
        method = self._of(FrankWolfe, strength)
        if pool.n_users <= _KNOWN:
            return Prices(method.mix(pool, k), method.config)
        some = sample_users(pool.candidates, _KNOWN, self.context.seed)
        with some, Pool(some, self.served.law) as known:
            return Prices(method.mix(known, k), method.config)

    def _serve(self, context: SearchContext, strength: float) -> Int32:
        ids = np.asarray(context.pool.candidates.user_ids)
        return self._prices(strength).places_from(context.pool, context.k, user_ids=ids)


_CONTROLS: dict[Serve, type[Any]] = {
    "batch": BatchControl,
    "stream": StreamControl,
    "stateless": StatelessControl,
}
_GROUPED: dict[Serve, type[Any]] = {"batch": GroupedControl, "stream": GroupedStreamControl}
