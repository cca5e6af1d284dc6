"""Poisson regression with a ridge and bounds on its slopes, by damped Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Float64

_STEPS = 100
_LARGEST = 30.0  # exp of it is more than any gain


class RegressionFit(NamedTuple):
    """What a regression found."""

    loss: float
    """How badly it fits, the ridge included."""
    slopes: Float64
    constant: float
    theta: Float64
    """The same in scaled columns, for a fit nearby to start from."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Fits log E[y] = offset + X slopes + constant, each slope within its bounds.

    Columns are scaled to unit spread first, so that one ridge suits all of them.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> free = np.full(1, np.inf)
    >>> problem = Regression(X, np.exp(X[:, 0]), np.ones(3), np.zeros(3), -free, free)
    >>> found = problem.fit(ridge=0.0)
    >>> found.slopes.round(3), abs(round(found.constant, 3))
    (array([1.]), 0.0)
    """

    X: Float64
    y: Float64
    weights: Float64
    offset: Float64
    low: Float64
    high: Float64

    @cached_property
    def _scaled(self) -> tuple[Float64, Float64, Float64]:
        """The centre and the spread of each column, and the scaled columns followed by ones."""
        total = self.weights.sum()
        centre = self.weights @ self.X / total
        Z = np.ones((len(self.X), self.X.shape[1] + 1))
        Z[:, :-1] = self.X - centre
        spread = np.sqrt(self.weights @ Z[:, :-1] ** 2 / total) + 1e-9
        Z[:, :-1] /= spread
        return centre, spread, Z

    def fit(
        self,
        ridge: float,
        used: NDArray[np.bool_] | None = None,
        start: RegressionFit | None = None,
    ) -> RegressionFit:
        """Find the best slopes and the constant.

        Parameters
        ----------
        ridge
            How much slopes are drawn to 0.
        used
            Which rows count; all, unless given.
        start
            A fit nearby, which saves steps and does not change the result.
        """
        (centre, spread, Z), y = self._scaled, self.y
        weights = self.weights if used is None else self.weights * used
        penalty = np.append(np.full(Z.shape[1] - 1, ridge), 0.0)
        low = np.append(self.low * spread, -np.inf)
        high = np.append(self.high * spread, np.inf)
        theta = start.theta if start else np.append(np.zeros(Z.shape[1] - 1), self._level(weights))

        def loss_at(theta: Float64) -> tuple[float, Float64]:
            exponent = np.minimum(self.offset + Z @ theta, _LARGEST)
            rate = np.exp(exponent)
            return float(weights @ (rate - y * exponent) + penalty @ theta**2), rate

        loss, rate = loss_at(theta)
        for _ in range(_STEPS):
            gradient = Z.T @ (weights * (rate - y)) + 2 * penalty * theta
            hessian = (Z * (weights * rate)[:, None]).T @ Z + np.diag(2 * penalty + 1e-9)
            # A slope at its bound that would go beyond it stays where it is for this step.
            held = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
            step, size = np.zeros(len(theta)), 1.0
            step[~held] = np.linalg.solve(hessian[np.ix_(~held, ~held)], gradient[~held])
            after = np.clip(theta - step, low, high)
            while (now := loss_at(after))[0] > loss and size > 1e-6:
                size /= 2
                after = np.clip(theta - size * step, low, high)
            if loss - now[0] <= 1e-8 * abs(loss):
                break
            theta, (loss, rate) = after, now
        slopes = theta[:-1] / spread
        return RegressionFit(loss, slopes, float(theta[-1] - slopes @ centre), theta)

    def loss(self, found: RegressionFit, used: NDArray[np.bool_]) -> float:
        """Return how badly slopes and a constant fit some rows."""
        exponent = np.minimum(self.offset + self.X @ found.slopes + found.constant, _LARGEST)
        return float((self.weights * used) @ (np.exp(exponent) - self.y * exponent))

    def _level(self, weights: Float64) -> float:
        rate = weights @ np.exp(np.minimum(self.offset, _LARGEST))
        return float(np.log(weights @ self.y / rate))
