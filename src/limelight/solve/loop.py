"""The loop of every fit, of factors and of networks: what happens between two epochs.

A :class:`Solver` knows what an epoch is. The loop times it, shows progress, asks the callback,
keeps the trace and the checkpoint, and ends the fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from limelight._base.progress import progress_bar
from limelight.solve.state import TraceRecord
from limelight.store.checkpoint import checkpointing
from limelight.store.snapshot_fields import refuse_damaged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight.store.checkpoint import Checkpointing, Snapshot


Callback: TypeAlias = Callable[[int, TraceRecord | None], bool | None]
"""Called after every epoch with its number and, where it was traced, its record; true stops."""


class Status(Enum):
    """How a fit ended, and what that means."""

    FINISHED = "All epochs ran. If the trace is still falling, more epochs would change the result."
    CONVERGED = "The last epochs changed the objective, or all losses, by less than the tolerance."
    STOPPED = "The callback asked to stop."
    STALLED = "Validation got no better for many epochs, so the rest were not run."
    UNSETTLED = (
        "All epochs ran, but the objective ended above a value it had before. Use "
        "learning_rate='auto' and penalty='auto'; if they are, run more epochs."
    )


class Solver(Protocol):
    """A state, and what takes it from one epoch to the next."""

    @property
    def epoch(self) -> int:
        """How many epochs are done."""

    def restore(self, stored: Snapshot) -> tuple[list[Any], float]:
        """Go back to a snapshot; return its trace and the seconds spent so far."""

    def prepare(self, *, is_traced: bool) -> None:
        """Note what measuring the next epoch will need; this is not timed."""

    def step(self) -> None:
        """Run an epoch; only this is timed."""

    def measure(self, seconds: float) -> Any | None:
        """Refuse an epoch that diverged; return its record, if it is traced."""

    def status(self, trace: Sequence[Any]) -> Status:
        """Tell whether the fit is over; FINISHED as long as it is not."""

    def snapshot(self, trace: Sequence[Any], seconds: float) -> Snapshot:
        """Return the whole state of the fit, to be saved."""

    def finish(self, status: Status, trace: Sequence[Any]) -> Status:
        """Refuse an outcome that is no result; return how the fit ended."""


@dataclass(frozen=True)
class Schedule:
    """When a fit ends at the latest, when it is traced, and what is shown and kept on the way."""

    epochs: int
    trace_every: int = 1
    callback: Callable[[int, Any], bool | None] | None = None
    show_progress: bool | None = None
    description: str = "fit"
    checkpoint: Checkpointing | None = None
    """Where to keep the state, and to go on from."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the fit is of: a checkpoint of any other is refused."""

    def is_traced(self, epoch: int) -> bool:
        """Tell whether the epoch with this number, counted from 1, is measured: the last one is."""
        return epoch == self.epochs or (self.trace_every > 0 and epoch % self.trace_every == 0)


@dataclass(frozen=True)
class FitOutcome:
    """The trace of a fit and how it ended."""

    trace: list[Any]
    status: Status


def run(solver: Solver, schedule: Schedule) -> FitOutcome:
    """Run epochs until all are done, the solver has converged, or the callback says to stop.

    BLAS runs on one thread meanwhile: the kernels have threads of their own, and small products
    must not depend on how many there are.

    Raises
    ------
    SolveError
        If the solver refuses an epoch, or the outcome.
    """
    stored = schedule.checkpoint and schedule.checkpoint.load(schedule.about)
    trace, seconds = solver.restore(stored) if stored else ([], 0.0)
    if solver.epoch > schedule.epochs:
        refuse_damaged(f"has more epochs than the fit: {solver.epoch}")
    # An interrupted fit may have come to its end before it was saved.
    status = solver.status(trace)
    with (
        checkpointing(schedule.checkpoint) as save,
        threadpool_limits(1, user_api="blas"),
        np.errstate(over="ignore", invalid="ignore"),  # a check raises SolveError on divergence
        progress_bar(schedule.description, schedule.epochs, show=schedule.show_progress) as advance,
    ):
        for _ in range(solver.epoch):
            advance()
        while solver.epoch < schedule.epochs and status is Status.FINISHED:
            solver.prepare(is_traced=schedule.is_traced(solver.epoch + 1))
            started = time.perf_counter()
            solver.step()
            seconds += time.perf_counter() - started
            record = solver.measure(seconds)
            if record is not None:
                trace.append(record)
            advance()
            if schedule.callback and schedule.callback(solver.epoch, record):
                status = Status.STOPPED
            else:
                status = solver.status(trace)
            if save(solver.snapshot, trace, seconds):
                # A signal has come; leaving the block raises it.
                return FitOutcome(trace, Status.STOPPED)
        # Only the last state is checked, so that how often a fit is traced cannot change whether it
        # succeeds.
        status = solver.finish(status, trace)
    return FitOutcome(trace, status)
