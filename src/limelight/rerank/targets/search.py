"""Finding the strength at which a method meets a goal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import SolveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.rerank.targets.controls import Control
    from limelight.rerank.targets.goal import Goal, Measure

FIRST = 0.1
"""The strength that is tried first, unless a better guess is known."""
_STRIDE = 4.0  # from a strength to the next, until one is too small and one too large
_LEAST = 1e-6  # a strength below this changes nothing
_STEPS = 16  # between these two, at most
_CLOSE = 1.1  # how much larger one of two strengths may be if the smaller is wanted
_EDGE = 0.2  # of the way between them that interpolation keeps from either
TRIES = 8
"""How many strengths are usually tried."""


class Trial(NamedTuple):
    """A strength that was tried, what it came to, and what the control keeps of the lists."""

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
    advance: Callable[[], None] = lambda: None,
) -> Trial:
    """Try strengths of a control until the goal is met, as nearly as the method can.

    Parameters
    ----------
    control
        The method.
    goal
        What to meet.
    first
        The strength to try first.
    advance
        Called after every try.
    """
    search = _Search(control, goal, advance)
    plain = search.try_at(0.0)
    if goal.lack(plain.measure) <= 0:
        return plain
    if control.whole:
        return _meet_whole(search, control, goal)
    low, high = search.bracket(min(first, control.most))
    for _ in range(_STEPS):
        # Many strengths may give the same coverage, and the smallest of them loses least.
        settled = goal.kind != "min_coverage" or high.strength <= _CLOSE * low.strength
        if settled and goal.ends_search(search.last.measure):
            return search.last
        # The curve bends, so a strength by interpolation stays away from the ends: a step that
        # hardly shrinks the bracket would be wasted.
        gap = goal.lack(low.measure) - goal.lack(high.measure)
        share = np.clip(goal.lack(low.measure) / gap if gap > 0 else 0.5, _EDGE, 1 - _EDGE)
        middle = search.try_at(low.strength * (high.strength / low.strength) ** share)
        low, high = (middle, high) if goal.lack(middle.measure) > 0 else (low, middle)
    return min((plain, low, high), key=lambda trial: goal.miss(trial.measure))


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

    def try_at(self, strength: float) -> Trial:
        self.last = self._control.try_at(strength)
        self._advance()
        return self.last

    def bracket(self, first: float) -> tuple[Trial, Trial]:
        """Find a strength that is too small and one that is too large."""
        low = high = self.try_at(first)
        while self._goal.lack(high.measure) > 0:
            if high.strength >= self._control.most:
                if self._goal.is_loss:
                    return high, high
                self.give_up(high)
            low, high = high, self.try_at(min(high.strength * _STRIDE, self._control.most))
        while self._goal.lack(low.measure) < 0 and low.strength > _LEAST:
            low, high = self.try_at(low.strength / _STRIDE), low
        return low, high

    def give_up(self, best: Trial) -> None:
        """Say how near the method came."""
        gini, coverage, _ = best.measure
        message = (
            f"out of reach: {self._goal}; this method and these candidates allow "
            f"a Gini index of {gini:.3f} and a coverage of {coverage:.3f}"
        )
        hint = "ask for less, give users more candidates, or try another method"
        error = OutOfReachError(message, hint=hint)
        error.nearest = best
        raise error
