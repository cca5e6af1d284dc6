"""The part that all models of user and item factors share: fitting, and what the fit leaves."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from limelight.data.interactions import as_interactions
from limelight.models.base import VectorModel
from limelight.models.training import train, unpadded
from limelight.recommend.histories import history_rows
from limelight.solve.loop import Schedule
from limelight.store.checkpoint import as_checkpoint, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from limelight._arrays import Float32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.models.config import FactorConfig
    from limelight.solve.exposure_term import ExposureTerm
    from limelight.solve.loop import Callback
    from limelight.solve.problem import Problem
    from limelight.solve.state import State
    from limelight.store.checkpoint import Place


class FactorModel(VectorModel):
    """Users and items as vectors whose products are scores."""

    config: FactorConfig

    @abstractmethod
    def _exposure(self, n_users: int) -> float:
        """Return lambda_ex for this many training users."""

    @abstractmethod
    def _epoch(self, problem: Problem, state: State) -> None:
        """Run one epoch."""

    @abstractmethod
    def _fold_in(self, rows: Csr) -> Float32:
        """Return factors for unseen users, as wide as the kernels want them."""

    def fit(
        self,
        X: Any,
        *,
        init: tuple[np.ndarray, np.ndarray] | None = None,
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
        return self._fit(
            as_interactions(X),
            None,
            init=init,
            callback=callback,
            show_progress=show_progress,
            checkpoint=checkpoint,
        )

    def _fit(
        self,
        data: Interactions,
        term: ExposureTerm | None,
        *,
        init: tuple[np.ndarray, np.ndarray] | None,
        callback: Callback | None,
        show_progress: bool | None,
        checkpoint: Place,
    ) -> Self:
        kept = as_checkpoint(checkpoint)
        about = {}
        if kept:
            given = (None,) if init is None else init
            about = self._about(data, init=digest(*given), targets=digest(*_arrays_of(term)))
        self._learned = train(
            self.config,
            data,
            self._epoch,
            exposure=self._exposure(data.n_users),
            term=term,
            init=init,
            schedule=Schedule(
                epochs=self.config.epochs,
                tolerance=self.config.tolerance,
                trace_every=self.config.trace_every,
                callback=callback,
                show_progress=show_progress,
                description=f"{type(self).__name__} with {self.config.factors} factors",
                checkpoint=kept,
                about=about,
            ),
        )
        return self

    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit of this size leaves behind."""
        factors = self.config.factors
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
        rows = history_rows(histories, self.item_ids)
        return unpadded(self._fold_in(rows), self.config.factors)

    def _item_vectors(self) -> Float32:
        return self.item_factors

    def _user_vectors(self, histories: Csr | None) -> Callable[[Int64], Float32]:
        if histories is None:
            return self.user_factors.__getitem__
        # All at once: where users share an exposure term, a list depends on who else asks.
        return unpadded(self._fold_in(histories), self.config.factors).__getitem__


def _arrays_of(term: ExposureTerm | None) -> tuple[NDArray[Any] | None, ...]:
    """Return what a term of exposure is made of."""
    if term is None:
        return (None,)
    return term.W.indptr, term.W.indices, term.W.data, term.tau
