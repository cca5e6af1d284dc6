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
- The step follows MGDA's combination of the normalised gradients, not of the raw losses: the
  shortest vector in the hull of the gradients. Where it is not zero, a small step against it lowers
  both losses; where it is, no direction does. The Gram matrix of the gradients is enough to find it
  (Désidéri 2012; Sener and Koltun 2018).
- ``preference`` multiplies the weight of the exposure task. MGDA has no such knob: of two gradients
  of length 1 (``normalization="l2"``) it always takes half each.
- The last epoch is kept. The one with the best nDCG would undo the second task.
- Wu et al.'s task for groups of users is left out: see :class:`MultiFR`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from limelight._base.settings import hyperparameters, setting
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
from limelight.models.neural.train import EpochRecord, NetworkState, descended, with_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax import Array

    from limelight.models.neural.network import HistoryInputs, Network, Parameters
    from limelight.models.neural.train import HistoryBatch, Numbers, Step, Update


def gram_matrix(gradients: Sequence[Parameters]) -> Array:
    """Return the products of all pairs of gradients, each taken as one long vector."""
    import jax.numpy as jnp

    return jnp.stack(
        [
            jnp.stack([sum(jnp.vdot(one[name], two[name]) for name in one) for two in gradients])
            for one in gradients
        ]
    )


def divisors(gram: Array, losses: Array, normalization: str) -> Array:
    """Return what each gradient is divided by before they are compared; 1 stands in for 0."""
    import jax.numpy as jnp

    norms = jnp.sqrt(jnp.diag(gram))
    found = {"none": jnp.ones_like(norms), "l2": norms, "loss": losses, "loss+": losses * norms}
    chosen = found[normalization]
    return jnp.where(chosen > 0, chosen, 1)


def shortest(gram: Array) -> Array:
    """Return the weights, 0 or more and of sum 1, of the shortest mix of two gradients.

    It is the point of the segment between them that is closest to the origin.
    """
    import jax.numpy as jnp

    (one, both), (_, two) = gram
    distance = one - 2 * both + two
    first = jnp.where(
        distance > 0, jnp.clip((two - both) / jnp.where(distance > 0, distance, 1), 0, 1), 0.5
    )
    return jnp.stack([first, 1 - first])


class Ranked(NamedTuple):
    """The items that stand first in the lists of a batch."""

    items: Array
    """Users x ranked, best first."""
    ranks: Array
    """Their smooth ranks, from about 1 up."""
    scores: Array
    listed: Array
    """False where a list has ended: there were not as many items to rank."""


def unseen(scored: Array, batch: HistoryBatch) -> Array:
    """Hide the histories, as lists do."""
    return scored.at[batch.users, batch.items].set(-float("inf"), mode="drop")


def smooth_ranks(
    scored: Array, *, ranked: int, sampled: Array, temperature: Array | float
) -> Ranked:
    """Rank the first items of every list by how many others clearly beat them.

    The rank of item i is 1/2 plus the sum of sigmoid((s_j - s_i) / t) over all items j, of which i
    itself gives the other half. The first items are compared with each other one by one; the rest
    of the catalogue is represented by a sample, whose sum is scaled up, so that the rank is right
    on average and its noise does not reach the top. The temperature t is relative to how far the
    first scores lie apart: otherwise smaller scores would look like a flatter ranking.

    ``scored`` is users x items, and -inf is never ranked. ``ranked`` items of each list are ranked.
    ``sampled`` are numbers of items, drawn evenly from the catalogue. Near a ``temperature``
    of 0 the rank becomes the hard one, and loses its gradient.
    """
    import jax
    import jax.numpy as jnp

    # Without the barrier XLA fuses the following code with the search, and then sorts all items.
    found = jax.lax.top_k(jax.lax.stop_gradient(scored), ranked)
    best, items = jax.lax.optimization_barrier(found)  # type: ignore[no-untyped-call]
    listed = jnp.isfinite(best)
    scores = jnp.where(listed, jnp.take_along_axis(scored, items, axis=1), 0)
    rest = scored[:, sampled]
    # Hidden items have no score; what is listed already was compared one by one.
    counted = jnp.isfinite(rest) & (rest < best[:, -1:])
    n_items, n_sampled = scored.shape[1], len(sampled)
    weights = jnp.concatenate([listed * 1.0, counted * (n_items / n_sampled)], axis=1)
    # Only differences count: large scores would cost digits of them.
    first = jnp.where(listed[:, :1], best[:, :1], 0)
    scale = temperature * _spread(scores, listed)[:, None]
    own = (scores - first) / scale
    others = jnp.concatenate([own, (jnp.where(counted, rest, 0) - first) / scale], axis=1)
    return Ranked(items, 0.5 + times_beaten(own, others, weights), scores, listed)


def times_beaten(scores: Array, others: Array, weights: Array) -> Array:
    """Return the sum over others j of weight_j sigmoid(other_j - score), for every score of a row.

    The others are taken one by one, so that nothing larger than the scores is kept. The derivative
    is worked out in the same way: JAX's own would keep a number for every pair. Weights are taken
    as given, without a derivative.
    """
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def beaten(scores: Array, others: Array, weights: Array) -> Array:
        def add(total: Array, one: tuple[Array, Array]) -> tuple[Array, None]:
            other, weight = one
            return total + weight[:, None] * jax.nn.sigmoid(other[:, None] - scores), None

        return jax.lax.scan(add, jnp.zeros_like(scores), (others.T, weights.T))[0]

    def forward(*arguments: Array) -> tuple[Array, tuple[Array, ...]]:
        return beaten(*arguments), arguments

    def backward(arguments: tuple[Array, ...], pulled: Array) -> tuple[Array, Array, None]:
        scores, others, weights = arguments

        def add(total: Array, one: tuple[Array, Array]) -> tuple[Array, Array]:
            other, weight = one
            beats = jax.nn.sigmoid(other[:, None] - scores)
            slope = weight[:, None] * pulled * beats * (1 - beats)
            return total - slope, jnp.sum(slope, axis=1)

        by_score, by_other = jax.lax.scan(add, jnp.zeros_like(scores), (others.T, weights.T))
        return by_score, by_other.T, None

    beaten.defvjp(forward, backward)
    found: Array = beaten(scores, others, weights)
    return found


def _spread(scores: Array, listed: Array) -> Array:
    """Return the standard deviation of each row, kept away from 0, where it has no gradient."""
    import jax.numpy as jnp

    return jnp.sqrt(jnp.var(scores, axis=1, where=listed) + 1e-8)


def attention(ranked: Ranked, patience: Array | float) -> Array:
    """Return the share of a user's attention that each of her ranked items gets.

    She goes on from one place to the next with probability ``patience``, and the list is drawn from
    the softmax of the scores: the share is in proportion to softmax(s)_i patience^(rank_i - 1).
    """
    import jax
    import jax.numpy as jnp

    logarithm = ranked.scores + (ranked.ranks - 1) * jnp.log(patience)
    return jax.nn.softmax(logarithm, axis=1, where=ranked.listed)


def inequality(ranked: Ranked, shares: Array, batch: HistoryBatch, n_items: int) -> Array:
    """Return n sum_j (e_j - 1/n)^2 for the exposure e_j of all items: 0 if equal, n - 1 at most."""
    import jax.numpy as jnp

    real = jnp.asarray(batch.lengths) > 0
    shares = jnp.where(real[:, None] & ranked.listed, shares, 0)
    # Where everybody has seen everything there is no exposure to share.
    total = jnp.maximum(jnp.sum(shares), 1e-30)
    exposure = jnp.zeros(n_items).at[ranked.items].add(shares) / total
    return n_items * jnp.sum((exposure - 1 / n_items) ** 2)


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
    epochs: int = setting(
        500, "How many times all users and items are updated, at most.", at_least=1
    )
    tolerance: float = setting(
        0.005,
        "Stop when 20 epochs change no loss by more than this share, against the 20 before; "
        "0: never.",
    )
    early_stopping: int = setting(
        0, "Stop after so many epochs without a better validation nDCG@100; 0: never."
    )


@dataclass(frozen=True)
class MultiFRRecord(EpochRecord):
    """What is known of a fit of :class:`MultiFR` after an epoch."""

    losses: ClassVar[tuple[str, ...]] = ("objective", "inequality")
    inequality: float
    """The loss of the exposure task; 0 would be equal exposure."""
    weight: float
    """MGDA's weight of the exposure task, before ``preference``."""


class MultiFR(NeuralModel):
    """An autoencoder that learns who likes what and to share the exposure, at the same time.

    A fit goes on until the losses of both tasks stand still; the trace has both. The last epoch is
    kept, and early stopping is off: validation sees accuracy alone, and its best epoch may lie
    before the exposure has evened out.

    Wu et al. have another fairness task, equal quality for groups of users such as women and men.
    It is left out, because interactions do not say to which group a user belongs.

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

    def _step(self, network: Network) -> Step:
        config = self.config
        update = _multifr_update(
            network,
            ranked=min(config.ranked, network.n_items),
            compared=config.compared,
            normalization=config.normalization,
        )
        return with_numbers(update, config, *_NUMBERS)


_NUMBERS = ("dropout", "regularization", "patience", "temperature", "preference")


@lru_cache(maxsize=8)
def _multifr_update(network: Network, *, ranked: int, compared: int, normalization: str) -> Update:
    """Compile an update once for all fits that differ in numbers alone, as in a search."""
    import jax
    import jax.numpy as jnp

    @partial(jax.jit, donate_argnums=0)
    def update(
        state: NetworkState, batch: HistoryBatch, numbers: Numbers
    ) -> tuple[NetworkState, dict[str, Array]]:
        key, sample_key = jax.random.split(jax.random.fold_in(state.key, state.updates))
        sampled = jax.random.randint(sample_key, (compared,), 0, network.n_items)
        inputs = normalised_inputs(batch, network.n_items, numbers["dropout"], key)
        losses, gradients = _tasks(network, state.parameters, inputs, ranked, sampled, numbers)
        gram = gram_matrix(gradients)
        divisor = divisors(gram, losses, normalization)
        weights = shortest(gram / jnp.outer(divisor, divisor))
        factors = weights * jnp.array([1, numbers["preference"]]) / divisor
        gradient = jax.tree.map(lambda one, two: factors[0] * one + factors[1] * two, *gradients)
        measures = {"objective": losses[0], "inequality": losses[1], "weight": weights[1]}
        return descended(state, gradient, numbers), measures

    return update


def _tasks(
    network: Network,
    parameters: Parameters,
    inputs: HistoryInputs,
    ranked: int,
    sampled: Array,
    numbers: Numbers,
) -> tuple[Array, list[Parameters]]:
    """Return the losses of both tasks and their gradients, which meet in the scores."""
    import jax
    import jax.numpy as jnp

    batch, _, n_items = inputs

    def scored(parameters: Parameters) -> Array:
        return scores(parameters, network.hidden(parameters, inputs, None).layer)

    def inaccuracy(scored: Array) -> Array:
        return mean_over_users(negative_log_likelihood(scored, batch), batch)

    def decay(parameters: Parameters) -> Array:
        return numbers["regularization"] * squared_weights(parameters)

    def unequal(scored: Array) -> Array:
        first = smooth_ranks(
            unseen(scored, batch),
            ranked=ranked,
            sampled=sampled,
            temperature=numbers["temperature"],
        )
        return inequality(first, attention(first, numbers["patience"]), batch, n_items)

    at, pull_back = jax.vjp(scored, parameters)
    (first, to_first), (second, to_second) = (
        jax.value_and_grad(task)(at) for task in (inaccuracy, unequal)
    )
    held_back, decayed = jax.value_and_grad(decay)(parameters)
    accurate = jax.tree.map(jnp.add, pull_back(to_first)[0], decayed)
    return jnp.stack([first + held_back, second]), [accurate, pull_back(to_second)[0]]
