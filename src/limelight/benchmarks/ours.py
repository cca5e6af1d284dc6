"""Our own fits, one epoch at a time, as the fitting loop runs them but without its trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from limelight.benchmarks.task import UNOBSERVED_WEIGHT, Learnt
from limelight.models.training import first_state, unpadded
from limelight.solve.divergence import check_finite
from limelight.solve.epochs import exadmm_epoch, ials_epoch, mean_user_epoch
from limelight.solve.gramian import gramian
from limelight.solve.steps import exact_u_step
from limelight.solve.tempo import Tempo

if TYPE_CHECKING:
    from limelight.benchmarks.task import Task

EXADMM_PERIOD = 5
"""Epochs from one refresh of the curvature to the next: the cost of an epoch is their mean."""


class Ials:
    """limelight's iALS; an epoch is both half-steps and the check that they are finite."""

    def __init__(self, task: Task, row_solver: Literal["cholesky", "cg"] = "cholesky") -> None:
        self.who = "limelight iALS" if row_solver == "cholesky" else "limelight iALS, CG"
        self._factors = task.factors
        self.problem = replace(task.problem, row_solver=row_solver)
        self.state = first_state(task.config, self.problem, None)

    def epoch(self) -> None:
        """Update all users and all items once."""
        ials_epoch(self.problem, self.state)
        self.state.epoch += 1
        check_finite(self.problem, self.state)

    def learnt(self) -> Learnt:
        """Return the factors as they stand."""
        U, V = (unpadded(X, self._factors) for X in (self.state.U, self.state.V))
        return Learnt(U, V)


class ExAdmm:
    """limelight's exADMM, at an exposure weight in the middle of the interesting range."""

    who = "limelight exADMM"

    def __init__(self, task: Task) -> None:
        n_users = task.problem.n_users
        self._factors = task.factors
        # The penalty meets a user's update as exposure / n_users^2 * n_users beside a0.
        self.problem = replace(task.problem, exposure=UNOBSERVED_WEIGHT * n_users)
        self.state = first_state(task.config, self.problem, None)
        self.tempo = Tempo(learning_rate=None, penalty=None)

    def epoch(self) -> None:
        """Take the steps V, U, s and w once."""
        exadmm_epoch(self.problem, self.state, self.tempo)
        self.state.epoch += 1
        check_finite(self.problem, self.state)

    def learnt(self) -> Learnt:
        """Return the factors as they stand, and the price at which users are folded in."""
        problem, state = self.problem, self.state
        state.settle(problem.threads)
        G_V = gramian(state.V, problem.threads)
        price = problem.exposure / problem.n_users * (G_V @ state.s)
        U, V = (unpadded(X, self._factors) for X in (state.U, state.V))
        return Learnt(U, V, np.asarray(price[: self._factors]))


class UserStep:
    """The user half of an epoch, as exADMM and as iALS take it, with the items left alone."""

    def __init__(self, task: Task) -> None:
        trained = ExAdmm(task)
        trained.epoch()
        self._exadmm = trained
        self._ials = Ials(task)

    def exadmm(self) -> None:
        """Take the steps U, s and w, and apply the shift that is left pending."""
        problem, state = self._exadmm.problem, self._exadmm.state
        G_V = gramian(state.V, problem.threads)
        mean_user_epoch(problem, state, self._exadmm.tempo, G_V)
        state.settle(problem.threads)
        state.epoch += 1

    def ials(self) -> None:
        """Solve for every user."""
        exact_u_step(self._ials.problem, self._ials.state)
