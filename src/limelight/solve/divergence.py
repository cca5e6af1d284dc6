"""Numbers that cannot be trusted are not returned: what counts as a fit that diverged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import SolveError
from limelight.solve.gramian import SLOWER, mean_row

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


def check_loss(problem: Problem, loss: float, when: str) -> None:
    """Refuse factors that fit worse than zeros, whose loss is half the number of observed pairs."""
    zeros = 0.5 * problem.n_entries
    if not loss <= _TOLERATED * zeros:
        message = (
            f"the fit diverged: {when} the loss is {loss:.6g}, "
            f"above the {zeros:.6g} of a model that predicts nothing"
        )
        raise SolveError(message, hint=SLOWER)
