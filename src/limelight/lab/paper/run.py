"""A run of the paper's experiments: tune, measure on test users, who took no part, and time."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.signals import finishing
from limelight._base.text import short
from limelight.lab.fronts import thin
from limelight.lab.growth import growth
from limelight.lab.paper.experiments import size_of
from limelight.lab.paper.methods import FAIRREC, methods_of
from limelight.lab.paper.times import inference_times, training_time
from limelight.lab.paper.tuning import Search
from limelight.metrics.exposure import exposure
from limelight.models import ExADMM
from limelight.report.exhibit import ShownLists, measure_lists
from limelight.report.exhibit_folder import load_shown_lists, shown_arrays
from limelight.rerank.methods.fairrec import FairRec
from limelight.store.arrays import save_arrays
from limelight.store.checkpoint import ResultCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limelight.data import HeldOut, Split
    from limelight.lab.paper.experiments import Experiment
    from limelight.lab.paper.methods import PaperMethod
    from limelight.models.base import Model

    KeepShown = Callable[[ShownLists], str]


MOST_POINTS = 12
"""Points of a front that are measured on the test users."""
FEW_POINTS = 5
"""Points of FairRec where each takes long."""
LARGE = 100_000_000
"""Pairs of a user and an item that are many."""


def measured_points(search: Search, test: HeldOut, k: int, keep: KeepShown) -> list[dict[str, Any]]:
    """Measure a method's front, or its best model, at one cutoff."""
    chosen = thin(search.chosen(k), MOST_POINTS, lambda one: one.metrics[f"gini@{k}"])
    return [_measured(one.settings, search.model(one), test, k, keep) for one in chosen]


def _measured(
    settings: dict[str, Any], model: Any, test: HeldOut, k: int, keep: KeepShown
) -> dict[str, Any]:
    """Measure lists for the test users, and keep who is shown what, in a file named by "sight"."""
    shown, figures = measure_lists(model.recommend(test.history, k=k).ids, test, k)
    return {"settings": settings, "sight": keep(shown), **figures}


def fairrec_points(model: Model, split: Split, k: int, keep: KeepShown) -> list[dict[str, Any]]:
    """Measure FairRec at every guarantee or, where there are many, at some of them."""
    n_users, n_items = split.test.n_users, split.train.n_items
    most = n_users * k // n_items
    points = FEW_POINTS if n_users * n_items > LARGE else MOST_POINTS
    guarantees = sorted({int(l) for l in np.linspace(0, most, min(most + 1, points))})
    return [
        _measured({"guarantee": l}, FairRec(guarantee=l).over(model), split.test, k, keep)
        for l in guarantees
    ]


def exposures(settings: dict[str, Any], weight: float, split: Split, k: int) -> list[float]:
    """Return the exposure of every item in the lists of the test users at an exposure weight."""
    model = ExADMM(**settings, exposure_weight=weight).fit(split.train)
    scored = np.flatnonzero(np.diff(split.test.targets.indptr))
    ids = model.recommend(split.test.history, k=k).ids[scored]
    return list(map(float, exposure(ids, split.train.n_items)))


METHODS = ("Random", "Popularity", "iALS", "Mult-VAE", FAIRREC, "Multi-FR", "exADMM")
"""In the order of tables and figures."""
_TUNING = 0.7  # of the budget; the rest is for the test users, the times and the growth
_PATIENCE = 0.06  # of the budget, for one training that is timed


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan:
    """What to run."""

    experiment: Experiment
    made_up: bool = False
    """Whether the data are a marketplace of the experiment's size."""
    methods: Sequence[str] = METHODS
    budget: float = 60.0
    """Minutes. 0 tries only the published settings."""
    factors: int | None = None
    epochs: int | None = None
    """At most so many, instead of the paper's."""
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse unknown methods, and FairRec without the model that it starts from."""
        for name in self.methods:
            if name not in METHODS:
                message = f"unknown method: {name!r}"
                raise ConfigError(message, hint=f"choose from: {', '.join(METHODS)}")
        if FAIRREC in self.methods and "iALS" not in self.methods:
            message = f"{FAIRREC} starts from iALS, which is not among the methods"
            raise ConfigError(message, hint="add iALS")

    @property
    def order(self) -> list[str]:
        """The methods in the order of tables and figures."""
        return [name for name in METHODS if name in self.methods]


@dataclass
class Findings:
    """Everything that tables and figures show."""

    size: Any
    points: dict[int, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    """By cutoff and method, measured on the test users."""
    exposures: dict[float, list[float]] = field(default_factory=dict)
    times: dict[str, dict[str, Any]] = field(default_factory=dict)
    growth: dict[str, dict[str, float]] = field(default_factory=dict)


class Run:
    """Carries a plan out, and remembers in a folder how far it has come."""

    def __init__(
        self, plan: ReproductionPlan, split: Split, folder: Path, tell: Callable[[str], None]
    ) -> None:
        about = {
            "kind": "a reproduction",
            "experiment": plan.experiment.title,
            "data": split.train.fingerprint(),
            "factors": plan.factors,
            "epochs": plan.epochs,
        }
        self.plan, self.split, self._tell = plan, split, tell
        self._sights = folder / "sights"
        self._cache = ResultCache(folder, about)
        factors = plan.factors or plan.experiment.factors
        known = methods_of(
            plan.experiment, factors=factors, epochs=plan.epochs, threads=plan.threads
        )
        self._methods: dict[str, PaperMethod] = {
            name: known[name] for name in plan.order if name in known
        }
        self._searches = {
            name: Search(name, method, folder / name.lower(), plan.experiment.cutoffs)
            for name, method in self._methods.items()
        }

    def findings(self) -> Findings:
        """Tune, then measure on the test users, then time."""
        experiment = self.plan.experiment
        self._tune()
        found = Findings(size_of(self.split))
        for k in experiment.cutoffs:
            found.points[k] = {name: self._points(name, k) for name in self.plan.order}
        if "exADMM" in self._methods:
            for weight in (0.0, *sorted({*experiment.weights, *experiment.between})):
                what = f"exposure at weight {weight:g}"
                found.exposures[weight] = self._once(what, self._exposure, weight)
        threads = f"{self.plan.threads or 'all'} threads"
        for name in self.plan.order:
            if name in experiment.times:
                found.times[name] = self._once(f"time of {name}, {threads}", self._time, name)
                what = f"growth of {name}, {threads}"
                found.growth[name] = self._once(what, growth, name, self.plan.threads)
        return found

    def _once(self, what: str, find_out: Callable[..., Any], *arguments: Any, of: str = "") -> Any:
        """Return a result of the cache, or work it out; ``of`` is a further part of its name."""
        self._tell(what)
        # A signal waits until the result is written down.
        with finishing():
            return self._cache.once(what + of, lambda: find_out(*arguments))

    def _tune(self) -> None:
        total = sum(method.share for method in self._methods.values()) or 1.0
        for name, search in self._searches.items():
            share = self._methods[name].share / total
            search.run(self.split, 60 * self.plan.budget * _TUNING * share, self._tell)

    def _points(self, name: str, k: int) -> Any:
        """Measure a method on the test users; another choice of trials is another measurement."""
        search = self._search(name)
        chosen = ", chosen: " + " ".join(str(one.number + 1) for one in search.chosen(k))
        what = f"{name} for the test users, K = {k}"
        keep = self._keep_shown
        if name == FAIRREC:
            best = self._best(name, k)
            return self._once(what, fairrec_points, best, self.split, k, keep, of=chosen)
        return self._once(what, measured_points, search, self.split.test, k, keep, of=chosen)

    def _keep_shown(self, shown: ShownLists) -> str:
        """Keep who is shown what in a file of its own; return its name."""
        name = f"{secrets.token_hex(8)}.safetensors"
        save_arrays(self._sights / name, shown_arrays(shown))
        return name

    def shown_at(self, point: Mapping[str, Any]) -> ShownLists:
        """Return who was shown what; nothing, where an older version has measured the point."""
        name = str(point.get("sight", ""))
        if Path(name).name != name:
            # It was read from a file, and must not lead out of the folder.
            message = f"the notebook names a file outside of its folder: {short(name)}"
            raise DataError(message, hint="move the folder away to start anew")
        file = self._sights / name
        return load_shown_lists(file) if file.is_file() else ShownLists()

    def _search(self, name: str) -> Search:
        """Return the search for the model that a method trains or starts from."""
        return self._searches["iALS" if name == FAIRREC else name]

    def _best(self, name: str, k: int) -> Any:
        """Load a method's most accurate model at a cutoff."""
        search = self._search(name)
        return search.model(search.chosen(k)[-1])

    def _exposure(self, weight: float) -> list[float]:
        settings = {**self._methods["exADMM"].fixed, **self.plan.experiment.exadmm}
        k = self.plan.experiment.cutoffs[-1]
        return exposures(settings, weight, self.split, k)

    def _time(self, name: str) -> dict[str, Any]:
        experiment = self.plan.experiment
        k = experiment.cutoffs[-1]
        search = self._search(name)
        patience = max(1.0, 60 * self.plan.budget * _PATIENCE)
        settings = search.chosen(k)[-1].settings
        training = training_time(search.method, settings, self.split, patience)
        model = self._best(name, k)

        def recommend(k: int) -> object:
            # FairRec is timed with the largest guarantee that it has.
            served = FairRec(alpha=1.0).over(model) if name == FAIRREC else model
            return served.recommend(self.split.test.history, k=k)

        return {**training, "inference": inference_times(recommend, experiment.timed)}
