"""exADMM: iALS with a penalty on unequal exposure (Togashi et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from limelight._base.settings import hyperparameters, setting
from limelight._errors import ConfigError
from limelight.data.interactions import as_interactions
from limelight.models.config import FactorConfig
from limelight.models.factor_model import FactorModel
from limelight.models.training import problem_of
from limelight.recommend.fold_in import fold_in_alone, fold_in_coupled, fold_in_together
from limelight.solve.epochs import exact_epoch, exadmm_epoch
from limelight.solve.exposure_term import MeanTerm
from limelight.solve.state import pad_factors
from limelight.solve.tempo import Tempo

if TYPE_CHECKING:
    from limelight._arrays import Float32, Float64
    from limelight._native._kernels import Csr
    from limelight.models.exposure_targets import ExposureTargets
    from limelight.solve.loop import Callback
    from limelight.solve.problem import Problem
    from limelight.solve.state import State
    from limelight.store.checkpoint import Place


@dataclass(frozen=True, kw_only=True)
class ExADMMConfig(FactorConfig):
    """The settings of :class:`ExADMM`."""

    epochs: int = setting(50, "How many times all users and items are updated.", at_least=1)
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
    # Below these bounds a float32 has no room for a number.
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
        """Refuse two ways to say the same, and a tempo that the solver has no use for."""
        if self.exposure_weight and self.exposure_strength:
            message = (
                "exposure_weight and exposure_strength exclude each other: "
                f"{self.exposure_weight!r} and {self.exposure_strength!r}"
            )
            raise ConfigError(message, hint="a strength is a weight times the number of users")
        if self.solver == "exact" and (given := self._given_tempo()):
            message = f"{given[0]} has no use with solver='exact': {getattr(self, given[0])!r}"
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
        return self.solver == "exact" or (self.solver == "auto" and not self._given_tempo())

    def _given_tempo(self) -> list[str]:
        """Return which settings were given that only alternating directions have."""
        return [name for name in ("penalty", "learning_rate") if getattr(self, name) != "auto"]

    def price_weight(self, n_users: int) -> float:
        """Return lambda_ex / n_users, for so many training users."""
        return self.exposure_strength or self.exposure_weight * n_users

    def tempo(self, n_users: int) -> Tempo:
        """Return step sizes and penalty for this many users."""
        return Tempo(
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
    >>> model = ll.ExADMM(factors=8, exposure_weight=1e-3, epochs=20).fit(data)
    >>> model.status_.name
    'FINISHED'
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
        init: tuple[np.ndarray, np.ndarray] | None = None,
        exposure: ExposureTargets | None = None,
        callback: Callback | None = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
    ) -> Self:
        """Learn the factors.

        Parameters
        ----------
        X : Interactions or sparse matrix
            Users x items; a stored positive value counts 1.
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
            A folder, or a ``limelight.store.checkpoint.Checkpoint``, to keep the state in, every
            minute and before Ctrl-C or SIGTERM ends the fit. The same call goes on from there, to
            the same bits. Delete it once the model is saved.

        Returns
        -------
        Self
            The model itself, fitted.
        """
        data, term = as_interactions(X), None
        if exposure is not None:
            self._refuse_targets_without_exact_steps()
            term = exposure.term(data.n_items)
        return self._fit(
            data,
            term,
            init=init,
            callback=callback,
            show_progress=show_progress,
            checkpoint=checkpoint,
        )

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
        factors = self.config.factors
        return {"exposure_curvature": (factors, factors), "exposure_pull": (factors,)}

    def _exposure(self, n_users: int) -> float:
        return self.config.price_weight(n_users) * n_users

    def _epoch(self, problem: Problem, state: State) -> None:
        if self.config.is_exact:
            exact_epoch(problem, state)
        else:
            exadmm_epoch(problem, state, self.config.tempo(problem.n_users))

    def _fold_in(self, rows: Csr) -> Float32:
        V = pad_factors(self.item_factors)
        if self.config.fold_in == "joint":
            # The price of training is (lambda_ex / n) G_V s. So that m unseen users meet the same
            # one, their own lambda_ex over m is what that of the n training users is over n.
            exposure = self.config.price_weight(len(self.user_factors)) * rows.n_rows
            problem = problem_of(self.config, rows, exposure)
            if self.config.is_exact:
                term = self._term
                return fold_in_coupled(problem, V, term and term.padded(V.shape[1]))
            return fold_in_together(problem, V, self.config.tempo(rows.n_rows), self.config.epochs)
        price = np.zeros(V.shape[1])
        price[: self.config.factors] = self.price_
        return fold_in_alone(problem_of(self.config, rows, 0.0), V, price)
