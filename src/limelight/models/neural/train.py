"""Training networks: padded batches, a compiled update, and the solver that runs epochs.

JAX compiles a function anew for every shape of its arrays, so batches are padded to few shapes. The
loop is that of all fits, :mod:`limelight.solve.loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from limelight._base.errors import SolveError
from limelight.data.rows import row_numbers
from limelight.recommend.fold_in import take_rows
from limelight.solve.loop import Status
from limelight.store.checkpoint import Snapshot
from limelight.store.snapshot_fields import refuse_damaged, stored_array, stored_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jax import Array

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.models.neural.config import NeuralConfig
    from limelight.models.neural.network import Parameters


_SMALLEST = 256


class HistoryBatch(NamedTuple):
    """Histories of some users, pair by pair, padded with pairs that belong to nobody."""

    users: Int32
    """The row of each pair; padding names the row after the last."""
    items: Int32
    lengths: Float32
    """The number of items of each row; 0 where a row is padding or has no history."""


def padded_length(n: int) -> int:
    """Round a number of pairs up to a power of two: a pair costs little, another shape seconds.

    Examples
    --------
    >>> [padded_length(n) for n in (0, 256, 257, 1025)]
    [256, 256, 512, 2048]
    """
    return max(_SMALLEST, 1 << max(n - 1, 0).bit_length())


def batch_of(rows: Csr, chosen: Int64, size: int, length: int | None = None) -> HistoryBatch:
    """Gather some rows into a batch of ``size`` rows and, if need be, a given number of pairs.

    Examples
    --------
    >>> from limelight.solve.problem import sparse_rows
    >>> rows = sparse_rows(np.array([0, 2, 3]), np.array([0, 2, 1]), 3)
    >>> batch = batch_of(rows, np.array([1, 0]), size=4)
    >>> batch.users[:4], batch.items[:4], batch.lengths
    (array([0, 1, 1, 4], dtype=int32), array([1, 0, 2, 0], dtype=int32),
     array([1., 2., 0., 0.], dtype=float32))
    """
    taken = take_rows(rows, chosen)
    users = np.full(length or padded_length(taken.n_entries), size, dtype=np.int32)
    items = np.zeros(len(users), dtype=np.int32)
    users[: taken.n_entries] = row_numbers(taken.indptr)
    items[: taken.n_entries] = taken.indices
    lengths = np.zeros(size, dtype=np.float32)
    lengths[: len(chosen)] = np.diff(taken.indptr)
    return HistoryBatch(users, items, lengths)


def shuffled_batches(rows: Csr, size: int, seed: tuple[int, int]) -> Iterator[HistoryBatch]:
    """Visit every row with a history once, in random order, in batches of one shape."""
    lengths = np.diff(rows.indptr)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(lengths))
    starts = np.arange(0, len(order), size)
    length = padded_length(int(np.add.reduceat(lengths[order], starts).max()))
    for start in starts:
        yield batch_of(rows, order[start : start + size], size, length)


EpochCallback: TypeAlias = Callable[[int, Any], bool | None]
"""Called after every epoch with its number and its record; a true answer ends the fit."""


@dataclass(frozen=True)
class EpochRecord:
    """What is known of a fit after an epoch."""

    losses: ClassVar[tuple[str, ...]] = ("objective",)
    """The fields that are losses of a task."""
    epoch: int
    seconds: float
    """Training time since the start, validation left out."""
    objective: float
    """The training loss, averaged over the updates of the epoch."""
    ndcg: float
    """nDCG@100 of the validation users."""


class NetworkState(NamedTuple):
    """Weights, optimiser and random key: what an update replaces."""

    parameters: Parameters
    optimizer: Any
    updates: Array
    """How many updates there were."""
    key: Array
    """The random key from which every update derives its own."""


Step: TypeAlias = "Callable[[NetworkState, HistoryBatch], tuple[NetworkState, dict[str, Array]]]"
"""One update; it returns the loss as ``objective``, and the other measures of the record."""
Numbers: TypeAlias = "Mapping[str, float]"
"""Settings that an update takes as numbers: it is compiled once for all their values."""
Update: TypeAlias = (
    "Callable[[NetworkState, HistoryBatch, Numbers], tuple[NetworkState, dict[str, Array]]]"
)
"""A step that has not been given its numbers."""
_WINDOW = 20  # epochs whose losses are averaged, because those of one epoch are noisy


class NetworkSolver:
    """Trains a network epoch by epoch, from a first state on; the loop drives it.

    ``step`` makes one update, ``batches`` gives those of the epoch with a number, and ``validate``
    the nDCG of some parameters. The fit is over after ``early_stopping`` epochs without a better
    one, or when no loss changes by more than ``tolerance``; 0: never. With ``keep_best`` the best
    epoch is kept, otherwise the last one.
    """

    def __init__(
        self,
        state: NetworkState,
        step: Step,
        batches: Callable[[int], Iterable[HistoryBatch]],
        validate: Callable[[Parameters], float],
        *,
        record: type[EpochRecord] = EpochRecord,
        early_stopping: int = 0,
        tolerance: float = 0.0,
        keep_best: bool = True,
    ) -> None:
        self.epoch, self._state, self._best = 0, state, -np.inf
        self._step, self._batches, self._validate = step, batches, validate
        self._record, self._early_stopping, self._keep_best = record, early_stopping, keep_best
        self._tolerance = tolerance
        self._kept: dict[str, Float32] = {}
        self._measures: dict[str, float] = {}

    @property
    def parameters(self) -> dict[str, Float32]:
        """The weights of the epoch that is kept."""
        return self._kept or _copied(self._state.parameters)

    def prepare(self, *, is_traced: bool) -> None:
        """Do nothing: every epoch is traced, by itself."""

    def step(self) -> None:
        """Update by all batches once; average the loss and the other measures of the updates."""
        import jax

        found = []
        for batch in self._batches(self.epoch + 1):
            self._state, measures = self._step(self._state, batch)
            found.append(measures)
        # All numbers are fetched at once: NumPy swallows an interrupt that comes while it waits for
        # a single one.
        found = jax.device_get(jax.block_until_ready(found))  # type: ignore[no-untyped-call]
        self._measures = {
            name: float(np.mean([measures[name] for measures in found], dtype=np.float64))
            for name in found[0]
        }
        self.epoch += 1

    def measure(self, seconds: float) -> EpochRecord:
        """Refuse a loss that is not finite; validate, and keep the weights if they are the best."""
        _check_finite(self._measures, self.epoch)
        ndcg = self._validate(self._state.parameters)
        if ndcg > self._best:
            self._best = ndcg
            if self._keep_best:
                self._kept = _copied(self._state.parameters)
        return self._record(epoch=self.epoch, seconds=seconds, ndcg=ndcg, **self._measures)

    def status(self, trace: Sequence[Any]) -> Status:
        """Tell whether all losses stand still, or validation has got no better for too long."""
        if self._tolerance and largest_change(trace) <= self._tolerance:
            return Status.CONVERGED
        best = max(trace, key=lambda one: one.ndcg, default=None)
        if best and 0 < self._early_stopping <= self.epoch - best.epoch:
            return Status.STALLED
        return Status.FINISHED

    def finish(self, status: Status, trace: Sequence[Any]) -> Status:
        """Refuse weights that are not finite.

        The loss is measured before an update, so the last one may still have run away.
        """
        for name, values in self.parameters.items():
            _check_finite({name: float(np.abs(values).max(initial=0.0))}, trace[-1].epoch)
        return status

    def snapshot(self, trace: Sequence[Any], seconds: float) -> Snapshot:
        """Return everything that the fit needs to go on: the state, and the weights kept so far."""
        import jax

        del seconds  # the last record of the trace has them
        leaves = jax.tree.leaves(_plain(self._state))
        arrays: dict[str, Any] = {f"state/{number}": np.array(a) for number, a in enumerate(leaves)}
        arrays |= {f"kept/{name}": values for name, values in self._kept.items()}
        return Snapshot({"trace": [asdict(one) for one in trace]}, arrays)

    def restore(self, stored: Snapshot) -> tuple[list[Any], float]:
        """Go back to a snapshot, whose arrays must have the shapes and types of the first state."""
        import jax
        import jax.numpy as jnp

        trace = stored_trace(stored.record, self._record)
        if [one.epoch for one in trace] != list(range(1, len(trace) + 1)):
            refuse_damaged("has no trace of every epoch")
        leaves, tree = jax.tree.flatten(_plain(self._state))
        found = [
            stored_array(stored.arrays, f"state/{number}", own.shape, own.dtype)
            for number, own in enumerate(leaves)
        ]
        shapes = {name: np.shape(values) for name, values in self._state.parameters.items()}
        kept = {name.removeprefix("kept/") for name in stored.arrays if name.startswith("kept/")}
        if kept not in (set(), set(shapes)):
            refuse_damaged("has no weights of this network")
        self._kept = {
            name: stored_array(stored.arrays, f"kept/{name}", shapes[name], np.float32)
            for name in shapes
            if kept
        }
        state = jax.tree.unflatten(tree, [jnp.asarray(array) for array in found])
        self._state = state._replace(key=jax.random.wrap_key_data(state.key))
        self.epoch = len(trace)
        self._best = max((one.ndcg for one in trace), default=-np.inf)
        return trace, trace[-1].seconds if trace else 0.0


def largest_change(trace: Sequence[EpochRecord]) -> float:
    """Return by what share the losses last changed: of those of all tasks, the largest.

    The mean of the last 20 epochs is compared with that of the 20 before them; infinity, where
    there are not as many.
    """
    if len(trace) < 2 * _WINDOW:
        return np.inf
    losses = np.array(
        [[getattr(one, name) for name in one.losses] for one in trace[-2 * _WINDOW :]]
    )
    before, last = losses[:_WINDOW].mean(axis=0), losses[_WINDOW:].mean(axis=0)
    return float(np.max(np.abs(last - before) / np.maximum(np.abs(before), 1e-30)))


def _plain(state: NetworkState) -> NetworkState:
    """Replace the random key by its numbers, which can be saved."""
    import jax

    return state._replace(key=jax.random.key_data(state.key))


def _check_finite(measures: dict[str, float], epoch: int) -> None:
    for name, value in measures.items():
        if not np.isfinite(value):
            message = f"the fit diverged: {name} is {value} in epoch {epoch}"
            raise SolveError(message, hint="lower learning_rate")


def _copied(parameters: Parameters) -> dict[str, Float32]:
    """Copy weights to NumPy, because the next update overwrites the memory of these."""
    return {name: np.array(values, dtype=np.float32) for name, values in parameters.items()}


if TYPE_CHECKING:
    Loss: TypeAlias = tuple[Array, dict[str, Array]]
    """The loss itself, and the other measures of the record of an epoch."""


def make_update(
    loss: Callable[[Parameters, HistoryBatch, Array, Array, Numbers], Loss],
) -> Update:
    """Compile an update by Adam that follows the gradient of a loss.

    The loss is a function of parameters, a batch, a random key, the number of updates before, and
    the settings that are numbers.
    """
    import jax

    # The new state is written over the old one, which saves a copy of all weights.
    @partial(jax.jit, donate_argnums=0)
    def update(
        state: NetworkState, batch: HistoryBatch, numbers: Numbers
    ) -> tuple[NetworkState, dict[str, Array]]:
        key = jax.random.fold_in(state.key, state.updates)
        graded = jax.value_and_grad(loss, has_aux=True)
        (objective, more), gradient = graded(state.parameters, batch, key, state.updates, numbers)
        return descended(state, gradient, numbers), {"objective": objective, **more}

    return update


def with_numbers(update: Update, config: NeuralConfig, *names: str) -> Step:
    """Give an update the settings that are numbers, so that fits that differ in them share it."""
    numbers = {name: float(getattr(config, name)) for name in ("learning_rate", *names)}
    return lambda state, batch: update(state, batch, numbers)


def first_state(parameters: Parameters, learning_rate: float, seed: int) -> NetworkState:
    """Start from some parameters; dropout and noise follow the seed."""
    import jax
    import jax.numpy as jnp
    import optax

    return NetworkState(
        parameters,
        optax.adam(learning_rate).init(parameters),
        jnp.zeros((), jnp.int32),
        jax.random.key(seed),
    )


def descended(state: NetworkState, gradient: Parameters, numbers: Numbers) -> NetworkState:
    """Return the state after one change by Adam."""
    import optax

    changes, optimizer = optax.adam(numbers["learning_rate"]).update(gradient, state.optimizer)
    parameters = optax.apply_updates(state.parameters, changes)
    return state._replace(parameters=parameters, optimizer=optimizer, updates=state.updates + 1)
