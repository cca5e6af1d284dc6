"""Step sizes and penalty: given by the user, or by the curvature so that no fit diverges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight.solve.problem import Problem
    from limelight.solve.state import State

_EAGER_EPOCHS = 5  # early on the factors move fast: the curvature is refreshed every epoch
_REFRESH_EVERY = 5
_PENALTY_OVER_CURVATURE = 10.0  # 1 was seen to explode, larger slows the mean user down
_MORE_CAUTION = 3.0
_STRAYED = 3.0
_NOTICEABLE = 1e-3  # smaller gaps, relative to the mean user, cannot carry a fit away


@dataclass(frozen=True)
class StepSizes:
    """How far a gradient step goes, and how hard the constraint pulls; None means by curvature."""

    learning_rate: float | None
    penalty: float | None
    """rho, already multiplied by the squared number of users."""

    def steps(self, problem: Problem, state: State) -> tuple[Float32, Float32 | None]:
        """Return room for the step sizes gamma_i, and the curvature they are to be drawn from.

        By default gamma_i = 1 / L_i with L_i = a0 max eig(G_V) + reg_i + own curvature. With a
        learning rate given, all steps are equal and there is no curvature.
        """
        if self.learning_rate is not None:
            return np.full(problem.rows.n_rows, self.learning_rate, dtype=np.float32), None
        if state.curvature is None:
            state.curvature = np.zeros(problem.rows.n_rows, dtype=np.float32)
        return np.empty(problem.rows.n_rows, dtype=np.float32), state.curvature

    def refreshes(self, state: State) -> bool:
        """Tell whether the curvature is measured anew in the epoch that begins at ``state``."""
        return state.epoch < _EAGER_EPOCHS or state.epoch % _REFRESH_EVERY == 0

    def watch_gap(self, state: State, mean: Float64) -> None:
        """Raise the caution when the mean user strays from s: then the penalty is too small.

        In a sound fit the gap between them shrinks or stays. Where it grows to several times its
        smallest value, the users overshoot what the items then answer to.
        """
        gap = float(np.linalg.norm(mean - state.s))
        if gap > _STRAYED * state.smallest_gap and gap > _NOTICEABLE * np.linalg.norm(mean):
            state.caution *= _MORE_CAUTION
            state.smallest_gap = gap
        state.smallest_gap = min(gap, state.smallest_gap)

    def update_penalty(self, problem: Problem, state: State, mean_step: float) -> None:
        """Set rho, by default 10 n / mean(gamma), and rescale w so that rho w stays what it was.

        Without exposure weight nothing couples the users: rho is 0.
        """
        if problem.exposure == 0:
            state.penalty = 0.0
            return
        rho = self.penalty
        if rho is None:
            rho = state.caution * _PENALTY_OVER_CURVATURE * problem.n_users / mean_step
        state.w = state.w * (state.penalty / rho)
        state.penalty = rho
