"""Shares of exposure for groups of items: studios, sellers, languages.

Every group has one price, and an item's price is that of its groups, weighted by how much it
belongs to each. A user takes the k candidates of the largest relevance less price. With items, one
set of prices for everybody fails, because near the optimum most users are almost indifferent and
all move to the same cheap items (see ``frank_wolfe``). Groups are large: whom a price moves depends
on how relevant the group's items are to her, which differs from user to user, so that shares follow
prices smoothly, and prices that were found for some users hold for others like them. Groups of one
or two items behave as items do; :class:`~limelight.rerank.methods.allocate.Allocate` and
:class:`~limelight.rerank.methods.best_response.BestResponse` are for those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight._base.errors import DataError
from limelight._base.settings import Settings, check_integer, hyperparameters, setting
from limelight._base.text import percent
from limelight._native import resolve_threads
from limelight.data.groups import as_groups
from limelight.recommend.candidates import pilot_users
from limelight.rerank.market.market import choose
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods import register
from limelight.rerank.methods.group_ascent import Ascent
from limelight.rerank.reranker import PoolConfig, Reranker, RerankerState
from limelight.rerank.targets.groups import as_bounds, as_target, check_wishes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float32, Float64, Int32
    from limelight.data.candidates.candidates import Candidates
    from limelight.data.groups import Groups
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.methods.group_ascent import PricedLists
    from limelight.rerank.targets.groups import Share, Wishes


@dataclass(frozen=True, kw_only=True)
class GroupWishesConfig(Settings):
    """What is wished of the exposure of groups."""

    at_most: Share | None = setting(
        None,
        "Share of all exposure that no group may exceed, or a share for each of some groups.",
    )
    at_least: Share | None = setting(
        None,
        "Share of all exposure that each group should have, or a share for each of some groups.",
    )
    target: Literal["equal", "catalogue", "interactions"] | Mapping[Any, float] | None = setting(
        None,
        "Share of the exposure of items with a group: the same for all groups, in proportion to "
        "their items or to the counts of their items, or a share for every group, scaled to add "
        "up to 1.",
    )
    tolerance: float = setting(0.001, "How far a share may be from what was wished.", above=0)
    rounds: int = setting(200, "How often everybody chooses, at most.", at_least=1)


@dataclass(frozen=True, kw_only=True)
class GroupSharesConfig(PoolConfig, GroupWishesConfig):
    """The settings of :class:`GroupShares`."""

    def check_own_settings(self) -> None:
        """Check the shares that are wished, and that the relevance is known."""
        check_wishes(self.at_most, self.at_least, self.target)
        PoolConfig.check_own_settings(self)


class GroupShare(NamedTuple):
    """The share of a group, in everybody's own lists and now, and what was wished."""

    id: Any
    before: float
    after: float
    at_least: float
    at_most: float
    """The same as ``at_least``, where it is a target."""


@dataclass(frozen=True)
class GroupOutcome:
    """What the last call of :meth:`GroupShares.fit` or :meth:`GroupShares.rerank` reached."""

    is_met: bool
    """Whether all wishes hold within the tolerance."""
    violation: float
    """How far the share that misses its wish by most is from it; 0 if none does."""
    group: Any
    """Whose share that is; None if none misses."""
    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""
    rounds: int
    """How often everybody chose."""
    shares: tuple[GroupShare, ...]
    """By group. For targets, shares are of the exposure of items that have a group."""
    notes: tuple[str, ...] = ()
    """What was done to the wishes."""

    def __str__(self) -> str:
        if self.is_met:
            return f"All group targets are met, to {100 * self.violation:.2f} percentage points."
        [share] = [share for share in self.shares if share.id == self.group]
        side = "at most" if share.after > share.at_most else "at least"
        wish = share.at_most if share.after > share.at_most else share.at_least
        return (
            f"The group targets are out of reach: {self.group!r} has {percent(share.after, 2)}, "
            f"{side} {percent(wish, 2)} was asked for."
        )


class GroupShares(Reranker):
    """Caps, floors or targets for the exposure of groups, which hold for users to come.

    Every group has a price. Prices are found for users who are known, by :meth:`fit`, and then
    serve anybody. A group without a wish, or well within its bounds, has a price of 0. Exposure is
    weighted by place. A cap or a floor is a share of all exposure, a target a share of the exposure
    of items that have a group. An item in several groups counts for each with its weight; its
    weights add up to 1. A wish that is out of reach gives the nearest shares that were found, and
    ``outcome_`` says so.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.group_shares.GroupSharesConfig`, by name.

    Attributes
    ----------
    outcome_ : GroupOutcome
        The shares of groups, and which wishes hold.

    Examples
    --------
    >>> import limelight as ll
    >>> market = ll.marketplace(1200, 100, 18_000)
    >>> split = ll.split_users(market.interactions, validation=400, test=400)
    >>> model = ll.IALS(factors=8).fit(split.train)
    >>> sellers = np.arange(100) % 5
    >>> method = ll.GroupShares(at_most=0.22)
    >>> prices = method.fit(model.ranking(split.validation.history), k=10, groups=sellers)
    >>> method.outcome_.is_met
    True
    >>> ids, scores = prices.rerank(model.ranking(split.test.history), k=10)
    >>> exposure = ll.exposure(ids, n_items=100)
    >>> shares = np.bincount(sellers, exposure) / exposure.sum()
    >>> bool(shares.max() < 0.24)
    True
    """

    config: GroupSharesConfig
    outcome_: GroupOutcome
    __init__ = hyperparameters(GroupSharesConfig)

    def fit(
        self, ranking: Ranking | Candidates, k: int, *, groups: Any, counts: Any = None
    ) -> GroupPrices:
        """Find the prices for users like those of a ranking.

        Parameters
        ----------
        ranking
            Who ranks what. Best are users whom the model has not seen in training, such as
            ``model.ranking(split.validation.history)``, and thousands of them.
        k
            Length of the lists.
        groups
            What ``limelight.rerank.read_groups(file, item_ids)`` returns, or one label an item, in
            the order of the catalogue; None, or a negative number, is for items without a group.
        counts
            Interactions of every item, for ``target="interactions"``.
        """
        with self.pool(ranking) as pool:
            return self.solve(pool, k, groups, counts)[0]

    def rerank(
        self, ranking: Ranking | Candidates, k: int, *, groups: Any = None, counts: Any = None
    ) -> Lists:
        """Find the prices for these users, and return their lists.

        Parameters
        ----------
        ranking, k
            What users would like best, and the length of the lists.
        groups, counts
            As for :meth:`fit`.
        """
        with self.pool(ranking) as pool:
            return pool.lists(self.places_from(pool, k, groups=groups, counts=counts))

    def places_from(self, pool: Pool, k: int, *, groups: Any = None, counts: Any = None) -> Int32:
        """Return the same lists as places among each user's candidates."""
        return self.solve(pool, k, groups, counts)[1].places

    def solve(
        self, pool: Pool, k: int, groups: Any, counts: Any = None
    ) -> tuple[GroupPrices, PricedLists]:
        """Find the prices for the users of a pool."""
        check_integer("k", k, least=1)
        if groups is None:
            message = "GroupShares needs groups, not None"
            raise DataError(message, hint="pass groups=..., or serve with what fit returns")
        members = as_groups(groups, pool.n_items)
        wishes = self.wishes(members, pool.n_items, counts)
        threads = resolve_threads(self.config.num_threads)
        tolerance, rounds = self.config.tolerance, self.config.rounds
        start = None
        if (some := pilot_users(pool.candidates, self.config.random_state)) is not None:
            with some, Pool(some, pool.law) as trial:
                first = Ascent(trial, k, members, wishes, threads=threads)
                start = first.climb(tolerance, rounds).prices
        ascent = Ascent(pool, k, members, wishes, threads=threads)
        found = ascent.climb(tolerance, rounds, start)
        self.outcome_ = _outcome(ascent, found, tolerance)
        prices = zip(members.group_ids, (ascent.unit * found.prices).tolist(), strict=True)
        item_prices = ascent.item_prices(found.prices).astype(np.float32)
        config = replace(self.config, relevance=pool.law)
        return GroupPrices(dict(prices), item_prices, config), found

    def wishes(self, members: Groups, n_items: int, counts: Any) -> Wishes:
        """Return what is wished of each group, unless it contradicts itself."""
        config = self.config
        if config.target is not None:
            return as_target(config.target, members, n_items, counts)
        return as_bounds(config.at_most, config.at_least, members, n_items)


@dataclass(frozen=True, eq=False)
class GroupPricesState(RerankerState):
    """The prices of groups and of items."""

    prices: Mapping[Any, float]
    item_prices: Float32


@register(GroupSharesConfig)
class GroupPrices(Reranker):
    """Serves anybody, at the prices of groups: nothing is remembered.

    :meth:`GroupShares.fit` makes it.

    Parameters
    ----------
    prices
        By group: what is taken from the relevance of an item that belongs to it alone.
    item_prices
        What is taken from the relevance of each item.
    config
        How they were found: what relevance is, and how many candidates there are.
    """

    serves = "alone"
    state_type = GroupPricesState
    config: GroupSharesConfig

    def __init__(
        self, prices: Mapping[Any, float], item_prices: Float32, config: GroupSharesConfig
    ) -> None:
        self.prices, self.item_prices, self.config = dict(prices), item_prices, config

    def state(self) -> GroupPricesState:
        """Return the prices."""
        return GroupPricesState(self.prices, self.item_prices)

    def restore(self, state: GroupPricesState, n_items: int) -> None:
        """Take over prices."""
        self.prices = {group: float(price) for group, price in state.prices.items()}
        self.item_prices = state.array("item_prices", (n_items,)).astype(np.float32)

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Return what everybody chooses at these prices."""
        threads = resolve_threads(self.config.num_threads)
        return choose(pool, k, -self.item_prices[None], None, threads)


def _outcome(ascent: Ascent, found: PricedLists, tolerance: float) -> GroupOutcome:
    wishes, names = ascent.wishes, ascent.members.group_ids
    violations: Float64 = wishes.violations(found.shares)
    worst = int(np.argmax(violations))
    violation = max(float(violations[worst]), 0.0)
    columns = (ascent.own.shares, found.shares, wishes.low, wishes.high)
    shares = map(GroupShare, names, *(column.tolist() for column in columns))
    return GroupOutcome(
        is_met=violation <= tolerance,
        violation=violation,
        group=names[worst] if violation else None,
        relevance_loss=found.relevance_loss,
        rounds=ascent.rounds,
        shares=tuple(shares),
        notes=wishes.notes,
    )
