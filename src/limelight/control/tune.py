"""Tuning: the settings that validation users prefer, by successive halving with warm starts.

A trial with few factors costs a fraction of one with many, and tells much about it. So many
settings are tried with few factors, the better half of them with twice as many, and so on. A trial
of a later round starts from the factors of the one before, padded with random ones; a trial of the
first round starts from that of its nearest neighbour. In the end the neighbours of the best are
tried, from where that one is.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight._base.files import refuse_stranger
from limelight._base.progress import progress_bar
from limelight._base.settings import check_integer
from limelight._base.signals import finishing
from limelight._base.text import parse_duration
from limelight.control.tune_result import Trial, TuneResult
from limelight.control.tune_space import FactorSpace, Plan, Round, Space, around, spread_out
from limelight.data.held_out import refolded
from limelight.data.split import as_split
from limelight.metrics.evaluate import evaluate
from limelight.models.base import Model
from limelight.models.ease import EASE, auto_regularization
from limelight.models.exadmm import ExADMM
from limelight.models.factor_model import FactorModel
from limelight.solve.cost import row_solve
from limelight.solve.state import SideNumber, initial_factors
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.checkpoint import FILE, ResultCache

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from limelight._base.arrays import Float32, Float64
    from limelight.data.held_out import HeldOut
    from limelight.data.split import Split

    Factors = tuple[Float32, Float32]

BUDGET = "5m"
_NUMBERS_OF_TRIALS = 64, 48, 32, 24, 16, 12, 8, 6
_ROUGH = 1e-3
"""The tolerance of a trial: enough to compare settings with."""
_EPOCHS_NEAR, _EPOCHS_PADDED = 4, 5
"""At most so many epochs from the factors of a neighbour, and from padded ones."""
_LAST_EPOCHS = 5
"""Of the two fits at the end, where time is planned."""
_ASKED, _MOST_FOLDS = 10_000, 5
"""How many lists validation users are asked about, and how often one is asked at most."""
_STEP = 0.2
_TIMID = 0.9
"""Which share of a budget is planned for: a prediction is not always right."""


def tune(
    data: Any,
    *,
    model: Model | None = None,
    budget: str | float | None = None,
    trials: int | None = None,
    at: int = 20,
    folder: str | os.PathLike[str] | None = None,
    show_progress: bool | None = None,
) -> TuneResult:
    """Find the settings that validation users prefer, by nDCG.

    Of factor models these are the number of factors, the regularisation, its exponent and the
    unobserved weight; epochs follow from convergence. Many settings are tried with few factors, the
    better ones again with more, and every trial starts from the factors of an earlier one. Of other
    models it is what they declare, one fit a trial. Test users are looked at once, at the end: for
    what was found and for the settings it started from.

    Parameters
    ----------
    data : Split, Interactions or sparse matrix
        What to learn from and to measure with. Unless it is split, a tenth of the users is held
        out for validation and another for the test, at most 5,000 each.
    model
        What to tune; ``ExADMM()`` unless given. Settings other than its defaults stay as they are.
    budget
        How long it may take, such as "5m", "1h" or a number of seconds; "5m" unless trials are
        given. How many trials that is depends on the machine, so the result may too.
    trials
        How many settings to try; then the same call gives the same result on any machine.
    at
        Length of the lists whose nDCG counts.
    folder
        Where to keep every trial; the same call goes on where it was interrupted. In the end it
        has ``tune.json``, ``tune.parquet``, ``tune.png`` and ``model``.
    show_progress
        Whether to show a bar on standard error; None does so on a terminal.

    Returns
    -------
    TuneResult
        With ``settings``, ``model``, which is fitted to the training users, and ``trials``.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(600, 100, 9000).interactions
    >>> found = ll.tune(data, model=ll.IALS(epochs=10), trials=6, at=10)
    >>> len(found.trials), sorted(found.settings)[:2]
    (6, ['epochs', 'factors'])
    >>> found.best.ndcg >= found.trials[0].ndcg
    True
    """
    base = ExADMM() if model is None else model
    if not isinstance(base, Model):
        message = f"there is no model to tune: {base!r}"
        raise ConfigError(message, hint="pass one such as ll.ExADMM()")
    seconds = parse_duration("budget", budget or BUDGET) if budget or trials is None else None
    if trials is not None:
        check_integer("trials", trials, least=1, most=10_000)
    split = as_split(data)
    check_integer("at", at, least=1, most=split.train.n_items)
    limits = _Limits(seconds, trials)
    about = {
        "model": type(base).__name__,
        **{name: value for name, value in base.get_params().items() if name != "num_threads"},
        "data": " ".join([split.train.fingerprint(), *map(_digest, (split.validation, split.test))]),
        "at": at,
        "trials": trials,
        "budget": seconds,
    }
    kept = TrialCache(folder, about)
    search = (_FactorSearch if isinstance(base, FactorModel) else _Search)(
        base, split, at, kept, limits
    )
    with progress_bar("tune", trials or _NUMBERS_OF_TRIALS[0], show=show_progress) as advance:
        for trial in search.trials():
            limits.spent += trial.seconds
            best = max(found.ndcg for found in search.found)
            advance(f"tune {type(base).__name__}: best nDCG@{at} {best:.4f}")
    return kept.finish(search.result())


def _digest(part: HeldOut) -> str:
    from limelight.store.checkpoint import digest

    return str(digest(*(m.indices for m in (part.history, part.targets))))


@dataclass
class _Limits:
    """How long a search may take, and how long it took so far, earlier runs of it included."""

    seconds: float | None
    trials: int | None
    spent: float = 0.0

    def allow(self, seconds: float) -> bool:
        """Tell whether there is time for so many seconds more."""
        return self.seconds is None or self.spent + seconds <= self.seconds


class TrialCache:
    """Trials by name, and the factors they came to: in a folder, or in memory."""

    def __init__(self, path: str | os.PathLike[str] | None, about: dict[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._factors: dict[str, Factors] = {}
        self._results: ResultCache | None = None
        if self._path is not None:
            if self._path.exists() and not self._path.is_dir():
                message = f"the output is not a folder: {str(self._path)!r}"
                raise DataError(message, hint="choose another name")
            refuse_stranger(self._path, lambda folder: (folder / "state" / FILE).is_file())
            self._results = ResultCache(self._path / "state", about)

    def once(self, name: str, find_out: Callable[[], Any]) -> Any:
        """Return what was found out before, or find it out now; JSON."""
        return find_out() if self._results is None else self._results.once(name, find_out)

    def trial(self, name: str, find_out: Callable[[], tuple[Trial, Factors | None]]) -> Trial:
        """Return a trial, made now unless it was before; a signal waits until it is kept."""

        def make() -> dict[str, Any]:
            made, factors = find_out()
            if factors is not None and self._path is None:
                self._factors[name] = factors
            elif factors is not None:
                save_arrays(self._file(name), dict(zip("UV", factors, strict=True)))
            return asdict(made)

        if self._results is None:
            return Trial(**make())
        with finishing():
            return Trial(**self._results.once(name, make))

    def factors(self, name: str) -> Factors:
        """Return the factors that a trial came to."""
        if self._path is None:
            return self._factors[name]
        found = load_arrays(self._file(name))
        return found["U"], found["V"]

    def forget(self, names: list[str]) -> None:
        """Let go of the factors of trials that nothing starts from any more."""
        for name in names:
            self._factors.pop(name, None)
            if self._path is not None:
                self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return Path(self._path or "") / "state" / f"{name}.safetensors"

    def finish(self, result: TuneResult) -> TuneResult:
        """Write what was found."""
        if self._path is not None:
            result.save(self._path)
        return result


class _Search:
    """Tries settings of a model one after the other, each by a fit from nothing."""

    def __init__(
        self, base: Any, split: Split, at: int, kept: TrialCache, limits: _Limits
    ) -> None:
        self.base, self.split, self.at, self.kept, self.limits = base, split, at, kept, limits
        # Few users say more when they are asked several times, each time for other items of theirs.
        folds = int(np.clip(_ASKED // split.validation.n_users, 1, _MOST_FOLDS))
        self.asked = refolded(split.validation, folds=folds) if folds > 1 else [split.validation]
        self.found: list[Trial] = []
        self.notes: list[str] = []

    def trials(self) -> Iterator[Trial]:
        """Try the defaults first, then what fills the space of settings evenly."""
        auto = {}
        if isinstance(self.base, EASE):
            auto = {"regularization": auto_regularization(self.split.train)}
        space = Space(self.base.config, auto)
        if not space.dimensions:
            message = f"{type(self.base).__name__} has no setting to tune"
            hint = "leave one to its default; IALS, ExADMM, EASE and networks have some"
            raise ConfigError(message, hint=hint)
        places = spread_out(space.dimensions)
        while self._goes_on():
            place = None if not self.found else next(places)
            settings = space.settings(place)
            name = f"trial-{len(self.found)}"
            yield self._note(self.kept.trial(name, lambda s=settings: (self._try(0, s)[0], None)))  # type: ignore[misc]

    def _goes_on(self) -> bool:
        if not self.found:
            return True
        if self.limits.trials is not None and len(self.found) >= self.limits.trials:
            return False
        return self.limits.allow(max(trial.seconds for trial in self.found))

    def _note(self, trial: Trial) -> Trial:
        self.found.append(trial)
        return trial

    def _make(self, settings: dict[str, Any]) -> Any:
        return type(self.base)(**{**self.base.config.changed(), **settings})

    def _try(
        self, number: int, settings: dict[str, Any], init: Factors | None = None, **fitting: Any
    ) -> tuple[Trial, Any]:
        """Fit, and ask validation users."""
        started = time.perf_counter()
        model = self._make({**settings, **fitting})
        start = {} if init is None else {"init": init}
        ndcg, figures, epochs, factors = 0.0, {}, 0, None
        try:
            model.fit(self.split.train, show_progress=False, **start, **self._validation(model))
            figures = self._asked(model)
            ndcg = figures[f"ndcg@{self.at}"]
            epochs = model.trace_[-1].epoch if model.trace_ else 0
            if isinstance(model, FactorModel):
                factors = (model.user_factors, model.item_factors)
        except SolveError:
            pass  # settings that a fit refuses are the worst there are
        trial = Trial(
            number=len(self.found),
            round=number,
            settings=settings,
            ndcg=float(ndcg),
            gini=float(figures.get(f"gini@{self.at}", 1.0)),
            epochs=int(epochs),
            seconds=time.perf_counter() - started,
        )
        return trial, factors

    def _asked(self, model: Any) -> dict[str, float]:
        """Ask validation users: accuracy is that of all folds, exposure that of the first."""
        folds = [evaluate(model, part, k=self.at) for part in self.asked]
        key = f"ndcg@{self.at}"
        return {**folds[0], key: float(np.mean([one[key] for one in folds]))}

    def _validation(self, model: Any) -> dict[str, Any]:
        """Hand validation users to models that stop by them."""
        return {} if isinstance(model, FactorModel) or not hasattr(model, "kept_") else {
            "validation": self.split.validation
        }

    def result(self) -> TuneResult:
        """Fit the best once more, and look at test users."""
        return self._result(self._fitted(self.best), self._fitted(self.found[0]))

    @property
    def best(self) -> Trial:
        """The trial with the highest nDCG; of equal ones, the first."""
        return max(self.found, key=lambda trial: trial.ndcg)

    def _fitted(self, trial: Trial) -> Any:
        model = self._make(trial.settings)
        return model.fit(self.split.train, show_progress=False, **self._validation(model))

    def _result(self, model: Any, first: Any) -> TuneResult:
        measured = {
            name: {
                "validation": self._asked(one),
                "test": dict(evaluate(one, self.split.test, k=self.at)),
            }
            for name, one in (("tuned", model), ("default", first))
            if one is not None
        }
        return TuneResult(
            trials=tuple(self.found),
            best=self.best,
            model=model,
            settings={**self.base.config.changed(), **self.best.settings},
            at=self.at,
            measured=measured,
            notes=tuple(self.notes),
        )


@dataclass
class _Candidate:
    """Settings that are tried in round after round."""

    number: int
    place: tuple[float, ...] | None
    last: str = ""
    """The name of the last trial that came to factors."""
    ndcg: float = 0.0
    trial: int = 0
    """The number of the last trial."""

    def take(self, name: str, trial: Trial) -> None:
        """Take over what a trial came to."""
        self.last, self.ndcg, self.trial = name if trial.ndcg else "", trial.ndcg, trial.number


class _FactorSearch(_Search):
    """Tries settings of a factor model with more and more factors, from those of before."""

    def trials(self) -> Iterator[Trial]:
        """Run the rounds, then look around the best."""
        self.space = FactorSpace(self.base.config, self.split.train)
        most = self.space.settled().factors
        self.is_fixed = "factors" in self.base.config.changed()
        plan = Plan.of(self.limits.trials or max(_NUMBERS_OF_TRIALS), most, fixed=self.is_fixed)
        first = self.first = _Candidate(0, None)
        yield self._advance(0, first, plan.rounds[0].factors)
        if self.limits.trials is None:
            plan = self._affordable(most)
        candidates = [first]
        places = spread_out(self.space.dimensions)
        while len(candidates) < plan.rounds[0].trials:
            candidates.append(_Candidate(len(candidates), next(places)))
        for number, one in enumerate(plan.rounds):
            tried = []
            for candidate in candidates:
                if not (number == 0 and candidate is first and candidate.last):
                    if tried and not self._has_time(one, plan.rounds[number + 1 :]):
                        break
                    yield self._advance(number, candidate, one.factors, near=tried)
                tried.append(candidate)
            candidates = self._promoted(tried, plan.rounds[number + 1 : number + 2])
        yield from self._refine(plan, max(tried, key=lambda c: c.ndcg))

    def _promoted(self, tried: list[_Candidate], following: tuple[Round, ...]) -> list[_Candidate]:
        """Return those who go on: the first one, to compare with, and the best of the others."""
        if not following:
            return []
        others = sorted(tried[1:], key=lambda c: -c.ndcg)[: following[0].trials - 1]
        gone = [c.last for c in tried[1:] if c not in others]
        self.kept.forget(gone)
        return [tried[0], *others]

    def _advance(
        self, number: int, candidate: _Candidate, factors: int, near: list[_Candidate] | None = None
    ) -> Trial:
        """Try a candidate in a round, from its own factors or those of the nearest one."""
        name = f"round-{number}-{candidate.number}"
        settings = {**self.space.settings(candidate.place), "factors": factors}
        started = [other for other in near or () if other.last]

        def find_out() -> tuple[Trial, Any]:
            if candidate.last:
                start = padded(self.kept.factors(candidate.last), factors, self.base.config)
                return self._try(number, settings, start, epochs=_EPOCHS_PADDED, tolerance=_ROUGH)
            if started:
                closest = min(started, key=lambda other: _distance(other.place, candidate.place))
                start = self.kept.factors(closest.last)
                return self._try(number, settings, start, epochs=_EPOCHS_NEAR, tolerance=_ROUGH)
            return self._try(number, settings, tolerance=_ROUGH)

        trial = self._note(self.kept.trial(name, find_out))
        if candidate.last:
            self.kept.forget([candidate.last])
        candidate.take(name, trial)
        return trial

    def _refine(self, plan: Plan, best: _Candidate) -> Iterator[Trial]:
        """Look around the best, from where it is; a step that helps is repeated, others halve."""
        factors, step = plan.rounds[-1].factors, _STEP
        self.final = best
        left, tried = plan.refined, {best.place}
        number = len(plan.rounds)
        while left:
            places = [p for p in around(self.final.place or (0.5, 0.5, 0.0), step) if p not in tried]
            if not places:
                step /= 2
                continue
            if not self._has_time(Round(factors, 1), ()):
                return
            tried.add(places[0])
            candidate = _Candidate(len(tried) - 1, places[0])
            settings = {**self.space.settings(candidate.place), "factors": factors}
            start = self.final.last
            name = f"round-{number}-{candidate.number}"
            trial = self.kept.trial(
                name,
                lambda s=settings, f=start: self._try(  # type: ignore[misc]
                    number, s, self.kept.factors(f), epochs=_EPOCHS_NEAR, tolerance=_ROUGH
                ),
            )
            candidate.take(name, trial)
            if candidate.ndcg > self.final.ndcg:
                self.final = candidate
            else:
                self.kept.forget([name])
            left -= 1
            yield self._note(trial)

    @property
    def best(self) -> Trial:
        """The trial that was taken to its end."""
        return next(trial for trial in self.found if trial.number == self.final.trial)

    def result(self) -> TuneResult:
        """Take the best and the first until nothing changes any more, and look at test users."""
        if not self.final.last:
            message = f"no settings that were tried led to a model: {len(self.found)} trials"
            raise SolveError(message, hint="look at the data; give settings of your own to `fit`")
        model = self._finished(self.final)
        if self.final is self.first:
            return self._result(model, model)
        return self._result(model, self._finished(self.first) if self.first.last else None)

    def _finished(self, candidate: _Candidate) -> Any:
        trial = next(t for t in self.found if t.number == candidate.trial)
        model, start = self._make(trial.settings), self.kept.factors(candidate.last)
        return model.fit(self.split.train, init=start, show_progress=False)

    def _affordable(self, most: int) -> Plan:
        """Plan as many trials as the budget has time for, with fewer factors if need be."""

        def plan() -> list[int]:
            assert self.limits.seconds is not None
            for factors in (most, most // 2, most // 4, most // 8):
                for trials in _NUMBERS_OF_TRIALS:
                    found = Plan.of(trials, max(16, factors), fixed=self.is_fixed)
                    if self._predicted(found) <= _TIMID * self.limits.seconds:
                        return [trials, max(16, factors)]
            return [_NUMBERS_OF_TRIALS[-1], max(16, most // 8)]

        trials, factors = self.kept.once("plan", plan)
        if factors < most:
            self.notes.append(
                f"The budget has no time for {most} factors: none of more than {factors} was tried."
            )
        return Plan.of(trials, factors, fixed=self.is_fixed)

    def _predicted(self, plan: Plan) -> float:
        """Predict the seconds of a plan, and of the two fits at its end."""
        last = plan.rounds[-1].factors
        rounds = sum(one.trials * self._seconds(one.factors) for one in plan.rounds)
        ends = 2 * self._seconds(last, _LAST_EPOCHS)
        return rounds + plan.refined * self._seconds(last, _EPOCHS_NEAR) + ends

    def _has_time(self, one: Round, following: tuple[Round, ...]) -> bool:
        """Tell whether there is time for one more trial, and for two of each round that follows."""
        later = sum(2 * self._seconds(later.factors) for later in following)
        last = (following or (one,))[-1].factors
        ends = 2 * self._seconds(last, _LAST_EPOCHS)
        return self.limits.allow(self._seconds(one.factors) + later + ends)

    def _seconds(self, factors: int, epochs: int = _EPOCHS_PADDED) -> float:
        """Predict the seconds of a trial by the last one."""
        last = self.found[-1]
        speed = max(1, last.epochs) * self._work(last.settings["factors"]) / last.seconds
        return epochs * self._work(factors) / speed

    def _work(self, factors: int) -> float:
        """Return how many operations an epoch takes."""
        train = self.split.train
        users = np.diff(train.indptr).astype(np.float64)
        items = np.bincount(train.indices, minlength=train.n_items).astype(np.float64)
        rows: Float64 = np.concatenate([users, items])
        return float(row_solve(rows, factors).sum() + 2 * len(rows) * factors**2)


def _distance(one: tuple[float, ...] | None, other: tuple[float, ...] | None) -> float:
    a, b = (np.asarray(place or (0.5, 0.5, 0.0)) for place in (one, other))
    return float(np.linalg.norm(a - b))


def padded(factors: Factors, width: int, config: Any) -> Factors:
    """Make factors longer, with random ones as a fit from nothing starts with.

    Examples
    --------
    >>> import limelight as ll
    >>> short = np.ones((3, 2), np.float32), np.ones((4, 2), np.float32)
    >>> [one.shape for one in padded(short, 8, ll.IALS().config)]
    [(3, 8), (4, 8)]
    """
    found = []
    for old, side in zip(factors, SideNumber, strict=True):
        new = initial_factors(
            range(len(old)), width, scale=config.init_scale, seed=config.random_state, side=side
        )[:, :width].copy()
        new[:, : old.shape[1]] = old
        found.append(new)
    return found[0], found[1]
