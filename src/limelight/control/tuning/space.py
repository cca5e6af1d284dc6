"""What tuning tries: settings as places in a unit cube, and the rounds that thin them out."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.settings import declared_settings, kind_of
from limelight.models.config import AUTO, robust_weights, settled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from limelight.data.interactions import Interactions
    from limelight.models.config import Config, FactorConfig

    Place = tuple[float, ...]

_OF_FACTORS = "factors", "regularization", "regularization_exponent", "unobserved_weight"
_EXPONENTS = 1.0, 0.75, 0.5
_SHRINKAGE_DOUBLED, _UNOBSERVED_DOUBLED = 1.5, 2.5
"""How often regularisation and unobserved weight are doubled, or halved, at the end of the cube."""
_LEVELS = 4
_PANEL = 16
_WIDE = 8.0
"""A range whose ends differ by so much is searched in proportion."""


def spread_out(dimensions: int) -> Iterator[Place]:
    """Yield places that fill the unit cube evenly, however many are taken (the R sequence).

    Examples
    --------
    >>> [round(x, 2) for place, _ in zip(spread_out(1), range(4)) for x in place]
    [0.12, 0.74, 0.35, 0.97]
    """
    ratio = 2.0
    for _ in range(64):  # the root of x^(dimensions + 1) = x + 1
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    number = 0
    while True:
        number += 1
        yield tuple(float(x) for x in (0.5 + number * steps) % 1)


class Space:
    """Settings of a model that declare between which numbers they are searched.

    What was given other than its default stays as it is.

    Parameters
    ----------
    config
        The settings to start from.
    auto
        What settings that are "auto" come to; these are searched in multiples of it.

    Examples
    --------
    >>> import limelight as ll
    >>> Space(ll.EASE().config, {"regularization": 100.0}).settings((1.0,))
    {'regularization': 400.0}
    """

    def __init__(self, config: Config, auto: Mapping[str, float] = MappingProxyType({})) -> None:
        self._config, self._auto = config, auto
        self._ranges = self.searched(config)
        self.dimensions = len(self._ranges)

    @staticmethod
    def searched(config: Config) -> dict[str, Any]:
        """Return the settings to look for, each with the numbers it is between and its field."""
        changed, declared = config.changed(), declared_settings(type(config))
        return {
            own.name: (declared[own.name].search, own)
            for own in fields(config)
            if own.name in declared and declared[own.name].search and own.name not in changed
        }

    def defaults(self) -> dict[str, Any]:
        """Return exactly what settings that are "auto" come to."""
        return {name: number for name, number in self._auto.items() if name in self._ranges}

    def settings(self, place: Place | None) -> dict[str, Any]:
        """Return the settings at a place; at None, the defaults."""
        if place is None:
            return {name: _rounded(number) for name, number in self.defaults().items()}
        found: dict[str, Any] = {}
        for x, (name, (ends, own)) in zip(place, self._ranges.items(), strict=True):
            assert ends is not None
            low, high = ends
            value = low * (high / low) ** x if high / low >= _WIDE else low + x * (high - low)
            value *= self._auto.get(name, 1)
            kind = kind_of(own)
            found[name] = round(value) if kind and kind.number is int else _rounded(value)
        return found


class FactorSpace:
    """Regularisation, its exponent and the unobserved weight of a factor model, around "auto".

    What was given other than its default stays as it is. The number of factors is not part of a
    place: it grows from round to round.
    """

    dimensions = 3

    def __init__(self, config: FactorConfig, data: Interactions) -> None:
        self._config, self._data = config, data
        self._given = config.changed()

    @staticmethod
    def searched(config: Config) -> list[str]:
        """Return the settings to look for: those that were not given."""
        return [name for name in _OF_FACTORS if name not in config.changed()]

    def settled(self, **settings: Any) -> Any:
        """Put numbers in place of "auto"."""
        data = self._data
        return settled(
            {**asdict(self._config), **settings},
            n_users=data.n_users,
            n_items=data.n_items,
            observed=data.nnz,
            weight=_weight(data),
        )

    def defaults(self, factors: int) -> dict[str, Any]:
        """Return exactly what settings that are "auto" come to, with so many factors."""
        numbers = self.settled(factors=factors)._asdict()
        return {name: n for name, n in numbers.items() if getattr(self._config, name) == AUTO}

    def settings(self, place: Place | None) -> dict[str, Any]:
        """Return the settings at a place; at None, those of "auto"."""
        x, y, z = place or (0.5, 0.5, 0.0)
        found: dict[str, Any] = {}
        weight = self.settled().unobserved_weight
        if "unobserved_weight" not in self._given:
            weight *= 2 ** ((2 * y - 1) * _UNOBSERVED_DOUBLED)
            weight = _rounded(min(_weight(self._data) / self._data.nnz, weight))
            found["unobserved_weight"] = weight
        exponent = self._config.regularization_exponent
        if "regularization_exponent" not in self._given:
            exponent = _EXPONENTS[min(int(z * len(_EXPONENTS)), len(_EXPONENTS) - 1)]
            found["regularization_exponent"] = exponent
        if "regularization" not in self._given:
            ridge = self.settled(unobserved_weight=weight).regularization
            ridge *= 2 ** ((2 * x - 1) * _SHRINKAGE_DOUBLED)
            # The average row is held back as much with any exponent.
            found["regularization"] = _rounded(ridge * self._mass(weight) ** (1 - exponent))
        return found

    def _mass(self, weight: float) -> float:
        """Return what the average row weighs, of users and items alike."""
        data = self._data
        observed = _weight(data)
        users = observed / data.n_users + weight * data.n_items
        items = observed / data.n_items + weight * data.n_users
        return math.sqrt(users * items)


def _weight(data: Interactions) -> float:
    """Return what all observed pairs weigh together, as "auto" counts it."""
    if data.weights is None:
        return float(data.nnz)
    return float(robust_weights(data.weights).sum(dtype=np.float64))


def _rounded(value: float) -> float:
    """Round to four digits, so that settings can be read and typed."""
    return float(f"{value:.4g}")


class Round(NamedTuple):
    """So many trials with so many factors."""

    factors: int
    trials: int


@dataclass(frozen=True)
class Plan:
    """The rounds of a search: many trials with few factors, few with many, then a closer look."""

    rounds: tuple[Round, ...]
    refined: int
    """How many trials look around the best, with the factors of the last round."""

    @classmethod
    def of(cls, trials: int, factors: int, *, fixed: bool) -> Plan:
        """Plan so many trials, up to so many factors, or with these alone.

        Examples
        --------
        >>> [tuple(one) for one in Plan.of(24, 256, fixed=False).rounds]
        [(32, 10), (64, 4), (128, 2), (256, 2)]
        """
        refined = trials // 4
        explored = trials - refined
        widths = [factors]
        while not fixed and len(widths) < min(_LEVELS, explored // 2) and widths[0] > _PANEL:
            widths.insert(0, max(_PANEL, widths[0] // 2 // _PANEL * _PANEL))
        sizes = [max(2, explored >> (level + 1)) for level in range(len(widths))]
        sizes[0] = explored - sum(sizes[1:])
        rounds = tuple(Round(*one) for one in zip(widths, sizes, strict=True))
        return cls(rounds, refined)

    @property
    def trials(self) -> int:
        """How many trials there are in all."""
        return sum(one.trials for one in self.rounds) + self.refined


def around(place: Place, step: float) -> list[Place]:
    """Return the neighbours of a place along each of the first two axes, inside the cube.

    Examples
    --------
    >>> around((0.5, 0.9, 0.0), 0.2)
    [(0.7, 0.9, 0.0), (0.3, 0.9, 0.0), (0.5, 1.0, 0.0), (0.5, 0.7, 0.0)]
    """
    found = []
    for axis in range(min(2, len(place))):
        for side in (step, -step):
            moved = list(place)
            moved[axis] = round(min(1.0, max(0.0, moved[axis] + side)), 6)
            found.append(tuple(moved))
    return found
