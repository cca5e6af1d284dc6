"""Prices of groups, by which their shares of the exposure stay within caps and floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float64

MARGIN = 0.02
"""Prices aim so much inside a bound, relative to it: they follow what was shown, so a share moves
around where they aim."""
_AT_ONCE, _IN_TIME = 15.0, 60.0
"""What a share that is outside its bound by a hundred percent is charged: at once, and in the
course of one window of lists in which it stays there. In units of a place of a plain list."""
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

    Examples
    --------
    >>> prices = AccountPrices(np.zeros(2), np.array([0.03, 0.03]))
    >>> prices.move(np.array([0.045, 0.01]), 0.1) > 0
    array([ True, False])
    """

    def __init__(self, low: Float64, high: Float64) -> None:
        self.low, self.high = low, high
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
        charged = np.maximum(self.of_caps + _AT_ONCE * over, 0)
        given = np.maximum(self.of_floors + _AT_ONCE * under, 0)
        self.prices = np.asarray(charged - given)
        return self.prices

    def state(self) -> list[list[float]]:
        """Return what :meth:`restore` takes."""
        return [self.of_caps.tolist(), self.of_floors.tolist()]

    def restore(self, state: Sequence[Sequence[float]]) -> None:
        """Go on from a state; one of other groups is left alone."""
        caps, floors = (np.asarray(values, dtype=np.float64) for values in state)
        if caps.shape == floors.shape == self.high.shape:
            self.of_caps, self.of_floors = np.clip(caps, 0, _MOST), np.clip(floors, 0, _MOST)
            self.prices = self.of_caps - self.of_floors
