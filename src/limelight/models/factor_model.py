"""The part that all models of user and item factors share: fitting, recommending, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from limelight._errors import ConfigError, DataError
from limelight._native import resolve_threads
from limelight.data.interactions import as_interactions
from limelight.models.checks import check_integer
from limelight.models.training import train, unpadded
from limelight.recommend.histories import history_rows, take_rows
from limelight.recommend.topk import ItemIndex, Lists, batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from limelight._arrays import Float32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids
    from limelight.models.config import FactorConfig
    from limelight.models.learned import Learned
    from limelight.solve.loop import Callback, Status
    from limelight.solve.measure import TraceRecord
    from limelight.solve.problem import Problem
    from limelight.solve.state import State


class Batch(NamedTuple):
    """Lists of some of the users, and which rows of the question they answer."""

    rows: slice
    lists: Lists


class FactorModel(ABC):
    """Users and items as vectors whose products are scores."""

    config: FactorConfig
    _learned: Learned | None

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

        Returns
        -------
        Self
            The model itself, fitted.
        """
        data = as_interactions(X)
        self._learned = train(
            self.config,
            data,
            self._epoch,
            exposure=self._exposure(data.n_users),
            init=init,
            callback=callback,
            show_progress=show_progress,
            description=f"{type(self).__name__} with {self.config.factors} factors",
        )
        return self

    @property
    def learned(self) -> Learned:
        """Everything that the fit left behind."""
        if self._learned is None:
            message = f"this {type(self).__name__} has not been fitted"
            raise ConfigError(message, hint="call fit(X) first, or load a fitted model")
        return self._learned

    @property
    def user_factors(self) -> Float32:
        """One row for each training user."""
        return self.learned.user_factors

    @property
    def item_factors(self) -> Float32:
        """One row for each item."""
        return self.learned.item_factors

    @property
    def user_ids(self) -> Ids:
        """The id of each training user."""
        return self.learned.user_ids

    @property
    def item_ids(self) -> Ids:
        """The id of each item."""
        return self.learned.item_ids

    @property
    def trace_(self) -> list[TraceRecord]:
        """Objective, Lagrangian and residuals of the traced epochs."""
        return self.learned.trace

    @property
    def status_(self) -> Status | None:
        """How the fit ended."""
        return self.learned.status

    def fold_in(self, histories: Any) -> Float32:
        """Return factors for users that the training has not seen.

        Parameters
        ----------
        histories : sparse matrix or Interactions
            One row a user, one column for each item of the training data.
        """
        rows = history_rows(histories, self.item_ids)
        return unpadded(self._fold_in(rows), self.config.factors)

    def recommend(
        self, histories: Any = None, k: int = 10, *, users: Any = None, filter_seen: bool = True
    ) -> Lists:
        """Rank items for unseen users by their histories, or for users of the training data.

        Parameters
        ----------
        histories : sparse matrix or Interactions, optional
            Users to fold in, one row each.
        k
            Length of the lists.
        users
            Row numbers of training users; with neither ``histories`` nor ``users``, all of them.
        filter_seen
            Whether to leave out the items of a user's history.

        Returns
        -------
        ids, scores
            Two arrays of users x k. Item numbers are columns of the training matrix. Where fewer
            than k items are left, a row ends in -1 and -inf.
        """
        found = list(self.recommend_batches(histories, k, users=users, filter_seen=filter_seen))
        if not found:
            return Lists(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
        return Lists(
            np.concatenate([batch.lists.ids for batch in found]),
            np.concatenate([batch.lists.scores for batch in found]),
        )

    def recommend_batches(
        self,
        histories: Any = None,
        k: int = 10,
        *,
        users: Any = None,
        filter_seen: bool = True,
        batch_size: int = 8192,
    ) -> Iterator[Batch]:
        """Recommend as :meth:`recommend` does, one batch of users at a time.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> model = ll.IALS(factors=8, epochs=2).fit(data)
        >>> [batch.lists.ids.shape for batch in model.recommend_batches(k=5, batch_size=200)]
        [(200, 5), (100, 5)]
        """
        check_integer("k", k, least=1)
        check_integer("batch_size", batch_size, least=1)
        if histories is not None and users is not None:
            message = "histories and users were both given"
            raise ConfigError(message, hint="pass histories for unseen users, users for known ones")
        if histories is None:
            chosen = self._known_users(users)
            queries, seen = self.user_factors, self._seen() if filter_seen else None
        else:
            seen = history_rows(histories, self.item_ids)
            chosen = np.arange(seen.n_rows)
            queries = unpadded(self._fold_in(seen), self.config.factors)
        index = ItemIndex(self.item_factors, resolve_threads(self.config.num_threads))
        for rows in batches(len(chosen), batch_size):
            history = take_rows(seen, chosen[rows]) if filter_seen and seen is not None else None
            yield Batch(rows, index.search(queries[chosen[rows]], k, history))

    def _known_users(self, users: Any) -> Int64:
        n_users = len(self.user_factors)
        if users is None:
            return np.arange(n_users)
        chosen = np.atleast_1d(np.asarray(users))
        if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
            message = f"users must be row numbers of the training matrix: {users!r}"
            hint = "find the row of an id with numpy.flatnonzero(model.user_ids == id)"
            raise DataError(message, hint=hint)
        outside = chosen[(chosen < 0) | (chosen >= n_users)]
        if len(outside):
            message = f"user not in the training data: row {outside[0]} of {n_users:,}"
            raise DataError(message, hint="pass histories= to recommend to unseen users")
        return chosen.astype(np.int64)

    def _seen(self) -> Csr:
        if self.learned.seen is None:
            message = "the model was saved without histories, so it cannot leave seen items out"
            raise DataError(message, hint="pass filter_seen=False, or histories= of these users")
        return self.learned.seen

    def get_params(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return asdict(self.config)

    def save(self, path: str | Path, *, history: bool = True) -> None:
        """Write the model to a folder; ``history=False`` leaves the training histories out."""
        from limelight.models.files import save_model

        save_model(self, path, history=history)

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults, and what the model was fitted to."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.config.changed().items())
        fitted = ""
        if self._learned:
            users, items = len(self.user_factors), len(self.item_factors)
            fitted = f" fitted to {users:,} users x {items:,} items"
        return f"{type(self).__name__}({settings}){fitted}"
