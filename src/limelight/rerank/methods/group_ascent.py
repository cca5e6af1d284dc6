"""Finding one price a group, so that the shares of groups are what was wished.

A group above its bound gets dearer, one below it cheaper. How a share follows a price is different
for every group, so each has a step of its own: it grows while the price goes on in one direction,
and shrinks when the direction turns (as in Rprop; Riedmiller and Braun, 1993).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.metrics.lists import position_weights
from limelight.rerank.market.grouped import item_prices
from limelight.rerank.market.ledger import Ledger
from limelight.rerank.market.market import choose

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32
    from limelight.data.groups import Groups
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.targets.groups import Wishes

_GROW, _SHRINK = 1.3, 0.5
_STEP, _LATER_STEP, _LARGEST_STEP = 0.05, 0.01, 1.0
"""Of prices, at first and where a guess is known, in units of the mean relevance of own lists."""
_SMALLEST_STEP = 1e-6  # smaller steps change no list
_DEAREST = 10.0  # in the same units; larger prices change no list
_PATIENCE = 30
"""How many rounds may bring nothing better."""


class PricedLists(NamedTuple):
    """Prices, and the lists and shares that they give for the users that they were found for."""

    prices: Float64
    """By group, in units of the mean relevance of everybody's own list."""
    places: Int32
    """Everybody's list."""
    shares: Float64
    """By group."""
    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""


class Ascent:
    """Prices that follow the shares of groups, over the users of a pool.

    Attributes
    ----------
    unit : float
        The mean relevance of everybody's own list, place by place.
    own : PricedLists
        Everybody's own list.
    rounds : int
        How often everybody has chosen.
    """

    def __init__(
        self, pool: Pool, k: int, members: Groups, wishes: Wishes, *, threads: int
    ) -> None:
        self.pool, self.members, self.wishes = pool, members, wishes
        self._ledger = Ledger(pool, position_weights(k), threads=threads, seed=0)
        self._ledger.open()
        exposure, self._own_relevance = self._ledger.exposure, self._ledger.relevance()
        total = exposure.sum()
        self.unit = float(self._own_relevance * pool.n_users / total) if total else 1.0
        nothing = np.zeros(len(members.group_ids))
        self.own = PricedLists(nothing, self._ledger.places, wishes.shares(members, exposure), 0.0)
        self.rounds = 0

    def item_prices(self, prices: Float64) -> Float64:
        """Return what is taken from the relevance of every item."""
        return self.unit * item_prices(self.members, prices, self.pool.n_items)

    def at(self, prices: Float64) -> PricedLists:
        """Return what everybody chooses at some prices."""
        if not prices.any():
            return self.own
        ledger = self._ledger
        subsidies = -self.item_prices(prices).astype(np.float32)[None]
        ledger.places = choose(self.pool, len(ledger.weights), subsidies, None, ledger.threads)
        shares = self.wishes.shares(self.members, ledger.exposure_of(ledger.places))
        kept = ledger.relevance() / self._own_relevance if self._own_relevance else 1.0
        return PricedLists(prices, ledger.places, shares, 1 - kept)

    def climb(self, tolerance: float, rounds: int, start: Float64 | None = None) -> PricedLists:
        """Move prices until all wishes hold; return the best that were found.

        A share may be outside its bounds by the tolerance, and by as much inside where it has a
        price. ``start`` are prices, in units, that are about right; 0, unless given.
        """
        prices = self.own.prices if start is None else start
        steps = np.full(len(prices), _STEP if start is None else _LATER_STEP)
        before = np.zeros(len(prices))
        best, best_miss, since = self.own, (True, np.inf), 0
        for _ in range(rounds):
            found = self.at(prices)
            self.rounds += 1
            slope = self._slope(found)
            since += 1
            if (miss := self._miss(found, slope, tolerance)) < best_miss:
                best, best_miss, since = found, miss, 0
            if np.abs(slope).max(initial=0.0) <= tolerance or since > _PATIENCE:
                break
            turn = np.sign(slope * before)
            grown = np.where(turn > 0, steps * _GROW, steps)
            steps = np.minimum(np.where(turn < 0, steps * _SHRINK, grown), _LARGEST_STEP)
            if steps[slope != 0].max(initial=0.0) < _SMALLEST_STEP:
                break
            prices, before = self._moved(prices, np.sign(slope) * steps), slope
        return best

    def _slope(self, found: PricedLists) -> Float64:
        """Return where prices should go: with the excess over a cap, or the lack below a floor.

        A price above 0 is there for a cap, one below 0 for a floor; without a price, a group within
        its bounds needs none.
        """
        above, below = found.shares - self.wishes.high, found.shares - self.wishes.low
        needed = np.maximum(above, 0) + np.minimum(below, 0)
        return np.where(found.prices > 0, above, np.where(found.prices < 0, below, needed))

    def _miss(self, found: PricedLists, slope: Float64, tolerance: float) -> tuple[bool, float]:
        """Return how far wishes are missed, or, where they hold, how far prices do too much."""
        outside = np.maximum(self.wishes.violations(found.shares), 0)
        is_missed = bool(outside.max(initial=0.0) > tolerance)
        return is_missed, float(np.sum((outside if is_missed else slope) ** 2))

    def _moved(self, prices: Float64, moves: Float64) -> Float64:
        moved = np.clip(prices + moves, -_DEAREST, _DEAREST)
        if self.wishes.is_target:
            # Targets say nothing of items without a group: groups together are neither taxed nor
            # helped, which is the stationarity of the Lagrangian.
            return np.asarray(moved - self.wishes.low @ moved)
        # A group between its cap and its floor needs no price, so a price that changes its sign
        # stops at 0 instead of jumping over the region where the bounds hold without one.
        has_crossed = (prices * moved < 0) & (self.wishes.low < self.wishes.high)
        return np.where(has_crossed, 0.0, moved)
