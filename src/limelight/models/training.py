"""From a config and interactions to what a fit leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError
from limelight._native import resolve_threads
from limelight.models.learned import Learned
from limelight.solve.gramian import LARGEST
from limelight.solve.loop import Schedule, run
from limelight.solve.problem import Problem, sparse_rows
from limelight.solve.state import SideNumber, State, initial_factors, pad_factors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from limelight._arrays import Float32
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.models.config import FactorConfig
    from limelight.solve.exposure_term import ExposureTerm
    from limelight.solve.loop import Status
    from limelight.solve.share import Share


def problem_of(
    config: FactorConfig, rows: Csr, exposure: float, term: ExposureTerm | None = None
) -> Problem:
    """Put the settings that shape the objective beside the histories of some users."""
    return Problem(
        rows=rows,
        factors=config.factors,
        unobserved_weight=config.unobserved_weight,
        regularization=config.regularization,
        regularization_exponent=config.regularization_exponent,
        exposure=exposure,
        threads=resolve_threads(config.num_threads),
        term=term,
        advice=config.advice,
    )


def train(
    config: FactorConfig,
    data: Interactions,
    epoch: Callable[[Problem, State], None],
    *,
    exposure: float,
    term: ExposureTerm | None,
    init: tuple[np.ndarray, np.ndarray] | None,
    schedule: Schedule,
) -> Learned:
    """Run a model's epochs in the loop that all models share."""
    rows = training_rows(data)
    problem = training_problem(config, rows, exposure, term=term)
    state = first_state(config, problem, init)
    outcome = run(problem, state, lambda state: epoch(problem, state), schedule)
    arrays: dict[str, NDArray[Any]] = {
        "user_factors": unpadded(state.U, config.factors),
        "item_factors": unpadded(state.V, config.factors),
        "mean_user": state.s[: config.factors],
        "dual": state.w[: config.factors],
    }
    if term is not None:
        # All that fold-in needs to know of the term; the groups themselves are not kept.
        at_items = term.at_items(arrays["item_factors"])
        arrays |= {"exposure_curvature": at_items.Q, "exposure_pull": at_items.q}
    return learned(data, rows, arrays, trace=outcome.trace, status=outcome.status)


def training_problem(
    config: FactorConfig,
    rows: Csr,
    exposure: float,
    *,
    term: ExposureTerm | None = None,
    share: Share | None = None,
) -> Problem:
    """Put the settings of a fit beside its histories, or beside those of a share of it.

    Only training may solve rows by descent: unseen users have nowhere to descend from.
    """
    problem = problem_of(config, rows, exposure, term)
    return replace(problem, row_solver=config.row_solver, share=share)


def training_rows(data: Interactions) -> Csr:
    """Hand interactions to the kernels, unless there are none."""
    if not data.nnz:
        message = f"there is nothing to learn from: {data!r}"
        raise DataError(message, hint="check the filters that were applied when reading")
    return sparse_rows(data.indptr, data.indices, data.n_items)


def learned(
    data: Interactions,
    seen: Csr,
    arrays: dict[str, NDArray[Any]],
    *,
    trace: Sequence[object] = (),
    status: Status | None = None,
) -> Learned:
    """Put what was learnt beside what it was learnt from."""
    return Learned(
        arrays=arrays,
        user_ids=data.user_ids,
        item_ids=data.item_ids,
        fingerprint=data.fingerprint(),
        seen=seen,
        trace=list(trace),
        status=status,
    )


def first_state(
    config: FactorConfig, problem: Problem, init: tuple[np.ndarray, np.ndarray] | None
) -> State:
    """Start from the factors given, or from random ones; s is the mean user and w is 0.

    A fit with targets has no use for the mean of random users: s is 0.
    """
    sizes = (problem.rows.n_rows, problem.rows.n_columns)
    if init is None:
        first = problem.share.users.start if problem.share else 0
        U, V = (
            initial_factors(
                rows, config.factors, scale=config.init_scale, seed=config.random_state, side=side
            )
            for rows, side in zip(
                (range(first, first + sizes[0]), range(sizes[1])), SideNumber, strict=True
            )
        )
    else:
        given = list(init)
        if len(given) != 2:
            message = f"init must be two arrays, of users and of items: {len(given)} were given"
            raise DataError(message, hint="init is (user factors, item factors)")
        U, V = (
            _checked_init(name, factors, (n, config.factors))
            for name, factors, n in zip("UV", given, sizes, strict=True)
        )
    s, nothing = problem.mean_user(U), np.zeros(U.shape[1])
    return State(U, V, s=nothing if problem.has_targets and init is None else s, w=nothing)


def unpadded(X: Float32, factors: int) -> Float32:
    """Drop the columns of zeros that the kernels work with."""
    return np.ascontiguousarray(X[:, :factors])


def _checked_init(name: str, factors: np.ndarray, shape: tuple[int, int]) -> Float32:
    given = np.asarray(factors)
    if given.dtype.kind not in "biuf":
        message = f"init {name} must hold numbers, not {given.dtype}"
        raise DataError(message, hint="init is (user factors, item factors)")
    if given.shape != shape:
        message = f"init {name} must have shape {shape}: {given.shape}"
        raise DataError(message, hint="init is (user factors, item factors)")
    if not (np.abs(given) <= LARGEST).all():
        message = f"init {name} holds values that are not finite in 32 bits"
        raise DataError(message, hint="start from a model whose fit succeeded")
    return pad_factors(given)
