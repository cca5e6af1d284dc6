"""Numbers that cannot be trusted are not returned: what counts as a fit that went wrong."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import SolveError
from limelight._base.text import first_words
from limelight.solve.gramian import column_sums, largest_entry
from limelight.solve.trace import measure_objective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight.solve.problem import Problem
    from limelight.solve.state import State

_TOLERATED = 1.05  # the first epochs may stand a little above zero factors
_SMALLEST = float(np.finfo(np.float32).tiny)


def check_finite(problem: Problem, state: State) -> None:
    """Refuse factors that are not finite; a sum is finite only if its terms are."""
    for sums in (problem.mean_user(state.U), column_sums(state.V, problem.threads)):
        if not np.isfinite(sums).all():
            message = f"the fit diverged: factors are not finite after epoch {state.epoch}"
            raise SolveError(message, hint=problem.advice)


def check_outcome(problem: Problem, state: State) -> None:
    """Refuse factors that score nothing, that rounding has spoilt, or that fit worse than zeros."""
    largest = problem.population.largest(state.U) * largest_entry(state.V)
    if largest < _SMALLEST:
        # All scores would be equal, and lists would show the items with the lowest numbers.
        message = (
            f"the fit came to nothing: after epoch {state.epoch} scores are 0 in 32 bits "
            f"({largest:.3g} for a product of factors)"
        )
        hint = "lower regularization or unobserved_weight, or start from larger factors"
        raise SolveError(message, hint=hint)
    found = measure_objective(problem, state.U, state.V)
    objective = found.total(problem)
    if state.penalty == 0 and problem.row_solver == "cholesky":
        _check_rounding(problem, objective, found.total(problem, state.s))
    check_against_zeros(problem, objective, f"after epoch {state.epoch}")


def _check_rounding(problem: Problem, objective: float, meant: float) -> None:
    """Refuse an exposure weight that makes more of rounding than of the data.

    Exact steps know the mean user in 64 bits. That of the users in 32 bits is off by rounding
    alone, and the exposure weight multiplies what that does.
    """
    if not objective <= _TOLERATED * meant:
        message = (
            f"the exposure weight is too large for 32-bit numbers: rounding alone raises "
            f"the objective from {meant:.6g} to {objective:.6g}"
        )
        raise SolveError(message, hint=problem.advice)


@contextmanager
def told_in_words(problem: Problem, when: str) -> Iterator[None]:
    """Turn what linear algebra says of numbers that ran away into our own error."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except (np.linalg.LinAlgError, ZeroDivisionError, OverflowError) as error:
        message = f"the fit diverged: {first_words(error)}, {when}"
        raise SolveError(message, hint=problem.advice) from error


def check_against_zeros(problem: Problem, objective: float, when: str) -> None:
    """Refuse an objective above that of zero factors."""
    zeros = problem.at_zeros
    if not objective <= _TOLERATED * zeros:
        message = (
            f"the fit diverged: {when} the objective is {objective:.6g}, "
            f"above the {zeros:.6g} of a model that predicts nothing"
        )
        raise SolveError(message, hint=problem.advice)
