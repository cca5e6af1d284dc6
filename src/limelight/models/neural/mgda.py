"""MGDA: one direction for several losses, the shortest vector in the hull of their gradients.

Where it is not zero, a small step against it lowers every loss; where it is, no direction does.
To find it, the Gram matrix of the gradients is enough (Désidéri 2012; Sener and Koltun 2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax import Array

    from limelight.models.neural.network import Parameters

NORMALIZATIONS = ("none", "l2", "loss", "loss+")
_ITERATIONS = 250
_STILL = 1e-6


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
    """Return the weights, 0 or more and of sum 1, of the shortest combination of gradients.

    Two gradients have a closed form; for more there is Frank-Wolfe.
    """
    return shortest_of_two(gram) if len(gram) == 2 else frank_wolfe(gram)


def shortest_of_two(gram: Array) -> Array:
    """Return the weights of the point of a segment that is closest to the origin."""
    import jax.numpy as jnp

    first = _share(gram[0, 0], gram[0, 1], gram[1, 1])
    return jnp.stack([first, 1 - first])


def frank_wolfe(gram: Array) -> Array:
    """Return the same for any number, by steps towards the gradient that is most at odds."""
    import jax
    import jax.numpy as jnp

    def move(weights: Array) -> Array:
        along = gram @ weights
        corner = jnp.zeros_like(weights).at[jnp.argmin(along)].set(1)
        stay = _share(weights @ along, corner @ along, corner @ gram @ corner)
        return stay * weights + (1 - stay) * corner

    def goes_on(carried: tuple[Array, Array, Array]) -> Array:
        count, before, weights = carried
        return (count < _ITERATIONS) & (jnp.abs(weights - before).sum() > _STILL)

    def again(carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, _, weights = carried
        return count + 1, weights, move(weights)

    # From the shortest gradient: where it is the answer itself, nothing has to be unlearnt.
    start = jnp.zeros(len(gram)).at[jnp.argmin(jnp.diag(gram))].set(1)
    _, _, weights = jax.lax.while_loop(goes_on, again, (jnp.ones((), int), start, move(start)))
    return weights


def _share(one: Array, both: Array, two: Array) -> Array:
    """Return the share of the first of two vectors in their shortest mix, from their products."""
    import jax.numpy as jnp

    distance = one - 2 * both + two
    return jnp.where(
        distance > 0, jnp.clip((two - both) / jnp.where(distance > 0, distance, 1), 0, 1), 0.5
    )
