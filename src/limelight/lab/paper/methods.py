"""The methods that the paper compares, and what is searched for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight.models import EASE, IALS, ExADMM, MultiFR, MultVAE, Popularity, Random
from limelight.models.neural.model import NeuralModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight.data import Split
    from limelight.lab.paper.experiments import Experiment
    from limelight.models.base import Model


class Range(NamedTuple):
    """Values of a setting to search."""

    low: float
    high: float
    log: bool = True
    """Whether decades count, rather than distances."""
    whole: bool = False
    """Whether only integers do."""


@dataclass(frozen=True, kw_only=True)
class PaperMethod:
    """A model, what is fixed, what is searched, and what is tried before the search."""

    kind: type[Model]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Range] = field(default_factory=dict)
    first: Sequence[Mapping[str, float]] = ()
    share: float = 0.0
    """Of the time for tuning."""
    controls: bool = False
    """Whether it trades accuracy for evenness, so that both are searched for."""
    epochs: int | None = None
    """How many the paper trains for."""
    is_kept: bool = True
    """Whether models of trials are written to disk; one that is not is fitted again."""

    def make(self, settings: Mapping[str, Any]) -> Model:
        """Make a model that has not been fitted."""
        return self.kind(**{**self.fixed, **settings})

    def defaults(self) -> dict[str, Any]:
        """Return all settings as they are where nobody gives them."""
        return self.make({}).get_params()

    def fit(self, settings: Mapping[str, Any], split: Split) -> Model:
        """Fit a model; one that watches validation users gets those of the split."""
        model = self.make(settings)
        if isinstance(model, NeuralModel):
            return model.fit(split.train, validation=split.validation)
        return model.fit(split.train)


_LOSS = {"regularization": Range(1e-4, 1.0), "unobserved_weight": Range(1e-4, 1.0)}
_TOLERANCE = 1e-5
"""Where the objective of a fit stands still. The paper's 50 epochs end above it on dense data."""
_MOST_EPOCHS = 500


def methods_of(
    experiment: Experiment,
    *,
    factors: int,
    epochs: int | None,
    threads: int,
    latent: int | None = None,
    seed: int = 0,
) -> dict[str, PaperMethod]:
    """Return all methods that train, by name.

    The experiment gives the settings that are tried first. ``factors`` is the length of all
    vectors: those of iALS and exADMM, and the layers of the networks unless ``latent`` is given. No
    model trains for more than ``epochs``, where they are given.
    """
    shared = {"num_threads": threads}
    seeded = {**shared, "random_state": seed}
    width = latent or factors
    factor = {
        **seeded,
        "factors": factors,
        "epochs": _at_most(epochs, _MOST_EPOCHS),
        "tolerance": _TOLERANCE,
        "trace_every": 0,
    }
    weights = {**_LOSS, "exposure_weight": Range(*experiment.weight_range)}
    first_weights = [
        {**experiment.ials, "exposure_weight": experiment.weight_range[0]},
        *({**experiment.exadmm, "exposure_weight": weight} for weight in experiment.weights),
    ]
    return {
        "Random": PaperMethod(kind=Random, fixed=seeded),
        "Popularity": PaperMethod(kind=Popularity, fixed=shared),
        "iALS": PaperMethod(
            kind=IALS, fixed=factor, space=_LOSS, first=[experiment.ials], share=0.06, epochs=50
        ),
        "iALS-settings": PaperMethod(
            kind=IALS,
            fixed=factor,
            space=_LOSS,
            first=[experiment.ials],
            share=0.1,
            controls=True,
            epochs=50,
        ),
        "Mult-VAE": PaperMethod(
            kind=MultVAE,
            fixed={**seeded, "epochs": _at_most(epochs, 200), "hidden": width, "latent": width},
            space={
                "dropout": Range(0.1, 0.9, log=False),
                "beta": Range(0.1, 1.0, log=False),
                "anneal_steps": Range(100, 200_000, whole=True),
                "regularization": Range(1e-7, 1e-2),
            },
            # The default, which was published for large data, and what suits small data better.
            first=[{}, {"anneal_steps": 500, "dropout": 0.7}],
            share=0.3,
            epochs=200,
        ),
        "exADMM": PaperMethod(
            kind=ExADMM,
            fixed={**factor, "solver": "admm"},
            space=weights,
            first=first_weights,
            share=0.14,
            controls=True,
            epochs=50,
        ),
        "exADMM-exact": PaperMethod(
            kind=ExADMM,
            fixed={**factor, "solver": "exact"},
            space=weights,
            first=first_weights,
            share=0.14,
            controls=True,
            epochs=50,
        ),
        "Multi-FR": PaperMethod(
            kind=MultiFR,
            # Until the losses of both tasks stand still.
            fixed={**seeded, "epochs": _at_most(epochs, 500), "latent": width},
            space={
                "preference": Range(0.05, 20.0),
                "patience": Range(0.6, 1.0, log=False),
                "temperature": Range(1e-3, 1.0),
                "dropout": Range(0.1, 0.9, log=False),
            },
            # How much each task counts, then what else the paper searches, one at a time.
            first=[
                *({"preference": preference} for preference in (0.1, 0.3, 1.0, 3.0, 10.0)),
                {"patience": 0.7},
                {"temperature": 0.01},
                {"dropout": 0.8},
            ],
            share=0.5,
            controls=True,
            epochs=500,
        ),
        "EASE": PaperMethod(
            kind=EASE,
            fixed=shared,
            space={"regularization": Range(10.0, 10_000.0), "exposure_strength": Range(1e-3, 1e3)},
            first=[
                {"regularization": 300.0, "exposure_strength": strength}
                for strength in (1e-3, 0.1, 1.0, 10.0)
            ],
            share=0.05,
            controls=True,
            is_kept=False,
        ),
    }


def _at_most(given: int | None, published: int) -> int:
    return published if given is None else min(given, published)
