"""Allocate: every item, or group, in at least so many lists and at most so many.

The prices that keep the bounds at the least loss of relevance are found by auction. An item that
too few lists show raises its subsidy little by little, one that too many show its price, and users
choose again, until all bounds hold. A subsidy is paid only for lists that the item lacks and a
price asked only for those beyond its bound, so users who lose least are the ones who change. What
the auction leaves short is put right by the cheapest swaps.

Whatever the prices are, no lists within the bounds are worth more than

    sum_u max (relevance + subsidy - price) - sum_j low_j subsidy_j + sum_j high_j price_j,

which is the certificate: the true optimum lies between what was found and that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import Settings, check_integer, hyperparameters, setting
from limelight._native import resolve_threads
from limelight.data.rows import row_numbers
from limelight.rerank.market.ledger import Help, Ledger
from limelight.rerank.market.market import choose
from limelight.rerank.methods import register
from limelight.rerank.reranker import PoolConfig, Reranker

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.candidates.candidates import Candidates
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Pool


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

    Exposure in its ledger counts lists. Subsidies are negative prices.
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
            # One user at a time, because at the same price all would take an item that lacks a
            # single list.
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
        k = self.ledger.places.shape[1]
        places = choose(self.pool, k, subsidies[None], None, self.ledger.threads)
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
        # Counts are integers, so a threshold half-way below the bound separates short from served
        # accounts without rounding error.
        edge = np.clip(bound, 1, 2.0**40) - 0.5
        return Help(edge / max(self.ledger.served, 1.0), -prices, np.empty((2, 0)))

    def _enforce(self) -> None:
        """Let no list break an upper bound that can be kept."""
        prices = np.where(self.prices < 0, self.prices, _PROHIBITIVE * self._unit)
        prices[~np.isfinite(self.bounds.high) & (self.prices >= 0)] = 0
        self.ledger.sweep(lambda: self._support(prices), batch=1)


def repair(auction: Auction) -> None:
    """Swap items that can be spared for items that are short, those that lose least first."""
    ledger = auction.ledger
    while (short := auction.short()).any():
        swaps = 0
        for rows in auction.pool.blocks:
            swaps += _Swaps(auction, rows, short).make()
        ledger.exposure = ledger.exposure_of(ledger.places)
        if not swaps:
            return


class _Swaps:
    """Swaps within the lists of a block of users: an item that is short for one to spare."""

    def __init__(self, auction: Auction, rows: slice, short: np.ndarray) -> None:
        self._ledger, self._bounds, self._rows = auction.ledger, auction.bounds, rows
        self._indptr, items = auction.pool.items_of(rows)
        self._accounts: Int32 = auction.ledger.accounts[items]
        self._relevance: Float32 = auction.pool.relevance(rows)
        users = row_numbers(self._indptr)
        wanted = np.flatnonzero(short[self._accounts])
        # Swaps are tried by a first guess of their loss, as if the last item were given away.
        last = self._indptr[users[wanted]] + self._ledger.places[rows][users[wanted]].max(axis=1)
        loss = self._relevance[last] - self._relevance[wanted]
        self._wanted: Int64 = wanted[np.argsort(loss, kind="stable")]
        self._users = users

    def make(self) -> int:
        """Make the swaps; returns how many there were."""
        counts, swaps = self._ledger.exposure, 0
        for at in self._wanted.tolist():
            account = self._accounts[at]
            if counts[account] >= self._bounds.low[account]:
                continue
            swaps += self._swap(at)
        return swaps

    def _swap(self, at: int) -> bool:
        user = int(self._users[at])
        first = int(self._indptr[user])
        places = self._ledger.places[self._rows][user]
        held = places[places >= 0]
        if at - first in held:
            return False
        counts = self._ledger.exposure
        for rank in range(len(held) - 1, -1, -1):
            given = self._accounts[first + held[rank]]
            if counts[given] > self._bounds.low[given]:
                held[rank] = at - first
                places[: len(held)] = np.sort(held)
                counts[given] -= 1
                counts[self._accounts[at]] += 1
                return True
        return False


@dataclass(frozen=True, kw_only=True)
class BoundsConfig(Settings):
    """The bounds that :class:`Allocate` keeps."""

    at_least: int = setting(1, "In how many lists every item should stand.")
    at_most: int | None = setting(None, "In how many lists no item should stand more.", at_least=1)


@dataclass(frozen=True, kw_only=True)
class AllocateConfig(PoolConfig, BoundsConfig):
    """The settings of :class:`Allocate`."""

    def check_own_settings(self) -> None:
        """Check that the bounds leave room, and that the relevance is known."""
        if self.at_most is not None:
            check_integer("at_most", self.at_most, least=max(1, self.at_least))
        PoolConfig.check_own_settings(self)


@dataclass(frozen=True)
class AllocateOutcome:
    """What the last call of :meth:`Allocate.rerank` did."""

    short: int
    """How many items, or groups, stand in fewer lists than they should."""
    over: int
    """How many stand in more."""
    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""
    gap: float
    """Share of it that lists within the bounds could have kept, at most, and these did not; not a
    number where a bound is broken."""


@register(AllocateConfig)
class Allocate(Reranker):
    """Keeps every item, or group of items, within bounds at about the least loss of relevance.

    Prices are found by auction; what is still missing then is put right by the cheapest swaps.
    ``outcome_`` says whether all bounds hold, and by the duality gap how far from the best possible
    lists these are. Exposure is the number of lists, wherever an item stands in them.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.allocate.AllocateConfig`, by name.

    Attributes
    ----------
    outcome_ : AllocateOutcome
        Which bounds hold, and at what loss.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.IALS(factors=8, epochs=5).fit(data)
    >>> bounded = ll.Allocate(at_least=10, at_most=60)
    >>> ids, scores = bounded.rerank(model.ranking(), k=10)
    >>> counts = np.bincount(ids.ravel(), minlength=100)
    >>> int(counts.min()), int(counts.max())
    (10, 60)
    """

    method, strength_setting, strength_is_count = "allocate", "at_least", True
    config: AllocateConfig
    outcome_: AllocateOutcome
    __init__ = hyperparameters(AllocateConfig)

    def rerank(
        self, ranking: Ranking | Candidates, k: int, *, groups: Int32 | None = None
    ) -> Lists:
        """Return lists of k places, one row for each user of the ranking.

        Parameters
        ----------
        ranking, k
            What users would like best, and the length of the lists.
        groups
            The number of each item's group, from 0; -1 for items without one, which have no bounds.
            Bounds then are of groups.
        """
        check_integer("k", k, least=1)
        with self.pool(ranking) as pool:
            return pool.lists(self.places_from(pool, k, groups=groups))

    def places_from(self, pool: Pool, k: int, *, groups: Int32 | None = None) -> Int32:
        """Return the same lists as places among each user's candidates."""
        accounts, bounds = self._bounds(pool, k, groups)
        auction = Auction(
            pool,
            min(k, pool.n_items),
            bounds,
            accounts=accounts,
            threads=resolve_threads(self.config.num_threads),
            seed=self.config.random_state,
        )
        auction.run()
        repair(auction)
        kept, own = auction.ledger.relevance(), auction.own
        short, over = int(auction.short().sum()), int(auction.over().sum())
        gap = max(0.0, auction.bound() - kept) / own if own else 0.0
        self.outcome_ = AllocateOutcome(
            short=short,
            over=over,
            relevance_loss=1 - kept / own if own else 0.0,
            gap=np.nan if short or over else gap,
        )
        places = np.full((pool.n_users, k), -1, dtype=np.int32)
        places[:, : auction.ledger.places.shape[1]] = auction.ledger.places
        return places

    def _bounds(self, pool: Pool, k: int, groups: Int32 | None) -> tuple[Int32 | None, Bounds]:
        accounts, n_bounded, what = None, pool.n_items, "items"
        if groups is not None:
            groups = _checked_groups(groups, pool.n_items)
            n_bounded, what = int(groups.max(initial=-1)) + 1, "groups"
            accounts = np.where(groups < 0, n_bounded, groups).astype(np.int32)
        places = pool.n_users * min(k, pool.n_items)
        if self.config.at_least * n_bounded > places:
            message = (
                f"at_least is too large for {places:,} places and {n_bounded:,} {what}: "
                f"{self.config.at_least:,}"
            )
            hint = f"use at most {places // max(n_bounded, 1):,}, more users, or longer lists"
            raise ConfigError(message, hint=hint)
        n_accounts = n_bounded if accounts is None else int(accounts.max(initial=0)) + 1
        high = np.inf if self.config.at_most is None else float(self.config.at_most)
        if n_accounts == n_bounded and high * n_bounded < places:
            message = (
                f"at_most is too small for {places:,} places and {n_bounded:,} {what}: {high:,.0f}"
            )
            raise ConfigError(message, hint=f"use at least {-(-places // max(n_bounded, 1)):,}")
        bounds = Bounds(np.full(n_accounts, float(self.config.at_least)), np.full(n_accounts, high))
        for values, free in zip(bounds, (0.0, np.inf), strict=True):
            values[n_bounded:] = free
        return accounts, bounds


def _checked_groups(groups: Any, n_items: int) -> Int32:
    found = np.asarray(groups)
    if found.shape != (n_items,) or found.dtype.kind not in "iu" or (found < -1).any():
        message = f"groups must be whole numbers from -1 up, one for each of {n_items:,} items"
        raise DataError(message, hint=f"they are {found.dtype} of shape {found.shape}")
    return found.astype(np.int32)
