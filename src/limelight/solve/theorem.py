"""Theorem 3.1 of the exADMM paper: what it asks of a fit, and what it promises.

With |V|^2 <= C_V and |s|^2 <= C_s at all epochs, the augmented Lagrangian falls and its gradients
vanish, if

- rho >= max(24 lex^2 C_V C_s / min_j lambda_j, 1/2 + sqrt(1/4 + 6 lex^2 C_V^2)), and
- gamma <= 1 / (sqrt(users) ((1 + a0) C_V + max_i lambda_i) + 1).

The constants are those of a run: its largest squared norms, the first factors included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight.solve.loop import Schedule, run

if TYPE_CHECKING:
    from limelight._base.arrays import Float64
    from limelight.solve.epochs import FactorSolver
    from limelight.solve.problem import Problem
    from limelight.solve.state import State, TraceRecord

_ROUNDING = 1e-6  # factors are float32, so that the Lagrangian may rise by so small a share of it
_PAIRS = 1 << 16


class LagrangianGradients(NamedTuple):
    """Frobenius norms of the gradients of the augmented Lagrangian."""

    V: float
    U: float
    s: float
    w: float


@dataclass(frozen=True)
class TheoremCheck:
    """The bounds of the theorem for some data, and whether a run kept them."""

    n_users: int
    C_V: float
    C_U: float
    C_s: float
    """The largest squared norms of V, U and s."""
    rho: float
    """The smallest penalty of the run, multiplied by the squared number of users."""
    least_rho: float
    gamma: float
    """The largest step of any user in the run."""
    largest_gamma: float
    lagrangian: tuple[float, ...]
    """The augmented Lagrangian after every epoch."""
    first_gradients: LagrangianGradients
    last_gradients: LagrangianGradients

    @property
    def least_penalty(self) -> float:
        """The smallest ``penalty`` that the theorem allows, as the setting counts it."""
        return self.least_rho / self.n_users**2

    @property
    def rho_holds(self) -> bool:
        """Whether the penalty was large enough."""
        return self.rho >= self.least_rho

    @property
    def gamma_holds(self) -> bool:
        """Whether no step was too large."""
        return self.gamma <= self.largest_gamma

    @property
    def holds(self) -> bool:
        """Whether both conditions held."""
        return self.rho_holds and self.gamma_holds

    @property
    def is_monotone(self) -> bool:
        """Whether the Lagrangian never rose by more than rounding explains."""
        found = np.array(self.lagrangian)
        return bool((np.diff(found) <= _ROUNDING * np.abs(found[:-1])).all())

    def __str__(self) -> str:
        """Say which conditions hold, with their bounds."""
        words = {True: "holds", False: "does not hold"}
        falls = "falls in every epoch" if self.is_monotone else "rises in some epochs"
        gradients = ", ".join(
            f"{name} {before:.3g} to {after:.3g}"
            for name, before, after in zip(
                LagrangianGradients._fields, self.first_gradients, self.last_gradients, strict=True
            )
        )
        return "\n".join(
            [
                f"penalty: rho = {self.rho:.4g}, at least {self.least_rho:.4g} is asked for "
                f"(penalty={self.least_penalty:.4g}): {words[self.rho_holds]}",
                f"step: gamma = {self.gamma:.4g}, at most {self.largest_gamma:.4g} is allowed: "
                f"{words[self.gamma_holds]}",
                f"with |V|^2 <= {self.C_V:.4g}, |U|^2 <= {self.C_U:.4g}, |s|^2 <= {self.C_s:.4g}",
                f"the augmented Lagrangian {falls}; gradients: {gradients}",
            ]
        )


def least_rho(problem: Problem, C_V: float, C_s: float) -> float:
    """Return the smallest penalty that the theorem allows."""
    lex = problem.exposure
    ridge = float(problem.item_regularization.min())
    coupling = 24 * lex**2 * C_V * C_s
    needed = (coupling / ridge if ridge else np.inf) if coupling else 0.0
    return max(needed, 0.5 + float(np.sqrt(0.25 + 6 * lex**2 * C_V**2)))


def largest_gamma(problem: Problem, C_V: float) -> float:
    """Return the largest step that the theorem allows."""
    ridge = float(problem.users.regularization.max())
    curvature = (1 + problem.unobserved_weight) * C_V + ridge
    return 1 / (float(np.sqrt(problem.n_users)) * curvature + 1)


def check_theorem(solver: FactorSolver, epochs: int, learning_rate: float | None) -> TheoremCheck:
    """Run a fit by alternating directions, and keep what the theorem is about."""
    problem, state = solver.problem, solver.state
    norms, penalties = [_squared_norms(state)], list[float]()
    gammas, gradients = list[float](), list[LagrangianGradients]()

    def watch(epoch: int, record: TraceRecord | None) -> None:
        del record
        norms.append(_squared_norms(state))
        penalties.append(state.penalty)
        gammas.append(learning_rate or _largest_step(problem, state))
        if epoch in (1, epochs):
            gradients.append(lagrangian_gradients(problem, state))

    schedule = Schedule(epochs=epochs, trace_every=1, callback=watch, show_progress=False)
    outcome = run(solver, schedule)
    if state.epoch not in (1, epochs):
        gradients.append(lagrangian_gradients(problem, state))
    C_V, C_U, C_s = np.max(norms, axis=0).tolist()
    return TheoremCheck(
        n_users=problem.n_users,
        C_V=C_V,
        C_U=C_U,
        C_s=C_s,
        rho=min(penalties),
        least_rho=least_rho(problem, C_V, C_s),
        gamma=max(gammas),
        largest_gamma=largest_gamma(problem, C_V),
        lagrangian=tuple(record.lagrangian for record in outcome.trace),
        first_gradients=gradients[0],
        last_gradients=gradients[-1],
    )


def lagrangian_gradients(problem: Problem, state: State) -> LagrangianGradients:
    """Measure the gradients of the augmented Lagrangian, in float64."""
    U, V = state.U.astype(np.float64), state.V.astype(np.float64)
    s, w, lex, rho = state.s, state.w, problem.exposure, state.penalty
    a0, n = problem.unobserved_weight, problem.n_users
    G_U, G_V, gap = U.T @ U, V.T @ V, U.mean(axis=0) - s
    of_users, of_items = _observed(problem, U, V)
    of_users += a0 * U @ G_V + problem.users.regularization[:, None] * U + rho / n * (gap + w)
    of_items += a0 * V @ G_U + problem.item_regularization[:, None] * V
    of_items += lex * np.outer(V @ s, s)
    parts = (of_items, of_users, lex * G_V @ s - rho * (gap + w), rho * gap)
    return LagrangianGradients(*(float(np.linalg.norm(part)) for part in parts))


def _observed(problem: Problem, U: Float64, V: Float64) -> tuple[Float64, Float64]:
    """Return the gradients of the squared error of observed pairs: those of users, of items."""
    rows = problem.rows
    indptr, items = np.asarray(rows.indptr), np.asarray(rows.indices)
    users = np.repeat(np.arange(rows.n_rows), np.diff(indptr))
    of_users, of_items = np.zeros_like(U), np.zeros_like(V)
    for part in batches(len(items), _PAIRS):
        i, j = users[part], items[part]
        error = (U[i] * V[j]).sum(axis=1) - 1
        np.add.at(of_users, i, error[:, None] * V[j])
        np.add.at(of_items, j, error[:, None] * U[i])
    return of_users, of_items


def _squared_norms(state: State) -> list[float]:
    return [float(np.sum(part.astype(np.float64) ** 2)) for part in (state.V, state.U, state.s)]


def _largest_step(problem: Problem, state: State) -> float:
    """Return the largest of the steps that follow from the curvature."""
    if state.curvature is None:
        return np.inf
    steepest = float(np.linalg.eigvalsh(problem.item_gramian(state.V))[-1])
    bend = problem.unobserved_weight * steepest + problem.users.regularization + state.curvature
    return float(1 / bend.min())
