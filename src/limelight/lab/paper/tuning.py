"""The search for good settings, on validation users alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight._base.files import delete_within
from limelight._base.text import first_words
from limelight.lab.fronts import front
from limelight.metrics.evaluate import evaluate
from limelight.metrics.lists import ListCount
from limelight.models.config import AUTO
from limelight.models.folder import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from limelight.data import Split
    from limelight.lab.paper.methods import PaperMethod
    from limelight.models.base import Model


class Trial(NamedTuple):
    """Settings, and what they gave on the validation users."""

    number: int
    settings: dict[str, Any]
    metrics: dict[str, float]
    seconds: float


class Search:
    """A method's trials, and the models of those that may still be the best.

    Trials are kept in a file, so that a search can go on another day; the time that they took
    counts towards the time that the search may take. It aims at the last of the cutoffs.
    """

    def __init__(
        self, name: str, method: PaperMethod, folder: Path, cutoffs: Sequence[int]
    ) -> None:
        self.name, self.method, self.cutoffs = name, method, tuple(cutoffs)
        self._folder = folder
        self._study = _open_study(folder / "trials.journal", name, controls=method.controls)

    @property
    def tried(self) -> list[Trial]:
        """All trials that gave lists, in their order."""
        return [
            Trial(trial.number, trial.params, trial.user_attrs["metrics"], trial.user_attrs["took"])
            for trial in self._study.get_trials(deepcopy=False)
            if trial.values is not None
        ]

    def run(self, split: Split, seconds: float, tell: Callable[[str], None]) -> None:
        """Try what is tried first, then search until the time is up."""
        if not self._study.trials:
            for settings in self.method.first or [{}]:
                self._study.enqueue_trial(self._within_space(settings))
        self._repeat_interrupted()
        while self._trials("WAITING") or (self.method.space and self._spent() < seconds):
            trial = self._study.ask(self._distributions())
            started = time.perf_counter()
            try:
                model = self.method.fit(trial.params, split)
            except SolveError as error:
                trial.set_user_attr("took", time.perf_counter() - started)
                self._study.tell(trial, state=_state("FAIL"))
                tell(f"{self.name} {trial.number + 1}: {error.message}")
                continue
            metrics = evaluate(model, split.validation, k=self.cutoffs).to_dict()
            trial.set_user_attr("metrics", metrics)
            trial.set_user_attr("took", time.perf_counter() - started)
            model.save(self._model_folder(trial.number), history=False)
            k = self.cutoffs[-1]
            aims = [metrics[f"ndcg@{k}"], metrics[f"gini@{k}"]]
            self._study.tell(trial, aims if self.method.controls else aims[:1])
            self._drop_beaten()
            said = f"nDCG@{k} {aims[0]:.4f}, Gini@{k} {aims[1]:.4f} over {ListCount.of(metrics)}"
            tell(f"{self.name} {trial.number + 1}: {said} (validation users)")

    def chosen(self, k: int) -> list[Trial]:
        """Return the front at a cutoff or, without control over exposure, the most accurate."""
        tried = self.tried
        if not tried:
            message = f"no settings of {self.name} gave lists"
            raise SolveError(message, hint="raise --budget, so that others are tried")
        if not self.method.controls:
            return [max(tried, key=lambda one: one.metrics[f"ndcg@{k}"])]
        return front(
            tried, lambda one: one.metrics[f"ndcg@{k}"], lambda one: one.metrics[f"gini@{k}"]
        )

    def model(self, trial: Trial) -> Model:
        """Load the model of a trial that is still among the best."""
        return load_model(self._model_folder(trial.number))

    def _repeat_interrupted(self) -> None:
        for trial in self._trials("RUNNING"):
            self._study.tell(trial.number, state=_state("FAIL"))
            self._study.enqueue_trial(trial.params)

    def _trials(self, state: str) -> list[Any]:
        found: list[Any] = self._study.get_trials(deepcopy=False, states=(_state(state),))
        return found

    def _spent(self) -> float:
        return float(sum(trial.user_attrs.get("took", 0.0) for trial in self._study.trials))

    def _within_space(self, settings: Any) -> dict[str, Any]:
        """Return the given or the default value of searched settings, clipped; "auto" is none."""
        known = {**self.method.make({}).get_params(), **settings}
        return {
            name: min(max(known[name], limits.low), limits.high)
            for name, limits in self.method.space.items()
            if known[name] != AUTO
        }

    def _distributions(self) -> dict[str, Any]:
        from optuna.distributions import FloatDistribution, IntDistribution

        return {
            name: IntDistribution(int(low), int(high), log=log)
            if whole
            else FloatDistribution(low, high, log=log)
            for name, (low, high, log, whole) in self.method.space.items()
        }

    def _model_folder(self, number: int) -> Path:
        return self._folder / f"model-{number}"

    def _drop_beaten(self) -> None:
        kept = {one.number for k in self.cutoffs for one in self.chosen(k)}
        for one in self.tried:
            if one.number not in kept:
                delete_within(self._folder, self._model_folder(one.number))


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]


def _drop_torn_line(journal: Path) -> None:
    """Cut off a last line that was not written to its end, before something is added to it."""
    if journal.exists():
        written = journal.read_bytes()
        whole = written[: written.rfind(b"\n") + 1]
        if whole != written:
            journal.write_bytes(whole)


def _open_study(journal: Path, name: str, *, controls: bool) -> Any:
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        message = "the search for settings needs Optuna, which is not installed"
        raise ConfigError(message, hint="pip install 'limelight[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    journal.parent.mkdir(parents=True, exist_ok=True)
    _drop_torn_line(journal)
    try:
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(journal))),
            study_name=name,
            directions=["maximize", "minimize"] if controls else ["maximize"],
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        message = f"cannot read {str(journal)!r}: {first_words(error)}"
        raise DataError(message, hint="move it away to search anew") from error
    # A resumed search gets another seed, because the same seed would draw the same settings again.
    study.sampler = optuna.samplers.TPESampler(seed=len(study.trials), multivariate=True)
    return study
