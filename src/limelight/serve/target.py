"""Holding a target over a window of what was shown: strength and prices follow the ledger.

The figure that is asked for, such as the Gini index, is measured over all lists of the window. The
logarithm of strength follows how far the figure is from its target (a proportional part) and for
how long it was so (an integral part). Time counts in lists: one unit is as many as the window has,
so that a burst or a quiet night changes nothing. Subsidies follow the exposure of the window
themselves, which makes most of the correction; strength need only be about right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf, log
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.special import i0e, i1e

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_number
from limelight.metrics.lists import position_weights
from limelight.rerank.targets.groups import as_bounds
from limelight.rerank.targets.search import MET_WITHIN, Goal, Measure
from limelight.serve.history import History, WindowPoint
from limelight.serve.prices import AccountPrices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64
    from limelight.serve.goal import ServedGoal
    from limelight.serve.ledger import Ledger

LEAST, MOST = 1e-3, 1e2
"""Strengths. Below, lists are the plain ones; above, the exposure hardly gets any more even."""
_USUAL_SLOPES = {"gini": 0.12, "min_coverage": 0.3, "max_relevance_loss": 1.5}
"""By how much a figure moves when strength grows e-fold; a loss relative to its bound. Measured
slopes are from a half to twice as much where targets make sense, and smaller near what is possible,
where control is slower."""
_AT_ONCE, _IN_TIME = 6.0, 4.0
"""How strength answers an error that e-fold strength would mend: as a power of e at once, and in
the course of one window in which it stays. A share of all lists in the window has to make up for
the others, hence more than 1. Larger numbers hold nearer, and waste relevance by swings."""
FIRST = 0.3
"""The strength to start with where none is known."""
_FARTHEST = 1.5
"""How far strength goes at once, as a power of e, whatever the error is."""
_OF_WINDOW, _OF_WINDOW_FOR_PRICES = 0.01, 0.0025
"""How much of the window is new when the exposure is measured again, and when prices move."""
_SECONDS_AN_ITEM = 8e-6
"""How much time passes between measurements at least: a hundred times of what one takes."""
_STUCK = 0.25
"""After how much of a window at its bound strength counts as unable to reach the target."""
_LONGEST = 1000


class Steered(Protocol):
    """What a target is held with."""

    strength: float
    prices: Float64 | None


class Account(NamedTuple):
    """The share of a group, its bounds, and its price in units of a place of a plain list."""

    group: Any
    share: float
    floor: float
    cap: float
    price: float


@dataclass(frozen=True)
class TargetStatus:
    """What is held, and what that takes."""

    asked: dict[str, Any]
    measure: Measure | None
    """Of the window, None while nothing was measured."""
    strength: float
    is_met: bool
    is_reachable: bool
    """False once strength has been at its bound for long, and the target is still missed."""
    notes: tuple[str, ...]
    accounts: tuple[Account, ...] = ()
    """Of groups, those nearest to or farthest beyond their bounds first."""
    history: tuple[WindowPoint, ...] = field(default=(), repr=False)

    @property
    def loss(self) -> float:
        """The share of the relevance of plain lists that is given up; 0 before it is known."""
        return self.measure.loss if self.measure else 0.0


class TargetHolder:
    """Moves the strength of a control, and the prices of groups, so that the window has a figure.

    Parameters
    ----------
    goal
        What is to be held.
    control
        Whose ``strength`` and ``prices`` are moved. Strength starts where it is, or at a usual one
        where it is 0 and the goal asks for some.
    ledger
        What was shown. With bounds of groups it has to have groups.
    window
        Seconds that the ledger looks back.
    most
        The largest strength.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from limelight.serve.goal import ServedGoal
    >>> from limelight.serve.ledger import Ledger
    >>> control, ledger = SimpleNamespace(strength=0.1, prices=None), Ledger(4, window=3600)
    >>> holder = TargetHolder(ServedGoal(gini=0.2), control, ledger, window=3600)
    >>> for second in range(100):
    ...     counted = ledger.count(np.array([0, 1], dtype=np.int32), time=float(second))
    ...     holder.tick(float(second))
    >>> control.strength > 1  # two of four items have everything
    True
    """

    def __init__(
        self,
        goal: ServedGoal,
        control: Steered,
        ledger: Ledger,
        *,
        window: float,
        most: float = MOST,
    ) -> None:
        check_number("window", window, above=0)
        check_number("most", most, above=LEAST)
        self.window, self._most = float(window), float(most)
        self.history = History(window / 200)
        if goal.goals and not control.strength:
            control.strength = min(FIRST, most)
        self._log = log(min(max(control.strength, LEAST), most))
        self._measure: Measure | None = None
        self._stuck_since = inf
        self._measured_at = -inf
        self._floor, self._began, self._per_item = 0.0, inf, 0.0
        self.prices: AccountPrices | None = None
        self.serve_with(control, ledger)
        self.aim(goal)

    def serve_with(self, control: Steered, ledger: Ledger) -> None:
        """Go on with another control or ledger, such as those of a model that was fitted anew."""
        self.control, self.ledger = control, ledger
        self._growth = _Growth(ledger)
        self._new = self._new_for_prices = 0
        if hasattr(self, "goal"):
            self.aim(self.goal)
            if self.goal.goals:
                control.strength = self._strength(0.0)

    def aim(self, goal: ServedGoal) -> None:
        """Hold another target from now on; prices of the same groups stay as they are."""
        kept, self.goal, self._stuck_since = self.prices, goal, inf
        self.prices = None
        if goal.has_groups:
            members = self.ledger.groups
            if members is None:
                message = f"caps and floors need groups of items, and there are none: {goal}"
                raise ConfigError(message, hint="give a table item_id,group[,weight]")
            bounds = as_bounds(goal.group_cap, goal.group_floor, members, self.ledger.n_items)
            self.prices = AccountPrices(bounds.low, bounds.high)
            if kept is not None:
                self.prices.restore(kept.state())
        if self.prices is not None:
            self.control.prices = self.prices.prices
        elif kept is not None:
            self.control.prices = None

    def tick(self, time: float) -> None:
        """Measure the window and move strength and prices, where that is due.

        It may be called after every list, which costs a microsecond, or every second.
        """
        grown = self._growth.take()
        self._new += grown
        self._new_for_prices += grown
        lists = self.ledger.lists
        if not grown or lists <= 0:
            return
        if self.prices is not None and self._new_for_prices >= _OF_WINDOW_FOR_PRICES * lists:
            self._move_prices(lists)
        soonest = self._measured_at + _SECONDS_AN_ITEM * self.ledger.n_items
        if time >= soonest and (
            self._new >= _OF_WINDOW * lists or time >= self._measured_at + _OF_WINDOW * self.window
        ):
            self._follow(time, lists)

    def _move_prices(self, lists: float) -> None:
        assert self.prices is not None
        whole = float(self.ledger.totals.sum())
        if whole > 0:
            shares = np.asarray(self.ledger.group_totals / whole, dtype=np.float64)
            # Of the first lists everything is new, but they say little of those that follow.
            step = min(self._new_for_prices / lists, _OF_WINDOW)
            self.control.prices = self.prices.move(shares, step)
        self._new_for_prices = 0

    def _follow(self, time: float, lists: float) -> None:
        held = np.asarray(self.ledger.totals, dtype=np.float64)
        if not held.any():
            return
        step = min(self._new / lists, 10 * _OF_WINDOW)
        self._new, self._measured_at = 0, time
        self._measure = Measure.of(held, self.ledger.shown, self.ledger.plain)
        self._per_item = places_per_item(float(held.sum()) / (1 << 20), lists, len(held))
        self._floor = max(0.0, 1 - self._per_item)
        if self.goal.goals:
            error = self._error(self._measure, self._filled(time))
            least, most = log(LEAST), log(self._most)
            # What cannot be done is not remembered: beyond a bound the integral part stands still.
            self._log = min(max(self._log + _IN_TIME * step * error, least), most)
            self.control.strength = self._strength(error)
            at_bound = self.control.strength >= self._most * (1 - 1e-9)
            self._stuck_since = min(self._stuck_since, time) if at_bound else inf
        self.history.add(WindowPoint(time, *self._measure[:3], self.control.strength))

    def _strength(self, error: float) -> float:
        at_once = min(max(_AT_ONCE * error, -_FARTHEST), _FARTHEST)
        return exp(min(max(self._log + at_once, log(LEAST)), log(self._most)))

    def _filled(self, time: float) -> float:
        """Return what part of the window has passed since lists were first counted."""
        self._began = min(self._began, self._growth.oldest, time)
        return min(max((time - self._began) / self.window, 0.01), 1.0)

    def _error(self, measure: Measure, filled: float) -> float:
        """Return by what power of e strength should grow, as far as usual slopes tell."""
        wishes, bounds = [], []
        for goal in self.goal.goals:
            scale = _USUAL_SLOPES[goal.kind]
            if goal.is_loss:
                most = max(goal.value, 1e-6)
                bounds.append(min(max((most - measure.loss) / most, -1.0), 1.0) / scale)
            else:
                wishes.append(self._possible(goal, filled).lack(measure) / scale)
        return min([*bounds, max(wishes)] if wishes else bounds)

    def _possible(self, goal: Goal, filled: float) -> Goal:
        """Return what can be asked of so few lists; of enough lists, what was asked.

        While the window fills, its lists are to be like those that follow: less even by themselves
        than the whole window. If they were as even, relevance would be wasted on them, and prices
        would swing when they are forgotten.
        """
        room = 1 - self._floor
        thinned = thinned_evenness(self._per_item, filled)
        if goal.kind == "gini":
            return Goal("gini", max(1 - (1 - goal.value) * thinned, self._floor + 0.1 * room))
        return Goal(goal.kind, min(goal.value * thinned, 0.9 * room))

    def status(self) -> TargetStatus:
        """Say what is asked, what is held, at what cost, and what is out of reach."""
        measure, goals = self._measure, self.goal.goals
        is_stuck = self._measured_at - self._stuck_since >= _STUCK * self.window
        accounts = self._accounts()
        is_met = measure is not None and all(map(_within_bounds, accounts))
        if measure is not None:
            is_met = is_met and all(goal.is_met(measure) for goal in goals)
        reachable = is_met or not is_stuck
        return TargetStatus(
            asked=self.goal.asked,
            measure=measure,
            strength=self.control.strength,
            is_met=is_met,
            is_reachable=reachable,
            notes=self._notes(is_stuck=not reachable),
            accounts=accounts,
            history=self.history.points,
        )

    def _notes(self, *, is_stuck: bool) -> tuple[str, ...]:
        measure = self._measure
        if measure is None:
            return ("Nothing was measured yet.",)
        notes = []
        if self.goal.gini is not None and self.goal.gini < self._floor:
            lists, floor = self.ledger.lists, self._floor
            notes.append(f"{lists:,.0f} lists cannot have a Gini index below {floor:.3f}.")
        elif is_stuck:
            reached = f"a Gini index of {measure.gini:.3f}, a coverage of {measure.coverage:.3f}"
            notes.append(f"Out of reach: {self.goal}. The largest strength gives {reached}.")
        if self.goal.goals and self.control.strength <= LEAST * 1.001:
            notes.append("The target is met without control.")
        return tuple(notes)

    def _accounts(self) -> tuple[Account, ...]:
        whole, prices, members = float(self.ledger.totals.sum()), self.prices, self.ledger.groups
        if prices is None or members is None or whole <= 0:
            return ()
        shares = self.ledger.group_totals / whole
        beyond = np.maximum(shares - prices.high, prices.low - shares)
        columns = (shares, prices.low, prices.high, prices.prices)
        return tuple(
            Account(members.group_ids[group], *(float(column[group]) for column in columns))
            for group in np.argsort(-beyond, kind="stable").tolist()
        )

    def state(self) -> dict[str, Any]:
        """Return what :meth:`restore` takes, to be stored beside the ledger; JSON can hold it."""
        return {
            "log_strength": self._log,
            "strength": self.control.strength,
            "began": None if self._began == inf else self._began,
            "prices": [] if self.prices is None else self.prices.state(),
            "history": self.history.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where another one was; prices of other groups are left alone."""
        try:
            own, strength = float(state["log_strength"]), float(state["strength"])
            if not (log(LEAST) <= own < inf and 0 <= strength < inf):
                message = f"no state of a target: log_strength={own}, strength={strength}"
                raise DataError(message, hint="start anew, without it")
            began = state["began"]
            self._log = min(own, log(self._most))
            self._began = inf if began is None else float(began)
            if self.goal.goals:
                self.control.strength = min(strength, self._most)
            if self.prices is not None and state["prices"]:
                self.prices.restore(state["prices"])
                self.control.prices = self.prices.prices
            self.history.restore(state["history"])
        except (KeyError, TypeError, ValueError) as error:
            message = f"no state of a target: {type(error).__name__} {error}"
            raise DataError(message, hint="start anew, without it") from error


class _Growth:
    """How many lists were counted since it was asked last, whatever was forgotten meanwhile."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bucket = ledger.bucket_of(ledger.time)
        self._lists, self._later = ledger.lists, self._count(self._bucket)
        numbers = [number for number, _, part in ledger.parts() if part.lists]
        self.oldest = min(numbers) * ledger.width if numbers else inf

    def take(self) -> int:
        ledger = self._ledger
        bucket = ledger.bucket_of(ledger.time)
        if bucket == self._bucket and ledger.lists >= self._lists:
            grown = round(ledger.lists - self._lists)
            self._later += grown
        else:
            grown = max(self._count(self._bucket) - self._later, 0)
            self._bucket, self._later = bucket, self._count(bucket)
        self._lists = ledger.lists
        return grown

    def _count(self, bucket: int) -> int:
        return sum(part.lists for number, _, part in self._ledger.parts() if number >= bucket)


def _within_bounds(account: Account) -> bool:
    return account.floor - MET_WITHIN / 5 <= account.share <= account.cap + MET_WITHIN / 5


_GIVEN = np.cumsum(position_weights(_LONGEST))


def places_per_item(total: float, lists: float, n_items: int) -> float:
    """Return how many places there are for each item in lists that give so much exposure in all.

    Examples
    --------
    >>> places_per_item(position_weights(20).sum() * 100, 100, 4000)
    0.5
    """
    length = int(np.argmin(np.abs(_GIVEN - total / max(lists, 1.0)))) + 1
    return length * lists / max(n_items, 1)


def thinned_evenness(per_item: float, filled: float) -> float:
    """Return how even a part of a window is, relative to the whole, if all its lists are alike.

    The Gini index of Poisson numbers with the mean m is exp(-2m) (I0(2m) + I1(2m)).

    Examples
    --------
    >>> thinned_evenness(10.0, 1.0), round(thinned_evenness(2.5, 0.25), 2)
    (1.0, 0.79)
    """
    part, whole = (1 - (i0e(2 * m) + i1e(2 * m)) for m in (per_item, per_item / filled))
    return float(part / whole)
