"""The fits of ``limelight demo``, and which of them is worth keeping.

What ``limelight demo`` has to show.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.metrics.evaluate import Evaluation, evaluate
from limelight.models import IALS, ExADMM
from limelight.report.exhibit import (
    Examples,
    Exhibit,
    Point,
    Sight,
    about_data,
    held_out_rows,
    how_made,
    look,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from limelight.data import HeldOut, Marketplace, Split
    from limelight.models.base import Model

K = 20
MOST_LOSS = 0.02
"""The model that is kept loses at most this share of iALS's nDCG, on validation users."""
_REGULARIZATION, _UNOBSERVED_WEIGHT = 0.02, 0.1  # where iALS is at its best on this marketplace
_STEPS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted model and what its lists are like."""

    name: str
    weight: float
    model: Model
    seconds: float
    validation: Evaluation
    test: Evaluation
    sight: Sight
    """Who is shown what in the lists of the test users."""
    relevance: float
    """Mean true relevance of what the test users are shown, which only made-up data tell."""

    def record(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        return {
            "method": self.name,
            "exposure_weight": self.weight,
            "seconds": self.seconds,
            **self.test,
            f"true_relevance@{K}": self.relevance,
            f"validation_ndcg@{K}": self.validation[f"ndcg@{K}"],
            f"validation_gini@{K}": self.validation[f"gini@{K}"],
        }

    def at_k(self, metric: str) -> float:
        """Return a metric of the test users."""
        return self.test[f"{metric}@{K}"]


def exposure_weights(n_users: int) -> list[float]:
    """Choose weights from no visible effect to saturation.

    The penalty meets a user's update as weight * n_users beside the unobserved weight, so the
    interesting range lies where the two are of one size.

    Examples
    --------
    >>> exposure_weights(16_000)
    [1e-07, 1e-06, 3e-06, 1e-05, 3e-05, 0.0001, 0.001]
    """
    middle = round(math.log10(_UNOBSERVED_WEIGHT / n_users))
    return [float(f"{step * 10.0**middle:.1g}") for step in _STEPS]


def run_all(market: Marketplace, split: Split, **settings: int) -> list[Outcome]:
    """Fit iALS, and exADMM at every weight."""
    shared: dict[str, Any] = {
        "regularization": _REGULARIZATION,
        "unobserved_weight": _UNOBSERVED_WEIGHT,
        **settings,
    }
    outcomes = [_run("iALS", 0.0, IALS(**shared), market, split)]
    for weight in exposure_weights(split.train.n_users):
        model = ExADMM(exposure_weight=weight, **shared)
        outcomes.append(_run(f"exADMM {weight:.0e}", weight, model, market, split))
    return outcomes


def _run(name: str, weight: float, model: Model, market: Marketplace, split: Split) -> Outcome:
    started = time.perf_counter()
    model.fit(split.train)
    seconds = time.perf_counter() - started
    ids = model.recommend(split.test.history, k=K).ids
    sight, figures = look(ids, split.test, K, model.trace_)
    return Outcome(
        name=name,
        weight=weight,
        model=model,
        seconds=seconds,
        validation=evaluate(model, split.validation, k=K),
        test=Evaluation(figures),
        sight=sight,
        relevance=_true_relevance(market, split.train.item_ids, split.test, ids),
    )


def _true_relevance(
    market: Marketplace, item_ids: NDArray[Any], held_out: HeldOut, ids: NDArray[np.int32]
) -> float:
    relevance = market.relevance(held_out.user_ids[:, None], item_ids[ids])
    return float(relevance[ids >= 0].mean())


def choose(outcomes: Sequence[Outcome]) -> Outcome:
    """Take the evenest model whose accuracy on validation users is nearly that of the first."""
    least = (1 - MOST_LOSS) * outcomes[0].validation[f"ndcg@{K}"]
    good = [outcome for outcome in outcomes if outcome.validation[f"ndcg@{K}"] >= least]
    return min(good, key=lambda outcome: outcome.validation[f"gini@{K}"])


def exhibit_of(
    market: Marketplace,
    split: Split,
    outcomes: Sequence[Outcome],
    chosen: Outcome,
    seed: int,
) -> Exhibit:
    """Put together what a page shows of the demo."""
    item_ids = split.train.item_ids
    return Exhibit(
        kind="demo",
        title="A made-up marketplace: what even exposure costs",
        k=K,
        points=tuple(_point(outcome) for outcome in outcomes),
        item_ids=item_ids,
        chosen=list(outcomes).index(chosen),
        interactions=np.asarray(split.train.matrix.sum(axis=0), dtype=np.int64).ravel(),
        groups=read_groups(market.groups, ids_to_arrow(item_ids)),
        examples=Examples.of(held_out_rows(split.test), split.test),
        data=about_data(split),
        made=how_made(seconds=sum(outcome.seconds for outcome in outcomes), seed=seed),
    )


def _point(outcome: Outcome) -> Point:
    method = "exADMM" if outcome.weight else outcome.name
    return Point(
        method=method,
        label=f"exADMM, weight {outcome.weight:g}" if outcome.weight else outcome.name,
        figures=outcome.test,
        strength=outcome.weight,
        settings={
            name: value
            for name, value in outcome.model.get_params().items()
            if name in {"factors", "regularization", "unobserved_weight", "exposure_weight"}
        },
        sight=outcome.sight,
    )
