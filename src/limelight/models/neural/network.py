"""What the networks compute: parameters, the forward pass, and the terms of the losses.

A batch x items array is as large as anything gets here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jax import Array

    from limelight._base.arrays import Float32
    from limelight.models.neural.train import HistoryBatch

    Parameters: TypeAlias = dict[str, Array]

_FIRST_BIAS = 1e-3
_SPARSE = 0.01
"""Up to this share of all pairs it is faster to add up the rows of the items in each history than
to multiply by dense rows; the two take about as long at 1 to 2 %, for layers of 64 and of 600."""


class HistoryInputs(NamedTuple):
    """What a network is fed: a value for each pair of a batch, and 0 for all others."""

    batch: HistoryBatch
    values: Array
    n_items: int

    def __matmul__(self, weights: Array) -> Array:
        """Multiply the rows of users by weights with a row for each item."""
        import jax.numpy as jnp

        batch, values, n_items = self
        if len(values) > _SPARSE * len(batch.lengths) * n_items:
            return self.dense() @ weights
        rows = jnp.zeros((len(batch.lengths), weights.shape[1]))
        return rows.at[batch.users].add(
            values[:, None] * weights[batch.items], mode="drop", indices_are_sorted=True
        )

    def dense(self) -> Array:
        """Return the rows with all their zeros."""
        import jax.numpy as jnp

        rows = jnp.zeros((len(self.batch.lengths), self.n_items))
        return rows.at[self.batch.users, self.batch.items].add(
            self.values, mode="drop", indices_are_sorted=True, unique_indices=True
        )


class Hidden(NamedTuple):
    """The last hidden layer, and what its noise costs each user."""

    layer: Array
    divergence: Array
    """KL from the prior; 0 in a network without noise."""


@dataclass(frozen=True)
class Network(ABC):
    """An autoencoder of histories: items in, scores of items out."""

    n_items: int

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every parameter; those named ``item_`` have one row an item."""

    @abstractmethod
    def hidden(
        self, parameters: Parameters, inputs: HistoryInputs | Array, key: Array | None
    ) -> Hidden:
        """Return the last hidden layer of every user; without a key there is no noise."""


@dataclass(frozen=True)
class DAENetwork(Network):
    """Items, a latent layer, items."""

    latent: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every parameter."""
        return {
            "item_input": (self.n_items, self.latent),
            "input_bias": (self.latent,),
            "item_output": (self.n_items, self.latent),
            "item_bias": (self.n_items,),
        }

    def hidden(
        self, parameters: Parameters, inputs: HistoryInputs | Array, key: Array | None
    ) -> Hidden:
        """Return the latent layer."""
        import jax.numpy as jnp

        del key
        layer = jnp.tanh(inputs @ parameters["item_input"] + parameters["input_bias"])
        return Hidden(layer, jnp.zeros(len(layer)))


@dataclass(frozen=True)
class VAENetwork(Network):
    """Items, a hidden layer, a latent layer with noise, a hidden layer, items."""

    width: int
    latent: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every parameter."""
        return {
            "item_input": (self.n_items, self.width),
            "input_bias": (self.width,),
            "latent_weights": (self.width, 2 * self.latent),
            "latent_bias": (2 * self.latent,),
            "decoder_weights": (self.latent, self.width),
            "decoder_bias": (self.width,),
            "item_output": (self.n_items, self.width),
            "item_bias": (self.n_items,),
        }

    def hidden(
        self, parameters: Parameters, inputs: HistoryInputs | Array, key: Array | None
    ) -> Hidden:
        """Return the decoder's hidden layer, and the KL of the latent layer from its prior."""
        import jax
        import jax.numpy as jnp

        encoded = jnp.tanh(inputs @ parameters["item_input"] + parameters["input_bias"])
        latent = encoded @ parameters["latent_weights"] + parameters["latent_bias"]
        mean, log_variance = jnp.split(latent, 2, axis=1)
        drawn = mean
        if key is not None:
            drawn += jnp.exp(log_variance / 2) * jax.random.normal(key, mean.shape)
        layer = jnp.tanh(drawn @ parameters["decoder_weights"] + parameters["decoder_bias"])
        return Hidden(layer, divergence(mean, log_variance))


def divergence(mean: Array, log_variance: Array) -> Array:
    """Return each row's KL divergence of a normal distribution from the standard one."""
    import jax.numpy as jnp

    return 0.5 * jnp.sum(jnp.exp(log_variance) + mean**2 - 1 - log_variance, axis=1)


def initial_parameters(network: Network, seed: int) -> Parameters:
    """Draw weights as Glorot and Bengio do, and biases close to 0."""
    import jax.numpy as jnp

    generator = np.random.default_rng(seed)
    parameters = {}
    for name, shape in network.shapes().items():
        bound = np.sqrt(6 / sum(shape)) if len(shape) > 1 else _FIRST_BIAS
        parameters[name] = jnp.asarray(generator.uniform(-bound, bound, shape).astype(np.float32))
    return parameters


def normalised_inputs(
    batch: HistoryBatch, n_items: int, dropout: Array | float = 0.0, key: Array | None = None
) -> HistoryInputs:
    """Make the rows of a batch: length 1, then inverted dropout where there is a key."""
    import jax
    import jax.numpy as jnp

    lengths = jnp.asarray(batch.lengths)
    values = 1 / jnp.sqrt(lengths.at[batch.users].get(mode="fill", fill_value=1))
    if key is not None:
        # Zeros stay zeros, so that only the pairs of the histories need a draw.
        kept = jax.random.bernoulli(key, 1 - dropout, values.shape)
        values = jnp.where(kept, values / (1 - dropout), 0)
    return HistoryInputs(batch, values, n_items)


def scores(parameters: Parameters, layer: Array) -> Array:
    """Return the score of every item for every user."""
    return layer @ parameters["item_output"].T + parameters["item_bias"]


def negative_log_likelihood(scored: Array, batch: HistoryBatch) -> Array:
    """Return the multinomial loss of each user: every item of a history is one draw."""
    import jax
    import jax.numpy as jnp

    found = scored.at[batch.users, batch.items].get(mode="fill", fill_value=0)
    own = jnp.zeros(len(batch.lengths)).at[batch.users].add(found, mode="drop")
    return jnp.asarray(batch.lengths) * jax.nn.logsumexp(scored, axis=1) - own


def mean_over_users(values: Array, batch: HistoryBatch) -> Array:
    """Average over the rows that have a history; the others are padding."""
    import jax.numpy as jnp

    real = batch.lengths > 0
    return jnp.sum(jnp.where(real, values, 0)) / jnp.sum(real)


def squared_weights(parameters: Parameters) -> Array:
    """Add up the squares of all weights, biases left out."""
    import jax.numpy as jnp

    weights = [values for values in parameters.values() if values.ndim > 1]
    return jnp.sum(jnp.stack([jnp.sum(values**2) for values in weights]))


def autoencoder_loss(
    network: Network,
    parameters: Parameters,
    batch: HistoryBatch,
    key: Array,
    dropout: Array | float,
    beta: Array | float = 0.0,
) -> Array:
    """Return the loss of a batch: how badly it guesses the histories, and beta times the KL."""
    import jax

    input_key, noise_key = jax.random.split(key)
    inputs = normalised_inputs(batch, network.n_items, dropout, input_key)
    hidden = network.hidden(parameters, inputs, noise_key)
    unlikely = negative_log_likelihood(scores(parameters, hidden.layer), batch)
    return mean_over_users(unlikely + beta * hidden.divergence, batch)


@cache
def encoder(network: Network) -> Callable[[Parameters, HistoryBatch], Array]:
    """Compile what gives the last hidden layer of users, without dropout and noise."""
    import jax

    def encode(parameters: Parameters, batch: HistoryBatch) -> Array:
        # Dense rows always: which sum is taken must not depend on whom a user is encoded with.
        rows = normalised_inputs(batch, network.n_items).dense()
        return network.hidden(parameters, rows, None).layer

    return jax.jit(encode)


def item_vectors(parameters: Mapping[str, Array | Float32]) -> Float32:
    """Put each item's bias behind its weights; a user's vector ends in 1."""
    return np.column_stack([parameters["item_output"], parameters["item_bias"]])
