"""Controls of a model: how strongly its lists are re-ranked, or exposure weighs in training.

A search tries strengths of a control until a target is met. A front measures a control at several
strengths, and :func:`next_strength` chooses each so that it halves the widest gap of the curve.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from limelight.data.candidates.candidates import MEMORY
from limelight.metrics.accumulate import ListAccumulator
from limelight.models.exadmm import ExADMM
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.targets.controls import Control
from limelight.rerank.targets.search import Measure, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence

    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Interactions
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.models.exadmm import ExADMMConfig
    from limelight.rerank.market.pool import Law
    from limelight.rerank.reranker import Reranked, Reranker


_SHORTER = 8
"""A fit that starts from a neighbour has so many times fewer epochs than one from nothing."""
_DOWN = 8.0
"""How much smaller than the smallest strength the next one towards 0 is."""


@dataclass(eq=False)
class RankedUsers:
    """Users, and what a model ranks for them; candidates are made once, at their first use."""

    model: Callable[[], Model]
    """Returns the fitted model."""
    history: Any
    """One row a user."""
    user_ids: Any = None
    """Who they are, where lists may depend on that."""
    width: int | None = None
    """How many candidates each user has; see ``candidates_of``."""
    memory: int = MEMORY
    """How many bytes of relevance may be held."""
    _pool: tuple[Law, Pool] | None = field(default=None, init=False)

    @cached_property
    def ranking(self) -> CandidateRanking:
        """Their candidates, ranked."""
        return CandidateRanking(candidates_of(self.model().ranking(self.history), self.width))

    def own(self, k: int) -> Lists:
        """Return the lists of the model itself."""
        return self.ranking.top(np.arange(self.ranking.n_users), k)

    def pool(self, law: Law) -> Pool:
        """Return their candidates with relevance, which is worked out once for all strengths."""
        if self._pool is None or self._pool[0] != law:
            self.close_pool()
            candidates = candidates_of(self.ranking)
            self._pool = law, Pool(candidates, law, memory=self.memory)
        return self._pool[1]

    def close_pool(self) -> None:
        """Free the relevance, because the next search may use another law of relevance."""
        if self._pool is not None:
            self._pool[1].close()
        self._pool = None

    def close(self) -> None:
        """Free relevance and candidates."""
        self.close_pool()
        if "ranking" in self.__dict__ and self.ranking.candidates is not None:
            self.ranking.candidates.close()


class Judges:
    """The held-out users by whose lists of length k a search decides, and what a model ranks.

    Every one of ``parts`` has the same users, with other items of theirs held out.
    """

    def __init__(self, model: Model, parts: Sequence[HeldOut], k: int) -> None:
        self.k, self._targets = k, [part.targets for part in parts]
        memory = MEMORY // len(parts)
        self.users = [
            RankedUsers(lambda: model, part.history, part.user_ids, memory=memory) for part in parts
        ]
        self._own = [users.own(k) for users in self.users]

    def measure(self, make: Callable[[RankedUsers], Lists]) -> Measure:
        """Measure lists; the loss is the share of the model's own nDCG that they give up."""
        made = [make(users) for users in self.users]
        ndcg, gini, coverage = self._figures(made)
        own, _, _ = self._figures(self._own)
        return Measure(gini, coverage, 1 - ndcg / own if own else 0.0)

    def _figures(self, lists: Sequence[Lists]) -> list[float]:
        """Average nDCG, Gini index and coverage over the parts."""
        found = []
        for targets, made in zip(self._targets, lists, strict=True):
            accumulator = ListAccumulator(targets.shape[1], self.k)
            accumulator.update(made.ids, targets)
            figures = accumulator.result(bounds=False)
            found.append([figures[f"{name}@{self.k}"] for name in ("ndcg", "gini", "coverage")])
        means: list[float] = np.array(found).mean(axis=0).tolist()
        return means


@dataclass(eq=False)
class ModelControl(Control):
    """A way to control a model: makes lists for anybody, and what serves at a strength."""

    most = 1e3
    first: ClassVar[tuple[float, float, float]] = (0.0, 0.1, 3.0)
    """The strengths that a front begins with: none, a middle one and a strong one."""
    name: str
    """What to call it."""
    k: int
    """Length of the lists."""
    judges: Judges = field(init=False)
    """The users whom a search measures."""

    def try_at(self, strength: float) -> Trial:
        """Measure the lists of the users who decide."""
        return Trial(strength, self.judges.measure(lambda users: self.lists(strength, users)))

    @abstractmethod
    def lists(self, strength: float, users: RankedUsers) -> Lists:
        """Make the lists of users at a strength; who was served before makes no difference."""

    @abstractmethod
    def at(self, strength: float) -> Model | Reranked:
        """Return what serves at a strength; whoever was served in a search is forgotten."""

    def trace(self, strength: float) -> Sequence[Any]:
        """Return the records of the fit, where a strength needs one."""
        del strength
        return ()


@dataclass(eq=False)
class RerankControl(ModelControl):
    """Re-rankers of growing strength over one model."""

    model: Callable[[], Model]
    """Returns the fitted model whose lists are re-ranked."""
    make: Callable[..., Reranker]
    """Makes the re-ranker of a ``strength``, ready to serve."""
    _last: tuple[float, Reranker] | None = field(default=None, init=False)

    def lists(self, strength: float, users: RankedUsers) -> Lists:
        """Re-rank what the model ranks for users."""
        if not strength:
            return users.own(self.k)
        reranker = self._reranker(strength)
        known: dict[str, Any] = {"user_ids": users.user_ids} if reranker.by_user else {}
        pool = users.pool(reranker.config.relevance)
        return pool.lists(reranker.places_from(pool, self.k, **known))

    def at(self, strength: float) -> Model | Reranked:
        """Return the model with its re-ranker; at 0, the model itself."""
        return self._reranker(strength).over(self.model()) if strength else self.model()

    def _reranker(self, strength: float) -> Reranker:
        """Return a copy of the re-ranker: a re-ranker that serves changes its memory of users."""
        if self._last is None or self._last[0] != strength:
            self._last = strength, self.make(strength=float(strength))
        return copy.deepcopy(self._last[1])


def _best_response(known: RankedUsers | None, k: int, **settings: Any) -> Reranker:
    del known, k
    method: BestResponse = BestResponse(**settings)
    return method


def _online(known: RankedUsers, k: int, **settings: Any) -> Reranker:
    method: Online = Online(**settings)
    return method.warm_up(known.ranking, k)


def _prices(known: RankedUsers, k: int, **settings: Any) -> Reranker:
    method: FrankWolfe = FrankWolfe(**settings)
    return Prices(method.mix(known.pool(method.config.relevance), k), method.config)


RERANKERS: dict[str, Callable[..., Reranker]] = {
    "best-response": _best_response,
    "online": _online,
    "prices": _prices,
}
"""How re-rankers are made, ready to serve: of users whom they should know before, the length of the
lists, and settings. Best response serves users together, and knows nobody before."""


@dataclass(eq=False)
class ExposureControl(ModelControl):
    """ExADMM with a growing exposure strength, each fit from that of the nearest strength."""

    most = 100.0
    first = (0.0, 0.1, 10.0)
    config: ExADMMConfig
    """Of the fit from nothing."""
    data: Interactions
    """What is fitted to."""
    fits: MutableMapping[float, ExADMM]
    """The fits by strength, which begin with that of 0."""
    slight: float = 0.0
    """What is added to every strength, so that the fit of 0 has a distance in proportion."""

    def lists(self, strength: float, users: RankedUsers) -> Lists:
        """Make the lists of the fit."""
        return self.at(strength).recommend(users.history, self.k)

    def at(self, strength: float) -> ExADMM:
        """Return the fit of a strength."""
        if strength not in self.fits:
            start = self.fits[nearest(list(self.fits), strength, self.slight)]
            self.fits[strength] = warm_fit(self.config, start, self.data, strength)
        return self.fits[strength]

    def trace(self, strength: float) -> Sequence[Any]:
        """Return the records of the fit."""
        return self.at(strength).trace_


def warm_fit(config: ExADMMConfig, start: ExADMM, data: Interactions, strength: float) -> ExADMM:
    """Fit with another exposure strength, from the factors of ``start``, a model of one near it.

    ``config`` is that of a fit from random factors, which has more epochs.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> plain = ll.ExADMM(factors=8, epochs=40).fit(data)
    >>> warm_fit(plain.config, plain, data, strength=0.1).trace_[-1].epoch
    5
    """
    epochs = max(2, config.epochs // _SHORTER)
    settings = replace(config, exposure_strength=strength, epochs=epochs).changed()
    first = (start.user_factors, start.item_factors)
    model: ExADMM = ExADMM(**settings)
    return model.fit(data, init=first, show_progress=False)


def nearest(strengths: Sequence[float], strength: float, slight: float = 0.0) -> float:
    """Return the strength that is nearest in proportion; of two, the weaker.

    A strength of 0 is infinitely far from any other, so it is returned only if there is no other;
    ``slight``, which is added to all of ``strengths``, makes its distance finite.

    Examples
    --------
    >>> nearest([0, 10, 0.1], 1.0), nearest([0], 0.1)
    (0.1, 0)
    """

    def distance(other: float) -> tuple[float, float]:
        raised = other + slight
        return abs(math.log(raised / strength)) if raised else math.inf, other

    return min(strengths, key=distance)


class Located(NamedTuple):
    """A strength, and where on the plane of accuracy and exposure it led."""

    strength: float
    accuracy: float
    """As a share of what the plain lists have, so that it is of the size of a Gini index."""
    gini: float


def next_strength(tried: Sequence[Located], first: Sequence[float]) -> float:
    """Say which strength to try next.

    After the first ones, the two neighbours that lie furthest apart in the plane of accuracy and
    Gini get a point between them: few points where nothing happens, many where the curve bends.
    The effect of a strength depends on its ratio to others, so the geometric mean is the middle.
    ``tried`` may have any order; ``first`` are the strengths to begin with, rising from 0.

    Examples
    --------
    >>> ends = [Located(0, 1.0, 0.9), Located(0.1, 0.99, 0.8), Located(10, 0.7, 0.4)]
    >>> next_strength(ends[:2], first=(0, 0.1, 10))
    10
    >>> next_strength(ends, first=(0, 0.1, 10))
    1.0
    """
    if len(tried) < len(first):
        return first[len(tried)]

    def gap(ends: tuple[Located, Located]) -> float:
        weaker, stronger = ends
        return math.hypot(weaker.accuracy - stronger.accuracy, weaker.gini - stronger.gini)

    weaker, stronger = (end.strength for end in max(pairwise(sorted(tried)), key=gap))
    return math.sqrt(weaker * stronger) if weaker else stronger / _DOWN
