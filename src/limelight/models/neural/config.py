"""The settings that all neural models share."""

from __future__ import annotations

from dataclasses import dataclass

from limelight._errors import ConfigError
from limelight.models.checks import check_integer, check_number
from limelight.models.config import Config


@dataclass(frozen=True, kw_only=True)
class NeuralConfig(Config):
    """What all neural models can be told."""

    num_threads: int = 0
    """Threads of the search for lists; 0 means all that the process may use, as JAX does."""
    latent: int = 200
    """Width of the narrowest layer."""
    dropout: float = 0.5
    """Share of a history that is left out, anew in each update."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    batch_size: int = 500
    """How many users an update looks at."""
    epochs: int = 200
    """How many times all users are looked at."""
    early_stopping: int = 20
    """Stop after so many epochs without a better validation nDCG@100; 0 means never."""
    random_state: int = 0
    """Seed of first weights, held-out users, order, dropout and noise; same seed, same bits."""

    def check_own_settings(self) -> None:
        """Check sizes and rates."""
        for name in ("latent", "batch_size"):
            check_integer(name, getattr(self, name), least=1, most=2**20)
        for name, least in (("epochs", 1), ("early_stopping", 0), ("random_state", 0)):
            check_integer(name, getattr(self, name), least=least)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("dropout", self.dropout)
        if self.dropout >= 1:
            message = f"dropout must be below 1: {self.dropout!r}"
            raise ConfigError(message, hint="use a share from 0 up, such as 0.5")
