"""The part that all neural models share: fitting, and answering from the last hidden layer.

The nDCG of held-out users says which epoch was the best.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import DataError
from limelight._native import resolve_threads
from limelight.data.interactions import as_interactions
from limelight.data.split import hold_out_users
from limelight.metrics.accuracy import match, ndcg_of
from limelight.models.base import VectorModel
from limelight.models.factor_model import learned, training_rows
from limelight.models.neural.config import require_jax
from limelight.models.neural.network import encoder, initial_parameters, item_vectors
from limelight.models.neural.train import (
    EpochRecord,
    NetworkSolver,
    batch_of,
    first_state,
    shuffled_batches,
)
from limelight.recommend.fold_in import history_rows, take_rows
from limelight.recommend.ranking import VectorRanking
from limelight.recommend.similar import cosines
from limelight.solve.loop import Schedule, run
from limelight.store.checkpoint import as_checkpoint, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.models.neural.config import NeuralConfig
    from limelight.models.neural.network import Network, Parameters
    from limelight.models.neural.train import EpochCallback, Step
    from limelight.recommend.ranking import Ranking
    from limelight.store.checkpoint import Place


CUTOFF = 100
_SHARE = 0.1
_LISTED = 1024  # validation users whose lists are made at a time


class ValidatedRows(NamedTuple):
    """The training histories, and the histories and targets of validation users."""

    training: Csr
    history: Csr
    targets: Any


def divide(data: Interactions, validation: Any, seed: int) -> ValidatedRows:
    """Take the validation users that are given, or draw some users to hold out."""
    training = training_rows(data)
    if validation is None:
        others, validation = hold_out_users(data, _SHARE, seed)
        training = take_rows(training, others)
        history = history_rows(validation.history, np.arange(data.n_items))
    else:
        if not (hasattr(validation, "history") and hasattr(validation, "targets")):
            message = f"no history and targets to validate on: {type(validation).__name__}"
            raise DataError(message, hint="pass a held-out part such as split.validation")
        history = history_rows(validation.history, data.item_ids)
    expected = (history.n_rows, data.n_items)
    if validation.targets.shape != expected:
        message = f"validation targets have shape {validation.targets.shape}, not {expected}"
        raise DataError(message, hint="one row for each history, one column for each item")
    if not validation.targets.nnz:
        message = f"none of the {history.n_rows:,} validation users has a target to find"
        hint = "a split with validation users helps; who has fewer than 5 items gets no targets"
        raise DataError(message, hint=hint)
    return ValidatedRows(training, history, validation.targets)


def validation_ndcg(
    parts: ValidatedRows,
    item_vectors: Float32,
    user_vectors: Callable[[Int64], Float32],
    threads: int,
) -> float:
    """Measure nDCG@100 of the lists that these vectors make."""
    ranking = VectorRanking(
        item_vectors,
        user_vectors,
        n_users=parts.history.n_rows,
        hidden=parts.history,
        threads=threads,
    )
    k = min(CUTOFF, ranking.n_items)
    found = []
    for rows in batches(ranking.n_users, _LISTED):
        lists = ranking.top(np.arange(rows.start, rows.stop), k)
        found.append(ndcg_of(match(lists.ids, parts.targets[rows]), k))
    return float(np.nanmean(np.concatenate(found)))


_ENCODED = 128
"""Users that are encoded at a time. Batches always have this size, because the last bits of a
user's vector would otherwise depend on how many others are encoded with her."""


class NeuralModel(VectorModel):
    """A network whose last layer scores items: users are its last hidden layer."""

    record: ClassVar[type[EpochRecord]] = EpochRecord
    keep_best: ClassVar[bool] = True
    """Whether the best epoch is kept, rather than the last one."""
    config: NeuralConfig

    @abstractmethod
    def _network(self, n_items: int) -> Network:
        """Return the network for this many items."""

    @abstractmethod
    def _step(self, network: Network) -> Step:
        """Return what makes an update by the settings of this model."""

    def fit(
        self,
        X: Any,
        *,
        weight: str | None = None,
        validation: Any = None,
        callback: EpochCallback | None = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : Interactions or sparse matrix
            Users x items, without weights: a network cannot learn from them.
        weight
            Only None: all values of a matrix must be 1.
        validation
            Held-out users with ``history`` and ``targets``, such as ``split.validation``. Without
            them 10 % of the users are held out and not learnt from.
        callback
            Called after every epoch with its number and its record; a true answer ends the fit.
        show_progress, checkpoint
            As for :meth:`limelight.IALS.fit`.

        Returns
        -------
        Self
            The model itself, fitted.
        """
        data = as_interactions(X, weight=weight)
        if data.weights is not None:
            message = f"{type(self).__name__} cannot learn from weights: {data!r}"
            raise DataError(message, hint="use IALS or ExADMM, or read the data without weights")
        parts = divide(data, validation, self.config.random_state)
        require_jax()
        network = self._network(data.n_items)
        parameters = initial_parameters(network, self.config.random_state)
        threads = resolve_threads(self.config.num_threads)
        place = as_checkpoint(checkpoint)
        about = {}
        if place:
            held_out = (parts.history.indices, parts.targets.indices)
            about = self._about(data, validation=digest(*held_out))
        solver = NetworkSolver(
            first_state(parameters, self.config.learning_rate, self.config.random_state),
            self._step(network),
            lambda epoch: shuffled_batches(
                parts.training, self.config.batch_size, (self.config.random_state, epoch)
            ),
            lambda parameters: validation_ndcg(
                parts,
                item_vectors(parameters),
                _encoded(network, parameters, parts.history),
                threads,
            ),
            record=self.record,
            early_stopping=self.config.early_stopping,
            tolerance=self.config.tolerance,
            keep_best=self.keep_best,
        )
        outcome = run(
            solver,
            Schedule(
                epochs=self.config.epochs,
                callback=callback,
                show_progress=show_progress,
                description=f"{type(self).__name__} with a latent layer of {self.config.latent}",
                checkpoint=place,
                about=about,
            ),
        )
        self._learned = learned(
            data,
            training_rows(data),
            solver.parameters,
            trace=outcome.trace,
            status=outcome.status,
        )
        return self

    @property
    def kept_(self) -> EpochRecord:
        """The record of the epoch whose weights were kept: the best one, or the last."""
        trace: list[EpochRecord] = self.trace_
        return max(trace, key=lambda one: one.ndcg) if self.keep_best else trace[-1]

    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit of this size leaves behind."""
        del n_users
        return self._network(n_items).shapes()

    def ranking_of(self, rows: Int64, seen: Csr | None, *, filter_seen: bool = True) -> Ranking:
        """Rank for training users by their histories, which is all that the network knows of."""
        del rows
        found = self._seen() if seen is None else seen
        return self._rank(found, np.arange(found.n_rows), found if filter_seen else None, found)

    def _seen(self) -> Csr:
        if self.learned.seen is None:
            message = "the model was saved without histories, which it needs to serve its own users"
            raise DataError(message, hint="pass histories= of these users")
        return self.learned.seen

    def _item_vectors(self) -> Float32:
        return item_vectors(self.learned.arrays)

    def _similarities(self, items: Int64) -> Float32:
        # The bias, in the last column, says how popular an item is, not what it is like.
        return cosines(self._item_vectors()[:, :-1], items)

    def _user_vectors(self, histories: Csr | None) -> Callable[[Int64], Float32]:
        rows = self._seen() if histories is None else histories
        require_jax()
        import jax.numpy as jnp

        parameters = {name: jnp.asarray(values) for name, values in self.learned.arrays.items()}
        return _encoded(self._network(len(self.item_ids)), parameters, rows)


def _encoded(network: Network, parameters: Parameters, rows: Csr) -> Callable[[Int64], Float32]:
    """Return what gives the vectors of users by row: the last hidden layer, and a 1."""
    encode = encoder(network)

    def vectors(chosen: Int64) -> Float32:
        found = [
            np.asarray(encode(parameters, batch_of(rows, part, _ENCODED)))[: len(part)]
            for part in np.split(chosen, range(_ENCODED, len(chosen), _ENCODED))
        ]
        layer = np.concatenate(found)
        return np.column_stack([layer, np.ones(len(layer), dtype=np.float32)])

    return vectors
