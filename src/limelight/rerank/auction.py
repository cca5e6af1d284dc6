"""Bounds on how many lists show an item, at the least loss of relevance: prices found by auction.

An item that too few lists show raises its subsidy little by little, one that too many show its
price, and users choose again, until all bounds hold. A subsidy is paid only for lists that the item
lacks and a price asked only for those beyond its bound, so users who lose least are the ones who
change.

Whatever the prices are, no lists within the bounds are worth more than

    sum_u max (relevance + subsidy - price) - sum_j low_j subsidy_j + sum_j high_j price_j,

which is the certificate: the true optimum lies between what was found and that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.rerank.choose import choose
from limelight.rerank.ledger import Help, Ledger

if TYPE_CHECKING:
    from limelight._arrays import Float64, Int32
    from limelight.rerank.pool import Pool

_STEP = 1 / 24
"""How much a price moves in a round, in units of the mean relevance of everybody's own list."""
_ROUNDS = 200
"""How many rounds there are at most."""
_PATIENCE = 12
"""How many rounds may pass without a bound more that holds."""
_PROHIBITIVE = 1e6


class Bounds(NamedTuple):
    """How many lists may show each account."""

    low: Float64
    high: Float64


class Auction:
    """Lists within bounds, and the prices that brought them about.

    Parameters
    ----------
    pool
        Candidates with relevance.
    k
        Length of the lists.
    bounds
        By account.
    accounts
        Of items; unless given, every item has its own.
    threads, seed
        As for a ledger.

    Attributes
    ----------
    ledger : Ledger
        Who is shown what; exposure counts lists.
    prices : float64 array
        Of accounts; subsidies are negative prices.
    """

    def __init__(
        self,
        pool: Pool,
        k: int,
        bounds: Bounds,
        *,
        accounts: Int32 | None = None,
        threads: int,
        seed: int,
    ) -> None:
        self.pool, self.bounds = pool, bounds
        self.ledger = Ledger(pool, np.ones(k), accounts=accounts, threads=threads, seed=seed)
        self.prices = np.zeros(self.ledger.n_accounts)
        self.ledger.open()
        self.own = self.ledger.relevance()
        self._unit = self.own / k if self.own else 1.0

    def run(self) -> None:
        """Move prices until all bounds hold, or for a while no more of them do."""
        fewest, since = np.inf, 0
        for _ in range(_ROUNDS):
            short, over = self.short(), self.over()
            broken = int(short.sum() + over.sum())
            fewest, since = (broken, 0) if broken < fewest else (fewest, since + 1)
            if not broken or since > _PATIENCE:
                break
            self.prices[short] -= _STEP * self._unit
            self.prices[over] += _STEP * self._unit
            # One by one: at the same price all would take what is short of a single list.
            self.ledger.sweep(lambda: self._support(self.prices), batch=1)
        if np.isfinite(self.bounds.high).any():
            self._enforce()

    def short(self) -> np.ndarray:
        """Tell which accounts too few lists show."""
        return self._counts() < self.bounds.low

    def over(self) -> np.ndarray:
        """Tell which accounts too many lists show."""
        return self._counts() > self.bounds.high

    def bound(self) -> float:
        """Return what the relevance of lists within the bounds cannot exceed, per user."""
        subsidies = (-self.prices[self.ledger.accounts]).astype(np.float32)
        everybody = np.zeros(self.pool.n_users, dtype=np.int32)
        k = self.ledger.places.shape[1]
        places = choose(self.pool, k, subsidies[None], everybody, self.ledger.threads)
        worth = 0.0
        for _, ids, _, relevance in self.pool.chosen(places):
            worth += float(np.sum(relevance + np.where(ids >= 0, subsidies[ids], 0)))
        is_subsidy = self.prices < 0
        bound = np.where(is_subsidy, self.bounds.low, self.bounds.high)[self.prices != 0]
        return (worth + float(bound @ self.prices[self.prices != 0])) / max(self.pool.n_users, 1)

    def _counts(self) -> Float64:
        return np.asarray(np.rint(self.ledger.exposure))

    def _support(self, prices: Float64) -> Help:
        """Subsidise what a list below the bound adds, charge for what is beyond it."""
        is_subsidy = prices < 0
        bound = np.where(is_subsidy, self.bounds.low, self.bounds.high)
        # Counts are whole: between the last that is below and the first that is not lies the edge.
        edge = np.clip(bound, 1, 2.0**40) - 0.5
        return Help(edge / max(self.ledger.served, 1.0), -prices, np.empty((2, 0)))

    def _enforce(self) -> None:
        """Let no list break an upper bound that can be kept."""
        prices = np.where(self.prices < 0, self.prices, _PROHIBITIVE * self._unit)
        prices[~np.isfinite(self.bounds.high) & (self.prices >= 0)] = 0
        self.ledger.sweep(lambda: self._support(prices), batch=1)
