"""Fits that start from a neighbour.

What a search turns: how strongly lists are re-ranked, or exposure weighs in training.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight.metrics.accumulate import ListAccumulator
from limelight.models.exadmm import ExADMM
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank.targets.goal import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Int32
    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Interactions
    from limelight.models.base import Model
    from limelight.models.exadmm import ExADMMConfig
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.reranker import Reranked, Reranker


_SHORTER = 8
"""A fit that starts from a neighbour has so many times fewer epochs than one from nothing."""


def warm_fit(config: ExADMMConfig, start: ExADMM, data: Interactions, strength: float) -> ExADMM:
    """Fit with another exposure strength, from the factors of a model that is near.

    Parameters
    ----------
    config
        Of a fit from nothing.
    start
        Where to start.
    data
        What to fit to.
    strength
        The exposure strength.

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


_SLIGHT = 1e-3  # how near to a strength no control at all counts as


class Sitting(NamedTuple):
    """Users who decide, with what they are asked to find."""

    part: HeldOut
    ranking: Ranking
    own: Int32
    """The lists of the model itself."""


class Judges:
    """The users who decide, in one sitting or several.

    Parameters
    ----------
    model
        Ranks for them.
    parts
        Held-out users; in every part the same ones, who have to find something else.
    k
        Length of the lists.
    """

    def __init__(self, model: Model, parts: Sequence[HeldOut], k: int) -> None:
        self.k = k
        rankings = [CandidateRanking(candidates_of(model.ranking(part.history))) for part in parts]
        self.sittings = [
            Sitting(part, ranking, ranking.top(np.arange(ranking.n_users), k).ids)
            for part, ranking in zip(parts, rankings, strict=True)
        ]

    def measure(self, make: Callable[[Sitting], Int32]) -> Measure:
        """Measure lists; the loss is the share of the model's own nDCG that they give up."""
        found = np.array([self._figures(at.part, make(at)) for at in self.sittings]).mean(axis=0)
        ndcg, gini, coverage = found.tolist()
        own = float(np.mean([self._figures(at.part, at.own)[0] for at in self.sittings]))
        return Measure(gini, coverage, 1 - ndcg / own if own else 0.0)

    def _figures(self, part: HeldOut, ids: Int32) -> tuple[float, float, float]:
        seen = ListAccumulator(part.targets.shape[1], self.k)
        seen.update(ids, part.targets)
        found = seen.result(bounds=False)
        return found[f"ndcg@{self.k}"], found[f"gini@{self.k}"], found[f"coverage@{self.k}"]


class Control(ABC):
    """A way to control a model, at the strength to which it was turned last.

    Parameters
    ----------
    name
        What to call it.
    judges
        The users who decide.
    """

    whole = False
    most = 1e3

    def __init__(self, name: str, judges: Judges) -> None:
        self.name, self.judges = name, judges
        self.places = judges.sittings[0].own

    def turn(self, strength: float) -> Measure:
        """Make the lists of a strength, and measure them."""
        return self.judges.measure(lambda at: self._lists(strength, at))

    @abstractmethod
    def _lists(self, strength: float, at: Sitting) -> Int32:
        """Return the lists of the users who decide."""

    @abstractmethod
    def at(self, strength: float) -> Model | Reranked:
        """Return what serves at a strength; whoever was served in a search is forgotten."""


class RerankDial(Control):
    """Re-rankers of growing strength over one model.

    Parameters
    ----------
    name, judges
        As for all controls.
    model
        Whose lists are re-ranked.
    make
        Makes the re-ranker of a strength, ready to serve.
    """

    def __init__(
        self, name: str, judges: Judges, model: Model, make: Callable[[float], Reranker]
    ) -> None:
        super().__init__(name, judges)
        self._model, self._make = model, make

    def _lists(self, strength: float, at: Sitting) -> Int32:
        if not strength:
            return at.own
        reranker = self._make(strength)
        known: dict[str, Any] = {"user_ids": at.part.user_ids} if reranker.by_user else {}
        return reranker.rerank(at.ranking, self.judges.k, **known).ids

    def at(self, strength: float) -> Model | Reranked:
        """Return what serves at a strength."""
        return self._make(strength).over(self._model) if strength else self._model


class ExposureDial(Control):
    """ExADMM with a growing exposure strength, each fit from that of the nearest strength.

    Parameters
    ----------
    judges
        The users who decide.
    model
        Fitted without exposure control.
    data
        What it was fitted to.
    """

    most = 100.0

    def __init__(self, judges: Judges, model: ExADMM, data: Interactions) -> None:
        super().__init__("exadmm", judges)
        self._data = data
        self._fits = {0.0: model}

    def _lists(self, strength: float, at: Sitting) -> Int32:
        return self.at(strength).recommend(at.part.history, self.judges.k).ids

    def at(self, strength: float) -> ExADMM:
        """Return the fit of a strength."""
        if strength not in self._fits:
            near = min(self._fits, key=lambda known: abs(np.log((known + _SLIGHT) / strength)))
            plain, start = self._fits[0.0], self._fits[near]
            self._fits[strength] = warm_fit(plain.config, start, self._data, strength)
        return self._fits[strength]
