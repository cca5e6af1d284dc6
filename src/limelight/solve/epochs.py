"""One epoch of each method, written as the papers write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.solve.exact import coupled_u_step
from limelight.solve.steps import exact_u_step, s_step, u_step, v_step, w_step

if TYPE_CHECKING:
    from limelight._base.arrays import Float64
    from limelight.solve.problem import Problem
    from limelight.solve.state import State
    from limelight.solve.step_sizes import Tempo


def ials_epoch(problem: Problem, state: State) -> None:
    """Alternate exact solves, users first (Rendle et al. 2021)."""
    exact_u_step(problem, state)
    v_step(problem, state)


def exadmm_epoch(problem: Problem, state: State, tempo: Tempo) -> None:
    """Take the steps V, U, s, w (Togashi et al. 2024, Algorithm 1, its s-step with a plus)."""
    v_step(problem, state)
    mean_user_epoch(problem, state, tempo, problem.item_gramian(state.V))


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


def mean_user_epoch(problem: Problem, state: State, tempo: Tempo, G_V: Float64) -> None:
    """Take the steps U, s, w with the items fixed; alone, it folds unseen users in together."""
    mean = u_step(problem, state, G_V, tempo)
    s_step(problem, state, G_V, mean)
    w_step(state, mean)
    tempo.watch_gap(state, mean)
