"""Exposure that can be differentiated: smooth ranks, a browsing model, and how unequal it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jax import Array

    from limelight.models.neural.batches import Batch


class Ranked(NamedTuple):
    """The items that stand first in the lists of a batch."""

    items: Array
    """Users x ranked, best first."""
    ranks: Array
    """Their smooth ranks, from about 1 up."""
    scores: Array
    listed: Array
    """False where a list has ended: there were not as many items to rank."""


def unseen(scored: Array, batch: Batch) -> Array:
    """Hide the histories, as lists do."""
    return scored.at[batch.users, batch.items].set(-float("inf"), mode="drop")


def smooth_ranks(scored: Array, *, ranked: int, sampled: Array, temperature: float) -> Ranked:
    """Rank the first items of every list by how many others clearly beat them.

    The rank of item i is 1/2 plus the sum of sigmoid((s_j - s_i) / t) over all items j, of which i
    itself gives the other half. The first items are compared with each other one by one; the rest
    of the catalogue is represented by a sample, whose sum is scaled up, so that the rank is right
    on average and its noise does not reach the top. The temperature t is relative to how far the
    first scores lie apart: otherwise smaller scores would look like a flatter ranking.

    Parameters
    ----------
    scored
        Users x items; -inf is never ranked.
    ranked
        How many items of each list to rank.
    sampled
        Numbers of items, drawn evenly from the catalogue.
    temperature
        Towards 0 the rank becomes the hard one, and loses its gradient.
    """
    import jax
    import jax.numpy as jnp

    # Without the barrier XLA merges what follows into the search, and sorts all items instead.
    found = jax.lax.top_k(jax.lax.stop_gradient(scored), ranked)
    best, items = jax.lax.optimization_barrier(found)  # type: ignore[no-untyped-call]
    listed = jnp.isfinite(best)
    scores = jnp.where(listed, jnp.take_along_axis(scored, items, axis=1), 0)
    rest = scored[:, sampled]
    # Hidden items have no score; what is listed already was compared one by one.
    counted = jnp.isfinite(rest) & (rest < best[:, -1:])
    scale = temperature * _spread(scores, listed)
    rest, scale = jnp.where(counted, rest, 0), scale[:, None, None]

    def beaten_by(others: Array, counted: Array) -> Array:
        beats = jax.nn.sigmoid((others[:, None, :] - scores[:, :, None]) / scale)
        return jnp.sum(jnp.where(counted[:, None, :], beats, 0), axis=2)

    n_items, n_sampled = scored.shape[1], len(sampled)
    ranks = 0.5 + beaten_by(scores, listed) + beaten_by(rest, counted) * (n_items / n_sampled)
    return Ranked(items, ranks, scores, listed)


def _spread(scores: Array, listed: Array) -> Array:
    """Return the standard deviation of each row, kept away from 0, where it has no gradient."""
    import jax.numpy as jnp

    return jnp.sqrt(jnp.var(scores, axis=1, where=listed) + 1e-8)


def attention(ranked: Ranked, patience: float) -> Array:
    """Return the share of a user's attention that each of her ranked items gets.

    She goes on from one place to the next with probability ``patience``, and the list is drawn from
    the softmax of the scores: the share is in proportion to softmax(s)_i patience^(rank_i - 1).
    """
    import jax
    import jax.numpy as jnp

    logarithm = ranked.scores + (ranked.ranks - 1) * jnp.log(patience)
    return jax.nn.softmax(logarithm, axis=1, where=ranked.listed)


def inequality(ranked: Ranked, shares: Array, batch: Batch, n_items: int) -> Array:
    """Return n sum_j (e_j - 1/n)^2 for the exposure e_j of all items: 0 if equal, n - 1 at most."""
    import jax.numpy as jnp

    real = jnp.asarray(batch.lengths) > 0
    shares = jnp.where(real[:, None] & ranked.listed, shares, 0)
    # Where everybody has seen everything there is no exposure to share.
    total = jnp.maximum(jnp.sum(shares), 1e-30)
    exposure = jnp.zeros(n_items).at[ranked.items].add(shares) / total
    return n_items * jnp.sum((exposure - 1 / n_items) ** 2)
