"""Poisson regression with a ridge and bounds on its slopes, by damped Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Float64

_STEPS = 100
_LARGEST = 30.0  # exp of it is more than any gain


@dataclass(frozen=True, eq=False)
class Regression:
    """Fits log E[y] = offset + X slopes + constant, each slope within its bounds.

    Columns are scaled to unit spread first, so that one ridge suits all of them.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> free = np.full(1, np.inf)
    >>> found = Regression(X, np.exp(X[:, 0]), np.ones(3), np.zeros(3), -free, free)
    >>> loss, slopes, constant = found.fit(ridge=0.0)
    >>> slopes.round(3), abs(round(constant, 3))
    (array([1.]), 0.0)
    """

    X: Float64
    y: Float64
    weights: Float64
    offset: Float64
    low: Float64
    high: Float64

    def fit(self, ridge: float) -> tuple[float, Float64, float]:
        """Return how badly the best slopes fit, the slopes, and the constant."""
        X, y, weights = self.X, self.y, self.weights
        centre = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights)) + 1e-9
        Z = np.column_stack([(X - centre) / spread, np.ones(len(X))])
        penalty = np.append(np.full(X.shape[1], ridge), 0.0)
        low = np.append(self.low * spread, -np.inf)
        high = np.append(self.high * spread, np.inf)

        def loss_at(theta: Float64) -> float:
            exponent = np.minimum(self.offset + Z @ theta, _LARGEST)
            return float(weights @ (np.exp(exponent) - y * exponent) + penalty @ theta**2)

        theta = np.append(np.zeros(X.shape[1]), self._level())
        loss = loss_at(theta)
        for _ in range(_STEPS):
            rate = weights * np.exp(np.minimum(self.offset + Z @ theta, _LARGEST))
            gradient = Z.T @ (rate - weights * y) + 2 * penalty * theta
            hessian = (Z * rate[:, None]).T @ Z + np.diag(2 * penalty + 1e-9)
            # A slope at its bound that would go beyond it stays where it is for this step.
            held = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
            step, size = np.zeros(len(theta)), 1.0
            step[~held] = np.linalg.solve(hessian[np.ix_(~held, ~held)], gradient[~held])
            after = np.clip(theta - step, low, high)
            while (now := loss_at(after)) > loss and size > 1e-6:
                size /= 2
                after = np.clip(theta - size * step, low, high)
            if loss - now <= 1e-8 * abs(loss):
                break
            theta, loss = after, now
        slopes = theta[:-1] / spread
        return loss, slopes, float(theta[-1] - slopes @ centre)

    def part(self, used: NDArray[np.bool_]) -> Regression:
        """Return the regression of some rows."""
        rows = self.X[used], self.y[used], self.weights[used], self.offset[used]
        return Regression(*rows, self.low, self.high)

    def fit_loss(self, ridge: float, other: Regression) -> float:
        """Return how badly the slopes and the constant found here fit other rows."""
        _, slopes, constant = self.fit(ridge)
        exponent = np.minimum(other.offset + other.X @ slopes + constant, _LARGEST)
        return float(other.weights @ (np.exp(exponent) - other.y * exponent))

    def _level(self) -> float:
        rate = self.weights @ np.exp(np.minimum(self.offset, _LARGEST))
        return float(np.log(self.weights @ self.y / rate))
