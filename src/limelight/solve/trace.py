"""Measuring a state: the objective, the augmented Lagrangian, and how far the last epoch moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limelight._native import kernels
from limelight.solve.problem import gramian

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight.solve.population import Cell
    from limelight.solve.problem import MeanTerm, Problem
    from limelight.solve.state import State


@dataclass(frozen=True)
class TraceRecord:
    """What is known of a fit after an epoch."""

    epoch: int
    seconds: float
    """Training time since the start, measuring left out."""
    objective: float
    """The objective, its exposure term taken at the true mean user."""
    lagrangian: float
    """The augmented Lagrangian, its exposure term taken at s."""
    residual_V: float
    residual_U: float
    residual_s: float
    residual_w: float
    """Frobenius norms of what the last epoch changed."""
    feasibility: float
    """|mean(U) - s|"""


@dataclass(frozen=True)
class Objective:
    """The parts that the objective and the Lagrangian are put together from."""

    loss: float
    """Everything but exposure: squared error, unobserved pairs, regularisation."""
    term: MeanTerm
    mean: Float64

    def total(self, problem: Problem, s: Float64 | None = None) -> float:
        """Return the objective: the loss, and the exposure of the true mean user, or of s."""
        return self.loss + problem.exposure * self.term.value(self.mean if s is None else s)


def measure_objective(problem: Problem, U: Float32, V: Float32) -> Objective:
    """Add up the loss of a pair of factor matrices in float64."""
    G_V = problem.item_gramian(V)
    loss = user_loss(problem, U, V, G_V) + 0.5 * _weighted_norm(problem.item_regularization, V)
    return Objective(loss, problem.mean_term(V, G_V), problem.mean_user(U))


def user_loss(problem: Problem, U: Float32, V: Float32, G_V: Float64) -> float:
    """Add up what the users' factors account for: all of the loss but the items' regularisation."""

    def parts(cell: Cell) -> list[Float64 | float]:
        own, ridge = U[cell.users], problem.users.regularization[cell.users]
        return [
            kernels.squared_error(cell.rows, own, V, problem.threads),
            float(np.vdot(gramian(own, problem.threads), G_V)),
            _weighted_norm(ridge, own),
        ]

    squared_error, unobserved, held_back = map(float, problem.population.total(parts))
    return 0.5 * (squared_error + problem.unobserved_weight * unobserved + held_back)


def user_norm(problem: Problem, U: Float32) -> float:
    """Return the Frobenius norm of all users' factors."""
    [squares] = problem.population.total(lambda cell: [float(np.linalg.norm(U[cell.users])) ** 2])
    return float(np.sqrt(squares))


def describe(problem: Problem, state: State, before: State, seconds: float) -> TraceRecord:
    """Describe the state after an epoch that began at ``before``, which is used up."""
    parts = measure_objective(problem, state.U, state.V)
    gap = parts.mean - state.s
    before.U -= state.U
    constraint = np.sum((gap + state.w) ** 2) - np.sum(state.w**2)
    return TraceRecord(
        epoch=state.epoch,
        seconds=seconds,
        objective=parts.total(problem),
        lagrangian=parts.total(problem, state.s) + 0.5 * state.penalty * float(constraint),
        residual_V=_distance(state.V, before.V),
        residual_U=user_norm(problem, before.U),
        residual_s=_distance(state.s, before.s),
        residual_w=_distance(state.w, before.w),
        feasibility=float(np.linalg.norm(gap)),
    )


def _weighted_norm(ridge: Float32, X: Float32) -> float:
    """Return sum_i reg_i |x_i|^2 without a copy of X."""
    return float(ridge.astype(np.float64) @ np.einsum("ij,ij->i", X, X))


def _distance(after: np.ndarray, before: np.ndarray) -> float:
    """Return |after - before|; ``before`` gives its memory to the difference."""
    np.subtract(after, before, out=before)
    return float(np.linalg.norm(before))
