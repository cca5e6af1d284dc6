"""Models that learn from interactions and rank a catalogue."""

from __future__ import annotations

from limelight.models.ease import EASE, EASEConfig
from limelight.models.exadmm import ExADMM, ExADMMConfig
from limelight.models.folder import MODELS
from limelight.models.ials import IALS, IALSConfig
from limelight.models.neural.multifr import MultiFR, MultiFRConfig
from limelight.models.neural.multvae import MultDAE, MultDAEConfig, MultVAE, MultVAEConfig
from limelight.models.popularity import Popularity, PopularityConfig, Random, RandomConfig

__all__ = ["EASE", "IALS", "ExADMM", "MultDAE", "MultVAE", "MultiFR", "Popularity", "Random"]

# Folders and the command line know a model by its name here, in this order.
MODELS.update(
    IALS=(IALS, IALSConfig),
    ExADMM=(ExADMM, ExADMMConfig),
    EASE=(EASE, EASEConfig),
    Popularity=(Popularity, PopularityConfig),
    Random=(Random, RandomConfig),
    MultVAE=(MultVAE, MultVAEConfig),
    MultDAE=(MultDAE, MultDAEConfig),
    MultiFR=(MultiFR, MultiFRConfig),
)
