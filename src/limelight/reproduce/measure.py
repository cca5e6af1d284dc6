"""What the chosen models do for the test users, who took no part in the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.evaluate.exhibit import look
from limelight.evaluate.exposure import exposure
from limelight.models import ExADMM
from limelight.reproduce.fronts import thin
from limelight.rerank.fairrec import FairRec

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.data import HeldOut, Split
    from limelight.evaluate.exhibit import Sight
    from limelight.models.base import Model
    from limelight.reproduce.tuning import Search

    See = Callable[[Sight], str]

MOST_POINTS = 12
"""Points of a front that are measured on the test users."""
FEW_POINTS = 5
"""Points of FairRec where each takes long."""
LARGE = 100_000_000
"""Pairs of a user and an item that are many."""


def measured_points(search: Search, test: HeldOut, k: int, see: See) -> list[dict[str, Any]]:
    """Measure a method's front, or its best model, at one cutoff."""
    chosen = thin(search.chosen(k), MOST_POINTS, lambda one: one.metrics[f"gini@{k}"])
    return [_measured(one.settings, search.model(one), test, k, see) for one in chosen]


def _measured(
    settings: dict[str, Any], model: Any, test: HeldOut, k: int, see: See
) -> dict[str, Any]:
    """Measure lists for the test users, and keep who is shown what."""
    sight, figures = look(model.recommend(test.history, k=k).ids, test, k)
    return {"settings": settings, "sight": see(sight), **figures}


def fairrec_points(model: Model, split: Split, k: int, see: See) -> list[dict[str, Any]]:
    """Measure FairRec at every guarantee or, where there are many, at some of them."""
    n_users, n_items = split.test.n_users, split.train.n_items
    most = n_users * k // n_items
    points = FEW_POINTS if n_users * n_items > LARGE else MOST_POINTS
    guarantees = sorted({int(l) for l in np.linspace(0, most, min(most + 1, points))})
    return [
        _measured({"guarantee": l}, FairRec(guarantee=l).over(model), split.test, k, see)
        for l in guarantees
    ]


def exposures(settings: dict[str, Any], weight: float, split: Split, k: int) -> list[float]:
    """Return the exposure of every item in the lists of the test users at an exposure weight."""
    model = ExADMM(**settings, exposure_weight=weight).fit(split.train)
    scored = np.flatnonzero(np.diff(split.test.targets.indptr))
    ids = model.recommend(split.test.history, k=k).ids[scored]
    shown: list[float] = exposure(ids, split.train.n_items).tolist()
    return shown
