"""Which control meets a target at the least cost, and how strongly: validation users decide."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from limelight._base.progress import progress_bar
from limelight._base.text import percent
from limelight._native import resolve_threads
from limelight.control.controls import ExposureControl, RerankControl
from limelight.control.target_lists import TargetFront
from limelight.control.target_result import TriedMethod
from limelight.metrics.exposure import gini_floor
from limelight.models.ease import EASE
from limelight.models.exadmm import ExADMM
from limelight.rerank.relevance import BY_RANK, Relevance, calibrate
from limelight.rerank.targets.choice import Variant, choose_variant
from limelight.rerank.targets.controls import SearchContext, Watched
from limelight.rerank.targets.providers import EXPONENTS
from limelight.rerank.targets.search import (
    FIRST,
    MET_WITHIN,
    NEAR,
    STOP_WITHIN,
    TRIES,
    OutOfReachError,
    meet,
)
from limelight.rerank.targets.serving import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Int32
    from limelight.control.controls import ModelControl
    from limelight.control.population import Sitting
    from limelight.control.served import Confirmed, Everybody
    from limelight.control.target_lists import TriedPoint
    from limelight.data.interactions import Ids
    from limelight.data.split import Split
    from limelight.models.base import Model
    from limelight.rerank.targets.providers import Providers, ProvidersOf
    from limelight.rerank.targets.search import Goal, Trial
    from limelight.rerank.targets.serving import GroupsOf, Serve


_METHODS: dict[Serve, str] = {
    "batch": "best response", "stream": "online", "stateless": "prices"
}  # fmt: skip
_ENOUGH = 2000
"""From so many validation users on, a fitted law of relevance is not doubted."""
_SLIGHT = 1e-3  # as ExposureControl.slight, so that weak fits start from the plain model
_FARTHER, _FAR = 16.0, 4.0
"""How far the next strength is where each is a fit, and where nothing is known."""
_WEAKER = (1.4, 2.0)
"""How many times weaker the neighbours are that a result is shown with."""
_SURE = 1.96
"""How many standard errors apart two methods are that can be told apart."""


@dataclass(frozen=True, eq=False)
class Decision(ABC):
    """What was chosen, and what the choice was made from."""

    method: str
    strength: float
    met: bool
    goal: dict[str, Any]
    """What was asked for, by name."""
    lists: Int32
    """Of everybody in the sitting."""
    gini: float
    """Of these."""
    tried: tuple[TriedMethod, ...] = ()
    front: tuple[TriedMethod, ...] = ()
    weaker: tuple[Trial, ...] = ()
    """What a little less control gives."""
    others: tuple[TriedPoint, ...] = ()
    """What every other strength of every method gave test users, for a page."""
    notes: tuple[str, ...] = ()

    @abstractmethod
    def lists_of(self, sitting: Sitting) -> Int32:
        """Make the lists of another sitting."""

    @abstractmethod
    def confirm(self, everybody: Everybody, *, adjust: bool) -> Confirmed:
        """Serve everybody; the strength may be adjusted, so that they get what was asked for."""


@dataclass(frozen=True, eq=False)
class ControlDecision(Decision):
    """A control at a strength."""

    control: ModelControl = field(kw_only=True)
    wish: Goal = field(kw_only=True)

    def lists_of(self, sitting: Sitting) -> Int32:
        """Make the lists of another sitting."""
        if not (self.strength or self.control.changes_own):
            return sitting.own
        return replace(self.control, sitting=sitting).lists(self.strength)

    def confirm(self, everybody: Everybody, *, adjust: bool) -> Confirmed:
        """Serve everybody with the control."""
        goal = self.wish.for_exposure() if adjust else None
        if not (self.strength or self.control.changes_own):
            return everybody.leave()
        if isinstance(self.control, RerankControl):
            return everybody.rerank(self.control.served, goal, self.strength)
        return everybody.retrain(goal, self.strength)


@dataclass(frozen=True)
class Search:
    """How to search: for what way of serving, and what to do where the goal is out of reach."""

    serve: Serve
    groups: GroupsOf | None = None
    """Groups of items that have wishes of their own, which hold beside the goal."""
    providers: ProvidersOf | None = None
    """Whose exposure the goal is for, where it is not for that of items."""
    nearest: bool = field(default=False, kw_only=True)
    """Whether to return the nearest, if there is no better."""
    show_progress: bool | None = field(default=None, kw_only=True)


def decide(
    plain: Model, split: Split, sitting: Sitting, goal: Goal, search: Search
) -> ControlDecision:
    """Find what meets a goal at the least cost, and say how; all are tried with the same users."""
    controls = _controls(plain, split, sitting, goal, search)
    if goal.is_loss:
        # A loss is a small difference of two means, and uncertain by what users had to find. So the
        # same users also find other items of theirs.
        sitting.draw_again()
    shown = TargetFront(sitting)
    with progress_bar("search", TRIES * len(controls), show=search.show_progress) as advance:
        found = _try_all(controls, goal, shown, advance)
        chosen = _choose(controls, found, goal)
        trial = found[chosen.name]
        missed = trial.lists.missed
        if not search.nearest and (missed or not goal.is_met(trial.measure)):
            raise _out_of_reach(goal, found, sitting, missed)
        weaker = _try_weaker(chosen, trial, shown, advance)
        chosen.release()
    front = [
        TriedMethod(chosen.name, strength, *measure[:3], met=goal.is_met(measure))
        for strength, measure in sorted(chosen.tried.items())
    ]
    return ControlDecision(
        method=chosen.name if trial.strength else "the plain model",
        strength=float(trial.strength),
        met=goal.is_met(trial.measure) and not missed,
        goal=goal.asked,
        lists=trial.lists.ids,
        gini=trial.measure.gini,
        tried=tuple(
            TriedMethod(name, one.strength, *one.measure[:3], met=goal.is_met(one.measure))
            for name, one in found.items()
        ),
        front=tuple(front),
        weaker=weaker,
        others=shown.points(without=(chosen.name, float(trial.strength))),
        notes=(*goal.notes(trial.measure), *_missed_note(missed)),
        control=chosen,
        wish=goal,
    )


def law_of(plain: Model, split: Split, k: int) -> Relevance:
    """Fit what a score is worth to what validation users were found to like."""
    part = split.validation
    popularity = split.train.matrix.getnnz(axis=0)
    law = calibrate(plain.ranking(part.history), part.targets, k, popularity=popularity)
    # Where hardly anything was found, all candidates seem worth the same. Their order is known.
    return BY_RANK if not (law.score or law.rank) else law


def _controls(
    plain: Model, split: Split, sitting: Sitting, goal: Goal, search: Search
) -> list[ModelControl]:
    """List the ways to control that serve as wished, the simplest first."""
    serve, groups = search.serve, search.groups
    law = law_of(plain, split, sitting.k)
    laws = {"calibrated": law}
    if law.scale == "log" and sitting.parts["validation"].part.n_users < _ENOUGH:
        # Where few users were held out, one scale for all of them may do better than a fit.
        laws["plain"] = Relevance(score=1, head=0, rank=0, floor=law.floor)
    threads = resolve_threads(plain.config.num_threads)
    usual = {"candidates": sitting.users.width, "num_threads": plain.config.num_threads}
    controls: list[ModelControl] = []
    variants = [Variant(), Variant("power")]
    if serve == "batch" and groups is None and search.providers is None:
        # Some users propose a variant, and what validation users find decides.
        context = SearchContext(sitting.users.pool(law), sitting.k, threads, seed=0)
        variants[1] = choose_variant(context, goal, law).variant
    for scale, rule in laws.items():
        for way, settings, providers in _ways(search, variants):
            welfare, more = settings.pop("welfare", "log"), {**settings, **usual}
            served = Served(serve, rule, welfare, more, groups, providers)
            named = f"{_METHODS[serve]}{way} on {scale} scores"
            controls.append(RerankControl(named, sitting, served, threads))
    # In training items share exposure, whoever they are of.
    if isinstance(plain, ExADMM | EASE) and groups is None and search.providers is None:
        name, fits = type(plain).__name__.lower(), {0.0: plain}
        controls.append(ExposureControl(name, sitting, plain.config, split.train, fits, _SLIGHT))
    return controls


def _ways(
    search: Search, variants: list[Variant]
) -> list[tuple[str, dict[str, Any], ProvidersOf | None]]:
    """List how exposure may be shared: a name, settings of the re-ranker, and for whom."""
    if (providers := search.providers) is not None:
        return [
            (f" (groups, exponent {exponent:g})", {}, partial(_at_exponent, providers, exponent))
            for exponent in EXPONENTS
        ]
    if search.serve == "stateless":
        return [("", {}, None)]
    return [(f" ({variant})", variant.settings(), None) for variant in dict.fromkeys(variants)]


def _at_exponent(providers: ProvidersOf, exponent: float, item_ids: Ids) -> Providers:
    return replace(providers(item_ids), exponent=exponent)


def _try_all(
    controls: list[ModelControl], goal: Goal, shown: TargetFront, advance: Callable[[], None]
) -> dict[str, Trial]:
    """Meet the goal with every control, or come as near as it can."""
    found: dict[str, Trial] = {}
    guess = 0.0
    for control in controls:
        first, stride = guess or FIRST, NEAR if guess else _FAR
        if not isinstance(control, RerankControl):
            # Each strength is a fit. The largest tells whether any other is worth one.
            first, stride = control.most, _FARTHER
        watched = Watched(control, partial(shown.see, control.name))
        try:
            found[control.name] = meet(watched, goal, first=first, stride=stride, advance=advance)
        except OutOfReachError as error:
            found[control.name] = error.nearest
        guess = guess or found[control.name].strength
        control.release()
    return found


def _choose(controls: list[ModelControl], found: dict[str, Trial], goal: Goal) -> ModelControl:
    """Return the control of the least cost; of those that cannot be told apart, the simplest."""

    def cost_of(control: ModelControl) -> tuple[float, ...]:
        measure = found[control.name].measure
        return *goal.cost(measure), goal.miss(measure)

    best = min(controls, key=cost_of)
    least, (missed, lowest) = found[best.name], goal.cost(found[best.name].measure)
    farthest = max(MET_WITHIN, goal.miss(least.measure))
    for control in controls:
        trial = found[control.name]
        further, cost = goal.cost(trial.measure)
        is_as_near = further == missed and goal.miss(trial.measure) <= farthest
        if is_as_near and cost - lowest <= _noise(trial, least, goal):
            return control
    return best


def _noise(trial: Trial, best: Trial, goal: Goal) -> float:
    """Return by how much two costs may differ by chance, because users had other items to find.

    Both methods serve the same users, so what counts is the spread of their differences. Where a
    loss is spent the costs are Gini indices of everybody's lists, which are as exact as a search.
    """
    if goal.is_loss:
        return STOP_WITHIN
    apart = trial.lists.gains - best.lists.gains
    return _SURE * float(apart.std()) / math.sqrt(max(len(apart), 1))


def _try_weaker(
    control: ModelControl, trial: Trial, shown: TargetFront, advance: Callable[[], None]
) -> tuple[Trial, ...]:
    """Try strengths that are a little weaker, so that a result can say what they would cost."""
    if not (trial.strength and isinstance(control, RerankControl)):
        return ()
    found = []
    for times in _WEAKER:
        found.append(control.try_at(trial.strength / times))
        shown.see(control.name, found[-1])
        advance()
    return tuple(found)


def _missed_note(missed: Sequence[Any]) -> tuple[str, ...]:
    """Say which groups do not get what was wished for them."""
    if not missed:
        return ()
    names = ", ".join(map(repr, missed[:5])) + (", ..." if len(missed) > 5 else "")
    return (
        f"Not all targets can be met together: these groups' shares stand in the way: {names}.",
    )


def _out_of_reach(
    goal: Goal, found: dict[str, Trial], sitting: Sitting, missed: Sequence[Any]
) -> OutOfReachError:
    """Say how near every method came, and what stands in the way."""
    near = ", ".join(
        f"{name} a Gini index of {one.measure.gini:.3f} and a coverage of "
        f"{percent(one.measure.coverage)}"
        + (f" and an MMF of {percent(one.measure.mmf)}" if goal.n_groups else "")
        + f" for {percent(one.measure.loss)} of nDCG"
        for name, one in found.items()
    )
    n_lists, k, n_items = sitting.n_lists, sitting.k, sitting.n_items
    best = min(found.values(), key=lambda one: goal.cost(one.measure)).measure
    several = goal.notes(best) if len(goal.wishes) > 1 else ()
    notes = (note[0].lower() + note[1:].rstrip(".") for note in (*several, *_missed_note(missed)))
    near = "; ".join([near, *notes])
    message = f"out of reach: {goal} over {n_lists:,} users' lists; {near}"
    if not goal.n_groups:
        message += (
            f"; no lists of {k} for so many users go below a Gini index of "
            f"{gini_floor(n_lists, k, n_items):.3f}, nor show more than "
            f"{percent(min(1.0, n_lists * k / n_items))} of {n_items:,} items"
        )
    hint = "weaken the target, or keep the nearest: nearest=True, --nearest"
    error = OutOfReachError(message, hint=hint)
    error.nearest = min(found.values(), key=lambda one: goal.cost(one.measure))
    return error
