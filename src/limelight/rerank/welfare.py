"""What shared exposure is worth: concave functions of it, and their derivatives.

Exposure enters as x: what an item has over what it is entitled to, which is the same for all items
unless shares are given. The welfare of all is the sum of psi(x_j), each item weighted by its share,
and an item's subsidy is proportional to psi'(x_j). Exposure is scarce and its sum is fixed, so a
constant that is added to psi' changes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float64

_SPREAD = 2048  # items, evenly by their rank, by which the others are valued
_NODES = 8  # of the Gauss-Legendre rule for the mean slope
WelfareName: TypeAlias = Literal["log", "power", "gini", "impact", "minimum"]


@cache
def _legendre_rule() -> list[tuple[float, float]]:
    """Return nodes and weights; NumPy finds them by the eigenvalues of a matrix at every call."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return list(zip(nodes.tolist(), weights.tolist(), strict=True))


class Welfare(ABC):
    """A concave function of exposure."""

    by_impact: ClassVar[bool] = False
    """Whether exposure counts only as much as it is relevant to those who see it."""
    is_separable: ClassVar[bool] = True
    """Whether an item's help depends on its own exposure alone."""

    @abstractmethod
    def value(self, x: Float64) -> float:
        """Return the mean of psi over the items."""

    @abstractmethod
    def marginal(self, x: Float64) -> Float64:
        """Return psi', which falls as x rises."""

    def marginal_given(self, x: Float64) -> Callable[[Float64], Float64]:
        """Return psi' while the items have x; always the same, unless items are compared."""
        return self.marginal

    def mean_marginal_given(self, x: Float64, step: float) -> Callable[[Float64], Float64]:
        """Return the mean of psi' from any x to x + step, while the items have x."""
        marginal = self.marginal_given(x)
        parts = [(step * (node + 1) / 2, weight / 2) for node, weight in _legendre_rule()]
        return lambda at: np.asarray(sum(weight * marginal(at + part) for part, weight in parts))

    def shares(self, n_items: int) -> Float64:
        """Return what part of all exposure each item is entitled to."""
        return np.full(n_items, 1 / n_items)

    def pull(self, merit: Float64) -> Float64:
        """Return how strongly each item is helped, given how relevant it is to all users."""
        return np.ones(len(merit))


@dataclass(frozen=True, kw_only=True)
class Power(Welfare):
    """psi' = (x + offset)^-exponent; an exponent of 1 is the logarithm, the Nash welfare.

    Examples
    --------
    >>> Power(exponent=1, offset=0.5).marginal(np.array([0.0, 1.5]))
    array([2. , 0.5])
    """

    exponent: float = 1.0
    """The larger it is, the more the least exposed count."""
    offset: float = 0.3
    """What every item has beforehand; it bounds the subsidy of items that nobody sees."""

    def __post_init__(self) -> None:
        check_number("exponent", self.exponent, above=0)
        check_number("offset", self.offset, above=0)

    def value(self, x: Float64) -> float:
        """Return the mean of psi over the items."""
        if self.exponent == 1:
            return float(np.mean(np.log(x + self.offset)))
        return float(np.mean((x + self.offset) ** (1 - self.exponent)) / (1 - self.exponent))

    def marginal(self, x: Float64) -> Float64:
        """Return psi'."""
        return np.asarray((x + self.offset) ** -self.exponent)


LOG = Power()
"""The usual welfare."""


@dataclass(frozen=True, kw_only=True)
class Impact(Power):
    """The logarithm of impact: exposure weighted by its relevance (Saito and Joachims, 2022).

    Examples
    --------
    >>> Impact(merit_exponent=1).pull(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    """

    by_impact: ClassVar[bool] = True
    merit_exponent: float = 0.0
    """How much items that are relevant to many users count for more; 0 is Nash welfare."""

    def pull(self, merit: Float64) -> Float64:
        """Return merit to its power, over the mean."""
        pull = merit**self.merit_exponent
        return np.asarray(pull / pull.mean())


@dataclass(frozen=True, kw_only=True)
class MinimumExposure(Welfare):
    """Items below a share of what they are entitled to are helped; others are not.

    Examples
    --------
    >>> MinimumExposure(least=0.5, width=0.25).marginal(np.array([0.0, 0.375, 0.5, 9.0]))
    array([1. , 0.5, 0. , 0. ])
    """

    least: float = 0.5
    """What every item should have, of what it is entitled to."""
    width: float = 0.1
    """Over which stretch below it help fades."""

    def __post_init__(self) -> None:
        check_number("least", self.least, above=0)
        check_number("width", self.width, above=0)

    def value(self, x: Float64) -> float:
        """Return the mean of psi over the items."""
        missing = np.maximum(self.least - x, 0)
        fading = np.minimum(missing, self.width)
        return -float(np.mean(fading**2 / (2 * self.width) + (missing - fading)))

    def marginal(self, x: Float64) -> Float64:
        """Return psi'."""
        return np.asarray(np.clip((self.least - x) / self.width, 0, 1))


@dataclass(frozen=True)
class TargetShares(Welfare):
    """Items should have given shares of all exposure; more is as bad as less.

    psi = -(x - 1)^2 / 2, continued by its tangent from x = 10 on.

    Examples
    --------
    >>> TargetShares([1, 3]).shares(2)
    array([0.25, 0.75])
    >>> TargetShares([1, 3]).marginal(np.array([0.5, 2.0]))
    array([ 0.5, -1. ])
    """

    targets: Sequence[float] = field(repr=False)
    """By item; scaled to add up to 1."""

    _BEND: ClassVar[float] = 10.0

    def shares(self, n_items: int) -> Float64:
        """Return the targets, scaled."""
        targets = np.asarray(self.targets, dtype=np.float64)
        if targets.shape != (n_items,):
            message = f"target shares must have one number an item: {targets.shape}, not {n_items}"
            raise DataError(message, hint="give them in the order of the catalogue")
        if not (np.isfinite(targets).all() and (targets >= 0).all() and targets.sum() > 0):
            message = f"target shares must be numbers from 0 up: {targets.min()!r} is the least"
            raise DataError(message, hint="0 is for items that nobody should see")
        return np.asarray(targets / targets.sum())

    def value(self, x: Float64) -> float:
        """Return the mean of psi over the items."""
        bent = np.minimum(x, self._BEND)
        return -float(np.mean((bent - 1) ** 2 / 2 + (self._BEND - 1) * (x - bent)))

    def marginal(self, x: Float64) -> Float64:
        """Return psi'."""
        return np.asarray(1 - np.minimum(x, self._BEND))


@dataclass(frozen=True, kw_only=True)
class GiniWelfare(Welfare):
    """The generalised Gini welfare: items count by their rank, the least exposed most.

    It is smoothed by its Moreau envelope, as in Do and Usunier (2022), so that it has a gradient
    where items have the same exposure.

    Examples
    --------
    >>> GiniWelfare(smoothing=0.01).marginal(np.array([2.0, 0.0, 1.0, 1.0])).round(3)
    array([0.25 , 1.   , 0.625, 0.625])
    """

    is_separable: ClassVar[bool] = False
    smoothing: float = 0.5
    """Items that differ by less, in units of what they are entitled to, count about the same."""

    def __post_init__(self) -> None:
        check_number("smoothing", self.smoothing, above=0)

    def value(self, x: Float64) -> float:
        """Return the least of mean(y x + smoothing y^2 / 2) over mixed orders y of the weights."""
        y = self.marginal(x)
        return float(np.mean(y * x) + self.smoothing * np.mean(y**2) / 2)

    def marginal(self, x: Float64) -> Float64:
        """Project -x / smoothing on all orders of the weights n/n, ..., 2/n, 1/n."""
        from scipy.optimize import isotonic_regression  # takes long to import

        n = len(x)
        weights = np.arange(n, 0, -1) / n
        order = np.argsort(x, kind="stable")
        z = -x[order] / self.smoothing
        y = np.empty(n)
        y[order] = z - isotonic_regression(z - weights, increasing=False).x
        return y

    def marginal_given(self, x: Float64) -> Callable[[Float64], Float64]:
        """Return psi' as it is while the others stay where they are."""
        # It depends on how exposure is spread, which so many of very many items tell as well.
        known = np.sort(x)[np.unique(np.linspace(0, len(x) - 1, _SPREAD).astype(np.int64))]
        values = self.marginal(known)
        return lambda at: np.asarray(np.interp(at, known, values))


def as_welfare(welfare: Welfare | WelfareName) -> Welfare:
    """Give the welfare of a name its usual settings.

    Examples
    --------
    >>> as_welfare("log")
    Power(exponent=1.0, offset=0.3)
    """
    named: dict[str, Welfare] = {
        "log": LOG,
        "power": Power(exponent=2, offset=0.5),
        "gini": GiniWelfare(),
        "impact": Impact(),
        "minimum": MinimumExposure(),
    }
    if isinstance(welfare, Welfare):
        return welfare
    if welfare not in named:
        message = f"unknown welfare: {welfare!r}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(named)}, or pass a Welfare")
    return named[welfare]
