"""The state of a network's fit as a checkpoint: every number, bit for bit."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError
from limelight.store.checkpoint import Stand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight._arrays import Float32
    from limelight.models.neural.training import EpochRecord, State


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
