"""Fits that start from a neighbour."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from limelight.models.exadmm import ExADMM

if TYPE_CHECKING:
    from limelight.data.interactions import Interactions
    from limelight.models.exadmm import ExADMMConfig

_SHORTER = 8
"""A fit that starts from a neighbour has so many times fewer epochs than one from nothing."""


def warm_fit(config: ExADMMConfig, start: ExADMM, data: Interactions, strength: float) -> ExADMM:
    """Fit with another exposure strength, from the factors of a model that is near.

    Parameters
    ----------
    config
        Of a fit from nothing.
    start
        Where to start.
    data
        What to fit to.
    strength
        The exposure strength.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> plain = ll.ExADMM(factors=8, epochs=40).fit(data)
    >>> warm_fit(plain.config, plain, data, strength=0.1).trace_[-1].epoch
    5
    """
    epochs = max(2, config.epochs // _SHORTER)
    settings = replace(config, exposure_strength=strength, epochs=epochs).changed()
    first = (start.user_factors, start.item_factors)
    model: ExADMM = ExADMM(**settings)
    return model.fit(data, init=first, show_progress=False)
