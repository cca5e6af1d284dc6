"""A run of the paper's experiments: tune, measure on test users, who took no part, and time."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from limelight._base.memory import room
from limelight._base.signals import finishing
from limelight.lab.bench.memory import bytes_taken
from limelight.lab.growth import growth
from limelight.lab.paper.budget import Claim, MethodPlan, decide_all, divide, told
from limelight.lab.paper.experiments import size_of
from limelight.lab.paper.forecast import MethodForecast, forecast_method, forecast_reranker
from limelight.lab.paper.methods import methods_of
from limelight.lab.paper.paired import differences
from limelight.lab.paper.plan import FAIRREC, OVER_IALS, TIMED_METHODS
from limelight.lab.paper.points import Sights, exposures, measured_points
from limelight.lab.paper.rerankers import RERANKER_SHARES, first_settings, reranking_method
from limelight.lab.paper.times import inference_times, training_bytes, training_time
from limelight.lab.paper.tuning import Allowance, Search
from limelight.rerank.methods.fairrec import FairRec
from limelight.store.checkpoint import ResultCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from limelight.data import Split
    from limelight.lab.paper.plan import ReproductionPlan
    from limelight.report.exhibit import ShownLists

_TUNING = 0.7
"""Of the budget; what follows is for the times, the rest for the test users and the growth."""
_TIMING = 0.2
_LEAST_PATIENCE = 1.0


@dataclass
class Findings:
    """Everything that tables and figures show."""

    size: Any
    forecasts: dict[str, MethodForecast] = field(default_factory=dict)
    """By method, what it was expected to take."""
    decisions: dict[str, MethodPlan] = field(default_factory=dict)
    """By method, whether and how it was run."""
    trials: dict[str, int] = field(default_factory=dict)
    """How many settings each method tried, at all cutoffs together."""
    points: dict[int, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    """By cutoff and method, measured on the test users."""
    paired: dict[int, list[Any]] = field(default_factory=dict)
    """By cutoff, differences from exADMM at the same evenness."""
    exposures: dict[float, list[float]] = field(default_factory=dict)
    times: dict[str, dict[str, Any]] = field(default_factory=dict)
    growth: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def marks(self) -> dict[str, str]:
        """What tables say of methods that were shortened."""
        marks = {name: one.mark for name, one in self.decisions.items() if one.mark}
        if "iALS" in marks:
            above = dict.fromkeys(OVER_IALS, f"over iALS {marks['iALS']}")
            marks = {name: text for name, text in above.items() if name in self.decisions} | marks
        return marks

    @property
    def left_out(self) -> dict[str, str]:
        """The methods that were not run, with the reasons."""
        return {name: one.left_out for name, one in self.decisions.items() if one.left_out}


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
            "latent": plan.latent,
            "epochs": plan.epochs,
            "seed": plan.seed,
        }
        self.plan, self.split, self._tell = plan, split, tell
        self.sights = Sights(folder / "sights")
        self._folder, self._cache = folder, ResultCache(folder, about)
        known = methods_of(
            plan.experiment,
            factors=plan.width,
            latent=plan.latent,
            epochs=plan.epochs,
            threads=plan.threads,
            seed=plan.seed,
        )
        self._methods = {name: known[name] for name in plan.order if name in known}
        self._searches: dict[tuple[str, int], Search] = {}
        self._kept: list[str] = []

    def findings(self) -> Findings:
        """Say what it will take, tune, measure on the test users, then time."""
        found, experiment = Findings(size_of(self.split)), self.plan.experiment
        found.forecasts = self._forecasts()
        found.decisions = self._decisions(found.forecasts)
        self._kept = [name for name in self.plan.order if name not in found.left_out]
        self._tune(found.decisions)
        found.trials = {name: self._count(name) for name in self._kept}
        for k in experiment.cutoffs:
            found.points[k] = {name: self._points(name, k) for name in self._kept}
            found.paired[k] = list(differences(found.points[k], k, self.sights.by_user))
        if "exADMM" in self._kept:
            for weight in (0.0, *sorted({*experiment.weights, *experiment.between})):
                what = f"exposure at weight {weight:g}"
                found.exposures[weight] = self._once(what, self._exposure, weight)
        threads = f"{self.plan.threads or 'all'} threads"
        timed = [name for name in self._kept if name in TIMED_METHODS]
        for name in timed:
            what = f"time of {name}, {threads}"
            found.times[name] = self._once(what, self._time, name, len(timed))
            what = f"growth of {name}, {threads}"
            found.growth[name] = self._once(what, growth, name, self.plan.threads)
        return found

    def searches(self) -> list[Search]:
        """Return all searches, in the order of the methods."""
        return list(self._searches.values())

    def shown_at(self, point: Mapping[str, Any]) -> ShownLists:
        """Return who was shown what at a point."""
        return self.sights.shown_at(point)

    def _once(self, what: str, find_out: Callable[..., Any], *arguments: Any, of: str = "") -> Any:
        """Return a result of the cache, or work it out; ``of`` is a further part of its name."""
        self._tell(what)
        # A signal waits until the result is written down.
        with finishing():
            return self._cache.once(what + of, lambda: find_out(*arguments))

    def _forecasts(self) -> dict[str, MethodForecast]:
        """Estimate what every method takes."""
        what = f"what it will take: {', '.join(self.plan.order)}"
        return {
            name: MethodForecast(**one) for name, one in self._once(what, self._measure).items()
        }

    def _measure(self) -> dict[str, Any]:
        k = self.plan.experiment.cutoffs[-1]
        return {
            name: (
                forecast_reranker(name, self._methods["iALS"], self.split, k)
                if name in OVER_IALS
                else forecast_method(self._methods[name], self.split, k)
            )._asdict()
            for name in self.plan.order
        }

    def _decisions(self, forecasts: dict[str, MethodForecast]) -> dict[str, MethodPlan]:
        """Decide how every method is run, once and for all, and tell all of it before the start."""

        def decided() -> dict[str, Any]:
            found = decide_all(forecasts, self._claims(), self._seconds, room())
            return {name: asdict(one) for name, one in found.items()}

        limit = "" if self._seconds is None else f" in {self._seconds:g} s"
        what = f"what is run{limit}: {', '.join(self.plan.order)}"
        decisions = {name: MethodPlan(**one) for name, one in self._once(what, decided).items()}
        for name, decision in decisions.items():
            self._tell(told(name, forecasts[name], decision))
        return decisions

    @property
    def _seconds(self) -> float | None:
        """The time for tuning; None where a number of trials rules, or only first settings run."""
        plan = self.plan
        ruled = plan.trials is None and plan.budget > 0
        return 60 * plan.budget * _TUNING if ruled else None

    def _claims(self) -> dict[str, Claim]:
        cutoffs = len(self.plan.experiment.cutoffs)
        above = {
            name: Claim(share, len(first_settings(name, 1)), cutoffs)
            for name, share in RERANKER_SHARES.items()
        }
        return above | {
            name: Claim(method.share, max(1, len(method.first)))
            for name, method in self._methods.items()
        }

    def _tune(self, decisions: dict[str, MethodPlan]) -> None:
        """Search for settings; re-rankers come last, because they start from the best iALS."""
        cutoffs, trials = self.plan.experiment.cutoffs, self.plan.trials
        parts = divide(self._claims(), self._kept, self._seconds)
        for name in sorted(self._kept, key=lambda name: name in OVER_IALS):
            allowance = Allowance(parts[name] or 0.0, trials)
            if name in OVER_IALS:
                for k in cutoffs:
                    search = self._reranker_search(name, k, decisions[name].first)
                    search.run(self.split, allowance, self._tell)
                continue
            method, at_most = self._methods[name], decisions[name].at_most
            first = method.first[: decisions[name].first]
            folder = self._folder / name.lower()
            if at_most is not None:
                method = replace(method, fixed={**method.fixed, "epochs": at_most})
                folder = folder.with_name(f"{folder.name}-{at_most}-epochs")
            method = self._methods[name] = replace(method, first=first)
            search = Search(name, method, folder, cutoffs, seed=self.plan.seed)
            self._searches[name, cutoffs[-1]] = search
            search.run(self.split, allowance, self._tell)

    def _reranker_search(self, name: str, k: int, first: int) -> Search:
        """Return the search for a re-ranker's settings over the best iALS at a cutoff."""
        best = self._search("iALS", k).chosen(k)[-1]
        model = self._search("iALS", k).model(best, self.split)
        folder = self._folder / f"{name.lower()}-{k}-over-{best.number + 1}"
        method = reranking_method(name, model, k)
        method = replace(method, first=method.first[:first])
        search = Search(name, method, folder, (k,), seed=self.plan.seed)
        self._searches[name, k] = search
        return search

    def _search(self, name: str, k: int) -> Search:
        """Return the search for a method's settings at a cutoff."""
        return self._searches[name, k if name in OVER_IALS else self.plan.experiment.cutoffs[-1]]

    def _count(self, name: str) -> int:
        return sum(len(one.tried) for (of, _), one in self._searches.items() if of == name)

    def _points(self, name: str, k: int) -> Any:
        """Measure a method on the test users; another choice of trials is another measurement."""
        search = self._search(name, k)
        chosen = ", chosen: " + " ".join(str(one.number + 1) for one in search.chosen(k))
        what = f"{name} for the test users, K = {k}"
        return self._once(what, measured_points, search, self.split, k, self.sights, of=chosen)

    def _exposure(self, weight: float) -> list[float]:
        settings = {**self._methods["exADMM"].fixed, **self.plan.experiment.exadmm}
        k = self.plan.experiment.cutoffs[-1]
        return exposures(settings, weight, self.split, k)

    def _time(self, name: str, n_timed: int) -> dict[str, Any]:
        experiment = self.plan.experiment
        k = experiment.cutoffs[-1]
        trained = "iALS" if name == FAIRREC else name
        search, method = self._search(trained, k), self._methods[trained]
        patience = max(_LEAST_PATIENCE, 60 * self.plan.budget * _TIMING / n_timed)
        best = search.chosen(k)[-1]
        training = training_time(method, best.settings, self.split, patience)
        model = search.model(best, self.split)

        def recommend(k: int) -> object:
            # FairRec is timed with the largest guarantee that it has.
            served = FairRec(alpha=1.0).over(model) if name == FAIRREC else model
            return served.recommend(self.split.test.history, k=k)

        if name == FAIRREC:
            n_bytes = bytes_taken(lambda: recommend(k))
        else:
            n_bytes = training_bytes(method, best.settings, self.split)
        width = method.fixed.get("latent", method.fixed.get("factors"))
        inference = inference_times(recommend, experiment.timed)
        return {**training, "d": width, "bytes": n_bytes, "inference": inference}
