"""What lists should reach, how near they are, and the strength at which a method gets there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, SolveError
from limelight._base.settings import check_number
from limelight._base.text import percent
from limelight.metrics import exposure
from limelight.rerank.targets.words import wish_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float64
    from limelight.rerank.targets.controls import Control


STOP_WITHIN = 0.002
"""A search ends so near to a Gini index or a coverage, because other users would differ by more,
and every further strength costs as much as the last. A loss must end within half of this below its
bound."""
MET_WITHIN = 0.01
"""A goal counts as met so near to it. Some methods change many lists at a small change of strength,
so they cannot come within the distance at which a search ends."""


class Measure(NamedTuple):
    """Exposure and loss of the lists of all users; exposure is of items, or of groups of them."""

    gini: float
    """Of exposure, with log weight."""
    coverage: float
    """Share of the items, or of the groups, that some list shows."""
    loss: float
    """Share of the relevance, or of the accuracy, of everybody's own list that was given up."""
    mmf: float = 0.0
    """Share of all exposure that the less exposed half has."""

    @classmethod
    def of(cls, shown: Float64, worth: float, own: float) -> Measure:
        """Measure lists by the exposure that they give, and their worth beside everybody's own.

        Examples
        --------
        >>> import numpy as np
        >>> Measure.of(np.array([1.0, 1.0, 0.0, 0.0]), worth=3.0, own=4.0)
        Measure(gini=0.5, coverage=0.5, loss=0.25, mmf=0.0)
        """
        loss = 1 - worth / own if own else 0.0
        return cls(exposure.gini(shown), exposure.coverage(shown), loss, exposure.mmf(shown))


@dataclass(frozen=True)
class Goal:
    """One wish: a Gini index, or a coverage, to be met at the least loss, or a loss to be spent."""

    kind: Literal["gini", "min_coverage", "min_mmf", "max_relevance_loss", "max_ndcg_loss"]
    value: float
    n_groups: int = field(default=0, repr=False)
    """Among how many groups of items exposure is to be shared; 0 is for items themselves."""

    def among(self, n_groups: int) -> Goal:
        """Return the same wish for the exposure of so many groups.

        Examples
        --------
        >>> print(Goal("gini", 0.3).among(43))
        a Gini index of 0.3 among 43 groups
        """
        most = n_groups // 2 / n_groups
        if self.kind == "min_mmf" and self.value > most + MET_WITHIN:
            message = (
                f"out of reach: {self}; with equal exposure, {n_groups:,} groups have {most:.3f}"
            )
            raise SolveError(message, hint="it is the share of the less exposed half of the groups")
        return replace(self, n_groups=n_groups)

    @property
    def is_loss(self) -> bool:
        """Whether a loss is to be spent, for as even an exposure as that buys."""
        return self.kind in ("max_relevance_loss", "max_ndcg_loss")

    def lack(self, measure: Measure) -> float:
        """Return how far the exposure should still be evened out; below 0, it is too even.

        Examples
        --------
        >>> Goal("gini", 0.6).lack(Measure(gini=0.75, coverage=0.2, loss=0.0))
        0.15
        """
        if self.is_loss:
            return round(self.value - measure.loss, 12)
        if self.kind == "gini":
            return round(measure.gini - self.value, 12)
        reached = measure.mmf if self.kind == "min_mmf" else measure.coverage
        return round(self.value - reached, 12)

    @property
    def wishes(self) -> tuple[Goal, ...]:
        """All wishes: this one."""
        return (self,)

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, by name."""
        of = {"of": f"{self.n_groups:,} groups"} if self.n_groups else {}
        return {goal.kind: goal.value for goal in self.wishes} | of

    def for_exposure(self) -> Goal | None:
        """Return what is asked of exposure alone, if anything is."""
        return None if self.is_loss else self

    def ends_search(self, measure: Measure) -> bool:
        """Tell whether a measure is near enough, and on the right side of a bound."""
        lack = self.lack(measure)
        if self.is_loss:
            return 0 <= lack <= STOP_WITHIN / 2
        return -STOP_WITHIN <= lack <= (STOP_WITHIN if self.kind == "gini" else 0)

    def is_met(self, measure: Measure) -> bool:
        """Tell whether to call a goal met, also where the measure goes beyond it.

        A loss is a bound: whoever loses less has met it.

        Examples
        --------
        >>> Goal("max_ndcg_loss", 0.02).is_met(Measure(gini=0.8, coverage=0.2, loss=0.0025))
        True
        """
        lack = self.lack(measure)
        return lack >= 0 if self.is_loss else lack <= MET_WITHIN

    def notes(self, measure: Measure) -> tuple[str, ...]:
        """Say that the goal was missed, if it was."""
        if self.is_met(measure):
            return ()
        return (f"The target, {self}, was not met: no strength comes nearer.",)

    def miss(self, measure: Measure) -> float:
        """Return how far a measure is from the goal; the wrong side of a bound is farthest."""
        lack = self.lack(measure)
        wrong = lack < 0 if self.is_loss else lack > 0
        return abs(lack) + (1.0 if wrong and self.kind != "gini" else 0.0)

    def distance(self, measure: Measure) -> tuple[bool, float]:
        """Return whether a measure misses the goal, and how far it is from it on either side."""
        return not self.is_met(measure), self.miss(measure)

    def cost(self, measure: Measure) -> tuple[float, float]:
        """Return what a measure is judged by: how far it is beyond the goal, and what it costs.

        Where a loss may be spent, the cost is the Gini index that it bought.
        """
        missed = 0.0 if self.is_met(measure) else self.miss(measure)
        return missed, measure.gini if self.is_loss else measure.loss

    def __str__(self) -> str:
        among = f" among {self.n_groups:,} groups" if self.n_groups and not self.is_loss else ""
        return f"{wish_words(self.kind, self.value)}{among}"


@dataclass(frozen=True)
class JointGoal(Goal):
    """Several wishes at once: the exposure that all of them ask for, within the loss they allow.

    As a goal it is the wish for exposure that is farthest from being met, which is the one that a
    search follows; ``kind`` and ``value`` are those of the first wish.
    """

    goals: tuple[Goal, ...] = ()

    @classmethod
    def of(cls, goals: Sequence[Goal]) -> JointGoal:
        """Put wishes together, one of which at least is for exposure."""
        ordered = tuple(sorted(goals, key=lambda goal: goal.is_loss))
        return cls(ordered[0].kind, ordered[0].value, ordered[0].n_groups, ordered)

    def among(self, n_groups: int) -> JointGoal:
        """Return the same wishes for the exposure of so many groups."""
        return self.of([goal.among(n_groups) for goal in self.goals])

    @property
    def wishes(self) -> tuple[Goal, ...]:
        """All wishes, those for exposure first."""
        return self.goals

    def for_exposure(self) -> Goal | None:
        """Return what is asked of exposure alone."""
        return self.of([goal for goal in self.goals if not goal.is_loss])

    def lack(self, measure: Measure) -> float:
        """Return how far the exposure should still be evened out, for the wish that lacks most."""
        return max(goal.lack(measure) for goal in self.wishes if not goal.is_loss)

    def miss(self, measure: Measure) -> float:
        """Return how far the wishes are from being met that are not, or the first, if all are."""
        missed = [abs(goal.lack(measure)) for goal in self.wishes if not goal.is_met(measure)]
        return sum(missed) if missed else super().miss(measure)

    def is_met(self, measure: Measure) -> bool:
        """Tell whether all wishes are met."""
        return all(goal.is_met(measure) for goal in self.wishes)

    def notes(self, measure: Measure) -> tuple[str, ...]:
        """Say which wishes stand in the way of the others, if they cannot all be met."""
        missed = [str(goal) for goal in self.wishes if not goal.is_met(measure)]
        if not missed:
            return ()
        met = [str(goal) for goal in self.wishes if goal.is_met(measure)]
        beside = f" beside {' and '.join(met)}" if met else ""
        missing = " and ".join(missed)
        return (f"Not all targets can be met together: {missing} stands in the way{beside}.",)

    def __str__(self) -> str:
        return " and ".join(map(str, self.wishes))


def as_goals(**wishes: float | None) -> list[Goal]:
    """Take the wishes that were given.

    Examples
    --------
    >>> as_goals(gini=0.6, min_coverage=None, max_relevance_loss=None)
    [Goal(kind='gini', value=0.6)]
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    for name, value in given.items():
        check_number(name, value)
        if value > 1:
            message = f"{name} must be from 0 to 1: {value!r}"
            raise ConfigError(message, hint="0.6 is a Gini index, 0.02 a loss of 2 %")
    return [Goal(name, float(value)) for name, value in given.items()]  # type: ignore[arg-type]


def as_goal(**wishes: float | None) -> Goal:
    """Take the one wish that was given.

    Examples
    --------
    >>> as_goal(gini=0.6, min_coverage=None, max_relevance_loss=None)
    Goal(kind='gini', value=0.6)
    """
    goals = as_goals(**wishes)
    if len(goals) != 1:
        given = ", ".join(goal.kind for goal in goals) or "none was given"
        message = f"give one target, not {len(goals)}: {given}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(wishes)}, or shares of groups")
    return goals[0]


FIRST = 0.1
"""The strength that is tried first, unless a better guess is known."""
NEAR = 1.4
"""How many times larger or smaller the next strength is, where the first is a good guess."""
STRIDE = 4.0
"""How many times larger or smaller it is otherwise, until one is too small and one too large."""
_LEAST = 1e-6  # a strength below this changes nothing
_STEPS = 16  # between these two, at most
_NARROW = 1.02  # how much larger one of two strengths is at least, where lists settle
_CLOSE = 1.1  # how much larger one of two strengths may be if the smaller is wanted
_EDGE = 0.2  # of the way between them that interpolation keeps from either
TRIES = 8
"""How many strengths are usually tried."""


class Trial(NamedTuple):
    """A strength that was tried, the measure of its lists, and what the control keeps of these."""

    strength: float
    measure: Measure
    lists: Any = None


class OutOfReachError(SolveError):
    """No strength meets the goal."""

    nearest: Trial


def meet(
    control: Control,
    goal: Goal,
    *,
    first: float = FIRST,
    stride: float = STRIDE,
    advance: Callable[[], None] = lambda: None,
) -> Trial:
    """Try strengths of a control until the goal is met, as nearly as the method can.

    ``first`` is the strength to try first, ``stride`` how many times larger or smaller the next one
    is; ``advance`` is called after every try.
    """
    search = _Search(control, goal, advance)
    plain = search.try_at(0.0)
    if goal.lack(plain.measure) <= 0:
        return plain
    if control.whole:
        return _meet_whole(search, control, goal)
    low, high = search.bracket(min(first, control.most), stride)
    for _ in range(_STEPS):
        # Many strengths may give the same coverage, and the smallest of them loses least.
        settled = goal.kind != "min_coverage" or high.strength <= _CLOSE * low.strength
        if low is high or (settled and goal.ends_search(search.last.measure)):
            break
        if control.settles and high.strength < _NARROW * low.strength:
            # Lists settle from one strength to the next, so an end that was tried long ago may lie
            # on the other side by now.
            low, high = search.bracket(search.last.strength, _NARROW**2)
            continue
        # The curve bends, so a strength by interpolation stays away from the ends: a step that
        # hardly shrinks the bracket would be wasted.
        gap = goal.lack(low.measure) - goal.lack(high.measure)
        share = np.clip(goal.lack(low.measure) / gap if gap > 0 else 0.5, _EDGE, 1 - _EDGE)
        middle = search.try_at(float(low.strength * (high.strength / low.strength) ** share))
        low, high = (middle, high) if goal.lack(middle.measure) > 0 else (low, middle)
    if goal.is_loss and search.best is not None:
        # A larger strength may lose less. What counts is the exposure that was bought.
        return search.best
    if goal.ends_search(search.last.measure):
        return search.last
    return search.nearest


def _meet_whole(search: _Search, control: Control, goal: Goal) -> Trial:
    """Find the least guarantee that meets the goal, or the largest that a loss allows."""
    low, high = 0, int(control.most)
    best = search.try_at(high)
    if goal.lack(best.measure) > 0 and not goal.is_loss:
        search.give_up(best)
    lowest = search.try_at(0.0)
    while high - low > 1:
        middle = search.try_at((low + high) // 2)
        if goal.lack(middle.measure) > 0:
            low, lowest = int(middle.strength), middle
        else:
            high, best = int(middle.strength), middle
    return lowest if goal.is_loss and goal.lack(best.measure) < 0 else best


class _Search:
    def __init__(self, control: Control, goal: Goal, advance: Callable[[], None]) -> None:
        self._control, self._goal, self._advance = control, goal, advance
        self.last: Trial
        self.best: Trial | None = None
        self.nearest: Trial

    def try_at(self, strength: float) -> Trial:
        self.last = trial = self._control.try_at(strength)
        goal = self._goal
        if self.best is None:
            self.best = self.nearest = trial
        if goal.cost(trial.measure) < goal.cost(self.best.measure):
            self.best = trial
        if goal.distance(trial.measure) < goal.distance(self.nearest.measure):
            self.nearest = trial
        self._advance()
        return trial

    def bracket(self, first: float, stride: float) -> tuple[Trial, Trial]:
        """Find a strength that is too small and one that is too large; once, if there is none."""
        low = high = self.try_at(first)
        # A guess may be far off, so every further step is twice as long, on the scale of ratios.
        strides = (min(stride ** (2 ** min(n, 6)), max(stride, STRIDE)) for n in count())
        while self._goal.lack(high.measure) > 0:
            if high.strength >= self._control.most:
                if self._goal.is_loss:
                    return high, high
                self.give_up(high)
            low, high = high, self.try_at(min(high.strength * next(strides), self._control.most))
        while self._goal.lack(low.measure) < 0 and low.strength > _LEAST:
            low, high = self.try_at(low.strength / next(strides)), low
        return low, high

    def give_up(self, best: Trial) -> None:
        """Say how near the method came."""
        gini, coverage, _, mmf = best.measure
        found = [f"a Gini index of {gini:.3f}", f"a coverage of {percent(coverage)}"]
        found += [f"an MMF of {percent(mmf)}"] if self._goal.n_groups else []
        message = (
            f"out of reach: {self._goal}; this method and these candidates allow "
            f"{', '.join(found[:-1])} and {found[-1]}"
        )
        hint = "weaken the target, give users more candidates, or try another method"
        error = OutOfReachError(message, hint=hint)
        error.nearest = best
        raise error
