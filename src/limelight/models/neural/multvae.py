"""Mult-VAE and Mult-DAE: autoencoders with a multinomial likelihood (Liang et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from limelight._base.settings import hyperparameters, setting
from limelight.models.neural.config import NeuralConfig
from limelight.models.neural.model import NeuralModel
from limelight.models.neural.network import (
    DAENetwork,
    VAENetwork,
    autoencoder_loss,
    squared_weights,
)
from limelight.models.neural.train import EpochRecord, make_update, with_numbers

if TYPE_CHECKING:
    from jax import Array

    from limelight.models.neural.network import Network, Parameters
    from limelight.models.neural.train import HistoryBatch, Loss, Numbers, Step, Update


@dataclass(frozen=True, kw_only=True)
class MultVAEConfig(NeuralConfig):
    """The settings of :class:`MultVAE`."""

    hidden: int = setting(
        600, "Width of the layers around the latent one.", at_least=1, at_most=2**20
    )
    beta: float = setting(0.2, "Largest weight of the KL term.")
    anneal_steps: int = setting(
        200_000, "Updates in which that weight would grow from 0 to 1.", at_least=1
    )
    regularization: float = setting(0.0, "Weight of the squared norms of what is learnt.")


@dataclass(frozen=True)
class MultVAERecord(EpochRecord):
    """What is known of a fit of :class:`MultVAE` after an epoch."""

    beta: float
    """Weight of the KL term, averaged over the updates of the epoch."""


class MultVAE(NeuralModel):
    """A variational autoencoder whose output is a distribution over the catalogue.

    A history goes in, of length 1 and with part of it left out, and the network guesses which
    items it was drawn from. An unseen user needs one forward pass. The epoch with the best
    validation nDCG@100 is kept.

    Parameters are the fields of :class:`~limelight.models.neural.multvae.MultVAEConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.MultVAE(hidden=16, latent=8, epochs=3).fit(data)
    >>> model.recommend(users=[0, 7], k=3).ids.shape
    (2, 3)
    """

    record: ClassVar[type[EpochRecord]] = MultVAERecord
    config: MultVAEConfig
    __init__ = hyperparameters(MultVAEConfig)

    def _network(self, n_items: int) -> Network:
        return VAENetwork(n_items, self.config.hidden, self.config.latent)

    def _step(self, network: Network) -> Step:
        update = _autoencoder_update(network, is_annealed=True)
        return with_numbers(update, self.config, *_NUMBERS, "beta", "anneal_steps")


def annealed(cap: float, steps: float, updates: Array) -> Array:
    """Return the weight of the KL term after so many updates."""
    import jax.numpy as jnp

    return jnp.minimum(cap, updates / steps)


@dataclass(frozen=True, kw_only=True)
class MultDAEConfig(NeuralConfig):
    """The settings of :class:`MultDAE`."""

    regularization: float = setting(2e-5, "Weight of the squared norms of what is learnt.")


class MultDAE(NeuralModel):
    """An autoencoder with one latent layer whose output is a distribution over the catalogue.

    It is :class:`MultVAE` without noise and without the layers around the latent one. The epoch
    with the best validation nDCG@100 is kept.

    Parameters are the fields of :class:`~limelight.models.neural.multvae.MultDAEConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.MultDAE(latent=8, epochs=3).fit(data)
    >>> [record.epoch for record in model.trace_]
    [1, 2, 3]
    """

    config: MultDAEConfig
    __init__ = hyperparameters(MultDAEConfig)

    def _network(self, n_items: int) -> Network:
        return DAENetwork(n_items, self.config.latent)

    def _step(self, network: Network) -> Step:
        return with_numbers(_autoencoder_update(network), self.config, *_NUMBERS)


_NUMBERS = ("dropout", "regularization")


@lru_cache(maxsize=8)
def _autoencoder_update(network: Network, *, is_annealed: bool = False) -> Update:
    """Compile an update once for all fits of networks of the same shape."""

    def loss(
        parameters: Parameters, batch: HistoryBatch, key: Array, updates: Array, numbers: Numbers
    ) -> Loss:
        measures = {}
        if is_annealed:
            measures["beta"] = annealed(numbers["beta"], numbers["anneal_steps"], updates)
        beta = measures.get("beta", 0.0)
        fit = autoencoder_loss(network, parameters, batch, key, numbers["dropout"], beta)
        return fit + numbers["regularization"] * squared_weights(parameters), measures

    return make_update(loss)
