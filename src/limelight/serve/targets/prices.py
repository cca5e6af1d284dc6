"""Prices of groups, by which their shares of the exposure stay within caps and floors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight._base.arrays import Float64

MARGIN = 0.02
"""Prices aim so much inside a bound, relative to it: they follow what was shown, so a share moves
around where they aim."""
_AT_ONCE, _IN_TIME = 15.0, 60.0
"""What a share that is outside its bound by a hundred percent is charged: at once, and in the
course of one window of lists in which it stays there. In units of a place of a plain list."""
_STEEP = 0.015
"""Beyond a cap itself, the price grows e-fold with every such part of the cap. Items that come new
are helped by many places until they were shown, and their groups must not flow over meanwhile."""
_MOST = 1e3
"""Beyond any relevance, so that items of a group at such a price are shown only where there is
nothing else."""


class AccountPrices:
    """One price for each group, above 0 for those at their caps and below for those at floors.

    A price follows how far a share is outside its bound, and for how long that was so. It is never
    on the wrong side: a cap does not help anybody.

    Parameters
    ----------
    low, high
        The floor and the cap of every group, shares of all exposure; 0 and 1 bind nobody.
    names
        Of the groups, by which a state finds its groups again.

    Examples
    --------
    >>> prices = AccountPrices(np.zeros(2), np.array([0.03, 0.03]), ["a", "b"])
    >>> prices.move(np.array([0.045, 0.01]), 0.1) > 0
    array([ True, False])
    """

    def __init__(self, low: Float64, high: Float64, names: Sequence[Any]) -> None:
        self.low, self.high, self.names = low, high, [str(name) for name in names]
        self.of_caps, self.of_floors = np.zeros(len(high)), np.zeros(len(low))
        self.prices: Float64 = np.zeros(len(high))

    def move(self, shares: Float64, step: float) -> Float64:
        """Follow the shares of a window of which this part is new; returns the prices.

        Parameters
        ----------
        shares
            Of every group.
        step
            How many lists are new, over those in the window.
        """
        over = np.where(self.high < 1, shares / ((1 - MARGIN) * self.high + 1e-9) - 1, -1.0)
        under = np.where(self.low > 0, 1 - shares / ((1 + MARGIN) * self.low + 1e-9), -1.0)
        over, under = np.clip(over, -1, 1), np.clip(under, -1, 1)
        self.of_caps = np.clip(self.of_caps + _IN_TIME * step * over, 0, _MOST)
        self.of_floors = np.clip(self.of_floors + _IN_TIME * step * under, 0, _MOST)
        beyond = np.where(self.high < 1, shares / (self.high + 1e-9) - 1, 0.0)
        wall = np.expm1(np.clip(beyond, 0, _STEEP * np.log(_MOST)) / _STEEP)
        charged = np.clip(self.of_caps + _AT_ONCE * over + wall, 0, 2 * _MOST)
        given = np.maximum(self.of_floors + _AT_ONCE * under, 0)
        self.prices = np.asarray(charged - given)
        return self.prices

    def outside(self, shares: Float64) -> Float64:
        """Return how far shares are outside their bounds; below 0, how far inside."""
        return np.maximum(shares - self.high, self.low - shares)

    def state(self) -> dict[str, list[float]]:
        """Return what :meth:`restore` takes: by group, what it is charged, given, and its price."""
        values = np.column_stack([self.of_caps, self.of_floors, self.prices])
        moved = np.flatnonzero(values.any(axis=1)).tolist()
        return {self.names[group]: values[group].tolist() for group in moved}

    def restore(self, state: Mapping[str, Sequence[float]]) -> None:
        """Go on from a state. Groups that it does not have begin without a price."""
        values = np.zeros((len(self.names), 3))
        for group, name in enumerate(self.names):
            if name in state:
                values[group] = state[name]
        if not np.isfinite(values).all():
            message = "a price is not finite"
            raise ValueError(message)
        # A group that lost its cap or its floor has nothing to pay, or to be given, for it.
        self.of_caps = np.where(self.high < 1, np.clip(values[:, 0], 0, _MOST), 0.0)
        self.of_floors = np.where(self.low > 0, np.clip(values[:, 1], 0, _MOST), 0.0)
        is_bound = (self.high < 1) | (self.low > 0)
        self.prices = np.where(is_bound, np.clip(values[:, 2], -2 * _MOST, 2 * _MOST), 0.0)
