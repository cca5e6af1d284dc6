"""Accuracy against exposure: how far each re-ranker evens out exposure at the same accuracy.

All re-rankers start from the same candidates. A front is scored by the mean of 1 - Gini over
accuracies from 85 to 100 % of the plain lists', linear between its points.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from limelight._base.errors import ConfigError
from limelight._base.text import percent
from limelight.lab.bench.reranked import FRACTIONAL, WHOLE, Fronts, RerankedPoint
from limelight.lab.rivals import RIVALS, serve
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.allocate import Allocate
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.fairrec import FairRec, largest_guarantee
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.methods.group_shares import GroupShares
from limelight.rerank.relevance import by_scores
from limelight.rerank.welfare import Impact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limelight._base.arrays import Int64
    from limelight.data.candidates.candidates import Candidates
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Law
    from limelight.rerank.methods.market_config import GroupAccountsReranker

    Kind = TypeVar("Kind", bound=GroupAccountsReranker)


_PER_PAIR = 16  # bytes: relevance, its order, and both once more as the kernels take them
STRENGTHS = tuple(np.geomspace(0.03, 3, 16).tolist())
_FOR_PROVIDERS = tuple(np.geomspace(0.03, 100, 24).tolist())
"""Providers are few, so that they can be made almost equal."""
_GUARANTEES = 16
"""How many guarantees, evenly up to the largest, where fractions are allowed."""
_SHARES = tuple(np.linspace(0.1, 0.98, 16).tolist())
"""Of an even share: floors of groups."""
_UTILITY = Impact(exponent=3.0)
"""What utility is worth to providers, chosen on one half of the users of Steam."""
_FIRST = tuple(10.0**n for n in range(-4, 4))
_MOST = 16  # points of a front whose scale is not known
_GAP = 0.02  # of the accuracy between two of its points, which is worth another one
_FAR = 0.75  # of the accuracy, below which gaps do not matter


@dataclass(frozen=True, eq=False)
class Arena:
    """Whom the re-rankers serve, and what they may know."""

    full: Ranking
    """What each user likes best, of all items where that is known."""
    served: Candidates
    k: int
    law: Law
    measure: Callable[[Lists], tuple[float, float, dict[str, float]]]
    """Returns nDCG, Gini index and further figures of lists."""
    known: Candidates | None = None
    """Of users from the past, to warm up with."""
    providers: Int64 | None = None
    """Of every item, where providers are compared instead of items."""
    seed: int = 0

    @cached_property
    def pool(self) -> Pool:
        """The candidates of who is served, with their relevance, which all strengths share."""
        return Pool(self.served, self.law, memory=_PER_PAIR * self.served.n_pairs)

    @cached_property
    def known_pool(self) -> Pool:
        """The candidates of users from the past, or of who is served if there are none."""
        if self.known is None:
            return self.pool
        return Pool(self.known, self.law, memory=_PER_PAIR * self.known.n_pairs)

    @cached_property
    def uncalibrated(self) -> Arena:
        """The same, if nothing is known of what scores are worth."""
        return replace(self, law=by_scores(self.served))

    @property
    def common(self) -> dict[str, Any]:
        """The settings that all of our methods share."""
        return {"relevance": self.law, "random_state": self.seed}

    @property
    def for_accounts(self) -> dict[str, Any]:
        """The settings of methods that keep accounts: of providers, their utility is what counts.

        Utility is the sum of the scores of a provider's shown items, wherever these stand.
        """
        if self.providers is None:
            return self.common
        return self.common | {"group_welfare": _UTILITY, "places": "uniform"}

    def of(self, method: Kind) -> Kind:
        """Let a method share exposure among the accounts."""
        return method if self.providers is None else method.of(self.providers)

    @property
    def accounts(self) -> Int64:
        """The account of every item: its provider, or itself."""
        return np.arange(self.served.n_items) if self.providers is None else self.providers

    @property
    def most(self) -> float:
        """The largest guarantee."""
        return largest_guarantee(self.served.n_users, self.k, self.served.n_items)


class Method(NamedTuple):
    """A re-ranker of the bench."""

    lists: Callable[[Arena, float], Lists]
    strengths: Callable[[Arena], Sequence[float]] | None = None
    """Which strengths to try; None if the scale is not known."""
    of_items: bool = True
    of_providers: bool = False


def _whole(arena: Arena) -> list[float]:
    return [float(level) for level in range(1, int(arena.most) + 1)]


def _fractional(arena: Arena) -> list[float]:
    between = np.linspace(0, arena.most, _GUARANTEES + 1)[1:]
    return sorted({*_whole(arena), *np.floor(1e6 * between) / 1e6})


def _online(arena: Arena, strength: float) -> Lists:
    online: Online = arena.of(Online(strength=strength, **arena.for_accounts))
    if arena.known is not None:
        online.warm_up_from(arena.known_pool, arena.k)
    return online.lists_from(arena.pool, arena.k)


def _prices(arena: Arena, strength: float) -> Lists:
    found: FrankWolfe = arena.of(FrankWolfe(strength=strength, **arena.common))
    prices = Prices(found.mix(arena.known_pool, arena.k), found.config)
    return prices.lists_from(arena.pool, arena.k)


def _group_shares(arena: Arena, share: float) -> Lists:
    n_groups = int(arena.accounts.max()) + 1
    method = GroupShares(at_least=share / n_groups, **arena.common)
    return arena.pool.lists(method.places_from(arena.pool, arena.k, groups=arena.accounts))


def _best_response(arena: Arena, strength: float, *, thorough: bool = False) -> Lists:
    method = BestResponse(strength=strength, thorough=thorough, **arena.for_accounts)
    lists: Lists = arena.of(method).lists_from(arena.pool, arena.k)
    return lists


def _fairrec(arena: Arena, level: float) -> Lists:
    fair = FairRec(guarantee=level, random_state=arena.seed)
    lists: Lists = fair.rerank(arena.full, arena.k)
    return lists


def _all_strengths(arena: Arena) -> Sequence[float]:
    return STRENGTHS if arena.providers is None else _FOR_PROVIDERS


METHODS: dict[str, Method] = {
    WHOLE: Method(_fairrec, _whole),
    FRACTIONAL: Method(_fairrec, _fractional),
    "BestResponse": Method(_best_response, _all_strengths, of_providers=True),
    "uncalibrated": Method(lambda a, s: _best_response(a.uncalibrated, s), _all_strengths),
    "thorough": Method(
        lambda a, s: _best_response(a, s, thorough=True), _all_strengths, of_providers=True
    ),
    "Online": Method(_online, _all_strengths, of_providers=True),
    "Prices": Method(_prices, _all_strengths, of_providers=True),
    "Allocate": Method(
        lambda a, s: Allocate(at_least=int(s), **a.common).lists_from(a.pool, a.k), _whole
    ),
    "GroupShares": Method(_group_shares, lambda _: _SHARES, of_items=False, of_providers=True),
    **{
        name: Method(
            lambda a, s, rival=rival: serve(rival, a.served, a.k, s, a.accounts),  # type: ignore[misc]
            of_providers=True,
        )
        for name, rival in RIVALS.items()
    },
}
"""By name; FairRec with fractions of a guarantee has the points of whole ones, too, and
"uncalibrated" is BestResponse that knows scores alone, and no held-out pairs."""


def choose_methods(names: Sequence[str], *, of_providers: bool) -> list[str]:
    """Return which methods to run: those named, or all that take what there is.

    Examples
    --------
    >>> choose_methods(["online", "Prices"], of_providers=False)
    ['Online', 'Prices']
    """
    known = {name.lower(): name for name in METHODS}
    for name in names:
        if name.lower() not in known:
            message = f"no such method: {name!r}"
            raise ConfigError(message, hint=f"choose from: {'; '.join(METHODS)}")
        method = METHODS[known[name.lower()]]
        if not (method.of_providers if of_providers else method.of_items):
            message = f"{known[name.lower()]} {'takes no' if of_providers else 'needs'} groups"
            hint = "leave --groups out" if of_providers else "give --groups, the provider of items"
            raise ConfigError(message, hint=hint)
    if names:
        return [known[name.lower()] for name in names]
    return [n for n, m in METHODS.items() if (m.of_providers if of_providers else m.of_items)]


def plain_point(arena: Arena) -> RerankedPoint:
    """Measure everybody's own list."""
    own = arena.full.top(np.arange(arena.full.n_users), arena.k)
    return RerankedPoint(0.0, *arena.measure(own))


def measure_fronts(
    arena: Arena, methods: Sequence[str], tell: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[str, Fronts]]:
    """Measure one method after the other; yields after each. ``tell`` hears of every point."""
    fronts = Fronts(plain_point(arena))
    for name in methods:
        started = time.process_time()
        fronts.points[name] = []
        for point in _points(METHODS[name], arena, fronts.base):
            fronts.points[name].append(point)
            share = point.ndcg / fronts.base.ndcg
            reached = f"Gini {point.gini:.3f} at {percent(share)} of the nDCG"
            tell(f"{name} {point.strength:.3g}: {reached}")
        fronts.seconds[name] = time.process_time() - started
        yield name, fronts


def _points(method: Method, arena: Arena, base: RerankedPoint) -> Iterator[RerankedPoint]:
    def point(strength: float) -> RerankedPoint:
        return RerankedPoint(strength, *arena.measure(method.lists(arena, strength)))

    if method.strengths is not None:
        yield from map(point, method.strengths(arena))
        return
    found = []
    for strength in _FIRST:
        found.append(point(strength))
        yield found[-1]
    while len(found) < _MOST and (between := _next_strength(found, base)) is not None:
        made = point(between)
        found = sorted([*found, made], key=lambda one: one.strength)
        yield made


def _next_strength(points: list[RerankedPoint], base: RerankedPoint) -> float | None:
    """Return the strength between the two points with the widest gap in what matters."""
    accuracy = np.clip([p.ndcg / base.ndcg for p in points], _FAR, 1)
    evenness = np.array([p.gini for p in points])
    gaps = np.abs(np.diff(accuracy)) + np.abs(np.diff(evenness)) * (accuracy[:-1] > _FAR)
    widest = int(np.argmax(gaps))
    if gaps[widest] < _GAP:
        return None
    return float(np.sqrt(points[widest].strength * points[widest + 1].strength))


def with_seed(arena: Arena, seed: int) -> Arena:
    """Return the same arena with another seed."""
    return replace(arena, seed=seed)
