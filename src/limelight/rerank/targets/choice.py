"""Which settings lose least at a target: a sample of the users decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight.metrics.exposure import gini_floor
from limelight.recommend.candidates import pilot_size, sample_users
from limelight.rerank.market.pool import Pool
from limelight.rerank.targets.controls import BestResponseControl, control_of
from limelight.rerank.targets.providers import EXPONENTS
from limelight.rerank.targets.search import (
    FIRST,
    MET_WITHIN,
    NEAR,
    STRIDE,
    Goal,
    OutOfReachError,
    meet,
)

if TYPE_CHECKING:
    from limelight.data.candidates.candidates import Candidates
    from limelight.rerank.market.pool import Law
    from limelight.rerank.targets.controls import SearchContext
    from limelight.rerank.targets.search import Measure
    from limelight.rerank.welfare import WelfareName

_WELFARES: tuple[WelfareName, ...] = ("power", "gini")
"""Beside the usual one."""
_COMPARED = 1 << 15
"""Up to so many items the Gini welfare is tried, which has to sort them again and again."""
_WORDS = {"power": "power 2"}
_SHARE = 16
"""One of so many candidates is in the sample: five searches there take about a fifth of the time of
the one for everybody, which begins where they ended."""
_FEWEST, _MOST = 1 << 21, 1 << 23
"""How many candidates a sample has, at least and at most. The fewest take a second or two."""
_WIDTH = 2000
"""How many candidates of a user are in it, at most: more users tell more than deeper lists."""
_DOUBT_OF_ORDER, _DOUBT_OF_TIME, _DOUBT = 0.03, 0.02, 0.01
"""How much less a variant must lose, relative to the loss, to be taken: where places are exchanged,
as relevance is less sure of those; where it takes twice the time; and otherwise."""


@dataclass(frozen=True)
class Variant:
    """How best response is done.

    Examples
    --------
    >>> print(Variant("power", order="subsidised"))
    power 2, subsidised order
    """

    welfare: WelfareName = "log"
    order: Literal["relevance", "subsidised"] = "relevance"
    thorough: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the settings of the re-ranker that differ from the usual ones."""
        usual = Variant()
        return {name: value for name, value in vars(self).items() if value != vars(usual)[name]}

    def __str__(self) -> str:
        words = [_WORDS.get(self.welfare, self.welfare)]
        words += ["subsidised order"] if self.order == "subsidised" else []
        return ", ".join([*words, "thorough"] if self.thorough else words)


class WholePopulation(NamedTuple):
    """Those for whom a target holds, of whom some are looked at."""

    n_users: int
    own: Measure
    """Of everybody's own list."""


class VariantChoice(NamedTuple):
    """The variant that loses least, and a strength to begin a search with."""

    variant: Variant
    strength: float


def choose_variant(
    context: SearchContext,
    goal: Goal,
    law: Law,
    everybody: WholePopulation | None = None,
    *,
    thorough: bool = True,
) -> VariantChoice:
    """Meet a goal with several variants on a sample of the users; return that of the least loss.

    Welfares come first, then the order of lists and thoroughness with the best of them. They are
    compared by the relevance, as the law gives it, that the same evenness costs. A variant must be
    better than the usual one by more than the doubt there is.

    Parameters
    ----------
    context, law
        The users, and what candidates are worth to them.
    goal
        What is asked for.
    everybody
        Whom the goal is of, if these users are only a part of them.
    thorough
        Whether the variant may be a thorough one.
    """
    pool = context.pool
    if everybody is None:
        everybody = WholePopulation(pool.n_users, BestResponseControl(context).try_at(0.0).measure)
    some = sample_users(pool.candidates, _sample_size(pool.candidates), context.seed, _WIDTH)
    with some, Pool(some, law) as sample:
        trials = _Trials(replace(context, pool=sample), goal, everybody)
        best = usual = Variant()
        for welfare in _WELFARES if pool.n_items <= _COMPARED else _WELFARES[:-1]:
            best = trials.better(best, replace(usual, welfare=welfare), _DOUBT)
        ordered = replace(best, order="subsidised")
        best = trials.better(best, ordered, _DOUBT_OF_ORDER)
        if thorough:
            best = trials.better(best, replace(best, thorough=True), _DOUBT_OF_TIME)
        return VariantChoice(best, trials.found[best].strength)


def _sample_size(candidates: Candidates) -> int:
    """Return how many users are enough, and no more than the time allows."""
    mean = max(candidates.n_pairs / max(candidates.n_users, 1), 1.0)
    kept = float(np.minimum(candidates.counts, _WIDTH).mean()) if candidates.n_users else 1.0
    pairs = np.clip(candidates.n_users * mean / _SHARE, _FEWEST, _MOST)
    return int(max(pairs / max(kept, 1.0), 1))


class _Cost(NamedTuple):
    loss: float
    """Of relevance, over the square of the evenness that it bought."""
    strength: float


class _RoughGoal(Goal):
    """A goal near which a search may end, because costs are compared over what was gained."""

    def ends_search(self, measure: Measure) -> bool:
        """Tell whether a measure is near enough, on either side."""
        return abs(self.lack(measure)) <= MET_WITHIN


class _Trials:
    """What variants lose on a sample, at what stands for the goal there."""

    def __init__(self, context: SearchContext, goal: Goal, everybody: WholePopulation) -> None:
        self._context = context
        self._own = BestResponseControl(context).try_at(0.0).measure
        self._goal = _on_sample(goal, everybody, self._own, context)
        self.found: dict[Variant, _Cost] = {}

    def better(self, best: Variant, other: Variant, doubt: float) -> Variant:
        """Return the other variant if it loses less by more than the doubt, or else the best."""
        first = self._try(best)
        if np.isinf(first.loss):
            return best
        second = self._try(other, first.strength)
        return other if second.loss < (1 - doubt) * first.loss else best

    def _try(self, variant: Variant, near: float | None = None) -> _Cost:
        if variant not in self.found:
            self.found[variant] = self._meet(variant, near)
        return self.found[variant]

    def _meet(self, variant: Variant, near: float | None) -> _Cost:
        control = BestResponseControl(self._context, **vars(variant))
        first, stride = (FIRST, STRIDE) if near is None else (near, NEAR)
        try:
            met = meet(control, self._goal, first=first, stride=stride)
        except OutOfReachError:
            return _Cost(np.inf, FIRST)
        gained = self._own.gini - met.measure.gini
        if self._goal.kind == "min_coverage":
            gained = met.measure.coverage - self._own.coverage
        # No search ends exactly at a goal. The loss grows about with the square of what is gained,
        # so over that square variants compare as if all had ended there.
        loss = met.measure.loss / gained**2 if gained > 0 else np.inf
        return _Cost(float(loss), met.strength or FIRST)


def _on_sample(
    goal: Goal, everybody: WholePopulation, own: Measure, context: SearchContext
) -> Goal:
    """Return what a goal is for fewer users, whose lists cannot be shared as evenly.

    It is as far on the way from their own lists to the most that so many lists allow.
    """
    goal = goal.wishes[0]
    if goal.is_loss:
        return _RoughGoal(goal.kind, goal.value)
    k, n_items = context.k, context.pool.n_items
    both = (everybody.n_users, everybody.own), (context.pool.n_users, own)
    if goal.kind == "gini":
        starts = [measure.gini for _, measure in both]
        ends = [gini_floor(n_users, k, n_items) for n_users, _ in both]
    else:
        starts = [measure.coverage for _, measure in both]
        ends = [min(1.0, n_users * k / max(n_items, 1)) for n_users, _ in both]
    way = ends[0] - starts[0]
    share = (goal.value - starts[0]) / way if way else 0.0
    value = starts[1] + float(np.clip(share, 0, 1)) * (ends[1] - starts[1])
    return _RoughGoal(goal.kind, float(np.clip(value, 0, 1)))


def choose_exponent(
    context: SearchContext, goal: Goal, method: str, law: Law
) -> tuple[SearchContext, float]:
    """Try exponents of the groups' welfare on some users; return the best, and a first strength.

    Groups differ far more than items do, so how much the least exposed should count depends on the
    data. The best is that of the least loss at the goal.
    """
    assert context.providers is not None
    candidates, found = context.pool.candidates, []
    some = sample_users(candidates, pilot_size(candidates), context.seed)
    with some, Pool(some, law) as pool:
        for exponent in EXPONENTS:
            providers = replace(context.providers, exponent=exponent)
            tried = replace(context, pool=pool, providers=providers)
            try:
                met = meet(control_of(method, tried), goal)
                found.append((goal.cost(met.measure), met.strength or FIRST, providers))
            except OutOfReachError:
                found.append(((1.0, 1.0), FIRST, providers))  # fewer users may not reach it
    _, first, best = min(found, key=lambda one: one[0])
    return replace(context, providers=best), first
