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
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.base import Reranked, Reranker

_SHORTER = 8
"""By what a warm start divides the number of epochs."""
_SLIGHT = 1e-3  # how near to a strength no control at all counts as


class Judges(NamedTuple):
    """The users who decide, and how their lists do without control."""

    part: HeldOut
    ranking: Ranking
    k: int
    own: Int32
    """The lists of the model itself."""

    def measure(self, ids: Int32) -> Measure:
        """Measure lists; the loss is the share of the model's own nDCG that they give up."""
        ndcg, gini, coverage = self._figures(ids)
        own = self._figures(self.own)[0]
        return Measure(gini, coverage, 1 - ndcg / own if own else 0.0)

    def _figures(self, ids: Int32) -> tuple[float, float, float]:
        seen = ListAccumulator(self.part.targets.shape[1], self.k)
        seen.update(ids, self.part.targets)
        found = seen.result()
        return found[f"ndcg@{self.k}"], found[f"gini@{self.k}"], found[f"coverage@{self.k}"]


class RerankDial:
    """Re-rankers of growing strength over one model.

    Parameters
    ----------
    name
        What to call the method.
    model
        Whose lists are re-ranked.
    make
        Makes the re-ranker of a strength, ready to serve.
    judges
        The users who decide.
    """

    whole, most = False, 1e3

    def __init__(
        self, name: str, model: Model, make: Callable[[float], Reranker], judges: Judges
    ) -> None:
        self.name, self._model, self._make, self._judges = name, model, make, judges
        self.places = judges.own

    def turn(self, strength: float) -> Measure:
        """Re-rank at a strength."""
        self.places = self._judges.own
        if strength:
            reranker = self._make(strength)
            self.places = reranker.rerank(self._judges.ranking, self._judges.k).ids
        return self._judges.measure(self.places)

    def at(self, strength: float) -> Model | Reranked:
        """Return what serves at a strength; whoever was served in the search is forgotten."""
        return self._make(strength).over(self._model) if strength else self._model


class ExposureDial:
    """ExADMM with a growing exposure strength, each fit from that of the nearest strength.

    Parameters
    ----------
    model
        Fitted without exposure control.
    data
        What it was fitted to.
    judges
        The users who decide.
    """

    name = "exadmm"
    whole, most = False, 100.0

    def __init__(self, model: ExADMM, data: Interactions, judges: Judges) -> None:
        self._data, self._judges = data, judges
        self._fits = {0.0: model}
        self.places = judges.own

    def turn(self, strength: float) -> Measure:
        """Fit at a strength."""
        history, k = self._judges.part.history, self._judges.k
        self.places = self.at(strength).recommend(history, k).ids
        return self._judges.measure(self.places)

    def at(self, strength: float) -> ExADMM:
        """Return the fit of a strength."""
        if strength not in self._fits:
            near = min(self._fits, key=lambda known: abs(np.log((known + _SLIGHT) / strength)))
            start = self._fits[near]
            epochs = max(2, self._fits[0.0].config.epochs // _SHORTER)
            config = replace(start.config, exposure_strength=strength, epochs=epochs)
            first = (start.user_factors, start.item_factors)
            self._fits[strength] = ExADMM(**config.changed()).fit(
                self._data, init=first, show_progress=False
            )
        return self._fits[strength]
