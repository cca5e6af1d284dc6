"""How long histories are: as many lengths as it takes, and how many rows have each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._arrays import Float64, Int64

_NODES = 64
"""Lengths that stand for a lognormal distribution; twice as many change nothing that is shown."""


class Histories(NamedTuple):
    """Lengths of histories, and how many rows have each of them."""

    lengths: Float64
    rows: Float64

    @classmethod
    def lognormal(cls, n_rows: int, n_entries: int, sigma: float) -> Histories:
        """Spread entries over rows: evenly if sigma is 0, ever more unevenly above.

        Examples
        --------
        >>> Histories.lognormal(10, 200, 0).lengths
        array([20.])
        >>> round(Histories.lognormal(10, 200, 1.5).sum(lambda n: n))
        200
        """
        mean = n_entries / n_rows
        if sigma == 0:
            return cls(np.array([mean]), np.array([float(n_rows)]))
        # Gauss-Hermite: the mean of any smooth function of a normal number, from a few of them.
        normal, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        return cls(mean * np.exp(sigma * normal - sigma**2 / 2), n_rows * weights / weights.sum())

    @classmethod
    def counted(cls, lengths: Int64) -> Histories:
        """Take the lengths of a data set as they are.

        Examples
        --------
        >>> Histories.counted(np.array([3, 1, 3]))
        Histories(lengths=array([1., 3.]), rows=array([1., 2.]))
        """
        found, rows = np.unique(lengths, return_counts=True)
        return cls(found.astype(np.float64), rows.astype(np.float64))

    def sum(self, of: Callable[[Float64], Float64]) -> float:
        """Add up a function of the length over all rows."""
        return float(np.dot(self.rows, of(self.lengths)))

    def reached(self, share: float) -> float:
        """Count the rows with at least one entry in a part that holds this share of all.

        Whose entry is whose is taken as drawn at random: a history of n misses the part with
        probability (1 - share)^n.

        Examples
        --------
        >>> Histories.lognormal(100, 200, 0).reached(0.5)
        75.0
        """
        return self.sum(lambda n: 1 - (1 - share) ** n)
