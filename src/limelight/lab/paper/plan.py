"""What a run of the paper's experiments is to do, and the names under which it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight._base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.lab.paper.experiments import Experiment

FAIRREC = "iALS+FairRec"
"""Has no training of its own: it starts from the best iALS."""
BEST_RESPONSE = "iALS+BestResponse"
"""Ours; starts from the best iALS, too."""
OVER_IALS = (FAIRREC, BEST_RESPONSE)

TIMED_METHODS = ("iALS", "Mult-VAE", FAIRREC, "Multi-FR", "exADMM", "exADMM-exact")
"""Those of the paper's Table 3, and its exact solver."""
METHODS = (
    "Random",
    "Popularity",
    "iALS",
    "iALS-settings",
    "Mult-VAE",
    FAIRREC,
    "Multi-FR",
    "exADMM",
    "exADMM-exact",
    BEST_RESPONSE,
    "EASE",
)
"""In the order of tables and figures."""

_OURS = "(ours, not in the paper)"
_LABELS = {
    "iALS-settings": "iALS, settings alone",
    "exADMM": "exADMM as published",
    "exADMM-exact": "exADMM exact",
    BEST_RESPONSE: f"{BEST_RESPONSE} {_OURS}",
    "EASE": f"EASE with exposure control {_OURS}",
}


def label(name: str) -> str:
    """Return what tables and figures call a method.

    Examples
    --------
    >>> label("iALS"), label("iALS+BestResponse")
    ('iALS', 'iALS+BestResponse (ours, not in the paper)')
    """
    return _LABELS.get(name, name)


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan:
    """What to run."""

    experiment: Experiment
    made_up: bool = False
    """Whether the data are a marketplace of the experiment's size."""
    methods: Sequence[str] = METHODS
    budget: float = 60.0
    """Minutes. 0 tries only the published settings."""
    trials: int | None = None
    """How many settings each method tries, whatever the clock says; without it the budget rules."""
    seed: int = 0
    factors: int | None = None
    latent: int | None = None
    """Width of the networks' layers, if not that of the factors."""
    epochs: int | None = None
    """At most so many, instead of the usual ones."""
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse unknown methods, and re-rankers without the model that they start from."""
        for name in self.methods:
            if name not in METHODS:
                message = f"unknown method: {name!r}"
                raise ConfigError(message, hint=f"choose from: {', '.join(METHODS)}")
        for name in OVER_IALS:
            if name in self.methods and "iALS" not in self.methods:
                message = f"{name} starts from iALS, which is not among the methods"
                raise ConfigError(message, hint="add iALS")

    @property
    def order(self) -> list[str]:
        """The methods in the order of tables and figures."""
        return [name for name in METHODS if name in self.methods]

    @property
    def width(self) -> int:
        """The length of the vectors: d, the same for all methods."""
        return self.factors or self.experiment.factors

    @property
    def latent_width(self) -> int:
        """The width of the networks' layers: d unless another was asked for."""
        return self.latent or self.width
