"""Exposure as a market: items are helped by what welfare says, users choose their lists in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from limelight._base.errors import DataError
from limelight._native import kernels
from limelight.data.groups import exposure_of, owned_by
from limelight.metrics.lists import position_weights
from limelight.rerank.market.grouped import item_prices
from limelight.rerank.market.ledger import Help, Ledger, knots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64, Int32
    from limelight.data.groups import Groups
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.welfare import Welfare


_PLENTY = 1e12  # the exposure, in shares, of an item that is entitled to nothing
_COMPARISONS, _FEWEST_BETWEEN = 16, 64
"""How often in a sweep items are compared anew, and after how many users at least."""


_HEAD_START, _HEAD_START_OF_GROUPS = 0.3, 10.0
"""In how many lists every item, or group, counts as shown before the first user of a stream."""


Plan: TypeAlias = "tuple[tuple[float, bool], ...]"
"""Sweeps: a multiple of the strength, and whether only those choose whose lists changed last."""
COOLING = (4.0, 2.5, 1.6, 1.0)
"""Strengths, as multiples of the given one. Users first choose at too large a strength and then at
smaller ones, which ends at better lists than a start from own lists."""


def cooling_plan(sweeps: int, *, thorough: bool = False) -> Plan:
    """Return how users find their lists, from their own lists on.

    Examples
    --------
    >>> cooling_plan(2)
    ((4.0, False), (2.5, False), (1.6, False), (1.0, False), (1.0, True))
    """
    if thorough:
        return tuple((factor, False) for factor in COOLING for _ in range(sweeps))
    return (*((factor, False) for factor in COOLING), *((1.0, True) for _ in range(sweeps - 1)))


class OwnListSurvey(NamedTuple):
    """Relevance and exposure of everybody's own list, which give strength its unit."""

    unit: float
    """The mean relevance of its places."""
    total: float
    """What its exposure adds up to, per user; of impact, where welfare is of impact."""
    merit: Float64
    """How relevant every item is to all."""


@dataclass(frozen=True, eq=False)
class GroupAccounts:
    """Groups of items that are helped by their own exposure."""

    members: Groups
    welfare: Welfare
    shares: Float64
    """What part of all exposure each group is entitled to."""
    items: float = 0.0
    """How strongly items are helped beside their groups, relative to the strength for groups."""


class Market:
    """A ledger, and the help that welfare gives at the exposure it shows.

    Strength is in units of ``survey``, which is of everybody's own lists or, where it is given, of
    those of earlier users. With ``by_place``, help is what one more place is worth, rather than the
    slope where an item stands; they differ where an item may expect few places. ``offsets`` are
    added to each item's relevance, in its units, whatever the strength is. With ``groups``,
    strength is that of the help for groups. With ``per_user``, strength is in units of each user's
    own list, so that all users give up about the same part of what they can get, rather than the
    same amount. ``order`` is as for the ledger. With ``uniform``, all places of a list count alike.
    What is chosen depends on the seed, which draws the order of users, and not on the number of
    threads.
    """

    def __init__(  # noqa: PLR0913
        self,
        pool: Pool,
        k: int,
        welfare: Welfare,
        *,
        threads: int,
        seed: int | Sequence[int],
        survey: OwnListSurvey | None = None,
        by_place: bool = False,
        offsets: Float64 | None = None,
        groups: GroupAccounts | None = None,
        per_user: bool = False,
        order: float = 0.0,
        uniform: bool = False,
    ) -> None:
        self.pool, self.welfare, self.groups = pool, welfare, groups
        self.by_impact = (welfare if groups is None else groups.welfare).by_impact
        self.ledger = Ledger(
            pool,
            np.ones(k) if uniform else position_weights(k),
            by_impact=self.by_impact,
            offsets=offsets,
            groups=None if groups is None else groups.members,
            order=order,
            threads=threads,
            seed=seed,
        )
        self.survey = self._survey_own_lists() if survey is None else survey
        self._entitlement = welfare.shares(pool.n_items) * self.survey.total
        self._pull = welfare.pull(self.survey.merit)
        self._by_place = by_place
        if per_user:
            self.ledger.scale = self._own_means() / (self.survey.unit or 1.0)

    def _survey_own_lists(self) -> OwnListSurvey:
        weights, merit = self.ledger.weights, np.zeros(self.pool.n_items)
        relevance = exposure = 0.0
        for rows, ids, _, values in self.pool.chosen(self.pool.own_places(len(weights))):
            relevance += float(np.sum(values * weights))
            exposure += float(np.sum((ids >= 0) * weights))
            if self.by_impact:
                _, items = self.pool.items_of(rows)
                merit += np.bincount(items, self.pool.relevance(rows), self.pool.n_items)
        # Help cannot be in units of lists that are worth nothing, such as those of scores of 0.
        unit = (relevance / exposure if exposure else 0.0) or 1.0
        total = relevance if self.by_impact else exposure
        return OwnListSurvey(unit, total / max(self.pool.n_users, 1), merit)

    def _own_means(self) -> Float64:
        """Return the mean relevance of the places of each user's own list."""
        weights, means = position_weights(len(self.ledger.weights)), np.zeros(self.pool.n_users)
        for rows, ids, _, values in self.pool.chosen(self.pool.own_places(len(weights))):
            given = np.sum((ids >= 0) * weights, axis=1)
            means[rows] = np.sum(values * weights, axis=1) / np.maximum(given, 1e-12)
        # Help cannot be in units of a list that is worth nothing.
        return np.where(means > 0, means, self.survey.unit)

    def resume(self, exposure: Float64, served: float) -> None:
        """Go on from the exposure that earlier users gave."""
        if len(exposure) != self.pool.n_items:
            message = f"{len(exposure):,} items were served, now there are {self.pool.n_items:,}"
            raise DataError(message, hint="reset it, or keep to one catalogue")
        self.ledger.exposure, self.ledger.served = exposure.copy(), served

    def start_even(self, k: int) -> None:
        """Start as if a few users had given every account what it is entitled to.

        While accounts have next to nothing, their help would follow the last few lists.
        """
        shares, times = self._entitlement, _HEAD_START
        if self.groups is not None:
            members, times = self.groups.members, _HEAD_START_OF_GROUPS
            each = self.groups.shares / np.maximum(owned_by(members), 1e-12)
            given = members.weights * each[members.groups] * self.survey.total
            shares = np.asarray(np.bincount(members.items, given, self.pool.n_items), np.float64)
        n_accounts = self.pool.n_items if self.groups is None else len(self.groups.shares)
        self.ledger.served = times * n_accounts / k
        self.ledger.exposure = shares * self.ledger.served

    def sweep(
        self, strength: float, turn: tuple[int, int] = (0, 1), *, only_moved: bool = False
    ) -> int:
        """Let everybody choose again, in random order; returns how many lists changed.

        With ``turn``, a part of the users does: which part, and of how many. With ``only_moved``,
        only those do whose list changed when they chose last.
        """
        return self.ledger.sweep(
            lambda: self.support(strength), self._stretch(), turn=turn, only_moved=only_moved
        )

    def settle(self, strength: float, plan: Plan) -> int:
        """Let users choose again and again; returns how many lists changed last."""
        changed = 0
        for factor, only_moved in plan:
            changed = self.sweep(factor * strength, only_moved=only_moved)
        return changed

    def serve(self, strength: float) -> None:
        """Let everybody choose once, in the order of the rows."""
        self.ledger.serve(lambda: self.support(strength), self._stretch())

    def _stretch(self) -> int | None:
        """Return how many users choose before items are compared anew, where welfare does so."""
        if self.welfare.is_separable:
            return None
        return max(_FEWEST_BETWEEN, self.pool.n_users // _COMPARISONS)

    def subsidies(self, strength: float, exposure: Float64) -> Float64:
        """Return what is added to each item's relevance, where all users give some exposure.

        With groups, an item has the help of its groups, weighted by how much it is in each.
        """
        x, scale = self._relative(exposure, self.pool.n_users), strength * self.survey.unit
        of_items = np.asarray(scale * self._pull * self.welfare.marginal_given(x)(x))
        if self.groups is None:
            return of_items
        groups, members = self.groups, self.groups.members
        share = groups.shares * self.survey.total * max(self.pool.n_users, 1)
        x = _over_share(exposure_of(members, exposure), share)
        of_groups = item_prices(members, groups.welfare.marginal_given(x)(x), self.pool.n_items)
        return groups.items * of_items + scale * of_groups

    def support(self, strength: float) -> Help:
        """Return how items are helped at the exposure that they have now."""
        x = self._relative(self.ledger.exposure, self.ledger.served)
        table = self._table(self.welfare, x, self._entitlement)
        # By impact, help multiplies relevance and has no unit.
        scale = strength if self.by_impact else strength * self.survey.unit
        if self.groups is None:
            return Help(self._entitlement, scale * self._pull, table)
        entitlement = self.groups.shares * self.survey.total
        held = exposure_of(self.groups.members, self.ledger.exposure)
        x = _over_share(held, entitlement * max(self.ledger.served, 1.0))
        groups = Help(
            entitlement,
            np.full(len(entitlement), scale),
            self._table(self.groups.welfare, x, entitlement),
        )
        return Help(self._entitlement, self.groups.items * scale * self._pull, table, groups)

    def _table(self, welfare: Welfare, x: Float64, entitlement: Float64) -> Float64:
        """Table what exposure is worth at the knots, while accounts have x."""
        if not self._by_place:
            return np.tile(welfare.marginal_given(x)(knots()), (2, 1))
        # One more place moves an account from x to x + place: it is worth the mean slope between.
        expected = max(float(entitlement.mean()) * self.ledger.served, 1e-12)
        place = float(self.ledger.weights.mean()) / expected
        return np.tile(welfare.mean_marginal_given(x, place)(knots()), (2, 1))

    def _relative(self, exposure: Float64, users: float) -> Float64:
        return _over_share(exposure, self._entitlement * max(users, 1.0))


def _over_share(exposure: Float64, share: Float64) -> Float64:
    # An account that is entitled to nothing counts as far above its share, so it gets no help.
    x = np.divide(exposure, share, out=np.full(len(share), _PLENTY), where=share > 0)
    return np.asarray(x)


def choose(pool: Pool, k: int, subsidies: Float32, draws: Int32 | None, threads: int) -> Int32:
    """Return everybody's best places at prices that stay where they are.

    Subsidies are what is added to the relevance of each item, one row a set of prices; ``draws``
    says which row each user has, the first one unless given.
    """
    if pool.n_items != subsidies.shape[1]:
        message = f"prices are of {subsidies.shape[1]:,} items, not {pool.n_items:,}"
        raise DataError(message, hint="use the catalogue that the prices were found for")
    if draws is None:
        draws = np.zeros(pool.n_users, dtype=np.int32)
    places = np.empty((pool.n_users, k), dtype=np.int32)
    for rows in pool.blocks:
        kernels.best_candidates(
            pool.ranked(rows), subsidies, draws[rows], lists=places[rows], threads=threads
        )
    return places
