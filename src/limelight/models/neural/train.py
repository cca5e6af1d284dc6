"""From rows of a sparse matrix to the few array shapes that JAX compiles for.

The state of a network's fit as a checkpoint: every number, bit for bit.

The loop of all neural models: epochs, timing, validation, early stopping, what is kept.

One update of the parameters, compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from limelight._base.errors import DataError, SolveError
from limelight._base.progress import progress_bar
from limelight.data.rows import row_numbers
from limelight.recommend.histories import take_rows
from limelight.solve.loop import Status
from limelight.store.checkpoint import Stand, keeping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jax import Array

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.models.neural.network import Parameters
    from limelight.store.checkpoint import Checkpoint


_SMALLEST = 256


class Batch(NamedTuple):
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


def batch_of(rows: Csr, chosen: Int64, size: int, length: int | None = None) -> Batch:
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
    return Batch(users, items, lengths)


def shuffled_batches(rows: Csr, size: int, seed: tuple[int, int]) -> Iterator[Batch]:
    """Visit every row with a history once, in an order of chance, in batches of one shape."""
    lengths = np.diff(rows.indptr)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(lengths))
    starts = np.arange(0, len(order), size)
    length = padded_length(int(np.add.reduceat(lengths[order], starts).max()))
    for start in starts:
        yield batch_of(rows, order[start : start + size], size, length)


def as_stand(state: State, trace: Sequence[EpochRecord], kept: Mapping[str, Float32]) -> Stand:
    """Take down where a fit stands: weights, optimiser, chance, and the weights kept so far."""
    import jax

    leaves = jax.tree.leaves(_plain(state))
    arrays: dict[str, Any] = {f"state/{number}": np.array(a) for number, a in enumerate(leaves)}
    arrays |= {f"kept/{name}": values for name, values in kept.items()}
    return Stand({"trace": [asdict(one) for one in trace]}, arrays)


def restore(
    stand: Stand, first: State, record: type[EpochRecord]
) -> tuple[State, list[EpochRecord], dict[str, Float32]]:
    """Return the state, the trace and the weights kept; the first state says how they look."""
    import jax
    import jax.numpy as jnp

    leaves, tree = jax.tree.flatten(_plain(first))
    stored = [stand.arrays.get(f"state/{number}") for number in range(len(leaves))]
    for own, found in zip(leaves, stored, strict=True):
        if found is None or found.shape != own.shape or found.dtype != own.dtype:
            message = "the checkpoint is not of this network"
            raise DataError(message, hint="delete it to start from the beginning")
    state = jax.tree.unflatten(tree, [jnp.asarray(found) for found in stored])
    kept = {
        name.removeprefix("kept/"): values
        for name, values in stand.arrays.items()
        if name.startswith("kept/")
    }
    trace = [record(**one) for one in stand.record["trace"]]
    return state._replace(key=jax.random.wrap_key_data(state.key)), trace, kept


def _plain(state: State) -> State:
    """Turn the source of chance into the numbers that it is."""
    import jax

    return state._replace(key=jax.random.key_data(state.key))


EpochCallback: TypeAlias = Callable[[int, Any], bool | None]
"""Called after every epoch with its number and its record; a true answer ends the fit."""


@dataclass(frozen=True)
class EpochRecord:
    """What is known of a fit after an epoch."""

    epoch: int
    seconds: float
    """Training time since the start, validation left out."""
    objective: float
    """The training loss, averaged over the updates of the epoch."""
    ndcg: float
    """nDCG@100 of the validation users."""


class State(NamedTuple):
    """What an update changes."""

    parameters: Parameters
    optimizer: Any
    updates: Array
    """How many there were."""
    key: Array
    """The source of chance of all updates."""


Step: TypeAlias = "Callable[[State, Batch], tuple[State, dict[str, Array]]]"
"""One update; it also tells the loss as ``objective``, and what else the record holds."""


@dataclass(frozen=True)
class Schedule:
    """When a fit ends, what it keeps, and what it shows on the way."""

    epochs: int
    early_stopping: int
    record: type[EpochRecord]
    keep_best: bool = True
    """Whether the epoch with the best validation is kept, rather than the last one."""
    callback: EpochCallback | None = None
    show_progress: bool | None = None
    description: str = "fit"
    checkpoint: Checkpoint | None = None
    """Where to keep the state, and to go on from."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the fit is of: a checkpoint of any other is refused."""


class Outcome(NamedTuple):
    """The parameters that were kept, the trace, and how the fit ended."""

    parameters: dict[str, Float32]
    trace: list[EpochRecord]
    status: Status


def run(
    state: State,
    step: Step,
    batches: Callable[[int], Iterable[Batch]],
    validate: Callable[[Parameters], float],
    schedule: Schedule,
) -> Outcome:
    """Run epochs until they are done, validation stands still, or the callback has enough.

    Parameters
    ----------
    state
        The first parameters.
    step
        Makes one update.
    batches
        Gives the batches of an epoch.
    validate
        Gives the nDCG of some parameters.
    schedule
        When to end and what to keep.

    Raises
    ------
    SolveError
        If the loss is not finite.
    """
    state, trace, kept = _taken_up(state, schedule)
    status, seconds = Status.FINISHED, trace[-1].seconds if trace else 0.0
    first_best = max(trace, key=lambda one: one.ndcg, default=None)
    best, best_epoch = (first_best.ndcg, first_best.epoch) if first_best else (-np.inf, 0)
    with (
        keeping(schedule.checkpoint) as keep,
        progress_bar(schedule.description, schedule.epochs, show=schedule.show_progress) as moved,
    ):
        for _ in trace:
            moved()
        for epoch in range(len(trace) + 1, schedule.epochs + 1):
            started = time.perf_counter()
            state, measures = _epoch(state, step, batches(epoch))
            seconds += time.perf_counter() - started
            _check_finite(measures, epoch)
            ndcg = validate(state.parameters)
            trace.append(schedule.record(epoch=epoch, seconds=seconds, ndcg=ndcg, **measures))
            moved()
            if ndcg > best:
                best, best_epoch = ndcg, epoch
                if schedule.keep_best:
                    kept = _copied(state.parameters)
            if schedule.callback and schedule.callback(epoch, trace[-1]):
                status = Status.STOPPED
            elif 0 < schedule.early_stopping <= epoch - best_epoch:
                status = Status.STALLED
            # A signal waits; leaving the block passes it on.
            if keep(as_stand, state, trace, kept):
                status = Status.STOPPED
            if status is not Status.FINISHED:
                break
    parameters = kept or _copied(state.parameters)
    for name, values in parameters.items():
        # The loss is measured before an update, so the last one may still have run away.
        _check_finite({name: float(np.abs(values).max(initial=0.0))}, trace[-1].epoch)
    return Outcome(parameters, trace, status)


def _taken_up(
    state: State, schedule: Schedule
) -> tuple[State, list[EpochRecord], dict[str, Float32]]:
    """Return where a checkpoint stands, or the beginning."""
    stored = schedule.checkpoint and schedule.checkpoint.load(schedule.about)
    return restore(stored, state, schedule.record) if stored else (state, [], {})


def _epoch(state: State, step: Step, batches: Iterable[Batch]) -> tuple[State, dict[str, float]]:
    """Look at all batches once; return the averages of what the updates tell."""
    import jax

    told = []
    for batch in batches:
        state, measures = step(state, batch)
        told.append(measures)
    # In one piece: NumPy would swallow an interrupt while it waits for the numbers one by one.
    told = jax.device_get(jax.block_until_ready(told))  # type: ignore[no-untyped-call]
    return state, {
        name: float(np.mean([measures[name] for measures in told], dtype=np.float64))
        for name in told[0]
    }


def _check_finite(measures: dict[str, float], epoch: int) -> None:
    for name, value in measures.items():
        if not np.isfinite(value):
            message = f"the fit diverged: {name} is {value} in epoch {epoch}"
            raise SolveError(message, hint="lower learning_rate")


def _copied(parameters: Parameters) -> dict[str, Float32]:
    """Copy to NumPy: the next update takes the memory of what it is given."""
    return {name: np.array(values, dtype=np.float32) for name, values in parameters.items()}


if TYPE_CHECKING:
    Loss: TypeAlias = tuple[Array, dict[str, Array]]
    """The loss itself, and what else the record of an epoch tells."""


def make_step(
    loss: Callable[[Parameters, Batch, Array, Array], Loss], learning_rate: float
) -> Step:
    """Compile an update that follows the gradient of a loss.

    Parameters
    ----------
    loss
        Of parameters, a batch, a source of chance, and how many updates there were before.
    learning_rate
        Of Adam.
    """
    import jax

    # The old state gives its memory to the new one.
    @partial(jax.jit, donate_argnums=0)
    def step(state: State, batch: Batch) -> tuple[State, dict[str, Array]]:
        key = jax.random.fold_in(state.key, state.updates)
        graded = jax.value_and_grad(loss, has_aux=True)
        (objective, told), gradient = graded(state.parameters, batch, key, state.updates)
        return descended(state, gradient, learning_rate), {"objective": objective, **told}

    return step


def first_state(parameters: Parameters, learning_rate: float, seed: int) -> State:
    """Start from some parameters; dropout and noise follow the seed."""
    import jax
    import jax.numpy as jnp
    import optax

    return State(
        parameters,
        optax.adam(learning_rate).init(parameters),
        jnp.zeros((), jnp.int32),
        jax.random.key(seed),
    )


def descended(state: State, gradient: Parameters, learning_rate: float) -> State:
    """Return the state after one change by Adam."""
    import optax

    changes, optimizer = optax.adam(learning_rate).update(gradient, state.optimizer)
    parameters = optax.apply_updates(state.parameters, changes)
    return state._replace(parameters=parameters, optimizer=optimizer, updates=state.updates + 1)
