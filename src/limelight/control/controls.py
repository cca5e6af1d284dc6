"""Controls of a model: how strongly its lists are re-ranked, or exposure weighs in training.

A search tries strengths of a control until a target is met. A front measures a control at several
strengths, and :func:`next_strength` chooses each so that it halves the widest gap of the curve.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight.models.ease import EASE
from limelight.models.exadmm import ExADMM
from limelight.rerank.targets.controls import Control, SearchContext
from limelight.rerank.targets.search import Trial

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from limelight._base.arrays import Float64, Int32
    from limelight.control.population import RankedUsers, Sitting
    from limelight.data.interactions import Interactions
    from limelight.models.config import Config, FactorConfig
    from limelight.models.exadmm import ExADMMConfig
    from limelight.rerank.reranker import Reranker
    from limelight.rerank.targets.search import Measure
    from limelight.rerank.targets.serving import Served, ServingControl


_SHORTER = 8
"""A fit that starts from a neighbour has so many times fewer epochs than one from scratch."""
_BATCH = 8192
_DOWN = 8.0
"""How much smaller than the smallest strength the next one towards 0 is."""


class Made(NamedTuple):
    """The lists of everybody in a sitting at a strength, and what they gave validation users."""

    ids: Int32
    gains: Float64
    """The nDCG of each, over the mean of their own lists."""
    missed: Sequence[Any] = ()
    """The groups of items whose wishes the lists do not meet."""


@dataclass(eq=False)
class ModelControl(Control):
    """A way to control a model: makes the lists of a sitting at any strength."""

    most = 1e3
    first: ClassVar[tuple[float, float, float]] = (0.0, 0.1, 3.0)
    """The strengths that a front begins with: none, a middle one and a strong one."""
    name: str
    """What to call it."""
    sitting: Sitting
    """Whose lists it makes."""
    tried: dict[float, Measure] = field(default_factory=dict, init=False)
    """What each strength gave."""

    @property
    def changes_own(self) -> bool:
        """Whether lists differ from everybody's own at strength 0, too."""
        return False

    def try_at(self, strength: float) -> Trial:
        """Make everybody's list and measure them."""
        changes = strength or self.changes_own
        ids = self.lists(strength) if changes else self.sitting.own
        again = [
            self.lists_for(strength, users) if changes else users.own(self.sitting.k).ids
            for users in self.sitting.folds
        ]
        measure, gains = self.sitting.measure(ids, again)
        self.tried[strength] = measure
        return Trial(strength, measure, Made(ids, gains, self.missed(strength)))

    @abstractmethod
    def lists(self, strength: float) -> Int32:
        """Make the lists of everybody at a strength above 0."""

    @abstractmethod
    def lists_for(self, strength: float, users: RankedUsers) -> Int32:
        """Make the lists of further users at the strength that was tried last."""

    def missed(self, strength: float) -> Sequence[Any]:
        """Return the groups of items whose wishes the lists of a strength do not meet."""
        del strength
        return ()

    def release(self) -> None:
        """Free what the next control does not need."""

    def trace(self, strength: float) -> Sequence[Any]:
        """Return the records of the fit, where a strength needs one."""
        del strength
        return ()


@dataclass(eq=False)
class RerankControl(ModelControl):
    """Re-rankers of growing strength over one model."""

    served: Served
    """How users are served, and what candidates are worth."""
    threads: int
    settles: bool = field(init=False)
    _inner: ServingControl | None = field(default=None, init=False)
    _places: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.settles = self.served.serve == "batch"

    @property
    def changes_own(self) -> bool:
        """Whether groups of items have prices, also at strength 0."""
        return self.served.groups is not None

    def lists(self, strength: float) -> Int32:
        """Re-rank what the model ranks for users."""
        pool = self.sitting.users.pool(self.served.law)
        if self._inner is None:
            context = SearchContext(pool, self.sitting.k, self.threads, seed=0)
            self._inner = self.served.control(context)
        self._places = self._inner.try_at(strength).lists
        return pool.lists(self._places).ids

    def lists_for(self, strength: float, users: RankedUsers) -> Int32:
        """Serve users as a part of the population."""
        pool, reranker = users.pool(self.served.law), self.reranker(strength)
        known: dict[str, Any] = {"user_ids": users.user_ids} if reranker.by_user else {}
        return pool.lists(reranker.places_from(pool, self.sitting.k, **known)).ids

    def reranker(self, strength: float) -> Reranker:
        """Return what serves at the strength that was tried last."""
        assert self._inner is not None
        return self._inner.reranker(strength, self._places, float(self.sitting.n_lists))

    def missed(self, strength: float) -> Sequence[Any]:
        """Return the groups of items whose wishes the lists of a strength do not meet."""
        return () if self._inner is None else self._inner.missed(strength)

    def release(self) -> None:
        """Free the market."""
        self._inner = self._places = None


@dataclass(eq=False)
class ExposureControl(ModelControl):
    """A growing exposure strength in training, each fit from that of the nearest strength."""

    most = 100.0
    first = (0.0, 0.1, 10.0)
    config: Config
    """Of the fit from scratch."""
    data: Interactions
    """What is fitted to."""
    fits: MutableMapping[float, Any]
    """The fits by strength, which begin with that of 0."""
    slight: float = 0.0
    """What is added to every strength, so that the fit of 0 has a distance in proportion."""

    def lists(self, strength: float) -> Int32:
        """Make the lists of the fit."""
        return self.lists_for(strength, self.sitting.users)

    def lists_for(self, strength: float, users: RankedUsers) -> Int32:
        """Make the lists of the fit."""
        ranking = self.at(strength).ranking(users.history, hidden=users.hidden)
        parts = batches(ranking.n_users, _BATCH)
        lists = [ranking.top(np.arange(rows.start, rows.stop), self.sitting.k) for rows in parts]
        return np.concatenate([found.ids for found in lists])

    def at(self, strength: float) -> Any:
        """Return the fit of a strength."""
        if strength not in self.fits:
            start = self.fits[nearest(list(self.fits), strength, self.slight)]
            self.fits[strength] = fit_at(self.config, start, self.data, strength)
        return self.fits[strength]

    def trace(self, strength: float) -> Sequence[Any]:
        """Return the records of the fit."""
        found: Sequence[Any] = self.at(strength).trace_
        return found


def fit_at(config: Any, start: Any, data: Interactions, strength: float) -> Any:
    """Return the model of another exposure strength, from one near it.

    ExADMM is fitted again; EASE has every strength from the inverse of one fit.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> plain = ll.EASE().fit(data)
    >>> fit_at(plain.config, plain, data, strength=0.1)
    EASE(exposure_strength=0.1) fitted to 300 users x 100 items
    """
    if isinstance(start, EASE):
        return start.at_strength(strength)
    return warm_fit(config, start, data, strength)


def fewer_epochs(config: FactorConfig) -> int:
    """Return how many epochs a fit needs that starts near where it ends."""
    return max(2, config.epochs // _SHORTER)


def warm_fit(config: ExADMMConfig, start: ExADMM, data: Interactions, strength: float) -> ExADMM:
    """Fit with another exposure strength, from the factors of ``start``, a model of one near it.

    ``config`` is that of a fit from random factors, which has more epochs.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> plain = ll.ExADMM(factors=8, epochs=40, tolerance=0.0).fit(data)
    >>> warm_fit(plain.config, plain, data, strength=0.1).trace_[-1].epoch
    5
    """
    epochs = fewer_epochs(config)
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
