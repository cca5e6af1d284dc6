"""The work of ``limelight demo``: the whole trade-off, a model for a wish, and what it serves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.control.fit_to import fit_to
from limelight.control.frontier import frontier
from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.lists import position_weights
from limelight.models import ExADMM
from limelight.report.exhibit import build_exhibit

if TYPE_CHECKING:
    from limelight.control.frontier_result import Frontier
    from limelight.control.target_result import TargetResult
    from limelight.data import Marketplace, Split
    from limelight.models.recommender import Recommender
    from limelight.report.exhibit import Exhibit, ExhibitPoint

K = 20
_METHODS = ("exadmm", "best-response")
_POINTS = 4
"""Of each method: the fewest that show how the front bends."""


@dataclass(frozen=True, eq=False)
class DemoRun:
    """The fronts of two methods, and the model that meets a wish."""

    market: Marketplace
    split: Split
    gini: float
    """What was asked for."""
    front: Frontier
    result: TargetResult

    @cached_property
    def wished(self) -> ExhibitPoint:
        """What the wish came to, among the points of the fronts."""
        page, name = self.result.exhibit(), f"a target Gini of {self.gini:g}"
        point = page.points[page.chosen]
        return replace(point, method=name, label=name)

    @cached_property
    def points(self) -> list[ExhibitPoint]:
        """The plain model, those of both fronts, and the one that was asked for."""
        return [*self.front.exhibit().points, self.wished]

    def serve(self, model: Recommender) -> dict[str, float]:
        """Recommend to all users, and measure what they are shown.

        Made-up data also tell how much users truly like it; first places count most, as in nDCG.
        """
        ids = model.recommend(k=K).ids
        lists = ListAccumulator(len(model.item_ids), K)
        lists.update(ids)
        relevance = self.market.relevance(model.user_ids[:, None], model.item_ids[ids])
        liked = np.average(relevance, weights=position_weights(K) * (ids >= 0))
        return {**lists.result(), f"true_relevance@{K}": float(liked)}

    def exhibit(self, seed: int) -> Exhibit:
        """Put together what a page shows."""
        return build_exhibit(
            "demo",
            "A made-up marketplace: what even exposure costs",
            K,
            self.points,
            split=self.split,
            seconds=sum(point.wall_seconds for point in self.front.points) + self.result.seconds,
            seed=seed,
            chosen=len(self.points) - 1,
            groups=read_groups(self.market.groups, ids_to_arrow(self.split.train.item_ids)),
        )


def run_all(market: Marketplace, split: Split, gini: float, **settings: Any) -> DemoRun:
    """Trace the fronts of exADMM and of best response, and meet the wish; the base is the default.

    ``settings`` are the size, the seed and the threads of the model.
    """
    # The wish comes first, because one that cannot be met is refused before any work.
    result = fit_to(split, gini=gini, at=K, model=ExADMM(**settings), nearest=True)
    front = frontier(split, methods=_METHODS, points=_POINTS, at=K, **settings)
    return DemoRun(market, split, gini, front, result)
