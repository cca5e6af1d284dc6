"""One epoch of each method, written as the papers write it, and the solver that runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

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
    user_norm,
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

    The fit has converged when an epoch moves nothing by more than ``tolerance``, as a share.
    """

    def __init__(self, problem: Problem, state: State, epoch: Epoch, tolerance: float) -> None:
        self.problem, self.state = problem, state
        self._epoch, self._tolerance = epoch, tolerance
        self._before: State | None = None

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return self.state.epoch

    def restore(self, stored: Snapshot) -> tuple[list[Any], float]:
        """Go back to a snapshot; return its trace and seconds."""
        return from_snapshot(stored, self.state)

    def prepare(self, *, is_traced: bool) -> None:
        """Copy the state before a traced epoch, whose record says how far the state moved."""
        self._before = None
        if is_traced:
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
        """Refuse factors that are not finite; describe a traced epoch."""
        check_finite(self.problem, self.state)
        if self._before is None:
            return None
        self.state.settle(self.problem.threads)
        return describe(self.problem, self.state, self._before, seconds)

    def status(self, trace: Sequence[Any]) -> Status:
        """Compare each residual of an epoch that was just traced with the size of what moved."""
        problem, state = self.problem, self.state
        if not (trace and trace[-1].epoch == state.epoch):
            return Status.FINISHED
        moved = (
            (trace[-1].residual_V, float(np.linalg.norm(state.V))),
            (trace[-1].residual_U, user_norm(problem, state.U)),
            (trace[-1].residual_s, float(np.linalg.norm(state.s))),
            (trace[-1].residual_w, float(np.linalg.norm(state.w))),
        )
        stands_still = all(residual <= self._tolerance * size for residual, size in moved)
        return Status.CONVERGED if stands_still else Status.FINISHED

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
