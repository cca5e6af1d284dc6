"""A market in which groups of items have prices, so that several wishes hold together.

Items are helped by what welfare says, as in any market, and each group has a price beside it. A
group whose lists give it more than its cap gets dearer, one below its floor cheaper, in proportion
to how far it is off, many times in a sweep: a dual ascent, in which users come one after the other.
In a sweep everybody chooses once, so the moves of a price add up to how far the share of its group
is off after the sweep: once prices are at rest, wishes hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError

if TYPE_CHECKING:
    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups
    from limelight.rerank.market.ledger import Help
    from limelight.rerank.market.market import Market
    from limelight.rerank.targets.groups import Wishes

TOLERANCE = 0.001
"""How far a share may be from what was wished."""
_MOVES = 64
"""How often in a sweep prices move, at least."""
_GAIN, _GAIN_OF_STRENGTH = 5.0, 1.6
"""How far a price moves in a sweep while its share is off by as much as its bound: in units of how
much relevance differs around the end of a list, and of what strength counts in."""
_LEAST_GAIN = 1e-4  # in units of the mean relevance of own lists
_LARGEST_MOVE = 1 / 8  # of the gain, at once
_SMALL_SHARE = 0.002  # the few lists of a stretch say little of bounds below this
_DEAREST = 10.0
"""In units of the mean relevance of own lists, and of as much again for each unit of strength;
larger prices change no list."""


class GroupedMarket:
    """A market, and the prices of groups of its items, which follow their shares.

    Users who come later are served as part of it by a market that is made with ``offsets`` and the
    same survey, and resumes from the exposure of the ledger.

    Parameters
    ----------
    market
        Whose users choose. Wishes are of exposure, so a market of impact is refused.
    members, wishes
        Who is in which group, and what share each may have.

    Attributes
    ----------
    prices : float64 array
        By group, in the order of ``members.group_ids``: what is taken from the relevance of an item
        that belongs to it alone, on average over the last sweep. They may be set, to start from.

    Examples
    --------
    >>> import limelight as ll
    >>> from limelight.recommend.candidates import candidates_of
    >>> from limelight.rerank.market.market import Market
    >>> from limelight.rerank.market.pool import Pool
    >>> from limelight.rerank.relevance import BY_RANK
    >>> from limelight.data.groups import as_groups
    >>> from limelight.rerank.targets.groups import as_bounds
    >>> from limelight.rerank.welfare import LOG
    >>> model = ll.IALS(factors=8).fit(ll.marketplace(600, 100, 9000).interactions)
    >>> pool = Pool(candidates_of(model.ranking()), BY_RANK)
    >>> sellers = as_groups(np.arange(100) % 5, 100)
    >>> market = Market(pool, 10, LOG, threads=1, seed=0)
    >>> grouped = GroupedMarket(market, sellers, as_bounds(0.21, None, sellers, 100))
    >>> changed = grouped.settle(0.1, sweeps=5)
    >>> grouped.missed
    []
    >>> bool(grouped.shares.max() < 0.211)
    True
    """

    def __init__(self, market: Market, members: Groups, wishes: Wishes) -> None:
        if market.welfare.by_impact:
            message = f"shares of groups are of exposure, not of impact: {market.welfare!r}"
            raise ConfigError(message, hint="use another welfare, such as 'log'")
        self.market, self.members, self.wishes = market, members, wishes
        self.pool, self.ledger = market.pool, market.ledger
        self._spread = self._spread_of_relevance(len(self.ledger.weights))
        self.prices = np.zeros(len(members.group_ids))

    @property
    def offsets(self) -> Float64:
        """Return what the prices add to the relevance of each item; below 0, where they take."""
        return -item_prices(self.members, self.prices, self.pool.n_items)

    @property
    def shares(self) -> Float64:
        """Return the share of exposure that every group has now."""
        return self.wishes.shares(self.members, self.ledger.exposure)

    @property
    def violation(self) -> float:
        """Return how far the share that misses its wish by most is from it; 0 if none does."""
        return float(np.max(self.wishes.violations(self.shares), initial=0.0))

    @property
    def missed(self) -> list[Any]:
        """Return the groups whose wishes do not hold within the tolerance."""
        outside = np.flatnonzero(self.wishes.violations(self.shares) > TOLERANCE)
        return [self.members.group_ids[group] for group in outside]

    def settle(self, strength: float, sweeps: int) -> int:
        """Let everybody choose so often while prices follow; returns how many lists changed last.

        It starts from the lists and prices that there are, at first from own lists and no prices.
        From there five sweeps are usually enough, and three from another strength near by.
        """
        if not self.ledger.served:
            self.ledger.open()
        prices, changed = self.prices, 0
        for _ in range(sweeps):
            if not self._is_wished:
                changed = self.market.sweep(strength)
                continue
            dearest = _DEAREST * (1 + strength) * self.market.survey.unit
            walk = _PriceWalk(self.wishes, prices, self._gain(strength), dearest)
            changed = self._sweep(strength, walk)
            prices, self.prices = walk.prices, walk.mean
        self.ledger.offsets = self.offsets
        return changed

    def _sweep(self, strength: float, walk: _PriceWalk) -> int:
        ledger, n_users = self.ledger, self.pool.n_users
        before = shares = self.shares
        turns = ledger.turns

        def follow() -> Help:
            nonlocal shares, turns
            if ledger.turns > turns:
                part, now = (ledger.turns - turns) / n_users, self.shares
                # What the new lists have is not looked up. Who chose is drawn, so their old lists
                # had what all lists had before the sweep, and the new ones have changed the shares
                # of all. It says more than the new lists alone, because most users change little.
                walk.move(part * before + now - shares, part)
                shares, turns = now, ledger.turns
            ledger.offsets = -item_prices(self.members, walk.prices, self.pool.n_items)
            return self.market.support(strength)

        changed = ledger.sweep(follow, max(1, n_users // _MOVES))
        follow()
        return changed

    @property
    def _is_wished(self) -> bool:
        """Whether any group is bound at all."""
        low, high, is_target, _ = self.wishes
        return is_target or bool((low > 0).any() or (high < 1).any())

    def _gain(self, strength: float) -> float:
        """Return how far a price moves in a sweep while its share is off by all of its bound."""
        unit = self.market.survey.unit
        gain = _GAIN * self._spread + _GAIN_OF_STRENGTH * strength * unit
        return max(gain, _LEAST_GAIN * unit)

    def _spread_of_relevance(self, k: int) -> float:
        """Return how much relevance falls from half a list before the end of lists to half behind.

        Whom a price moves is decided there.
        """
        around = np.array([k // 2, k + k // 2], dtype=np.int32)
        places = np.minimum(around, self.pool.candidates.counts[:, None] - 1).astype(np.int32)
        falls = [values[:, 0] - values[:, 1] for _, _, _, values in self.pool.chosen(places)]
        return float(np.mean(np.concatenate(falls))) if falls else 0.0


class _PriceWalk:
    """The prices of groups in the course of a sweep."""

    def __init__(self, wishes: Wishes, prices: Float64, gain: float, dearest: float) -> None:
        self._wishes, self._gain = wishes, gain
        low, high, is_target, _ = wishes
        # A group without a floor is never made cheaper, and one without a cap never dearer.
        self._low = np.where(is_target | (low > 0), low, -np.inf)
        self._high = np.where(is_target | (high < 1), high, np.inf)
        self._least = np.where(np.isfinite(self._low), -dearest, 0.0)
        self._most = np.where(np.isfinite(self._high), dearest, 0.0)
        self.prices = np.clip(prices, self._least, self._most)
        self._paid, self._part = np.zeros(len(prices)), 0.0

    @property
    def mean(self) -> Float64:
        """Return what users paid on average."""
        return self._paid / self._part if self._part else self.prices

    def move(self, given: Float64, part: float) -> None:
        """Follow what a part of the users gave at these prices, as a share of all exposure."""
        self._paid += part * self.prices
        self._part += part
        above, below = given - part * self._high, given - part * self._low
        is_capped = (self.prices > 0) | ((self.prices == 0) & (above > 0))
        is_floored = (self.prices < 0) | ((self.prices == 0) & (below < 0))
        excess = np.where(is_capped, above, np.where(is_floored, below, 0.0))
        bound = np.where(is_capped, self._wishes.high, self._wishes.low)
        moves = self._gain * excess / np.maximum(bound, _SMALL_SHARE)
        largest = _LARGEST_MOVE * self._gain
        self.prices = self._projected(np.clip(moves, -largest, largest))

    def _projected(self, moves: Float64) -> Float64:
        wishes, moved = self._wishes, np.clip(self.prices + moves, self._least, self._most)
        if wishes.is_target:
            # Targets say nothing of items without a group, so groups together are neither taxed nor
            # helped.
            return np.asarray(moved - wishes.low @ moved)
        # Within its bounds a group needs no price, so a price that changes its sign stops at 0.
        has_crossed = (self.prices * moved < 0) & (wishes.low < wishes.high)
        return np.where(has_crossed, 0.0, moved)


def item_prices(members: Groups, prices: Float64, n_items: int) -> Float64:
    """Return the price of each item: those of its groups, weighted by how much it is in each.

    Examples
    --------
    >>> from limelight.data.groups import as_groups
    >>> item_prices(as_groups(["x", "y", None], 3), np.array([0.5, -0.25]), 3)
    array([ 0.5 , -0.25,  0.  ])
    """
    amounts = members.weights * prices[members.groups]
    return np.asarray(np.bincount(members.items, amounts, n_items))
