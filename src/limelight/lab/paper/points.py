"""What is measured on the test users, who took no part in any choice."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight._base.text import short
from limelight.lab.fronts import thin
from limelight.lab.paper.rerankers import RerankedLists
from limelight.metrics.accuracy import ndcg
from limelight.metrics.evaluate import evaluate
from limelight.metrics.exposure import exposure
from limelight.models import ExADMM
from limelight.report.exhibit import ShownLists, measure_lists
from limelight.report.exhibit_folder import load_shown_lists, shown_arrays
from limelight.store.arrays import load_arrays, save_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64
    from limelight.data import HeldOut, Split
    from limelight.lab.paper.tuning import Search, Trial

MOST_POINTS = 12
"""Points of a front that are measured on the test users."""
FEW_POINTS = 5
"""Points of what is made again for each of them, where that takes long."""
LARGE = 100_000_000
"""Pairs of a user and an item that are many."""
MANY_ITEMS = 10_000
STANDARD = ("ndcg@100", "recall@20", "recall@50")
"""What other authors report of the same splits."""


class Sights:
    """Files of what was shown at a point, and of how good each user's list was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, shown: ShownLists, by_user: Float64) -> str:
        """Keep who is shown what in a file of its own; return its name."""
        name = f"{secrets.token_hex(8)}.safetensors"
        save_arrays(self._folder / name, shown_arrays(shown))
        save_arrays(self._folder / f"by-user-{name}", {"ndcg": by_user})
        return name

    def shown_at(self, point: Mapping[str, Any]) -> ShownLists:
        """Return who was shown what; nothing, where an older version has measured the point."""
        file = self._file(point)
        return load_shown_lists(file) if file.is_file() else ShownLists()

    def by_user(self, point: Mapping[str, Any]) -> Float64:
        """Return nDCG of each scored test user."""
        file = self._file(point)
        return np.asarray(load_arrays(file.with_name(f"by-user-{file.name}"))["ndcg"], np.float64)

    def _file(self, point: Mapping[str, Any]) -> Path:
        name = str(point.get("sight", ""))
        if Path(name).name != name:
            # It was read from a file, and must not lead out of the folder.
            message = f"the notebook names a file outside of its folder: {short(name)}"
            raise DataError(message, hint="move the folder away to start anew")
        return self._folder / name


def chosen_trials(search: Search, split: Split, k: int) -> list[Trial]:
    """Return the trials to measure at a cutoff: the front on validation users, thinned."""
    n_items = split.train.n_items
    is_large = split.test.n_users * n_items > LARGE or n_items > MANY_ITEMS
    most = FEW_POINTS if is_large and not search.method.is_kept else MOST_POINTS
    return thin(search.chosen(k), most, lambda one: one.metrics[f"gini@{k}"])


def measured_points(search: Search, split: Split, k: int, sights: Sights) -> list[dict[str, Any]]:
    """Measure a method's front, or its best model, at one cutoff."""
    return [
        _measured(one, search.model(one, split), split.test, k, sights)
        for one in chosen_trials(search, split, k)
    ]


def _measured(trial: Trial, model: Any, test: HeldOut, k: int, sights: Sights) -> dict[str, Any]:
    """Measure lists for the test users; "sight" names the file of who is shown what.

    Of models, whose lists are alike at any length, also what others report of such splits.
    """
    ids = model.recommend(test.history, k=k).ids
    shown, figures = measure_lists(ids, test, k)
    by_user = ndcg(ids, test.targets, k, per_user=True)
    found = np.asarray(by_user, dtype=np.float64)
    validation = {name: trial.metrics[f"{name}@{k}"] for name in ("ndcg", "gini")}
    point = {
        "settings": trial.settings,
        "epochs": trial.epochs,
        "validation": validation,
        "sight": sights.keep(shown, found[np.isfinite(found)]),
        **figures,
    }
    if not isinstance(model, RerankedLists):
        further = evaluate(model, test, k=(20, 50, 100))
        point["standard"] = {name: further[name] for name in STANDARD}
    return point


def exposures(settings: dict[str, Any], weight: float, split: Split, k: int) -> list[float]:
    """Return the exposure of every item in the lists of the test users at an exposure weight."""
    model = ExADMM(**settings, exposure_weight=weight).fit(split.train)
    scored = np.flatnonzero(np.diff(split.test.targets.indptr))
    ids = model.recommend(split.test.history, k=k).ids[scored]
    return list(map(float, exposure(ids, split.train.n_items)))
