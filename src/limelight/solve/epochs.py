"""One epoch of each method, written as the papers write it, and the solver that runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from limelight.solve.exact import coupled_u_step
from limelight.solve.loop import Status
from limelight.solve.problem import Problem
from limelight.solve.state import (
    State,
    TraceRecord,
    check_finite,
    check_outcome,
    describe,
    from_snapshot,
    to_snapshot,
    told_in_words,
)
from limelight.solve.steps import exact_u_step, s_step, u_step, v_step, w_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float64
    from limelight.solve.step_sizes import StepSizes
    from limelight.store.checkpoint import Snapshot

_SETTLED = 1e-3


def ials_epoch(problem: Problem, state: State) -> None:
    """Alternate exact solves, users first (Rendle et al. 2021)."""
    exact_u_step(problem, state)
    v_step(problem, state)


def exadmm_epoch(problem: Problem, state: State, step_sizes: StepSizes) -> None:
    """Take the steps V, U, s, w (Togashi et al. 2024, Algorithm 1, its s-step with a plus)."""
    v_step(problem, state)
    mean_user_epoch(problem, state, step_sizes, problem.item_gramian(state.V))


def exact_epoch(problem: Problem, state: State) -> None:
    """Alternate exact solves, items first, the users coupled through their mean.

    A fit that aims at mean scores starts without a mean user. That of random factors is next to
    nothing: items that meet their targets with it would be huge, and a large exposure weight keeps
    them so. One epoch without exposure (s = 0 leaves it out) gives it a mean user of usual length.
    """
    if problem.has_targets and not state.s.any():
        v_step(problem, state)
        exact_u_step(problem, state)
        state.s = problem.mean_user(state.U)
    v_step(problem, state)
    coupled_u_step(problem, state, problem.item_gramian(state.V))


def mean_user_epoch(problem: Problem, state: State, step_sizes: StepSizes, G_V: Float64) -> None:
    """Take the steps U, s, w with the items fixed; alone, it folds unseen users in together."""
    mean = u_step(problem, state, G_V, step_sizes)
    s_step(problem, state, G_V, mean)
    w_step(state, mean)
    step_sizes.watch_gap(state, mean)


Epoch: TypeAlias = Callable[[Problem, State], None]


class FactorMethod(NamedTuple):
    """How a model fits its factors."""

    exposure: float
    """lambda_ex: the weight of the exposure term in the objective."""
    epoch: Epoch


class FactorSolver:
    """Runs epochs on a problem, from a first state that they overwrite; the loop drives it.

    The fit has converged when an epoch changes the objective by no more than ``tolerance``, as a
    share of it. The rule is the same for all methods, so that their times can be compared. With a
    tolerance of 0 the objective is measured in traced epochs alone.
    """

    def __init__(self, problem: Problem, state: State, epoch: Epoch, tolerance: float) -> None:
        self.problem, self.state = problem, state
        self._epoch, self._tolerance = epoch, tolerance
        self._before: State | None = None
        self._is_traced = False

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return self.state.epoch

    def restore(self, stored: Snapshot) -> tuple[list[Any], float]:
        """Go back to a snapshot; return its trace and seconds."""
        return from_snapshot(stored, self.state)

    def prepare(self, *, is_traced: bool) -> None:
        """Copy the state before an epoch that is measured: its record says how far it moved.

        With a tolerance any epoch may turn out to be the last, which is traced.
        """
        self._before, self._is_traced = None, is_traced
        if is_traced or self._tolerance:
            state = self.state
            state.settle(self.problem.threads)
            copies = {name: getattr(state, name).copy() for name in ("U", "V", "s", "w")}
            self._before = replace(state, **copies)

    def step(self) -> None:
        """Run an epoch."""
        with told_in_words(self.problem, f"in epoch {self.state.epoch + 1}"):
            self._epoch(self.problem, self.state)
        self.state.epoch += 1

    def measure(self, seconds: float) -> TraceRecord | None:
        """Refuse factors that are not finite; describe a traced epoch; note what it minimised."""
        check_finite(self.problem, self.state)
        if self._before is None:
            return None
        state = self.state
        state.settle(self.problem.threads)
        record = describe(self.problem, state, self._before, seconds)
        state.change = abs(state.objective - record.objective) / record.objective
        state.objective = record.objective
        return record if self._is_traced or self._stands_still else None

    def status(self, trace: Sequence[Any]) -> Status:
        """Tell whether the last epoch changed the objective enough to go on."""
        del trace
        return Status.CONVERGED if self._stands_still else Status.FINISHED

    @property
    def _stands_still(self) -> bool:
        return self.state.change <= self._tolerance and self._tolerance > 0

    def snapshot(self, trace: Sequence[Any], seconds: float) -> Snapshot:
        """Return the whole state of the fit, to be saved."""
        return to_snapshot(self.state, trace, seconds)

    def finish(self, status: Status, trace: Sequence[Any]) -> Status:
        """Refuse factors that are no result; tell whether the objective ended too high."""
        self.state.settle(self.problem.threads)
        check_outcome(self.problem, self.state)
        objectives = [record.objective for record in trace]
        rose = bool(objectives) and objectives[-1] > (1 + _SETTLED) * min(objectives)
        return Status.UNSETTLED if rose and status is Status.FINISHED else status
