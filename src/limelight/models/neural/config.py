"""The settings that all neural models share.

JAX and optax are an extra: they are imported where they compute, and asked for first.
"""

from __future__ import annotations

from dataclasses import dataclass

from limelight._base.errors import ConfigError
from limelight._base.settings import setting
from limelight.models.config import Config


@dataclass(frozen=True, kw_only=True)
class NeuralConfig(Config):
    """What all neural models can be told."""

    # Threads of the search for lists are num_threads; JAX takes all that the process may use.
    latent: int = setting(
        200, "Width of a network's narrowest layer.", at_least=1, at_most=2**20, search=(100, 600)
    )
    dropout: float = setting(
        0.5,
        "Share of a history that an update leaves out.",
        below=1,
        hint="use a share from 0 up, such as 0.5",
        metavar="SHARE",
        search=(0.2, 0.8),
    )
    learning_rate: float = setting(
        1e-3, "Step size of the users; of all weights in a network.", above=0, search=(3e-4, 3e-3)
    )
    batch_size: int = setting(500, "How many users an update looks at.", at_least=1, at_most=2**20)
    epochs: int = setting(
        200, "How many times all users and items are updated, at most.", at_least=1
    )
    early_stopping: int = setting(
        20, "Stop after so many epochs without a better validation nDCG@100; 0: never."
    )
    tolerance: float = setting(
        0.0,
        "Stop when 20 epochs change no loss by more than this share, against the 20 before; "
        "0: never.",
    )
    random_state: int = setting(0, "The same seed gives the same result.", flag="--seed")


def require_jax() -> None:
    """Say how to install JAX, where it is missing."""
    try:
        import jax
        import optax
    except ImportError as error:
        message = f"neural models need JAX and optax: {error}"
        raise ConfigError(message, hint="pip install 'limelight[neural]'") from error
    del jax, optax
