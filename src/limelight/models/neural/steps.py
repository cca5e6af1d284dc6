"""One update of the parameters, compiled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from limelight.models.neural.training import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax import Array

    from limelight.models.neural.batches import Batch
    from limelight.models.neural.network import Parameters
    from limelight.models.neural.training import Step

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
