"""The search for good settings, on validation users alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight._base.files import delete_within
from limelight._base.text import first_words
from limelight.lab.fronts import front
from limelight.metrics.evaluate import evaluate
from limelight.metrics.lists import ListCount
from limelight.models.config import AUTO
from limelight.models.folder import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from limelight.data import Split
    from limelight.lab.paper.methods import Range


class Searched(Protocol):
    """A method whose settings can be searched."""

    @property
    def space(self) -> Mapping[str, Range]:
        """What is searched."""

    @property
    def first(self) -> Sequence[Mapping[str, float]]:
        """What is tried before the search."""

    @property
    def controls(self) -> bool:
        """Whether it trades accuracy for evenness, so that both are searched for."""

    @property
    def is_kept(self) -> bool:
        """Whether models are written to disk; one that is not is made again."""

    def defaults(self) -> dict[str, Any]:
        """Return settings as they are where nobody gives them."""

    def fit(self, settings: Mapping[str, Any], split: Split) -> Any:
        """Return what makes lists with some settings."""


class Trial(NamedTuple):
    """Settings, and what they gave on the validation users."""

    number: int
    settings: dict[str, Any]
    metrics: dict[str, float]
    seconds: float
    epochs: int | None = None
    """How many ran; None for what has none."""


class Allowance(NamedTuple):
    """When a search ends: after so many trials or, without a number, after so much time."""

    seconds: float = 0.0
    trials: int | None = None


class Search:
    """A method's trials, and the models of those that may still be the best.

    Trials are kept in a file, so that a search can go on another day; the time that they took
    counts towards the time that the search may take. It aims at the last of the cutoffs. What is
    tried depends on the seed and on the trials before, not on how often the search was interrupted.
    """

    def __init__(
        self,
        name: str,
        method: Searched,
        folder: Path,
        cutoffs: Sequence[int],
        *,
        seed: int = 0,
    ) -> None:
        self.name, self.method, self.cutoffs, self.seed = name, method, tuple(cutoffs), seed
        self._folder = folder
        self._study = _open_study(folder / "trials.journal", name, controls=method.controls)

    @property
    def tried(self) -> list[Trial]:
        """All trials that gave lists, in their order."""
        return [
            Trial(
                trial.number,
                trial.params,
                trial.user_attrs["metrics"],
                trial.user_attrs["took"],
                trial.user_attrs.get("epochs"),
            )
            for trial in self._study.get_trials(deepcopy=False)
            if trial.values is not None
        ]

    def run(self, split: Split, allowance: Allowance, tell: Callable[[str], None]) -> None:
        """Try what is tried first, then search until that is enough."""
        if not self._study.trials:
            for settings in self.method.first or [{}]:
                self._study.enqueue_trial(self._within_space(settings))
        self._repeat_interrupted()
        while self._goes_on(allowance):
            self._study.sampler = _sampler(self.seed, len(self._ended()))
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
            trial.set_user_attr("epochs", _epochs_of(model))
            if self.method.is_kept:
                model.save(self._model_folder(trial.number), history=False)
            k = self.cutoffs[-1]
            aims = [metrics[f"ndcg@{k}"], metrics[f"gini@{k}"]]
            self._study.tell(trial, aims if self.method.controls else aims[:1])
            self._drop_beaten()
            said = f"nDCG@{k} {aims[0]:.4f}, Gini@{k} {aims[1]:.4f} over {ListCount.of(metrics)}"
            tell(f"{self.name} {trial.number + 1}: {said} (validation users)")

    def _goes_on(self, allowance: Allowance) -> bool:
        ended = self._ended()
        if not self.method.space:
            return not ended
        if allowance.trials is not None:
            return len(ended) < allowance.trials
        if self._trials("WAITING"):
            return True
        spent = sum(trial.user_attrs["took"] for trial in ended)
        return bool(spent + spent / max(1, len(ended)) <= allowance.seconds)

    def _ended(self) -> list[Any]:
        """Return the trials that gave lists, or an error of their own; interrupted ones did not."""
        return [trial for trial in self._study.trials if "took" in trial.user_attrs]

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

    def model(self, trial: Trial, split: Split) -> Any:
        """Load the model of a trial that is still among the best, or fit it again."""
        if not self.method.is_kept:
            return self.method.fit(trial.settings, split)
        return load_model(self._model_folder(trial.number))

    def _repeat_interrupted(self) -> None:
        for trial in self._trials("RUNNING"):
            self._study.tell(trial.number, state=_state("FAIL"))
            self._study.enqueue_trial(trial.params)

    def _trials(self, state: str) -> list[Any]:
        found: list[Any] = self._study.get_trials(deepcopy=False, states=(_state(state),))
        return found

    def _within_space(self, settings: Any) -> dict[str, Any]:
        """Return the given or the default value of searched settings, clipped; "auto" is none."""
        known = {**self.method.defaults(), **settings}
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
    return study


def _sampler(seed: int, number: int) -> Any:
    """Return what draws the trial with a number, the same in a search that was resumed."""
    from optuna.samplers import TPESampler

    drawn = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return TPESampler(seed=drawn, multivariate=True)


def _epochs_of(model: Any) -> int | None:
    trace = getattr(model, "trace_", None)
    return int(trace[-1].epoch) if trace else None
