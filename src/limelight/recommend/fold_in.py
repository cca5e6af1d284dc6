"""Factors for users whom the training has not seen, with the items fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from limelight._base.arrays import factor_matrix
from limelight.solve.divergence import check_against_zeros, check_finite, told_in_words
from limelight.solve.epochs import mean_user_epoch
from limelight.solve.exact import coupled_u_step
from limelight.solve.gramian import gramian
from limelight.solve.state import State
from limelight.solve.steps import solve_side
from limelight.solve.trace import user_loss

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight.solve.exposure_term import MeanTerm
    from limelight.solve.problem import Problem
    from limelight.solve.step_sizes import StepSizes


def fold_in_alone(problem: Problem, V: Float32, price: Float64 | None = None) -> Float32:
    """Solve for each user alone: u = A^-1 (b - price). Nobody's list depends on who else asks."""
    U = factor_matrix(problem.n_users, V.shape[1])
    with threadpool_limits(1, user_api="blas"):
        shared = problem.unobserved_weight * gramian(V, problem.threads)
        solve_side(problem, problem.users, V, shared=shared, out=U, shift=price)
    return U


def fold_in_coupled(problem: Problem, V: Float32, term: MeanTerm | None = None) -> Float32:
    """Solve for all users at once, exactly, coupled through their mean as in training.

    The exposure term is |V s|^2 / 2 unless another is given.
    """
    width = V.shape[1]
    U = factor_matrix(problem.n_users, width)
    U[:] = 0
    state = State(U=U, V=V, s=np.zeros(width), w=np.zeros(width))
    with threadpool_limits(1, user_api="blas"), told_in_words(problem, "in joint fold-in"):
        coupled_u_step(problem, state, gramian(V, problem.threads), term=term, tolerance=0.0)
        state.settle(problem.threads)
    return state.U


def fold_in_together(problem: Problem, V: Float32, step_sizes: StepSizes, rounds: int) -> Float32:
    """Run the steps U, s, w over all users at once, from zeros, with the items fixed.

    The users share one exposure term, as they do in training, so a list depends on the others.
    """
    width = V.shape[1]
    U = factor_matrix(problem.n_users, width)
    U[:] = 0
    state = State(U=U, V=V, s=np.zeros(width), w=np.zeros(width))
    with threadpool_limits(1, user_api="blas"), told_in_words(problem, "in joint fold-in"):
        G_V = gramian(V, problem.threads)
        for _ in range(rounds):
            mean_user_epoch(problem, state, step_sizes, G_V)
            state.settle(problem.threads)
            state.epoch += 1
        check_finite(problem, state)
        loss = user_loss(problem, state.U, V, G_V)
        check_against_zeros(problem, loss, f"after {rounds} rounds of joint fold-in")
    return state.U
