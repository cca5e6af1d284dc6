"""Methods whose strength can be turned up and down over users on many machines.

Best response is a game that users play one after the other. Here the users of a shard still do,
but shards play at the same time, and what others choose meanwhile is not known. If a shard took
the others to stand still, all of them would go for what is cheap, and it would be too much. So a
shard supposes that the others do as it does: exposure moves N / n times as much as its own n of N
users move it, which is the market of all users in small. After two such sweeps users are nearly
where they want to be; in a third, in which a part of every shard chooses at a time, few move, and
others are taken to move less. Where nobody wants to move, everybody sees the true exposure: the
lists at which it ends are those of the game, however users are cut.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.signals import Terminated
from limelight.jobs.rerank_shards import OWN, Sums
from limelight.metrics.exposure import coverage, gini
from limelight.rerank.market.market import Market, choose
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices, mix_prices
from limelight.rerank.targets.goal import Measure
from limelight.store.arrays import save_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64, Int32
    from limelight._base.executor import Executor, Work
    from limelight.jobs.rerank_shards import Facts, Shards
    from limelight.rerank.market.market import OwnListSurvey
    from limelight.rerank.welfare import Welfare

_FIRST = ((1.0, 1), (1.0, 1), (0.3, 4))
_LATER = ((1.0, 1), (0.3, 4))
"""The sweeps of the first strength, and of each later one: how much others are taken to move,
against one's own users, and in how many parts users choose."""


@dataclass(frozen=True)
class Respond:
    """Lets a part of a shard's users choose again, and writes their lists."""

    shards: Shards
    welfare: Welfare
    survey: OwnListSurvey
    exposure: Float64
    """Of all users, as it was when the round began."""
    n_users: int
    """All of them."""
    strength: float
    start: str
    """Names of lists: where users stand, and where they go."""
    target: str
    others: float
    """How much the others are taken to move, against one's own users."""
    turn: tuple[int, int]
    seed: tuple[int, ...]
    name = "rerank: best response"

    def __call__(self, number: int) -> Sums:
        """Do a round of a shard."""
        with self.shards.pool(number) as pool:
            market = Market(
                pool,
                self.shards.k,
                self.welfare,
                threads=self.shards.threads,
                seed=[*self.seed, number],
                survey=self.survey,
            )
            ledger = market.ledger
            ledger.places = self.shards.places(pool, self.start, number)
            share = 1 / (1 + self.others * (self.n_users / max(pool.n_users, 1) - 1))
            ledger.exposure, ledger.served = self.exposure * share, self.n_users * share
            market.sweep(self.strength, self.turn)
            save_arrays(self.shards.places_file(self.target, number), {"places": ledger.places})
            return self.shards.sums(pool, ledger.places)


@dataclass(frozen=True)
class Count:
    """Adds up what lists of a shard come to."""

    shards: Shards
    lists: str
    name = "rerank: exposure"

    def __call__(self, number: int) -> Sums:
        """Count a shard."""
        with self.shards.pool(number) as pool:
            return self.shards.sums(pool, self.shards.places(pool, self.lists, number))


@dataclass(frozen=True)
class Choose:
    """Asks what a shard's users choose at prices that stay where they are."""

    shards: Shards
    subsidies: Float32
    """One set."""
    name = "rerank: prices"

    def __call__(self, number: int) -> Sums:
        """Ask a shard."""
        with self.shards.pool(number) as pool:
            everybody = np.zeros(pool.n_users, dtype=np.int32)
            sets = self.subsidies[None]
            places = choose(pool, self.shards.k, sets, everybody, self.shards.threads)
            return self.shards.sums(pool, places)


@dataclass(frozen=True)
class Draw:
    """Serves a shard's users at the prices that they draw, and writes their lists."""

    shards: Shards
    prices: Prices
    target: str
    name = "rerank: draws"

    def __call__(self, number: int) -> Sums:
        """Serve a shard."""
        draws = self.prices.draw(self.shards.user_ids(number))
        with self.shards.pool(number) as pool:
            sets = self.prices.mixture.subsidies
            places = choose(pool, self.shards.k, sets, draws, self.shards.threads)
            save_arrays(self.shards.places_file(self.target, number), {"places": places})
            return self.shards.sums(pool, places)


class ShardDial(ABC):
    """What both methods share: lists go by the number of the turn that made them, 0 the first."""

    whole, most = False, 1e4

    def __init__(self, pieces: Executor, shards: Shards, facts: Sequence[Facts]) -> None:
        self._pieces, self._shards = pieces, shards
        self._n_shards = len(facts)
        self.n_users = sum(fact.n_users for fact in facts)
        self._own = functools.reduce(Sums.plus, (fact.own for fact in facts))
        self._turns = self._shown = 0
        self._is_open = False

    @property
    def places(self) -> Int32:
        """The number of the turn that made the lists, for :meth:`lists`."""
        return np.array([self._shown], dtype=np.int32)

    @staticmethod
    def lists(places: Int32) -> str:
        """Name the lists of a turn."""
        return f"{int(places.item()):03}" if places.item() else OWN

    def turn(self, strength: float) -> Measure:
        """Make the lists of a strength, and measure them; those that are there are kept."""
        if strength == 0:
            self._shown = 0
            return self._measure(self._own)
        self._turns += 1
        last, name = (self.lists(np.array([n])) for n in (self._turns - 1, self._turns))
        if self._is_there(name):
            found = self._map(Count(self._shards, name))
        else:
            found = self._make(strength, last, name)
        self._shown, self._sums, self._is_open = self._turns, found, True
        return self._measure(found)

    @abstractmethod
    def _make(self, strength: float, last: str, name: str) -> Sums:
        """Write everybody's lists under a name; the last ones are there."""

    def _is_there(self, name: str) -> bool:
        numbers = range(self._n_shards)
        return all(self._shards.places_file(name, number).exists() for number in numbers)

    def _map(self, work: Work[int, Sums]) -> Sums:
        try:
            return functools.reduce(Sums.plus, self._pieces.map(work, range(self._n_shards)))
        except (KeyboardInterrupt, Terminated) as end:
            end.add_note("the same command with --resume goes on from the last strength")
            raise

    def _measure(self, found: Sums) -> Measure:
        own = self._own.relevance
        loss = 1 - found.relevance / own if own else 0.0
        return Measure(gini(found.exposure), coverage(found.exposure), loss)


class BestResponseShards(ShardDial):
    """Best response, from the lists of the strength before.

    Parameters
    ----------
    pieces
        Does the work.
    shards, facts
        Whose lists are made.
    welfare
        Of exposure.
    survey
        What strength is in units of, by all users.
    seed
        Of the order in which users choose.
    """

    def __init__(
        self,
        pieces: Executor,
        shards: Shards,
        facts: Sequence[Facts],
        welfare: Welfare,
        *,
        survey: OwnListSurvey,
        seed: int,
    ) -> None:
        super().__init__(pieces, shards, facts)
        self._welfare, self._survey, self._seed = welfare, survey, seed

    def _make(self, strength: float, last: str, name: str) -> Sums:
        found, start, made = self._sums if self._is_open else self._own, last, []
        plan = _LATER if self._is_open else _FIRST
        for sweep, (others, parts) in enumerate(plan):
            for part in range(parts):
                is_last = (sweep, part) == (len(plan) - 1, parts - 1)
                target = name if is_last else f"{name}-{sweep}-{part}"
                work = Respond(
                    self._shards,
                    self._welfare,
                    self._survey,
                    found.exposure,
                    self.n_users,
                    strength,
                    start,
                    target,
                    others,
                    (part, parts),
                    (self._seed, self._turns, sweep),
                )
                found, start = self._map(work), target
                made.append(target)
        for between in made[:-1]:
            for number in range(self._n_shards):
                self._shards.places_file(between, number).unlink(missing_ok=True)
        return found


class PricesShards(ShardDial):
    """Everybody draws a set of prices, which are found by asking all shards again and again."""

    def __init__(
        self,
        pieces: Executor,
        shards: Shards,
        facts: Sequence[Facts],
        *,
        survey: OwnListSurvey,
        seed: int,
    ) -> None:
        super().__init__(pieces, shards, facts)
        self._survey, self._seed = survey, seed

    def _make(self, strength: float, last: str, name: str) -> Sums:
        del last
        method = FrankWolfe(strength=strength, random_state=self._seed)
        with self._shards.pool(0) as pool:
            # The market of a shard in the place of all: prices depend on exposure per user.
            market = method.config.market(pool, self._shards.k, self._survey)
            share = pool.n_users / self.n_users
            mixture = mix_prices(
                method.config.steps,
                self._own.exposure,
                lambda exposure: market.subsidies(strength, exposure * share),
                lambda prices: self._map(Choose(self._shards, prices)).exposure,
            )
        return self._map(Draw(self._shards, Prices(mixture, method.config), name))
