"""exADMM: iALS with a penalty on unequal exposure (Togashi et al. 2024).

:class:`ExposureTargets` lets a fit aim at mean scores, by item or by group, in place of equally
small ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import hyperparameters, setting
from limelight.data.interactions import as_interactions
from limelight.models.config import FactorConfig
from limelight.models.factor_model import (
    FactorModel,
    factor_solver,
    problem_of,
    training_rows,
)
from limelight.recommend.fold_in import fold_in_coupled, fold_in_together
from limelight.solve.epochs import FactorMethod, exact_epoch, exadmm_epoch
from limelight.solve.population import Whole
from limelight.solve.problem import ExposureTerm, MeanTerm
from limelight.solve.state import pad_factors
from limelight.solve.step_sizes import StepSizes
from limelight.solve.theorem import check_theorem

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight._native._kernels import Csr
    from limelight.solve.epochs import Epoch
    from limelight.solve.loop import Callback
    from limelight.solve.theorem import TheoremCheck
    from limelight.store.checkpoint import Place


@dataclass(frozen=True, kw_only=True)
class ExADMMConfig(FactorConfig):
    """The settings of :class:`ExADMM`."""

    exposure_weight: float = setting(
        # lambda_ex = weight * n_users^2, so that the same weight means less in smaller data.
        0.0,
        "How strongly unequal exposure is held down: the paper's lambda. Try decades from 1e-7 up.",
    )
    exposure_strength: float = setting(
        # lambda_ex = strength * n_users: how much the squared score that the average user gives
        # an item counts beside the scores that all users give it.
        0.0,
        "The same in a form that means the same for data of any size. Try 0.01 to 10.",
    )
    solver: Literal["auto", "exact", "admm"] = setting(
        "auto",
        "How the users are updated: all at once, exactly, or by the paper's alternating "
        "directions. auto: exact, unless a penalty or a learning rate is given.",
    )
    # Below these bounds, numbers that are worked out from them would be 0 in float32.
    penalty: float | Literal["auto"] = setting(
        "auto", "How hard ADMM ties the mean user down.", above=1e-30
    )
    learning_rate: float | Literal["auto"] = setting(
        "auto", "Step size of the users; of all weights in a network.", above=1e-30
    )
    fold_in: Literal["price", "joint"] = setting(
        "price", "How unseen users are folded in: alone, or all together."
    )

    def check_own_settings(self) -> None:
        """Refuse two ways to say the same, and step sizes that the solver has no use for."""
        if self.exposure_weight and self.exposure_strength:
            message = (
                "exposure_weight and exposure_strength exclude each other: "
                f"{self.exposure_weight!r} and {self.exposure_strength!r}"
            )
            raise ConfigError(message, hint="a strength is a weight times the number of users")
        if self.solver == "exact" and (given := self._given_step_sizes()):
            message = f"{given[0]} has no effect with solver='exact': {getattr(self, given[0])!r}"
            raise ConfigError(message, hint="leave it out, or use solver='admm'")

    @property
    def advice(self) -> str:
        """What to change where the numbers of a fit run away."""
        weights = super().advice
        if self.is_exact:
            return weights
        return f'use learning_rate="auto" and penalty="auto"; if they are, {weights}'

    @property
    def is_exact(self) -> bool:
        """Whether users are updated all at once."""
        return self.solver == "exact" or (self.solver == "auto" and not self._given_step_sizes())

    def _given_step_sizes(self) -> list[str]:
        """Return which settings were given that only alternating directions have."""
        return [name for name in ("penalty", "learning_rate") if getattr(self, name) != "auto"]

    def price_weight(self, n_users: int) -> float:
        """Return lambda_ex / n_users, for so many training users."""
        return self.exposure_strength or self.exposure_weight * n_users

    def step_sizes(self, n_users: int) -> StepSizes:
        """Return step sizes and penalty for this many users."""
        return StepSizes(
            learning_rate=None if self.learning_rate == "auto" else self.learning_rate,
            penalty=None if self.penalty == "auto" else self.penalty * n_users**2,
        )


class ExADMM(FactorModel):
    """Factors whose average scores are held down, so that the catalogue shares the exposure.

    The penalty ``exposure_weight * n_users^2 / 2 * |V mean(U)|^2`` acts on the score that an item
    gets from the average user. Users are coupled through their mean alone: they are solved for
    together, exactly, for a little more than an epoch of iALS costs, or by the paper's ADMM, which
    parts the penalty from the users.

    Parameters are the fields of :class:`~limelight.models.exadmm.ExADMMConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.ExADMM(factors=8, exposure_weight=1e-3).fit(data)
    >>> model.status_.name
    'CONVERGED'
    """

    config: ExADMMConfig
    __init__ = hyperparameters(ExADMMConfig)

    @property
    def mean_user_(self) -> Float64:
        """The auxiliary mean user s."""
        return self.learned.arrays["mean_user"]

    @property
    def dual_(self) -> Float64:
        """The scaled dual variable w; where users are solved for exactly, the price itself."""
        return self.learned.arrays["dual"]

    @property
    def price_(self) -> Float64:
        """What exposure takes off every user's right-hand side: (lambda_ex / n_users) G_V s.

        With exposure targets G_V s is Q s - q, the slope of what they measure.
        """
        return self.learned.keep("price", self._find_price)

    def _find_price(self) -> Float64:
        n_users = len(self.user_factors)
        kappa = self.config.price_weight(n_users)
        if self._term is not None:
            return kappa * (self._term.Q @ self.mean_user_ - self._term.q)
        V = self.item_factors.astype(np.float64)
        return kappa * (V.T @ (V @ self.mean_user_))

    @property
    def _term(self) -> MeanTerm | None:
        """What the fit kept of its exposure targets."""
        arrays = self.learned.arrays
        if "exposure_pull" not in arrays:
            return None
        return MeanTerm(arrays["exposure_curvature"], arrays["exposure_pull"])

    def fit(
        self,
        X: Any,
        *,
        weight: str | None = None,
        init: tuple[np.ndarray, np.ndarray] | None = None,
        exposure: ExposureTargets | None = None,
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
        exposure
            Mean scores that items or groups are to get, instead of small ones for all. It needs
            ``solver="exact"``.
        callback
            Called after every epoch with its number and, where it was traced, its record; a true
            answer ends the fit.
        show_progress
            Whether to show a bar on standard error; None does so on a terminal.
        checkpoint
            A folder to keep the state in, every minute and before Ctrl-C or SIGTERM ends the fit.
            The same call goes on from there, to the same bits. Delete it once the model is saved.
        item_features
            What is known of the items: a table with item ids, or a matrix with a row for each
            column of X. A map from features to vectors is learnt, and gives vectors to items
            without interactions; those of the table that X does not have are added.

        Returns
        -------
        Self
            The model itself, fitted.
        """
        data, term = as_interactions(X, weight=weight), None
        if exposure is not None:
            self._refuse_targets_without_exact_steps()
            term = exposure.term(data.n_items)
        about = self._features_of(item_features, data)
        self._fit(data, term, init, callback, checkpoint, show_progress=show_progress)
        return self._learn_features(about)

    def theorem(self, X: Any) -> TheoremCheck:
        """Fit by alternating directions and tell which conditions of Theorem 3.1 held.

        The bounds of penalty and step size are those of these data: they depend on the largest
        norms of the run. All epochs run, and the model itself stays as it is.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> check = ll.ExADMM(factors=8, solver="admm", exposure_weight=1e-3).theorem(data)
        >>> check.holds, check.rho_holds, check.gamma_holds
        (False, False, False)
        >>> check.largest_gamma < 1e-3 < check.gamma
        True
        """
        if self.config.is_exact:
            message = f"the theorem is about alternating directions: solver={self.config.solver!r}"
            raise ConfigError(message, hint="use solver='admm'")
        rate = self.config.learning_rate
        untolerant = type(self)(**{**self.get_params(), "tolerance": 0.0})
        solver = factor_solver(untolerant, Whole(training_rows(as_interactions(X))))
        return check_theorem(solver, self.config.epochs, None if rate == "auto" else rate)

    def _refuse_targets_without_exact_steps(self) -> None:
        config = self.config
        for name, needed, holds in (
            ("solver", "exact", config.is_exact),
            ("row_solver", "cholesky", config.row_solver == "cholesky"),
        ):
            if not holds:
                message = f"exposure targets need {name}={needed!r}: {getattr(config, name)!r}"
                raise ConfigError(message, hint=f"use ExADMM({name}={needed!r}, ...)")

    def optional_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of what is left behind by a fit with exposure targets."""
        factors = self.numbers.factors
        return {"exposure_curvature": (factors, factors), "exposure_pull": (factors,)}

    def _method(self, n_users: int) -> FactorMethod:
        """Update the users all at once, exactly, or by alternating directions."""
        epoch: Epoch = exact_epoch
        if not self.config.is_exact:
            epoch = partial(exadmm_epoch, step_sizes=self.config.step_sizes(n_users))
        return FactorMethod(self.config.price_weight(n_users) * n_users, epoch)

    def _price(self) -> Float64:
        return self.price_

    def _fold_in(self, rows: Csr) -> Float32:
        if self.config.fold_in == "joint":
            V = pad_factors(self.item_factors)
            # The price of training is (lambda_ex / n) G_V s. So that m unseen users meet the same
            # one, their own lambda_ex over m is what that of the n training users is over n.
            exposure = self.config.price_weight(len(self.user_factors)) * rows.n_rows
            problem = problem_of(self.config, rows, exposure, numbers=self.numbers)
            if self.config.is_exact:
                term = self._term
                return fold_in_coupled(problem, V, term and term.padded(V.shape[1]))
            return fold_in_together(
                problem, V, self.config.step_sizes(rows.n_rows), self.config.epochs
            )
        return self._fold_in_alone(rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExposureTargets:
    """Mean scores that items, or groups of items, are to get, and how much each matters.

    The mean score of an item is the mean of what it scores with all users; that of a group is the
    sum over its items. A fit pays ``weight * (mean score - target)^2`` for each, all of it times
    ``exposure_weight * n_users^2 / 2``. Items are columns of the training matrix.

    Parameters
    ----------
    weights
        One number from 0 up for each item or, with groups, each group; without them all are 1.
    targets
        One number for each item or group; without them all are 0.
    groups
        Group numbers of the items, -1 for an item that belongs to none and is left alone. Or a
        sparse matrix of groups x items: each entry says how much of an item counts in a group, and
        an item may be in several.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> studios = np.arange(100) // 25
    >>> wanted = ll.ExposureTargets(groups=studios, targets=[2.0, 2.0, 1.0, 1.0])
    >>> model = ll.ExADMM(factors=8, solver="exact", exposure_weight=1.0, epochs=20)
    >>> scores = model.fit(data, exposure=wanted).item_factors @ model.mean_user_
    >>> np.bincount(studios, scores).round(2)
    array([2., 2., 1., 1.])
    """

    weights: Any = None
    targets: Any = None
    groups: Any = None

    def term(self, n_items: int) -> ExposureTerm:
        """Check everything against the number of items and put it into arrays."""
        if self.groups is None:
            W = scipy.sparse.csr_array(scipy.sparse.eye_array(n_items))
        elif scipy.sparse.issparse(self.groups):
            W = _memberships(self.groups, n_items)
        else:
            W = _partition(self.groups, n_items)
        what = "item" if self.groups is None else "group"
        weights = _numbers("weights", self.weights, W.shape[0], what, default=1.0)
        targets = _numbers("targets", self.targets, W.shape[0], what, default=0.0)
        _refuse_negative("weights", weights)
        return ExposureTerm.weighted(W, weights, targets)


def _numbers(name: str, given: Any, n: int, what: str, *, default: float) -> Float64:
    """Read one finite number for each item or group."""
    if given is None:
        return np.full(n, default)
    values = np.asarray(given)
    if values.shape != (n,) or values.dtype.kind not in "biuf":
        message = (
            f"exposure {name} must be numbers, one for each of {n:,} {what}s: "
            f"{values.dtype} of shape {values.shape}"
        )
        raise DataError(message, hint=f"{what}s are counted as the training matrix and groups do")
    _refuse_infinite(name, values)
    return values.astype(np.float64)


def _partition(groups: Any, n_items: int) -> scipy.sparse.csr_array:
    """Turn group numbers into a matrix of groups x items."""
    numbers = np.asarray(groups)
    if numbers.shape != (n_items,) or numbers.dtype.kind not in "iu":
        message = (
            f"exposure groups must be whole numbers, one for each of {n_items:,} items: "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
        hint = "number the groups from 0 up, or pass a sparse matrix of groups x items"
        raise DataError(message, hint=hint)
    if (numbers < -1).any():
        message = f"exposure groups must be -1 or more: {numbers.min()}"
        raise DataError(message, hint="-1 is an item without a group")
    members = np.flatnonzero(numbers >= 0)
    shape = (int(numbers.max(initial=-1)) + 1, n_items)
    return scipy.sparse.csr_array((np.ones(len(members)), (numbers[members], members)), shape)


def _memberships(groups: Any, n_items: int) -> scipy.sparse.csr_array:
    """Check a matrix of groups x items."""
    W = scipy.sparse.csr_array(groups)
    if W.ndim != 2 or W.shape[1] != n_items:
        message = f"exposure groups must have one column for each of {n_items:,} items: {W.shape}"
        raise DataError(message, hint="rows are groups, columns those of the training matrix")
    if W.dtype.kind not in "biuf":
        message = f"exposure groups must hold numbers, not {W.dtype}"
        raise DataError(message, hint="an entry says how much of an item counts in a group")
    _refuse_infinite("groups", W.data)
    _refuse_negative("groups", W.data)
    W = W.astype(np.float64)
    W.sum_duplicates()
    return W


def _refuse_infinite(name: str, values: np.ndarray) -> None:
    bad = values[~np.isfinite(values)]
    if len(bad):
        message = f"exposure {name} must be finite: {bad[0]}"
        raise DataError(message, hint="leave an item out with weight 0, or group -1")


def _refuse_negative(name: str, values: np.ndarray) -> None:
    if (values < 0).any():
        message = f"exposure {name} must be 0 or more: {values.min()}"
        raise DataError(message, hint="0 leaves an item or a group alone")
