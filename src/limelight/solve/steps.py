"""The steps of one epoch. Each overwrites its part of the state; exADMM takes V, U, s, w in turn.

In the comments gamma_i is the step size of user i, rho the penalty and lex the exposure weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import SolveError
from limelight._native import kernels
from limelight.solve.gramian import eigenbasis, gramian, mean_row

if TYPE_CHECKING:
    from limelight._arrays import Float32, Float64
    from limelight.solve.problem import Problem, Side
    from limelight.solve.state import State


def solve_side(
    problem: Problem,
    side: Side,
    other: Float32,
    *,
    shared: Float64,
    out: Float32,
    shift: Float64 | None = None,
) -> None:
    """Solve every row of one side exactly, users and items alike.

    x_i = (shared + reg_i I + sum_j f_j f_j^T)^-1 (sum_j f_j - shift), with f_j the rows of
    ``other`` in the history of i. The kernels work in the eigenbasis of ``shared``, where it is
    a diagonal.
    """
    threads = problem.threads
    values, Q = eigenbasis(shared, problem.factors)
    rotated = np.empty_like(other)
    kernels.rotate(other, Q, rotated, threads)
    price = None if shift is None else (shift @ Q).astype(np.float32)
    failed = kernels.solve_rows(
        side.rows, rotated, values, side.regularization, price, out, threads
    )
    if failed:
        message = f"rows without a unique solution: {failed:,} of {len(out):,}"
        raise SolveError(
            message, hint="raise regularization or unobserved_weight, or lower exposure_weight"
        )
    kernels.rotate(out, np.ascontiguousarray(Q.T), out, threads)


def exact_u_step(problem: Problem, state: State) -> None:
    """Solve for every user: A_i = a0 G_V + reg_i I + sum_j v_j v_j^T."""
    shared = problem.unobserved_weight * gramian(state.V, problem.threads)
    solve_side(problem, problem.users, state.V, shared=shared, out=state.U)


def v_step(problem: Problem, state: State) -> None:
    """Solve for every item: A_j = a0 G_U + lex s s^T + reg_j I + sum_i u_i u_i^T."""
    shared = problem.unobserved_weight * gramian(state.U, problem.threads)
    shared += problem.exposure * np.outer(state.s, state.s)
    solve_side(problem, problem.items, state.U, shared=shared, out=state.V)


def u_step(problem: Problem, state: State, G_V: Float64, step_sizes: Float32) -> Float64:
    """Take one proximal gradient step for every user; return the new mean user.

    With utilde_i = u_i - gamma_i grad_i and q = s - w, the coupled proximal problem has the
    solution u_i = utilde_i - gamma_i h with
    h = (rho / n) (mean(utilde) - q) / (1 + rho mean(gamma) / n).
    """
    kernels.gradient_step(
        problem.users.rows,
        state.V,
        (problem.unobserved_weight * G_V).astype(np.float32),
        problem.users.regularization,
        step_sizes,
        state.U,
        problem.threads,
    )
    mean = mean_row(state.U, problem.threads)
    mean_step = float(step_sizes.mean(dtype=np.float64))
    pull = state.penalty / problem.n_users
    h = pull * (mean - (state.s - state.w)) / (1 + pull * mean_step)
    kernels.shift_rows(state.U, step_sizes, h.astype(np.float32), problem.threads)
    return mean - mean_step * h


def s_step(problem: Problem, state: State, G_V: Float64, mean: Float64) -> None:
    """s = rho (lex G_V + rho I)^-1 (mean(U) + w); without exposure weight, s is the mean user."""
    if problem.exposure == 0:
        state.s = mean
        return
    rho = state.penalty
    system = problem.exposure * G_V + rho * np.eye(len(G_V))
    state.s = np.asarray(np.linalg.solve(system, rho * (mean + state.w)), np.float64)


def w_step(state: State, mean: Float64) -> None:
    """w = w + mean(U) - s."""
    state.w = state.w + mean - state.s
