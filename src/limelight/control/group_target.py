"""A target for groups of items: prices of groups that hold for everybody who is served."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import SolveError
from limelight._base.text import percent
from limelight.control.decide import Decision, law_of
from limelight.control.served import Confirmed, measure_exposure
from limelight.data.groups import as_groups, read_groups
from limelight.data.ids import ids_to_arrow
from limelight.rerank.methods.group_shares import GroupShares, GroupSharesConfig
from limelight.rerank.rerank import group_settings
from limelight.rerank.targets.words import asked_words

if TYPE_CHECKING:
    from limelight._base.arrays import Int32
    from limelight.control.population import Sitting
    from limelight.control.served import Everybody
    from limelight.data.groups import Groups
    from limelight.data.interactions import Ids
    from limelight.data.split import Split
    from limelight.models.base import Model
    from limelight.rerank.market.pool import Law, Pool
    from limelight.rerank.methods.group_shares import GroupOutcome, GroupPrices
    from limelight.rerank.rerank import GroupGoal
    from limelight.rerank.targets.groups import Wishes
    from limelight.rerank.targets.search import Goal


@dataclass(frozen=True, eq=False)
class GroupDecision(Decision):
    """Prices of groups."""

    target: GroupTarget = field(kw_only=True)
    law: Law = field(kw_only=True)
    prices: GroupPrices = field(kw_only=True)

    def lists_of(self, sitting: Sitting) -> Int32:
        """Make the lists of another sitting at the same prices."""
        pool = sitting.users.pool(self.law)
        return pool.lists(self.prices.places_from(pool, sitting.k)).ids

    def confirm(self, everybody: Everybody, *, adjust: bool) -> Confirmed:
        """Find the prices for everybody."""
        del adjust
        config = self.prices.config
        with everybody.pool(self.law, config.candidates) as pool, pool.candidates:
            own = pool.lists(pool.own_places(everybody.k)).ids
            prices, found, outcome = self.target.reach(pool, everybody.k, config)
        n_items = pool.n_items
        before, now = (measure_exposure(ids, n_items) for ids in (own, found))
        return Confirmed(
            prices.over(everybody.model),
            strength_of(prices),
            before,
            now,
            outcome.is_met,
            outcome.shares,
            (*outcome.notes, f"Over {pool.n_users:,} users' lists: {outcome}"),
        )


class GroupTarget:
    """Finds prices of groups for the users of a pool.

    Wishes that contradict each other are refused here, before a model is fitted for hours.
    """

    def __init__(self, split: Split, goal: GroupGoal) -> None:
        self._goal, self._split = goal, split
        counts = split.train.matrix.getnnz(axis=0).astype(np.float64)
        self._counts = dict(zip(split.train.item_ids.tolist(), counts.tolist(), strict=True))
        self.named = self._groups(split.train.item_ids)
        members = as_groups(self.named, split.train.n_items)
        self._method().wishes(members, split.train.n_items, counts)

    def decide(
        self, plain: Model, sitting: Sitting, bound: Goal | None, *, nearest: bool
    ) -> GroupDecision:
        """Find the prices for a sitting; ``bound`` is the loss that is allowed, if one is."""
        law = law_of(plain, self._split, sitting.k)
        config = GroupSharesConfig(
            **group_settings(self._goal),
            relevance=law,
            candidates=sitting.users.width,
            num_threads=plain.config.num_threads,
        )
        pool = sitting.users.pool(law)
        prices, lists, outcome = self.reach(pool, sitting.k, config)
        measure, _ = sitting.measure(lists)
        stands = () if bound is None else bound.notes(measure)
        if stands and not nearest:
            message = (
                f"out of reach: {bound} beside {asked_words(self._goal.wishes)}; the shares of "
                f"groups cost {percent(measure.loss)} of nDCG over {sitting.n_lists:,} users' lists"
            )
            raise SolveError(
                message, hint="weaken the target, or keep this one: nearest=True, --nearest"
            )
        return GroupDecision(
            method="group prices",
            strength=strength_of(prices),
            met=outcome.is_met and not stands,
            goal=self._goal.wishes | ({} if bound is None else bound.asked),
            lists=lists,
            gini=measure.gini,
            notes=stands,
            target=self,
            law=law,
            prices=prices,
        )

    def reach(
        self, pool: Pool, k: int, config: GroupSharesConfig
    ) -> tuple[GroupPrices, Int32, GroupOutcome]:
        """Find the prices for the users of a pool, their lists, and how the wishes fare."""
        item_ids: Ids = np.asarray(pool.candidates.item_ids)
        method = self._method()
        method.config = config
        counts = np.array([self._counts.get(item, 0.0) for item in item_ids.tolist()])
        groups = as_groups(self._groups(item_ids), len(item_ids))
        prices, found = method.solve(pool, k, groups, counts)
        return prices, pool.lists(found.places).ids, method.outcome_

    def groups_of(self, item_ids: Ids) -> tuple[Groups, Wishes]:
        """Tell which items are in which groups, and what shares these may have."""
        members = as_groups(self._groups(item_ids), len(item_ids))
        counts = np.array([self._counts.get(item, 0.0) for item in item_ids.tolist()])
        return members, self._method().wishes(members, len(item_ids), counts)

    def _groups(self, item_ids: Ids) -> Groups:
        return read_groups(self._goal.groups, ids_to_arrow(item_ids))

    def _method(self) -> GroupShares:
        method: GroupShares = GroupShares(**group_settings(self._goal))
        return method


def strength_of(prices: GroupPrices) -> float:
    """Return the largest price of a group."""
    return max(map(abs, prices.prices.values()), default=0.0)
