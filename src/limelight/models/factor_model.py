"""The part that all models of user and item factors share: fitting, and what the fit leaves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limelight._base.errors import DataError
from limelight._native import resolve_threads
from limelight.data.interactions import as_interactions
from limelight.models.config import (
    FactorNumbers,
    note_heavy_weight,
    numbers_of,
    robust_weights,
    settled,
)
from limelight.models.grow import Grower
from limelight.models.growing import GrowingModel
from limelight.models.learned import Learned
from limelight.recommend.explain import fold_in_parts
from limelight.recommend.fold_in import fold_in_alone, history_rows, shared_basis
from limelight.solve.epochs import FactorSolver
from limelight.solve.loop import Schedule, run
from limelight.solve.population import Whole
from limelight.solve.problem import LARGEST, Problem, padded_width, sparse_rows
from limelight.solve.state import SideNumber, State, initial_factors, pad_factors
from limelight.store.checkpoint import as_checkpoint, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.models.config import FactorConfig
    from limelight.recommend.explain import Contributions
    from limelight.solve.epochs import FactorMethod
    from limelight.solve.loop import Callback, Status
    from limelight.solve.population import Population
    from limelight.solve.problem import ExposureTerm
    from limelight.store.checkpoint import Place


def problem_of(
    config: FactorConfig,
    rows: Csr,
    exposure: float,
    term: ExposureTerm | None = None,
    *,
    numbers: FactorNumbers | None = None,
) -> Problem:
    """Put the settings that shape the objective beside the histories of some users.

    ``numbers`` stand for the settings that may be "auto"; without them these follow from the
    histories.
    """
    numbers = numbers or settled_for(config, Whole(rows))
    return Problem(
        population=Whole(rows),
        **numbers._asdict(),
        regularization_exponent=config.regularization_exponent,
        exposure=exposure,
        threads=resolve_threads(config.num_threads),
        term=term,
        advice=config.advice,
    )


def factor_solver(
    model: FactorModel,
    population: Population,
    *,
    term: ExposureTerm | None = None,
    init: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> FactorSolver:
    """Return what fits a model to a population of users, from its first factors on.

    ``term`` says what is asked of exposure, if not that all of it be small; ``init`` has first
    factors ``(U, V)`` instead of random ones; ``threads`` count in place of those of the settings.
    """
    config, method = model.config, model._method(population.n_users)
    numbers = settled_for(config, population, init)
    problem = problem_of(config, population.rows, method.exposure, term, numbers=numbers)
    problem = replace(
        problem,
        population=population,
        # Only training may solve rows by descent: unseen users have nowhere to descend from.
        row_solver=config.row_solver,
        threads=threads or problem.threads,
    )
    return FactorSolver(problem, first_state(config, problem, init), method.epoch, config.tolerance)


def settled_for(config: FactorConfig, population: Population, init: Any = None) -> FactorNumbers:
    """Put numbers in place of "auto", for a fit to a population that may start from factors."""
    try:
        width = int(np.shape(init[1])[1])
    except (TypeError, IndexError, ValueError):
        width = None  # where something is wrong with the factors, first_state says what
    weights = population.rows.weights
    return settled(
        asdict(config),
        n_users=population.n_users,
        n_items=population.rows.n_columns,
        observed=population.n_entries,
        weight=None if weights is None else float(robust_weights(weights).sum(dtype=np.float64)),
        width=width,
    )


def chosen_of(config: FactorConfig, problem: Problem) -> dict[str, Any]:
    """Return what settings that are "auto" came to in a fit."""
    values = (getattr(problem, name) for name in FactorNumbers._fields)
    return FactorNumbers(*values).chosen(asdict(config))


def fit_schedule(model: FactorModel, **more: Any) -> Schedule:
    """Return how long a model is fitted, and when it is traced."""
    return Schedule(epochs=model.config.epochs, trace_every=model.config.trace_every, **more)


def training_rows(data: Interactions) -> Csr:
    """Hand interactions to the kernels, unless there are none."""
    if not data.nnz:
        message = f"there is nothing to learn from: {data!r}"
        raise DataError(message, hint="check the filters that were applied when reading")
    note_heavy_weight(data.weights)
    return sparse_rows(data.indptr, data.indices, data.n_items, data.weights)


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
        weighted=data.weights is not None,
        has_ids=data.has_ids,
    )


def first_state(
    config: FactorConfig, problem: Problem, init: tuple[np.ndarray, np.ndarray] | None
) -> State:
    """Start from the factors given, or from random ones; s is the mean user and w is 0.

    A fit with targets has no use for the mean of random users: s is 0.
    """
    sizes = (problem.rows.n_rows, problem.rows.n_columns)
    if init is None:
        first = problem.population.first_user
        U, V = (
            initial_factors(
                rows, problem.factors, scale=config.init_scale, seed=config.random_state, side=side
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
            _checked_init(name, factors, (n, problem.factors))
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


class FactorModel(GrowingModel):
    """Users and items as vectors whose products are scores."""

    config: FactorConfig

    @abstractmethod
    def _method(self, n_users: int) -> FactorMethod:
        """Return how the factors of so many training users are fitted."""

    @abstractmethod
    def _fold_in(self, rows: Csr) -> Float32:
        """Return factors for unseen users, as wide as the kernels want them."""

    def fit(
        self,
        X: Any,
        *,
        weight: str | None = None,
        init: tuple[np.ndarray, np.ndarray] | None = None,
        callback: Callback | None = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
        item_features: Any = None,
    ) -> Self:
        """Learn the factors.

        Parameters
        ----------
        X : Interactions or sparse matrix
            Users x items. The weights of interactions are how much a pair counts.
        weight
            ``"values"`` takes the values of a matrix for such weights; without it all must be 1.
        init
            First factors ``(U, V)`` instead of random ones: a warm start.
        callback
            Called after every epoch with its number and, where it was traced, its record; a true
            answer ends the fit.
        show_progress
            Whether to show a bar on standard error; None does so on a terminal.
        checkpoint
            A folder, or a ``limelight.store.checkpoint.Checkpoint``, to keep the state in, every
            minute and before Ctrl-C or SIGTERM ends the fit. The same call goes on from there, to
            the same bits. Delete it once the model is saved.
        item_features
            What is known of the items: a table with item ids, or a matrix with a row for each
            column of X. A map from features to vectors is learnt, and gives vectors to items
            without interactions; those of the table that X does not have are added.

        Returns
        -------
        Self
            The model itself, fitted.
        """
        data = as_interactions(X, weight=weight)
        about = self._features_of(item_features, data)
        self._fit(data, None, init, callback, checkpoint, show_progress=show_progress)
        return self._learn_features(about)

    def _fit(
        self,
        data: Interactions,
        term: ExposureTerm | None,
        init: tuple[np.ndarray, np.ndarray] | None,
        callback: Callback | None,
        checkpoint: Place,
        *,
        show_progress: bool | None,
    ) -> Self:
        place = as_checkpoint(checkpoint)
        about = {}
        if place:
            given = (None,) if init is None else init
            about = self._about(data, init=digest(*given), targets=digest(*_arrays_of(term)))
        rows = training_rows(data)
        solver = factor_solver(self, Whole(rows), term=term, init=init)
        factors = solver.problem.factors
        outcome = run(
            solver,
            fit_schedule(
                self,
                callback=callback,
                show_progress=show_progress,
                description=f"{type(self).__name__} with {factors} factors",
                checkpoint=place,
                about=about,
            ),
        )
        state = solver.state
        arrays: dict[str, NDArray[Any]] = {
            "user_factors": unpadded(state.U, factors),
            "item_factors": unpadded(state.V, factors),
            "mean_user": state.s[:factors],
            "dual": state.w[:factors],
        }
        if term is not None:
            # All that fold-in needs to know of the term; the groups themselves are not kept.
            at_items = term.at_items(arrays["item_factors"])
            arrays |= {"exposure_curvature": at_items.Q, "exposure_pull": at_items.q}
        self._learned = learned(data, rows, arrays, trace=outcome.trace, status=outcome.status)
        self.chosen_ = chosen_of(self.config, solver.problem)
        return self

    @property
    def numbers(self) -> FactorNumbers:
        """The settings that may be "auto", as the numbers of the last fit."""
        return numbers_of({**vars(self.config), **self.chosen_})

    def _grower(self, known: Learned) -> Grower:
        """Return what lets these factors take in more."""
        return Grower(
            known,
            training_rows,
            partial(problem_of, self.config, numbers=self.numbers),
            lambda n_users: self._method(n_users).exposure,
        )

    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit of this size leaves behind."""
        factors = self.numbers.factors
        return {
            "user_factors": (n_users, factors),
            "item_factors": (n_items, factors),
            "mean_user": (factors,),
            "dual": (factors,),
        }

    @property
    def user_factors(self) -> Float32:
        """One row for each training user."""
        return self.learned.arrays["user_factors"]

    @property
    def item_factors(self) -> Float32:
        """One row for each item."""
        return self.learned.arrays["item_factors"]

    def fold_in(self, histories: Any) -> Float32:
        """Return factors for users that the training has not seen.

        Parameters
        ----------
        histories : sparse matrix or Interactions
            One row a user, one column for each item of the training data.
        """
        rows = history_rows(histories, self.item_ids, weighted=self.learned.weighted)
        return unpadded(self._fold_in(rows), self.numbers.factors)

    def _fold_in_alone(self, rows: Csr) -> Float32:
        """Solve for each unseen user alone, beside what all users share, which is kept."""
        problem = problem_of(self.config, rows, 0.0, numbers=self.numbers)
        shared = self.learned.keep("basis", lambda: shared_basis(problem, self.item_factors))
        price, found = None, self._price()
        if found is not None:
            price = np.pad(found, (0, padded_width(len(found)) - len(found)))
        return fold_in_alone(problem, self.item_factors, price, shared=shared)

    def _price(self) -> Float64 | None:
        """Return what exposure takes off the right-hand side of every user, if it does."""
        return None

    def _contributions(self, rows: Csr, item: int) -> Contributions:
        problem = problem_of(self.config, rows, 0.0, numbers=self.numbers)
        return fold_in_parts(problem, self.item_factors, item, self._price())

    def _item_vectors(self) -> Float32:
        return self.item_factors

    def _user_vectors(self, histories: Csr | None) -> Callable[[Int64], Float32]:
        if histories is None:
            return self.user_factors.__getitem__
        # All users are folded in at once, because with a shared exposure term the factors of one
        # depend on the others.
        return unpadded(self._fold_in(histories), self.numbers.factors).__getitem__


def _arrays_of(term: ExposureTerm | None) -> tuple[NDArray[Any] | None, ...]:
    """Return what a term of exposure is made of."""
    if term is None:
        return (None,)
    return term.W.indptr, term.W.indices, term.W.data, term.tau
