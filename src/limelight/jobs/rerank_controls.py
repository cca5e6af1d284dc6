"""Controls over users on many machines.

In best response, users choose one after the other, each at the exposure that those before her
left. Here the users of a shard do so, but shards choose at the same time, and none sees what the
others choose meanwhile. If a shard supposed that the others do not move, all shards would take the
same cheap items, and too often. So a shard supposes that the others do as it does: exposure moves
N / n times as much as its own n of N users move it. After two such sweeps most users hold the lists
that they want. In a third sweep a part of every shard chooses at a time, few users move, and the
others are supposed to move less. Once nobody moves, every shard sees the true exposure, so the
final lists are those of best response, however users are cut into shards.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.signals import Terminated
from limelight.jobs.rerank_shards import OWN, Sums
from limelight.rerank.market.market import Market, choose
from limelight.rerank.market.pool import ascending
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices, mix_prices
from limelight.rerank.targets.choice import Variant
from limelight.rerank.targets.controls import Control
from limelight.rerank.targets.search import Measure, Trial
from limelight.rerank.welfare import as_welfare
from limelight.store.arrays import save_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64, Int32
    from limelight._base.executor import Executor, Work
    from limelight.jobs.rerank_shards import Facts, Shards
    from limelight.rerank.market.market import OwnListSurvey
    from limelight.rerank.market.pool import Pool

_FIRST = ((1.0, 1), (1.0, 1), (0.3, 4))
_LATER = ((1.0, 1), (0.3, 4))
"""The sweeps of the first strength, and of each later one: how much the users of other shards are
supposed to move, relative to the shard's own, and in how many parts users choose."""


@dataclass(frozen=True)
class ShardLists(ABC):
    """Makes the lists of a shard's users, and writes them under the name ``target``, if given."""

    shards: Shards
    target: str | None

    @abstractmethod
    def places(self, pool: Pool, number: int) -> Int32:
        """Return the lists of a shard's users: places among their candidates."""

    def __call__(self, number: int) -> Sums:
        """Make the lists of a shard, and return the sums of their exposure and relevance."""
        with self.shards.pool(number) as pool:
            places = self.places(pool, number)
            if self.target is not None:
                save_arrays(self.shards.places_file(self.target, number), {"places": places})
            return self.shards.sums(pool, places)


@dataclass(frozen=True)
class Respond(ShardLists):
    """Lets a part of a shard's users choose again."""

    start: str
    """The name of the lists that users hold before."""
    strength: float
    variant: Variant
    survey: OwnListSurvey
    exposure: Float64
    """Of all users, as it was when the round began."""
    n_users: int
    """The number of users of all shards."""
    others: float
    """How much the users of other shards are supposed to move, relative to this shard's own."""
    turn: tuple[int, int]
    seed: tuple[int, ...]
    name = "rerank: best response"

    def places(self, pool: Pool, number: int) -> Int32:
        """Do a round of best response."""
        market = Market(
            pool,
            self.shards.k,
            as_welfare(self.variant.welfare),
            threads=self.shards.threads,
            seed=[*self.seed, number],
            survey=self.survey,
            order=float(self.variant.order == "subsidised"),
        )
        ledger = market.ledger
        ledger.places = ascending(self.shards.places(pool, self.start, number))
        share = 1 / (1 + self.others * (self.n_users / max(pool.n_users, 1) - 1))
        ledger.exposure, ledger.served = self.exposure * share, self.n_users * share
        market.sweep(self.strength, self.turn)
        return ledger.places


@dataclass(frozen=True)
class Count(ShardLists):
    """Adds up lists that an interrupted run has written."""

    start: str
    name = "rerank: exposure"

    def places(self, pool: Pool, number: int) -> Int32:
        """Read the lists of a shard."""
        return self.shards.places(pool, self.start, number)


@dataclass(frozen=True)
class Choose(ShardLists):
    """Lets all users choose at the same prices."""

    subsidies: Float32
    name = "rerank: prices"

    def places(self, pool: Pool, number: int) -> Int32:
        """Return what the users of a shard choose."""
        del number
        everybody = np.zeros(pool.n_users, dtype=np.int32)
        return choose(pool, self.shards.k, self.subsidies[None], everybody, self.shards.threads)


@dataclass(frozen=True)
class Draw(ShardLists):
    """Serves users at the prices that they draw."""

    prices: Prices
    name = "rerank: draws"

    def places(self, pool: Pool, number: int) -> Int32:
        """Return what the users of a shard choose."""
        draws, sets = self.prices.draw(self.shards.user_ids(number)), self.prices.mixture.subsidies
        return choose(pool, self.shards.k, sets, draws, self.shards.threads)


@dataclass(eq=False)
class ShardControl(Control):
    """A control whose lists stay with the shards, named after the number of the trial."""

    executor: Executor
    shards: Shards
    facts: Sequence[Facts]
    survey: OwnListSurvey
    """What strength is in units of, by all users."""
    seed: int
    """Of all that is drawn."""
    sums: Sums | None = field(default=None, init=False)
    """Of the lists of the last strength above 0."""
    _trials: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._numbers = range(len(self.facts))
        self._n_users = sum(fact.n_users for fact in self.facts)
        self._own = functools.reduce(Sums.plus, (fact.own for fact in self.facts))

    def try_at(self, strength: float) -> Trial:
        """Make the lists of a strength, unless files hold them already, and measure them."""
        if strength == 0:
            return self._trial(strength, self._own, OWN)
        start = f"{self._trials:03}" if self._trials else OWN
        self._trials += 1
        name = f"{self._trials:03}"
        if all(self.shards.places_file(name, number).exists() for number in self._numbers):
            self.sums = self._map(Count(self.shards, None, name))
        else:
            self.sums = self._make(strength, start, name)
        return self._trial(strength, self.sums, name)

    @abstractmethod
    def _make(self, strength: float, start: str, name: str) -> Sums:
        """Write everybody's lists under a name; those to start from are there."""

    def _map(self, work: Work[int, Sums]) -> Sums:
        try:
            return functools.reduce(Sums.plus, self.executor.map(work, self._numbers))
        except (KeyboardInterrupt, Terminated) as end:
            end.add_note("the same command with --resume goes on from the last strength")
            raise

    def _trial(self, strength: float, found: Sums, name: str) -> Trial:
        measure = Measure.of(found.exposure, found.relevance, self._own.relevance)
        return Trial(strength, measure, name)


class BestResponseShards(ShardControl):
    """Best response, from the lists of the strength before."""

    variant = Variant()

    def _make(self, strength: float, start: str, name: str) -> Sums:
        found, plan = (self._own, _FIRST) if self.sums is None else (self.sums, _LATER)
        made = []
        for sweep, (others, parts) in enumerate(plan):
            for part in range(parts):
                is_last = (sweep, part) == (len(plan) - 1, parts - 1)
                target = name if is_last else f"{name}-{sweep}-{part}"
                work = Respond(
                    self.shards,
                    target,
                    start,
                    strength,
                    self.variant,
                    self.survey,
                    found.exposure,
                    self._n_users,
                    others,
                    (part, parts),
                    (self.seed, self._trials, sweep),
                )
                found, start = self._map(work), target
                made.append(target)
        for between in made[:-1]:
            for number in self._numbers:
                self.shards.places_file(between, number).unlink(missing_ok=True)
        return found


class PricesShards(ShardControl):
    """Everybody draws a set of prices, which are found by asking all shards again and again."""

    def _make(self, strength: float, start: str, name: str) -> Sums:
        del start
        method: FrankWolfe = FrankWolfe(strength=strength, random_state=self.seed)
        with self.shards.pool(0) as pool:
            # Prices depend on exposure per user, so any one shard can work them out for all.
            market = method.config.market(pool, self.shards.k, self.survey)
            share = pool.n_users / self._n_users
            mixture = mix_prices(
                method.config.steps,
                self._own.exposure,
                lambda exposure: market.subsidies(strength, exposure * share),
                lambda subsidies: self._map(Choose(self.shards, None, subsidies)).exposure,
            )
        return self._map(Draw(self.shards, name, Prices(mixture, method.config)))
