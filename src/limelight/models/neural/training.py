"""The loop of all neural models: epochs, timing, validation, early stopping, what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from limelight._errors import SolveError
from limelight._progress import progress_bar
from limelight.models.neural.stand import as_stand, restore
from limelight.solve.loop import Status
from limelight.store.checkpoint import keeping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jax import Array

    from limelight._arrays import Float32
    from limelight.models.neural.batches import Batch
    from limelight.models.neural.network import Parameters
    from limelight.store.checkpoint import Checkpoint

EpochCallback: TypeAlias = Callable[[int, Any], bool | None]
"""Called after every epoch with its number and its record; a true answer ends the fit."""


@dataclass(frozen=True)
class EpochRecord:
    """What is known of a fit after an epoch."""

    epoch: int
    seconds: float
    """Training time since the start, validation left out."""
    objective: float
    """The training loss, averaged over the updates of the epoch."""
    ndcg: float
    """nDCG@100 of the validation users."""


class State(NamedTuple):
    """What an update changes."""

    parameters: Parameters
    optimizer: Any
    updates: Array
    """How many there were."""
    key: Array
    """The source of chance of all updates."""


Step: TypeAlias = "Callable[[State, Batch], tuple[State, dict[str, Array]]]"
"""One update; it also tells the loss as ``objective``, and what else the record holds."""


@dataclass(frozen=True)
class Schedule:
    """When a fit ends, what it keeps, and what it shows on the way."""

    epochs: int
    early_stopping: int
    record: type[EpochRecord]
    keep_best: bool = True
    """Whether the epoch with the best validation is kept, rather than the last one."""
    callback: EpochCallback | None = None
    show_progress: bool | None = None
    description: str = "fit"
    checkpoint: Checkpoint | None = None
    """Where to keep the state, and to go on from."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the fit is of: a checkpoint of any other is refused."""


class Outcome(NamedTuple):
    """The parameters that were kept, the trace, and how the fit ended."""

    parameters: dict[str, Float32]
    trace: list[EpochRecord]
    status: Status


def run(
    state: State,
    step: Step,
    batches: Callable[[int], Iterable[Batch]],
    validate: Callable[[Parameters], float],
    schedule: Schedule,
) -> Outcome:
    """Run epochs until they are done, validation stands still, or the callback has enough.

    Parameters
    ----------
    state
        The first parameters.
    step
        Makes one update.
    batches
        Gives the batches of an epoch.
    validate
        Gives the nDCG of some parameters.
    schedule
        When to end and what to keep.

    Raises
    ------
    SolveError
        If the loss is not finite.
    """
    state, trace, kept = _taken_up(state, schedule)
    status, seconds = Status.FINISHED, trace[-1].seconds if trace else 0.0
    first_best = max(trace, key=lambda one: one.ndcg, default=None)
    best, best_epoch = (first_best.ndcg, first_best.epoch) if first_best else (-np.inf, 0)
    with (
        keeping(schedule.checkpoint) as keep,
        progress_bar(schedule.description, schedule.epochs, show=schedule.show_progress) as moved,
    ):
        for _ in trace:
            moved()
        for epoch in range(len(trace) + 1, schedule.epochs + 1):
            started = time.perf_counter()
            state, measures = _epoch(state, step, batches(epoch))
            seconds += time.perf_counter() - started
            _check_finite(measures, epoch)
            ndcg = validate(state.parameters)
            trace.append(schedule.record(epoch=epoch, seconds=seconds, ndcg=ndcg, **measures))
            moved()
            if ndcg > best:
                best, best_epoch = ndcg, epoch
                if schedule.keep_best:
                    kept = _copied(state.parameters)
            if schedule.callback and schedule.callback(epoch, trace[-1]):
                status = Status.STOPPED
            elif 0 < schedule.early_stopping <= epoch - best_epoch:
                status = Status.STALLED
            # A signal waits; leaving the block passes it on.
            if keep(as_stand, state, trace, kept):
                status = Status.STOPPED
            if status is not Status.FINISHED:
                break
    parameters = kept or _copied(state.parameters)
    for name, values in parameters.items():
        # The loss is measured before an update, so the last one may still have run away.
        _check_finite({name: float(np.abs(values).max(initial=0.0))}, trace[-1].epoch)
    return Outcome(parameters, trace, status)


def _taken_up(
    state: State, schedule: Schedule
) -> tuple[State, list[EpochRecord], dict[str, Float32]]:
    """Return where a checkpoint stands, or the beginning."""
    stored = schedule.checkpoint and schedule.checkpoint.load(schedule.about)
    return restore(stored, state, schedule.record) if stored else (state, [], {})


def _epoch(state: State, step: Step, batches: Iterable[Batch]) -> tuple[State, dict[str, float]]:
    """Look at all batches once; return the averages of what the updates tell."""
    import jax

    told = []
    for batch in batches:
        state, measures = step(state, batch)
        told.append(measures)
    # In one piece: NumPy would swallow an interrupt while it waits for the numbers one by one.
    told = jax.device_get(jax.block_until_ready(told))  # type: ignore[no-untyped-call]
    return state, {
        name: float(np.mean([measures[name] for measures in told], dtype=np.float64))
        for name in told[0]
    }


def _check_finite(measures: dict[str, float], epoch: int) -> None:
    for name, value in measures.items():
        if not np.isfinite(value):
            message = f"the fit diverged: {name} is {value} in epoch {epoch}"
            raise SolveError(message, hint="lower learning_rate")


def _copied(parameters: Parameters) -> dict[str, Float32]:
    """Copy to NumPy: the next update takes the memory of what it is given."""
    return {name: np.array(values, dtype=np.float32) for name, values in parameters.items()}
