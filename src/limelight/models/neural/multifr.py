"""Multi-FR: accuracy and equal exposure as two tasks of one network (Wu et al. 2022).

The network is that of Mult-DAE, so that unseen users need one forward pass. The first task is its
loss. The second is how unequal the exposure is that the items get from the users of a batch: smooth
ranks, users who read on with a fixed probability, lists drawn by softmax. MGDA weighs the two.

The paper has groups of users and items and a matrix factorisation; the comparison from which the
network is taken (Togashi et al. 2024) leaves open which losses it used and how. Ours are:

- Every item is a group of its own. The loss is n sum_j (e_j - 1/n)^2, e_j the share of item j.
- A user's exposure is what she has not seen; her shares are normalised to sum to 1, because
  patience^rank underflows as long as all scores are alike.
- The temperature of the ranks is relative to the spread of the ranked scores. With an absolute one
  the loss falls when all scores shrink, which changes no list.
- Ranked items are compared with each other one by one, and with a sample of the rest.
- The step follows MGDA's combination of the normalised gradients, not of the raw losses.
- ``preference`` multiplies the weight of the exposure task. MGDA has no such knob: of two gradients
  of length 1 (``normalization="l2"``) it always takes half each.
- The last epoch is kept. The one with the best nDCG would undo the second task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal

from limelight._base.settings import hyperparameters, setting
from limelight.models.neural import mgda
from limelight.models.neural.exposure import attention, inequality, smooth_ranks, unseen
from limelight.models.neural.model import NeuralModel
from limelight.models.neural.multvae import MultDAEConfig
from limelight.models.neural.network import (
    DAENetwork,
    mean_over_users,
    negative_log_likelihood,
    normalised_inputs,
    scores,
    squared_weights,
)
from limelight.models.neural.steps import descended
from limelight.models.neural.training import EpochRecord, State

if TYPE_CHECKING:
    from jax import Array

    from limelight.models.neural.batches import Batch
    from limelight.models.neural.network import Network, Parameters
    from limelight.models.neural.training import Step


@dataclass(frozen=True, kw_only=True)
class MultiFRConfig(MultDAEConfig):
    """The settings of :class:`MultiFR`."""

    patience: float = setting(
        0.9,
        "Probability that a user reads on to the next place.",
        above=0,
        at_most=1,
        hint="use a probability such as 0.9",
        metavar="SHARE",
    )
    temperature: float = setting(
        # Relative to how far the scores of the ranked items lie apart.
        0.1,
        "How soft the ranks are in training.",
        above=0,
    )
    ranked: int = setting(
        100, "How many items of each list get exposure.", at_least=1, at_most=2**20
    )
    compared: int = setting(
        100,
        "How many items stand for the rest when ranks are counted.",
        at_least=1,
        at_most=2**20,
    )
    normalization: Literal["none", "l2", "loss", "loss+"] = setting(
        "l2", "What the gradients of the tasks are divided by."
    )
    preference: float = setting(1.0, "How much equal exposure counts beside accuracy.")
    epochs: int = setting(100, "How many times all users and items are updated.", at_least=1)
    early_stopping: int = setting(
        0, "Stop after so many epochs without a better validation nDCG@100; 0: never."
    )


@dataclass(frozen=True)
class MultiFRRecord(EpochRecord):
    """What is known of a fit of :class:`MultiFR` after an epoch."""

    inequality: float
    """The loss of the exposure task; 0 would be equal exposure."""
    weight: float
    """MGDA's weight of the exposure task, before ``preference``."""


class MultiFR(NeuralModel):
    """An autoencoder that learns who likes what and to share the exposure, at the same time.

    The last epoch is kept, and early stopping is off: validation sees accuracy alone, and its best
    epoch may lie before the exposure has evened out.

    Parameters are the fields of :class:`~limelight.models.neural.multifr.MultiFRConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.MultiFR(latent=8, epochs=3, ranked=20, compared=20).fit(data)
    >>> 0 <= model.trace_[-1].weight <= 1
    True
    """

    record: ClassVar[type[EpochRecord]] = MultiFRRecord
    keep_best: ClassVar[bool] = False
    config: MultiFRConfig
    __init__ = hyperparameters(MultiFRConfig)

    def _network(self, n_items: int) -> Network:
        return DAENetwork(n_items, self.config.latent)

    def _step(self, network: Network, config: MultiFRConfig) -> Step:
        return _multifr_step(network, config)


@lru_cache(maxsize=8)
def _multifr_step(network: Network, config: MultiFRConfig) -> Step:
    """Compile an update once for all fits with the same settings."""
    import jax
    import jax.numpy as jnp

    @partial(jax.jit, donate_argnums=0)
    def step(state: State, batch: Batch) -> tuple[State, dict[str, Array]]:
        losses, gradients = _tasks(network, config, state, batch)
        gram = mgda.gram_matrix(gradients)
        divisor = mgda.divisors(gram, losses, config.normalization)
        weights = mgda.shortest(gram / jnp.outer(divisor, divisor))
        factors = weights * jnp.array([1, config.preference]) / divisor
        gradient = jax.tree.map(lambda one, two: factors[0] * one + factors[1] * two, *gradients)
        told = {"objective": losses[0], "inequality": losses[1], "weight": weights[1]}
        return descended(state, gradient, config.learning_rate), told

    return step


def _tasks(
    network: Network, config: MultiFRConfig, state: State, batch: Batch
) -> tuple[Array, list[Parameters]]:
    """Return the losses of both tasks and their gradients, which meet in the scores."""
    import jax
    import jax.numpy as jnp

    input_key, sample_key = jax.random.split(jax.random.fold_in(state.key, state.updates))
    inputs = normalised_inputs(batch, network.n_items, config.dropout, input_key)
    sampled = jax.random.randint(sample_key, (config.compared,), 0, network.n_items)

    def scored(parameters: Parameters) -> Array:
        return scores(parameters, network.hidden(parameters, inputs, None).layer)

    def inaccuracy(scored: Array) -> Array:
        return mean_over_users(negative_log_likelihood(scored, batch), batch)

    def decay(parameters: Parameters) -> Array:
        return config.regularization * squared_weights(parameters)

    def unequal(scored: Array) -> Array:
        ranked = smooth_ranks(
            unseen(scored, batch),
            ranked=min(config.ranked, network.n_items),
            sampled=sampled,
            temperature=config.temperature,
        )
        return inequality(ranked, attention(ranked, config.patience), batch, network.n_items)

    at, pull_back = jax.vjp(scored, state.parameters)
    (first, to_first), (second, to_second) = (
        jax.value_and_grad(task)(at) for task in (inaccuracy, unequal)
    )
    held_back, decayed = jax.value_and_grad(decay)(state.parameters)
    accurate = jax.tree.map(jnp.add, pull_back(to_first)[0], decayed)
    return jnp.stack([first + held_back, second]), [accurate, pull_back(to_second)[0]]
