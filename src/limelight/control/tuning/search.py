"""Trials one after the other: how each is made, kept, and compared with the others."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight._base.files import refuse_stranger
from limelight._base.signals import finishing
from limelight.control.tuning.result import Trial, TuneResult
from limelight.control.tuning.space import Space, spread_out
from limelight.data.held_out import refolded
from limelight.metrics.evaluate import evaluate
from limelight.models.ease import EASE, auto_regularization
from limelight.models.factor_model import FactorModel
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.checkpoint import FILE, ResultCache

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from limelight._base.arrays import Float32
    from limelight.data.split import Split

    Factors = tuple[Float32, Float32]

_ASKED, _MOST_FOLDS = 10_000, 5
"""How many lists validation users are asked about, and how often one is asked at most."""


@dataclass
class Limits:
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


class Search:
    """Tries settings of a model one after the other, each by a fit from nothing."""

    def __init__(self, base: Any, split: Split, at: int, kept: TrialCache, limits: Limits) -> None:
        self.base, self.split, self.at, self.kept, self.limits = base, split, at, kept, limits
        # Few users say more when they are asked several times, each time for other items of theirs.
        folds = int(np.clip(_ASKED // split.validation.n_users, 1, _MOST_FOLDS))
        self.asked = refolded(split.validation)[:folds]
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
            yield self.note(self.kept.trial(name, lambda s=settings: (self.run(0, s)[0], None)))  # type: ignore[misc]

    def _goes_on(self) -> bool:
        if not self.found:
            return True
        if self.limits.trials is not None and len(self.found) >= self.limits.trials:
            return False
        return self.limits.allow(max(trial.seconds for trial in self.found))

    def note(self, trial: Trial) -> Trial:
        """Add a trial to those that were made."""
        self.found.append(trial)
        return trial

    def make(self, settings: dict[str, Any]) -> Any:
        """Make a model of settings, beside those that were given."""
        return type(self.base)(**{**self.base.config.changed(), **settings})

    def run(
        self, number: int, settings: dict[str, Any], init: Factors | None = None, **fitting: Any
    ) -> tuple[Trial, Any]:
        """Fit, and ask validation users."""
        started = time.perf_counter()
        model = self.make({**settings, **fitting})
        start = {} if init is None else {"init": init}
        ndcg, figures, epochs, trained, factors = 0.0, {}, 0, 0.0, None
        try:
            model.fit(self.split.train, show_progress=False, **start, **self._validation(model))
            figures = self.ask(model)
            ndcg = figures[f"ndcg@{self.at}"]
            if model.trace_:
                epochs, trained = model.trace_[-1].epoch, model.trace_[-1].seconds
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
            training_seconds=float(trained),
        )
        return trial, factors

    def ask(self, model: Any) -> dict[str, float]:
        """Ask validation users: accuracy is that of all folds, exposure that of the first."""
        folds = [evaluate(model, part, k=self.at) for part in self.asked]
        key = f"ndcg@{self.at}"
        return {**folds[0], key: float(np.mean([one[key] for one in folds]))}

    def _validation(self, model: Any) -> dict[str, Any]:
        """Hand validation users to models that stop by them."""
        return (
            {}
            if isinstance(model, FactorModel) or not hasattr(model, "kept_")
            else {"validation": self.split.validation}
        )

    def result(self) -> TuneResult:
        """Fit the best once more, and look at test users."""
        return self.measured(self._fitted(self.best), self._fitted(self.found[0]))

    @property
    def best(self) -> Trial:
        """The trial with the highest nDCG; of equal ones, the first."""
        return max(self.found, key=lambda trial: trial.ndcg)

    def _fitted(self, trial: Trial) -> Any:
        model = self.make(trial.settings)
        return model.fit(self.split.train, show_progress=False, **self._validation(model))

    def measured(self, model: Any, first: Any) -> TuneResult:
        """Measure what was found, and the defaults if they led anywhere, for all held-out users."""
        measured = {
            name: {
                "validation": self.ask(one),
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
