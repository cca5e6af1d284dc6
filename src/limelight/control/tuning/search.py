"""Trials one after the other: how each is made, kept, and compared with the others."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight._base.files import delete_within, refuse_stranger, tidying
from limelight._base.signals import finishing
from limelight._base.text import short
from limelight.control.tuning.result import (
    RECORD,
    Trial,
    TuneResult,
    load_result,
    save_result,
)
from limelight.control.tuning.space import Space, spread_out
from limelight.data.held_out import refolded
from limelight.metrics.evaluate import evaluate
from limelight.models.ease import EASE, auto_regularization
from limelight.models.factor_model import FactorModel
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.checkpoint import FILE, ResultCache, kind_of
from limelight.store.json import read_json

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

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
    """Trials by name, and the factors they came to: in a folder, or in memory.

    ``about`` says what the search is of. A folder with any other search is refused, and so is one
    that holds something else. Once the search is done, the folder holds only what was found.
    """

    def __init__(self, path: str | os.PathLike[str] | None, about: dict[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._about: dict[str, Any] = json.loads(json.dumps(about))
        self._factors: dict[str, Factors] = {}
        self._results: ResultCache | None = None

    def begin(self, trials: int | None) -> TuneResult | None:
        """Open the folder; return what was found there, if so many trials were made."""
        if self._path is None:
            return None
        if self._path.exists() and not self._path.is_dir():
            message = f"the output is not a folder: {str(self._path)!r}"
            raise DataError(message, hint="choose another name")
        refuse_stranger(self._path, _may_go_on)
        made: tuple[Trial, ...] = ()
        if (self._path / RECORD).is_file():
            run, found = load_result(self._path)
            _refuse_other_run(run, self._about)
            made = found.trials
            if trials is None or "trials" in self._about or len(made) == trials:
                self._tidy(self._path)
                return found
            if len(made) > trials:
                message = f"the folder holds {len(made)} trials, more than {trials}"
                raise ConfigError(message, hint="choose another folder, or ask for more trials")
        begun: dict[str, Any] = self._about
        with suppress(OSError, ValueError, LookupError, TypeError):
            begun = dict(read_json(self._state / FILE)["about"])
        _refuse_other_run(begun, self._about)
        self._results = ResultCache(self._state, self._about)
        for trial in made:
            self._results.once(f"trial-{trial.number}", partial(asdict, trial))
        # What was found with fewer trials must not stand beside the model of more.
        (self._path / RECORD).unlink(missing_ok=True)
        return None

    @property
    def _state(self) -> Path:
        return Path(self._path or "") / "state"

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
            return Trial.from_dict(self._results.once(name, make))

    def factors(self, name: str) -> Factors:
        """Return the factors that a trial came to."""
        if self._path is None:
            return self._factors[name]
        found = load_arrays(self._file(name))
        if found.keys() != {"U", "V"}:
            message = f"the file holds no factors: {str(self._file(name))!r}"
            raise DataError(message, hint="move the folder away to start anew")
        return found["U"], found["V"]

    def forget(self, names: list[str]) -> None:
        """Let go of the factors of trials that nothing starts from any more."""
        for name in names:
            self._factors.pop(name, None)
            if self._path is not None:
                self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._state / f"{name}.safetensors"

    def finish(self, result: TuneResult, *, is_drawn: bool) -> TuneResult:
        """Write what was found, and delete what only an unfinished search needs."""
        if self._path is not None:
            save_result(result, self._path, run=self._about, is_drawn=is_drawn)
            self._tidy(self._path)
        return result

    def _tidy(self, path: Path) -> None:
        """Delete what only an unfinished search needs."""
        with tidying(f"{str(path)!r} is written"):
            delete_within(path, self._state)


def _may_go_on(folder: Path) -> bool:
    """Tell whether a folder holds a search, or no file at all, as after a kill at the start."""
    if (folder / RECORD).is_file() or (folder / "state" / FILE).is_file():
        return True
    return not any(file.is_file() and file.name[0] != "." for file in folder.rglob("*"))


def _refuse_other_run(found: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Refuse a folder of another search, and name the first difference: the model before others."""
    for name in (*about, *found):
        if found.get(name) != about.get(name):
            what = f"{name} {short(found.get(name))} instead of {short(about.get(name))}"
            hint = "choose another folder, or repeat the same flags"
            if name == "trials":
                hint = "another number makes other trials, not further ones: choose another folder"
            what = "other data" if name == "data" else what
            message = f"the folder holds another run, with {what}"
            if name == "kind":
                message = f"the folder holds {kind_of(found)}, not {about['kind']}"
            raise ConfigError(message, hint=hint)


class _End(NamedTuple):
    """A model that was fitted from scratch, and what validation users say of it."""

    model: Any
    settings: dict[str, Any]
    validation: dict[str, float]
    folds: float
    """The nDCG of all folds."""


class Search:
    """Tries settings of a model one after the other, each by a fit from scratch."""

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
        self.defaults = space.defaults()
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
        # One more trial, and the two fits at the end.
        return self.limits.allow(3 * max(trial.seconds for trial in self.found))

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
        figures: dict[str, float] = {}
        ndcg, epochs, trained, factors = 0.0, 0, 0.0, None
        try:
            model.fit(self.split.train, show_progress=False, **start, **self._validation(model))
            figures, ndcg = self.ask(model)
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

    def ask(self, model: Any) -> tuple[dict[str, float], float]:
        """Ask validation users; return all figures of the split itself, and the nDCG of all folds.

        The first fold is the split's own, so its figures are those of ``ll.evaluate``.
        """
        folds = [dict(evaluate(model, part, k=self.at)) for part in self.asked]
        return folds[0], float(np.mean([one[f"ndcg@{self.at}"] for one in folds]))

    def _validation(self, model: Any) -> dict[str, Any]:
        """Hand validation users to models that stop by them."""
        return (
            {}
            if isinstance(model, FactorModel) or not hasattr(type(model), "kept_")
            else {"validation": self.split.validation}
        )

    @property
    def best(self) -> Trial:
        """The trial with the highest nDCG; of equal ones, the first."""
        return max(self.found, key=lambda trial: trial.ndcg)

    def start(self) -> tuple[Trial, dict[str, Any]]:
        """Return the trial of the defaults, and numbers in place of those that are "auto"."""
        return self.found[0], self.defaults

    def result(self) -> TuneResult:
        """Fit the best and the defaults from scratch, ask validation users, and look at test users.

        Trials are compared before that, and fits from other factors end elsewhere than one from
        nothing. So what is measured here is what anybody gets with the same settings. Where
        validation users like the defaults as well, these are taken.
        """
        best, (first, defaults) = self.best, self.start()
        if not best.ndcg:
            message = f"none of {len(self.found)} trials gave a usable model"
            raise SolveError(message, hint="look at the data; give settings of your own to `fit`")
        default = self._fitted(defaults)
        tuned = default if best is first else self._fitted(best.settings)
        ends = [end for end in (tuned, default) if end is not None]
        if not ends:
            message = "neither the best settings nor the defaults gave a usable model"
            raise SolveError(message, hint="look at the data; give settings of your own to `fit`")
        # Of equal ones, the last is taken: the defaults.
        taken = max(reversed(ends), key=lambda end: end.folds)
        if taken is default:
            if tuned is not None and tuned is not default:
                self.notes.append(
                    f"The best trial ({best.number + 1}), fitted from scratch, has an nDCG of "
                    f"{tuned.folds:.4f} over the folds, no better than the defaults: they are kept."
                )
            best = first
        compared = {"tuned": taken} | ({} if default is None else {"default": default})
        return TuneResult(
            trials=tuple(self.found),
            best=best,
            model=taken.model,
            settings={**self.base.config.changed(), **taken.settings},
            default={**self.base.config.changed(), **defaults},
            at=self.at,
            folds=len(self.asked),
            measured={
                name: {
                    "folds": {f"ndcg@{self.at}": end.folds},
                    "validation": end.validation,
                    "test": dict(evaluate(end.model, self.split.test, k=self.at)),
                }
                for name, end in compared.items()
            },
            notes=tuple(self.notes),
        )

    def _fitted(self, settings: dict[str, Any]) -> _End | None:
        """Fit as anybody would, and ask validation users; None where the fit collapsed."""
        model = self.make(settings)
        try:
            model.fit(self.split.train, show_progress=False, **self._validation(model))
        except SolveError:
            return None
        return _End(model, settings, *self.ask(model))
