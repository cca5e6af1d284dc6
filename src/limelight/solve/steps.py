"""The steps of one epoch. Each overwrites its part of the state; exADMM takes V, U, s, w in turn.

In the comments gamma_i is the step size of user i, rho the penalty and lex the exposure weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from limelight._base.arrays import factor_matrix
from limelight._native import kernels
from limelight.solve.problem import Eigenbasis, eigenbasis, row_products, unsolvable
from limelight.solve.state import Shift

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight.solve.population import Cell
    from limelight.solve.problem import Problem, RegularizedRows
    from limelight.solve.state import State
    from limelight.solve.step_sizes import StepSizes


CG_STEPS = 2
"""Conjugate-gradient steps a row, each epoch from where the last one ended."""


class Probe(NamedTuple):
    """A second right-hand side, the same for every row, and room for what it gives."""

    vector: Float64
    response: Float32


def solve_side(
    problem: Problem,
    side: RegularizedRows,
    other: Float32,
    *,
    shared: Float64 | Eigenbasis,
    out: Float32,
    shift: Float64 | None = None,
    pending: Shift | None = None,
    probe: Probe | None = None,
) -> None:
    """Solve every row of one side, users and items alike.

    x_i = (shared + reg_i I + sum_j w_j f_j f_j^T)^-1 (sum_j w_j f_j - shift), with f_j the rows of
    ``other`` in the history of i, once what they have pending is applied, and w_j their weights.
    The kernels work in the eigenbasis of ``shared``, where it is a diagonal; it may be given so.
    Only exact solves take a probe.
    """
    threads = problem.threads
    if not isinstance(shared, Eigenbasis):
        shared = eigenbasis(shared, problem.factors, problem.advice)
    values, Q = shared
    rotated = factor_matrix(*other.shape)
    if pending is None:
        kernels.rotate(other, Q, rotated, threads)
    else:
        kernels.shift_and_rotate(other, *pending, rotation=Q, out=rotated, threads=threads)
    price = None if shift is None else (shift @ Q).astype(np.float32)
    vector, response = None, None
    if probe is not None:
        vector, response = (probe.vector @ Q).astype(np.float32), probe.response
    system = (side.rows, rotated, values, side.regularization)
    if problem.row_solver == "cg":
        kernels.rotate(out, Q, out, threads)
        kernels.descend_rows(*system, shift=price, out=out, steps=CG_STEPS, threads=threads)
    elif failed := kernels.solve_rows(
        *system, shift=price, out=out, probe=vector, response=response, threads=threads
    ):
        raise unsolvable(failed, len(out), problem.advice)
    back = np.ascontiguousarray(Q.T)
    kernels.rotate(out, back, out, threads)
    if response is not None:
        kernels.rotate(response, back, response, threads)


def exact_u_step(problem: Problem, state: State) -> None:
    """Solve for every user: A_i = a0 G_V + reg_i I + sum_j w_ij v_j v_j^T."""
    shared = problem.unobserved_weight * problem.item_gramian(state.V)
    solve_side(problem, problem.users, state.V, shared=shared, out=state.U)
    state.gramian_U = None


def v_step(problem: Problem, state: State) -> None:
    """Solve for every item: A_j = a0 G_U + lex s s^T + reg_j I + sum_i w_ij u_i u_i^T.

    Where exposure has a term of its own, items are first solved without lex s s^T, and then give
    way along y_j = A_j^-1 s, all of them together: s is all that couples them.
    """
    G_U = problem.user_gramian(state.U) if state.gramian_U is None else state.gramian_U
    shared = problem.unobserved_weight * G_U
    if problem.term is None:
        with_exposure = shared + problem.exposure * np.outer(state.s, state.s)
        problem.population.solve_items(problem, state, with_exposure)
        return
    response = factor_matrix(*state.V.shape)
    problem.population.solve_items(problem, state, shared, Probe(state.s, response))
    free, along = (row_products(X, state.s) for X in (state.V, response))
    pulls = problem.term.pulls(problem.exposure, free, along)
    response *= pulls.astype(np.float32)[:, None]
    state.V -= response


def u_step(problem: Problem, state: State, G_V: Float64, step_sizes: StepSizes) -> Float64:
    """Take one proximal gradient step for every user; return the new mean user.

    With utilde_i = u_i - gamma_i grad_i and q = s - w, the coupled proximal problem has the
    solution u_i = utilde_i - gamma_i h with
    h = (rho / n) (mean(utilde) - q) / (1 + rho mean(gamma) / n).

    One pass takes the gradient step and adds up what the rest needs: the shift by gamma_i h is
    left pending, and the mean and the Gramian after it follow in closed form.
    """
    steps, curvature = step_sizes.steps(problem, state)
    weighted_G = (problem.unobserved_weight * G_V).astype(np.float32)
    shared_curvature = problem.unobserved_weight * float(np.linalg.eigvalsh(G_V)[-1])

    def step(cell: Cell) -> list[Float64 | float]:
        own = steps[cell.users]
        sums = kernels.gradient_step(
            cell.rows,
            state.V,
            gramian=weighted_G,
            regularization=problem.users.regularization[cell.users],
            step=own,
            curvature=None if curvature is None else curvature[cell.users],
            shared_curvature=shared_curvature,
            refresh_curvature=step_sizes.refreshes(state),
            row_factors=state.U[cell.users],
            threads=problem.threads,
        )
        return [*sums, float(own.sum(dtype=np.float64)), float(own @ own.astype(np.float64))]

    G, total, weighted, sum_of_steps, squares = problem.population.total(step)
    n = problem.n_users
    mean, mean_step = total / n, float(sum_of_steps) / n
    step_sizes.update_penalty(problem, state, mean_step)
    pull = state.penalty / n
    h = pull * (mean - (state.s - state.w)) / (1 + pull * mean_step)
    state.pending = Shift(steps, h.astype(np.float32))
    cross = np.outer(weighted, h)
    state.gramian_U = G - cross - cross.T + float(squares) * np.outer(h, h)
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


def positive_inverse(matrix: np.ndarray) -> Float64:
    """Invert a symmetric positive definite matrix by its Cholesky factor: a third of the work.

    Raises
    ------
    LinAlgError
        If it is not positive definite.

    Examples
    --------
    >>> positive_inverse(np.array([[2.0, 1.0], [1.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  2.]])
    """
    factor, failed = scipy.linalg.lapack.dpotrf(np.asarray(matrix, np.float64).T, lower=1)
    if failed:
        message = "a matrix is not positive definite"
        raise np.linalg.LinAlgError(message)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T, np.float64)
