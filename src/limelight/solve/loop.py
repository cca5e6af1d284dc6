"""The loop of every fit of factors: epochs, timing, progress, callbacks, checks and stopping.

Networks have a loop of their own, :mod:`limelight.models.neural.train`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from limelight._base.progress import progress_bar
from limelight.solve.divergence import check_finite, check_outcome, told_in_words
from limelight.solve.state import as_stand, restore
from limelight.solve.trace import TraceRecord, describe, user_norm
from limelight.store.checkpoint import keeping

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from limelight.solve.problem import Problem
    from limelight.solve.state import State
    from limelight.store.checkpoint import Keeper

Callback: TypeAlias = Callable[[int, TraceRecord | None], bool | None]
"""Called after every epoch with its number and, where it was traced, its record; true stops."""


class Status(Enum):
    """How a fit ended, and what that means."""

    FINISHED = "All epochs ran. A trace that still falls says that more epochs would change it."
    CONVERGED = "The last traced epoch moved every part of the state by less than the tolerance."
    STOPPED = "The callback asked for the end."
    STALLED = "Validation got no better for many epochs, so the rest were not run."
    UNSETTLED = (
        "All epochs ran, but the objective ended above a value it had before. Use "
        "learning_rate='auto' and penalty='auto'; if they are, run more epochs."
    )


@dataclass(frozen=True)
class Schedule:
    """When a fit ends and what it shows on the way."""

    epochs: int
    tolerance: float
    trace_every: int
    callback: Callback | None = None
    show_progress: bool | None = None
    description: str = "fit"
    checkpoint: Keeper | None = None
    """Where to keep the state, and to go on from."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the fit is of: a checkpoint of any other is refused."""

    def is_traced(self, epoch: int) -> bool:
        """Tell whether the epoch with this number, counted from 1, is measured: the last one is."""
        return epoch == self.epochs or (self.trace_every > 0 and epoch % self.trace_every == 0)


@dataclass(frozen=True)
class Outcome:
    """The trace of a fit and how it ended."""

    trace: list[TraceRecord]
    status: Status


def run(
    problem: Problem, state: State, epoch: Callable[[State], None], schedule: Schedule
) -> Outcome:
    """Run epochs until they are done, the state stands still, or the callback has enough.

    BLAS runs on one thread meanwhile: the kernels have threads of their own, and small products
    must not depend on how many there are.

    Raises
    ------
    SolveError
        If a factor is not finite, if all are 0, or if they fit worse than zeros would.
    """
    trace: list[TraceRecord] = []
    status, seconds = _take_up(problem, state, trace, schedule)
    with (
        keeping(schedule.checkpoint) as keep,
        threadpool_limits(1, user_api="blas"),
        np.errstate(over="ignore", invalid="ignore"),  # divergence is told in words, not warned of
        progress_bar(schedule.description, schedule.epochs, show=schedule.show_progress) as advance,
    ):
        for _ in range(state.epoch):
            advance()
        while state.epoch < schedule.epochs and status is Status.FINISHED:
            before = None
            if schedule.is_traced(state.epoch + 1):
                before = _snapshot(problem, state)
            started = time.perf_counter()
            with told_in_words(problem, f"in epoch {state.epoch + 1}"):
                epoch(state)
            seconds += time.perf_counter() - started
            state.epoch += 1
            check_finite(problem, state)
            record = None
            if before:
                state.settle(problem.threads)
                record = describe(problem, state, before, seconds)
                trace.append(record)
            advance()
            if schedule.callback and schedule.callback(state.epoch, record):
                status = Status.STOPPED
            elif record and _stands_still(problem, state, record, schedule.tolerance):
                status = Status.CONVERGED
            if keep(as_stand, state, trace, seconds):
                # A signal waits; leaving the block passes it on.
                return Outcome(trace, Status.STOPPED)
        state.settle(problem.threads)
        # Only the end is judged: what was traced on the way must not change the outcome.
        check_outcome(problem, state)
    if status is Status.FINISHED and _is_unsettled(trace):
        status = Status.UNSETTLED
    return Outcome(trace, status)


def _take_up(
    problem: Problem, state: State, trace: list[TraceRecord], schedule: Schedule
) -> tuple[Status, float]:
    """Go back to where the fit stood, if it was interrupted; perhaps it had come to its end."""
    kept = schedule.checkpoint and schedule.checkpoint.load(schedule.about)
    seconds = restore(kept, state, trace) if kept else 0.0
    is_traced = bool(trace) and trace[-1].epoch == state.epoch
    if is_traced and _stands_still(problem, state, trace[-1], schedule.tolerance):
        return Status.CONVERGED, seconds
    return Status.FINISHED, seconds


def _snapshot(problem: Problem, state: State) -> State:
    state.settle(problem.threads)
    return replace(state, U=state.U.copy(), V=state.V.copy(), s=state.s.copy(), w=state.w.copy())


def _stands_still(problem: Problem, state: State, record: TraceRecord, tolerance: float) -> bool:
    """Compare each residual with the size of what moved."""
    moved = (
        (record.residual_V, float(np.linalg.norm(state.V))),
        (record.residual_U, user_norm(problem, state.U)),
        (record.residual_s, float(np.linalg.norm(state.s))),
        (record.residual_w, float(np.linalg.norm(state.w))),
    )
    return all(residual <= tolerance * size for residual, size in moved)


def _is_unsettled(trace: list[TraceRecord]) -> bool:
    """Tell whether the objective ended clearly above a value it had before."""
    objectives = [record.objective for record in trace]
    return bool(objectives) and objectives[-1] > (1 + _SETTLED) * min(objectives)


_SETTLED = 1e-3
