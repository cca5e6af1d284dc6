"""Numbers that cannot be trusted are not returned: what counts as a fit that diverged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import SolveError
from limelight.solve.gramian import SLOWER, mean_row
from limelight.solve.measure import measure_objective

if TYPE_CHECKING:
    from limelight.solve.problem import Problem
    from limelight.solve.state import State

_TOLERATED = 1.05  # the first epochs may stand a little above zero factors


def check_finite(problem: Problem, state: State) -> None:
    """Refuse factors that are not finite; a sum is finite only if its terms are."""
    for X in (state.U, state.V):
        if not np.isfinite(mean_row(X, problem.threads)).all():
            message = f"the fit diverged: factors are not finite after epoch {state.epoch}"
            raise SolveError(message, hint=SLOWER)


def check_objective(problem: Problem, state: State) -> None:
    """Refuse factors whose objective is above that of zeros."""
    objective = measure_objective(problem, state.U, state.V).total(problem)
    check_against_zeros(problem, objective, f"after epoch {state.epoch}")


def check_against_zeros(problem: Problem, objective: float, when: str) -> None:
    """Refuse an objective above that of zero factors."""
    zeros = problem.at_zeros
    if not objective <= _TOLERATED * zeros:
        message = (
            f"the fit diverged: {when} the objective is {objective:.6g}, "
            f"above the {zeros:.6g} of a model that predicts nothing"
        )
        raise SolveError(message, hint=SLOWER)
