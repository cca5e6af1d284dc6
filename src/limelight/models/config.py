"""The settings that models share, and what "auto" comes to by the shape and density of the data.

Three numbers say how much can be learnt: the interactions of the average user, those of the average
item, and the share of all pairs that were observed.

- **Unobserved weight.** All pairs that were not observed together weigh 20 times as much as those
  that were. Where one pair in 200 was observed, an unobserved one weighs 0.1.
- **Regularisation.** A matrix whose entries are drawn at random, with n interactions a user and m
  an item, has singular values up to about 1/sqrt(n) + 1/sqrt(m) of what its rows and columns weigh.
  What lies below that is noise, so every row is shrunk by an amount that grows with it: 0.3 times
  its power 0.6, as a share of what was observed of the row.
- **Factors.** 256, as long as an epoch takes seconds; fewer for very many interactions, and for
  very few users or items, where vectors would be as long as there are rows to learn them from.

With weights, the largest of every thousand is cut off at the next before they are averaged, so that
one wrong weight does not decide.

The constants were found on some data sets and checked on others: ``how-to/choose-a-model.md`` has
the figures.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError, LimelightWarning
from limelight._base.settings import Settings, setting
from limelight._base.text import percent, settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

AUTO = "auto"
_UNOBSERVED_MASS = 20.0
_SHRINKAGE, _POWER = 0.3, 0.6
_MOST_FACTORS = 256
_ROWS_A_FACTOR = 8
"""With fewer users or items than so many for each factor, there are fewer factors."""
_FEWER_BEYOND = 12_000_000, 60_000_000
"""Beyond so many interactions factors are halved, and halved again."""
_THOUSAND, _ENOUGH, _HEAVY = 1000, 100, 0.1
"""Of so many weights the largest does not count; from so many on, such a share is said."""
_PANEL = 16
"""Kernels work in panels of so many factors: others cost as much as the next multiple."""


class FactorNumbers(NamedTuple):
    """The settings of a factor model that may be "auto", as numbers."""

    factors: int
    regularization: float
    unobserved_weight: float

    def chosen(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return those that were "auto" among the settings given.

        Examples
        --------
        >>> FactorNumbers(64, 0.01, 0.1).chosen({"factors": "auto", "regularization": 0.01})
        {'factors': 64}
        """
        return {name: n for name, n in self._asdict().items() if given.get(name) == AUTO}


def numbers_of(settings: Mapping[str, Any]) -> FactorNumbers:
    """Read the numbers among settings; refuse "auto", which nobody has settled yet."""
    values = {name: settings[name] for name in FactorNumbers._fields}
    for name, value in values.items():
        if value == AUTO:
            message = f'{name} is "auto": it is settled when the model is fitted'
            raise ConfigError(message, hint="call fit(X) first, or give a number")
    return FactorNumbers(**values)


def robust_weights(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cut weights off at the largest but the first of every thousand, so that no few decide.

    Examples
    --------
    >>> robust_weights(np.array([1, 1e6, 3, 1], np.float32))
    array([1., 3., 3., 1.], dtype=float32)
    """
    at = max(0, len(weights) - 2 - len(weights) // _THOUSAND)
    return np.asarray(np.minimum(weights, np.partition(weights, at)[at]))


def note_heavy_weight(weights: NDArray[np.float32] | None) -> None:
    """Warn where one pair weighs as much as a great part of all."""
    if weights is None or len(weights) < _ENOUGH:
        return
    largest, total = float(weights.max()), float(weights.sum(dtype=np.float64))
    if largest > _HEAVY * total:
        message = (
            f"one pair weighs {largest:g}, which is {percent(largest / total, 0)} of all "
            f"{len(weights):,} pairs together; the median is {np.median(weights):g}. "
            "Is that an error?"
        )
        warnings.warn(message, LimelightWarning, stacklevel=4)


def settled(
    settings: Mapping[str, Any],
    *,
    n_users: int,
    n_items: int,
    observed: int,
    weight: float | None = None,
    width: int | None = None,
) -> FactorNumbers:
    """Put numbers in place of "auto".

    Parameters
    ----------
    settings
        The settings given, by name.
    n_users, n_items
        The size of the training data.
    observed
        How many pairs were observed.
    weight
        What they weigh together, robustly; each 1 unless given.
    width
        How long the vectors are that a fit starts from, if it starts from any.

    Examples
    --------
    >>> given = {"factors": "auto", "regularization": "auto", "unobserved_weight": 0.1}
    >>> settled(given, n_users=5031, n_items=3999, observed=103_753)
    FactorNumbers(factors=256, regularization=0.008..., unobserved_weight=0.1)
    """
    if not observed:
        message = f"there is nothing to learn from: {n_users:,} users, {n_items:,} items, no pairs"
        raise DataError(message, hint="check the filters that were applied when reading")
    given = {name: settings[name] for name in FactorNumbers._fields}
    if given["factors"] == AUTO:
        given["factors"] = width or _factors(n_users, n_items, observed)
    pairs, weight = float(n_users) * n_items, float(observed if weight is None else weight)
    if given["unobserved_weight"] == AUTO:
        # No pair that was not observed weighs more than the average one that was.
        given["unobserved_weight"] = min(weight / observed, _UNOBSERVED_MASS * weight / pairs)
    if given["regularization"] == AUTO:
        noise = float(np.sqrt(n_items / observed) + np.sqrt(n_users / observed))
        # The ridge of a row is the regularisation times all that the row weighs: what was observed,
        # and what was not. What counts is its share of the former.
        mass = 1 + given["unobserved_weight"] * pairs / weight
        given["regularization"] = _SHRINKAGE * noise**_POWER / mass
    return FactorNumbers(**given)


def _factors(n_users: int, n_items: int, observed: float) -> int:
    by_rows = min(n_users, n_items) // _ROWS_A_FACTOR
    most = _MOST_FACTORS >> sum(observed > bound for bound in _FEWER_BEYOND)
    return min(most, max(_PANEL, by_rows // _PANEL * _PANEL))


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

    factors: int | Literal["auto"] = setting(
        "auto", "Length of the vectors; auto: by the size of the data.", at_least=1, at_most=2**15
    )
    regularization: float | Literal["auto"] = setting(
        "auto",
        "Weight of the squared norms of what is learnt; auto: by how much is known of a user and "
        "an item.",
    )
    regularization_exponent: float = setting(
        1.0, "How that weight grows with the data of a row: 0 not, 1 in proportion."
    )
    unobserved_weight: float | Literal["auto"] = setting(
        "auto",
        "Weight of a pair that was not observed; an observed one weighs 1. auto: by the share of "
        "pairs that were.",
    )
    row_solver: Literal["cholesky", "cg"] = setting(
        "cholesky", "Solve every row exactly, or by a few steps of descent: for many factors."
    )
    epochs: int = setting(
        50, "How many times all users and items are updated, at most.", at_least=1
    )
    tolerance: float = setting(
        3e-4,
        "Stop when an epoch lowers the objective by less than this share of it; a network: when "
        "20 epochs change no loss by more; 0: never.",
    )
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

    @cached_property
    def advice(self) -> str:
        """What to change where the numbers of a fit run away: what is not as usual.

        Examples
        --------
        >>> FactorConfig(factors=32, init_scale=1e30).advice
        'bring this nearer to its default: init_scale=1e+30'
        >>> FactorConfig(regularization=1e30).advice
        'leave this to "auto": regularization=1e+30'
        """
        unusual = {name: value for name, value in self.changed().items() if name in _WEIGHTS}
        given = {name: unusual.pop(name) for name in FactorNumbers._fields if name in unusual}
        advice = []
        if unusual:
            which = "this nearer to its default"
            if len(unusual) > 1:
                which = "these nearer to the defaults"
            advice.append(f"bring {which}: {settings(unusual)}")
        if given:
            which = "this" if len(given) == 1 else "these"
            advice.append(f'leave {which} to "auto": {settings(given)}')
        return "; ".join(advice) or "raise regularization"
