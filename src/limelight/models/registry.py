"""Every model under the name that files and the command line know it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.models.exadmm import ExADMM, ExADMMConfig
from limelight.models.ials import IALS, IALSConfig
from limelight.models.neural.multifr import MultiFR, MultiFRConfig
from limelight.models.neural.multvae import MultDAE, MultDAEConfig, MultVAE, MultVAEConfig
from limelight.models.popularity import Popularity, PopularityConfig, Random, RandomConfig

if TYPE_CHECKING:
    from limelight.models.base import Model
    from limelight.models.config import Config

MODELS: dict[str, tuple[type[Model], type[Config]]] = {
    kind.__name__: (kind, config)
    for kind, config in (
        (IALS, IALSConfig),
        (ExADMM, ExADMMConfig),
        (Popularity, PopularityConfig),
        (Random, RandomConfig),
        (MultVAE, MultVAEConfig),
        (MultDAE, MultDAEConfig),
        (MultiFR, MultiFRConfig),
    )
}
