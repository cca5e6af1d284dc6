"""Hyper-parameters: one frozen dataclass a method, the only place where a default stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from limelight._base.settings import Settings, setting
from limelight._short import settings

_WEIGHTS = (
    "regularization",
    "regularization_exponent",
    "unobserved_weight",
    "init_scale",
    "exposure_weight",
    "exposure_strength",
)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """What all models can be told."""

    num_threads: int = setting(
        0,
        "How many threads to use; 0: all that the process may use.",
        at_most=2**12,
        flag="--threads",
    )


@dataclass(frozen=True, kw_only=True)
class FactorConfig(Config):
    """What all models of user and item factors can be told."""

    factors: int = setting(64, "Length of the vectors.", at_least=1, at_most=2**15)
    regularization: float = setting(0.003, "Weight of the squared norms of what is learnt.")
    regularization_exponent: float = setting(
        1.0, "How that weight grows with the data of a row: 0 not, 1 in proportion."
    )
    unobserved_weight: float = setting(
        0.1, "Weight of a pair that was not observed; an observed one weighs 1."
    )
    row_solver: Literal["cholesky", "cg"] = setting(
        "cholesky", "Solve every row exactly, or by a few steps of descent: for many factors."
    )
    epochs: int = setting(16, "How many times all users and items are updated.", at_least=1)
    tolerance: float = setting(0.0, "Stop when an epoch moves nothing by more than this share.")
    init_scale: float = setting(
        # The standard deviation of the first factors, times the square root of their number.
        0.1,
        "Size of the random vectors at the start.",
        above=0,
    )
    random_state: int = setting(0, "The same seed gives the same result.", flag="--seed")
    trace_every: int = setting(
        10, "Measure the objective every so many epochs, and after the last; 0: only then."
    )

    @property
    def advice(self) -> str:
        """What to change where the numbers of a fit run away: what is not as usual.

        Examples
        --------
        >>> FactorConfig(factors=32, init_scale=1e30).advice
        'bring this nearer to its default: init_scale=1e+30'
        """
        unusual = {name: value for name, value in self.changed().items() if name in _WEIGHTS}
        if not unusual:
            return "raise regularization"
        which = (
            "this nearer to its default" if len(unusual) == 1 else "these nearer to the defaults"
        )
        return f"bring {which}: {settings(unusual)}"
