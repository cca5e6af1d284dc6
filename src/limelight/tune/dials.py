"""What a search turns: how strongly lists are re-ranked, or exposure weighs in training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.evaluate.accumulate import ListAccumulator
from limelight.models.exadmm import ExADMM
from limelight.rerank.goal import Measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._arrays import Int32
    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Interactions
    from limelight.models.base import Model
    from limelight.rerank.base import Reranked, Reranker

_SHORTER = 8
"""By what a warm start divides the number of epochs."""


class Accuracy(NamedTuple):
    """How lists do for held-out users."""

    ndcg: float
    gini: float
    coverage: float


def accuracy(ids: Int32, part: HeldOut, k: int) -> Accuracy:
    """Measure lists of held-out users."""
    seen = ListAccumulator(part.targets.shape[1], k)
    seen.update(ids, part.targets)
    found = seen.result()
    return Accuracy(*(found[f"{name}@{k}"] for name in Accuracy._fields))


class RerankDial:
    """Re-rankers of growing strength over one model.

    Parameters
    ----------
    name
        What to call the method.
    plain
        The model that is re-ranked.
    make
        Makes the re-ranker of a strength, ready to serve.
    part
        The users who decide.
    ranking
        What ranks for them.
    k
        Length of the lists.
    """

    whole, most = False, 1e3

    def __init__(
        self,
        name: str,
        plain: Model,
        make: Callable[[float], Reranker],
        part: HeldOut,
        lists: Callable[[Reranker], Int32],
        k: int,
    ) -> None:
        self.name, self._plain, self._make = name, plain, make
        self._part, self._lists, self._k = part, lists, k
        own = plain.recommend(part.history, k).ids
        self._own = accuracy(own, part, k)
        self.places = own

    def turn(self, strength: float) -> Measure:
        """Re-rank at a strength; the loss is of nDCG."""
        if strength == 0:
            return as_measure(self._own, self._own)
        self.places = self._lists(self._make(strength))
        return as_measure(accuracy(self.places, self._part, self._k), self._own)

    def model(self, strength: float) -> Model | Reranked:
        """Return what serves at a strength."""
        return self._make(strength).over(self._plain) if strength else self._plain


class ExposureDial:
    """ExADMM with a growing exposure strength, each fit from that of the nearest strength."""

    whole, most = False, 100.0
    name = "exadmm"

    def __init__(self, plain: ExADMM, data: Interactions, part: HeldOut, k: int) -> None:
        self._data, self._part, self._k = data, part, k
        self._fits: dict[float, ExADMM] = {0.0: plain}
        self.places = plain.recommend(part.history, k).ids
        self._own = accuracy(self.places, part, k)

    def turn(self, strength: float) -> Measure:
        """Fit at a strength; the loss is of nDCG."""
        self.places = self.model(strength).recommend(self._part.history, self._k).ids
        return as_measure(accuracy(self.places, self._part, self._k), self._own)

    def model(self, strength: float) -> ExADMM:
        """Return the fit of a strength."""
        if strength not in self._fits:
            near = min(self._fits, key=lambda known: abs(np.log((known + 1e-3) / strength)))
            start = self._fits[near]
            epochs = max(2, start.config.epochs // _SHORTER) if near else start.config.epochs
            config = replace(
                start.config, exposure_weight=0.0, exposure_strength=strength, epochs=epochs
            )
            settings = config.changed()
            first = (start.user_factors, start.item_factors)
            self._fits[strength] = ExADMM(**settings).fit(
                self._data, init=first, show_progress=False
            )
        return self._fits[strength]


def as_measure(found: Accuracy, own: Accuracy) -> Measure:
    """Say what lists give up against a model's own."""
    loss = 1 - found.ndcg / own.ndcg if own.ndcg else 0.0
    return Measure(found.gini, found.coverage, loss)
