"""The fits of ``limelight demo``, which of them is worth keeping, and what a page shows of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.metrics.evaluate import Evaluation, evaluate
from limelight.models import IALS, ExADMM
from limelight.report.exhibit import ExhibitPoint, ShownLists, build_exhibit, measure_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Int32
    from limelight.data import Marketplace, Split
    from limelight.models.base import Model
    from limelight.report.exhibit import Exhibit

K = 20
MOST_LOSS = 0.02
"""The model that is kept loses at most this share of iALS's nDCG, on validation users."""
_REGULARIZATION, _UNOBSERVED_WEIGHT = 0.02, 0.1  # where iALS is at its best on this marketplace
_STEPS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class DemoModel:
    """A fitted model and what its lists are like."""

    name: str
    weight: float
    model: Model
    seconds: float
    validation: Evaluation
    test: Evaluation
    shown: ShownLists
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


def run_all(market: Marketplace, split: Split, **settings: int) -> list[DemoModel]:
    """Fit iALS, and exADMM at every weight."""
    shared: dict[str, Any] = {
        "regularization": _REGULARIZATION,
        "unobserved_weight": _UNOBSERVED_WEIGHT,
        **settings,
    }
    models = [_run("iALS", 0.0, IALS(**shared), market, split)]
    for weight in exposure_weights(split.train.n_users):
        model = ExADMM(exposure_weight=weight, **shared)
        models.append(_run(f"exADMM {weight:.0e}", weight, model, market, split))
    return models


def _run(name: str, weight: float, model: Model, market: Marketplace, split: Split) -> DemoModel:
    started = time.perf_counter()
    model.fit(split.train)
    seconds = time.perf_counter() - started
    ids = model.recommend(split.test.history, k=K).ids
    shown, figures = measure_lists(ids, split.test, K, model.trace_)
    return DemoModel(
        name=name,
        weight=weight,
        model=model,
        seconds=seconds,
        validation=evaluate(model, split.validation, k=K),
        test=Evaluation(figures),
        shown=shown,
        relevance=_true_relevance(market, split, ids),
    )


def _true_relevance(market: Marketplace, split: Split, ids: Int32) -> float:
    relevance = market.relevance(split.test.user_ids[:, None], split.train.item_ids[ids])
    return float(relevance[ids >= 0].mean())


def choose(models: Sequence[DemoModel]) -> DemoModel:
    """Take the evenest model whose accuracy on validation users is nearly that of the first."""
    least = (1 - MOST_LOSS) * models[0].validation[f"ndcg@{K}"]
    good = [outcome for outcome in models if outcome.validation[f"ndcg@{K}"] >= least]
    return min(good, key=lambda outcome: outcome.validation[f"gini@{K}"])


def exhibit_of(
    market: Marketplace, split: Split, models: Sequence[DemoModel], chosen: DemoModel, seed: int
) -> Exhibit:
    """Put together what a page shows of the demo."""
    return build_exhibit(
        "demo",
        "A made-up marketplace: what even exposure costs",
        K,
        map(_point, models),
        split=split,
        seconds=sum(model.seconds for model in models),
        seed=seed,
        chosen=list(models).index(chosen),
        groups=read_groups(market.groups, ids_to_arrow(split.train.item_ids)),
    )


def _point(model: DemoModel) -> ExhibitPoint:
    shown = {"factors", "regularization", "unobserved_weight", "exposure_weight"}
    return ExhibitPoint(
        method="exADMM" if model.weight else model.name,
        label=f"exADMM, weight {model.weight:g}" if model.weight else model.name,
        figures=model.test,
        strength=model.weight,
        settings={key: value for key, value in model.model.get_params().items() if key in shown},
        shown=model.shown,
    )
