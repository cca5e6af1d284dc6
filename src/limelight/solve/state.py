"""The state of a fit of factors: how it is measured, saved, restored and checked.

A checkpoint holds every field of the state, bit for bit, and the trace. A record of the trace has
the objective, the augmented Lagrangian and how far the last epoch moved. A state that is not
finite, or worse than no factors at all, ends the fit with an error.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.arrays import factor_matrix
from limelight._base.errors import SolveError
from limelight._base.text import first_words
from limelight._native import kernels
from limelight.solve.problem import column_sums, gramian, largest_entry, padded_width
from limelight.store.checkpoint import Snapshot
from limelight.store.snapshot_fields import (
    refuse_damaged,
    stored_array,
    stored_count,
    stored_number,
    stored_trace,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limelight._base.arrays import Float32, Float64
    from limelight.solve.population import Cell
    from limelight.solve.problem import MeanTerm, Problem


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


_BLOCK = 1024
_BY_USER = "by_user"
"""Metadata of a field with a row for each user: what its array has behind its name when saved."""


class SideNumber(IntEnum):
    """Which stream of random numbers a side draws its first factors from."""

    USERS = 0
    ITEMS = 1


class Shift(NamedTuple):
    """u_i <- u_i - step_i h, for every user."""

    steps: Float32
    h: Float32


@dataclass
class State:
    """What one epoch hands to the next; the steps overwrite the factors in place.

    A field without a default is an array, and so is one whose default is None, as soon as there is
    one: a number for each user, or a matrix of factors x factors. Other defaults are numbers.
    :func:`to_snapshot` saves all fields, also those to come.
    """

    U: Float32 = field(metadata={_BY_USER: ""})
    V: Float32
    s: Float64
    """The auxiliary mean user, which the penalty on exposure acts on."""
    w: Float64
    """The scaled dual variable of mean(U) = s; with exact steps, the price itself."""
    epoch: int = 0

    objective: float = np.inf
    """What was minimised, when it was last measured."""
    change: float = np.inf
    """How far the objective was from the one measured before, as a share of it."""

    # What makes the next epoch cheaper; all of it follows from the fields above and the data.
    curvature: Float32 | None = field(default=None, metadata={_BY_USER: ""})
    """Largest eigenvalue of every user's own Gramian, nearly; refreshed now and then."""
    penalty: float = 0.0
    """rho, the weight of the constraint; 0 before the first epoch."""
    caution: float = 1.0
    """How many times its usual size an automatic penalty has, because mean(U) strayed from s."""
    smallest_gap: float = np.inf
    """The smallest |mean(U) - s| since the caution was last raised."""
    gramian_U: Float64 | None = None
    """U^T U, if a step came by it."""
    pending: Shift | None = field(default=None, metadata={_BY_USER: "_steps"})
    """What U still lacks: applied when U is next read, not in a pass of its own."""

    def settle(self, threads: int) -> None:
        """Apply what is pending, so that U holds the users' factors."""
        if self.pending is not None:
            kernels.shift_rows(self.U, *self.pending, threads)
            self.pending = None


def initial_factors(
    rows: range, factors: int, *, scale: float, seed: int, side: SideNumber
) -> Float32:
    """Draw factors from N(0, scale^2 / factors), padded with columns of zeros.

    A block of 1,024 rows depends on the seed, the side and its own number alone, so that any
    machine can draw any rows.

    Examples
    --------
    >>> all_rows = initial_factors(range(3000), 8, scale=0.1, seed=0, side=SideNumber.USERS)
    >>> some = initial_factors(range(1000, 1500), 8, scale=0.1, seed=0, side=SideNumber.USERS)
    >>> bool((all_rows[1000:1500] == some).all()), all_rows.shape
    (True, (3000, 16))
    """
    out = factor_matrix(len(rows), padded_width(factors))
    out[:, factors:] = 0
    for first in range(rows.start - rows.start % _BLOCK, rows.stop, _BLOCK):
        generator = np.random.default_rng([seed, side, first // _BLOCK])
        stop = min(first + _BLOCK, rows.stop)
        drawn = generator.standard_normal((stop - first, factors), dtype=np.float32)
        with np.errstate(over="ignore"):  # eigenbasis() refuses a Gramian that is not finite
            drawn *= np.float32(scale / np.sqrt(factors))
        begin = max(first, rows.start)
        out[begin - rows.start : stop - rows.start, :factors] = drawn[begin - first :]
    return out


def pad_factors(matrix: np.ndarray) -> Float32:
    """Copy factors into a float32 matrix whose width the kernels can work in."""
    n_rows, factors = matrix.shape
    out = factor_matrix(n_rows, padded_width(factors))
    out[:, :factors], out[:, factors:] = matrix, 0
    return out


def arrays_by_user() -> list[str]:
    """Name the arrays of a snapshot that have a row for each user.

    Examples
    --------
    >>> arrays_by_user()
    ['U', 'curvature', 'pending_steps']
    """
    marked = [one for one in fields(State) if _BY_USER in one.metadata]
    return [one.name + one.metadata[_BY_USER] for one in marked]


def to_snapshot(state: State, trace: Sequence[TraceRecord], seconds: float) -> Snapshot:
    """Return the state, the trace and the seconds of a fit, to be saved.

    A pending shift is saved as pending: to apply it early would change the last bits of the fit.
    """
    record: dict[str, Any] = {"seconds": seconds, "trace": [asdict(one) for one in trace]}
    arrays: dict[str, Any] = {}
    for name in (one.name for one in fields(state)):
        value = getattr(state, name)
        if isinstance(value, Shift):
            arrays |= {f"{name}_{part}": array for part, array in value._asdict().items()}
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        elif value is not None:
            record[name] = float(value)
    return Snapshot(record, arrays)


def from_snapshot(stored: Snapshot, state: State) -> tuple[list[TraceRecord], float]:
    """Overwrite a state by a saved one; return the trace and the seconds spent so far."""
    record, arrays = stored
    trace, seconds = stored_trace(record, TraceRecord), stored_number(record, "seconds")
    numbers = {
        one.name: stored_count(record, one.name)
        if isinstance(one.default, int)
        else stored_number(record, one.name, finite=False)
        for one in fields(state)
        if one.default is not None and one.default is not MISSING
    }
    if trace and trace[-1].epoch > numbers["epoch"]:
        refuse_damaged(f"has a trace of epochs that were not run: {trace[-1].epoch}")
    # A first state says how its arrays should look.
    for one in fields(state):
        if one.default is MISSING:
            own = getattr(state, one.name)
            own[...] = stored_array(arrays, one.name, own.shape, own.dtype)
        elif one.default is None:
            setattr(state, one.name, _array_or_shift(arrays, one, state.U.shape))
        else:
            setattr(state, one.name, numbers[one.name])
    return trace, seconds


def _array_or_shift(
    arrays: dict[str, Any], own: Field[Any], shape: tuple[int, ...]
) -> np.ndarray | Shift | None:
    """Return an array that a state may lack, or what is pending, in its two parts."""
    steps, h = (f"{own.name}_{part}" for part in Shift._fields)
    if steps in arrays or h in arrays:
        by_user = stored_array(arrays, steps, shape[:1], np.float32)
        return Shift(by_user, stored_array(arrays, h, shape[1:], np.float32))
    if own.name not in arrays:
        return None
    if _BY_USER in own.metadata:
        return stored_array(arrays, own.name, shape[:1], np.float32)
    return stored_array(arrays, own.name, (*shape[1:], *shape[1:]), np.float64)


_TOLERATED = 1.05  # after few epochs the objective may be a little above that of zero factors
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
            f"the fit collapsed: after epoch {state.epoch} all scores are 0 in 32 bits "
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
    """Refuse an exposure weight so large that rounding errors dominate the objective.

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
    """Turn errors of linear algebra, which come from a diverged fit, into SolveError."""
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
