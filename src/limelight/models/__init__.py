"""Models that learn from interactions and rank a catalogue."""

from __future__ import annotations

from limelight.models.exadmm import ExADMM
from limelight.models.ials import IALS
from limelight.models.neural.multifr import MultiFR
from limelight.models.neural.multvae import MultDAE, MultVAE
from limelight.models.popularity import Popularity, Random

__all__ = ["IALS", "ExADMM", "MultDAE", "MultVAE", "MultiFR", "Popularity", "Random"]
