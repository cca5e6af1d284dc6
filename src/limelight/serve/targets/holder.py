"""Holding a target over a window of what was shown: strength and prices follow the ledger.

The figure that is asked for, such as the Gini index, is measured over all lists of the window. The
logarithm of strength is its mean over these lists, because that is what made the figure, plus a
part in proportion to how far the figure is from its target. Time counts in lists, so that a burst
or a quiet night changes nothing. Subsidies follow what was shown themselves, which makes most of
the correction; strength need only be about right.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_number
from limelight._base.text import percent
from limelight.metrics.exposure import gini
from limelight.rerank.targets.groups import as_bounds
from limelight.rerank.targets.search import Goal, Measure
from limelight.serve.ledger.buckets import UNIT
from limelight.serve.targets.growth import Growth, places_per_item, thinned_evenness
from limelight.serve.targets.history import History, PastStrengths, WindowPoint
from limelight.serve.targets.prices import AccountPrices
from limelight.serve.targets.status import Account, TargetStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight.serve.ledger.ledger import Ledger
    from limelight.serve.targets.goal import ServedGoal
    from limelight.serve.targets.status import Steered

LEAST, MOST = 1e-3, 1e2
"""Strengths. Below, lists are the plain ones; above, the exposure hardly gets any more even."""
_USUAL_SLOPES = {"gini": 0.12, "min_coverage": 1.2, "max_relevance_loss": 1.5}
"""By how much a figure moves when strength grows e-fold; a loss relative to its bound. Measured
slopes are from a half to twice as much where targets make sense, and smaller near what is possible,
where control is slower. Coverage is steep near 1, where items come back together, and swings there
if it is taken to be flatter."""
_FIGURES = {"gini": "gini", "min_coverage": "coverage", "max_relevance_loss": "loss"}
_AT_ONCE = 4.0
"""How strength answers an error that e-fold strength in all lists would mend, as a power of e. New
lists have to make up for the others of the window, hence more than 1. A larger number holds nearer;
but when such lists are forgotten, others have to make up for that, and relevance is wasted."""
FIRST = 0.3
"""The strength to start with where none is known."""
_FARTHEST = 1.5
"""How far strength goes at once, as a power of e, whatever the error is."""
_OF_WINDOW, _OF_WINDOW_FOR_PRICES = 0.01, 0.0025
"""How much of the window is new when the exposure is measured again, and when prices move."""
_SECONDS_AN_ITEM = 8e-6
"""How much time passes between measurements at least: a hundred times of what one takes."""
_STUCK = 0.25
"""After how much of a window of doing all that can be done the target counts as out of reach."""
_INSIDE = 0.02
"""How far below a bound of the loss strength aims, relative to it: the loss moves around that."""
_OUTSIDE = 0.002
"""How far beyond its bound the share of a group may be."""
_PLAIN_EVERY = 8
"""At which of all measurements lists without control are measured, too."""


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
        Seconds that the ledger looks back; by default its window or, with a half-life, the mean age
        of what counts.
    most
        The largest strength.

    Examples
    --------
    >>> from limelight.rerank.relevance.laws import BY_RANK
    >>> from limelight.serve.control import ControlConfig, RequestControl
    >>> from limelight.serve.targets.goal import ServedGoal
    >>> from limelight.serve.ledger.ledger import Ledger
    >>> control = RequestControl(ControlConfig(n_items=4, law=BY_RANK, unit=1.0), 0.1)
    >>> ledger = Ledger(4, window=3600)
    >>> holder = TargetHolder(ServedGoal(gini=0.2), control, ledger)
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
        window: float | None = None,
        most: float = MOST,
    ) -> None:
        if window is None:
            window = ledger.window or (ledger.half_life or 0.0) / log(2)
        check_number("window", window, above=0)
        check_number("most", most, above=LEAST)
        self.window, self._most = float(window), float(most)
        self.history = History(window / 200)
        first = log(min(max(control.strength or FIRST, LEAST), most))
        self._past = PastStrengths(first, ledger.lists)
        self._measure: Measure | None = None
        self._gini_plain: float | None = None
        self._n_measured = 0
        self._stuck_since = self._outside_since = inf
        self._measured_at = -inf
        self._floor = self._per_item = 0.0
        self._from: Measure | None = None
        self._gone = 1.0
        self.prices: AccountPrices | None = None
        self._serve(control, ledger)
        self.goal = goal
        self.aim(goal)

    def serve_with(self, control: Steered, ledger: Ledger) -> None:
        """Go on with another control or ledger, such as those of a model that was fitted anew."""
        strength = self.control.strength
        self._serve(control, ledger)
        if self.goal.goals:
            control.strength = strength
        self.aim(self.goal)

    def _serve(self, control: Steered, ledger: Ledger) -> None:
        self.control, self.ledger, self._own_strength = control, ledger, control.strength
        self._growth = Growth(ledger)
        self._new = self._new_for_prices = 0
        self._look()

    def aim(self, goal: ServedGoal) -> None:
        """Hold another target; it is gone to in the course of one window.

        Prices of the same groups stay as they are.
        """
        bounds = None
        if goal.has_groups:
            members = self.ledger.groups
            if members is None:
                message = f"caps and floors need groups of items, and there are none: {goal}"
                raise ConfigError(message, hint="give a table item_id,group[,weight]")
            wishes = as_bounds(goal.group_cap, goal.group_floor, members, self.ledger.n_items)
            bounds = AccountPrices(wishes.low, wishes.high, members.group_ids)
            if self.prices is not None:
                bounds.restore(self.prices.state())
        if not goal.goals:
            self.control.strength = self._own_strength
        elif not self.control.strength:
            self.control.strength = exp(self._past.mean)
        if goal.goals != self.goal.goals and self._measure is not None:
            self._from, self._gone = self._measure, 0.0
            if any(wish.lack(self._measure) > 0 for wish in goal.goals):
                # From nearly no control it would take windows to get anywhere.
                first = max(self._past.mean, log(min(FIRST, self._most)))
                self._past = PastStrengths(first, self.ledger.lists)
        self.goal, self.prices = goal, bounds
        self.control.prices = None if bounds is None else bounds.prices
        self._stuck_since = self._outside_since = inf

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
            self._move_prices(time, lists)
        # A clock that was set back must not stop control until it is where it was.
        self._measured_at = min(self._measured_at, time)
        soonest = self._measured_at + _SECONDS_AN_ITEM * self.ledger.n_items
        if time >= soonest and (
            self._new >= _OF_WINDOW * lists or time >= self._measured_at + _OF_WINDOW * self.window
        ):
            self._follow(time, lists)

    def _move_prices(self, time: float, lists: float) -> None:
        assert self.prices is not None
        whole = float(self.ledger.totals.sum())
        if whole > 0:
            shares = np.asarray(self.ledger.group_totals / whole, dtype=np.float64)
            # Of the first lists everything is new, but they say little of those that follow.
            step = min(self._new_for_prices / lists, _OF_WINDOW)
            self.control.prices = self.prices.move(shares, step)
            is_outside = bool((self.prices.outside(shares) > _OUTSIDE).any())
            self._outside_since = min(self._outside_since, time) if is_outside else inf
        self._new_for_prices = 0

    def _look(self) -> Measure | None:
        """Measure the window; None if there is nothing in it."""
        held, lists = np.asarray(self.ledger.totals, dtype=np.float64), self.ledger.lists
        self._measure = None
        if held.any():
            self._measure = Measure.of(held, self.ledger.shown, self.ledger.plain)
            self._per_item = places_per_item(float(held.sum()) / UNIT, lists, len(held))
            self._floor = max(0.0, 1 - self._per_item)
        return self._measure

    def _follow(self, time: float, lists: float) -> None:
        if (measure := self._look()) is None:
            return
        new, self._new, self._measured_at = self._new, 0, time
        self._gone = min(self._gone + new / lists, 1.0)
        if self.goal.goals:
            error, gives_way = self._error(measure, self._growth.filled(time))
            # Nothing winds up: a strength within its bounds has a mean within them.
            self._past.add(new, log(self.control.strength), lists)
            at_once = min(max(_AT_ONCE * error, -_FARTHEST), _FARTHEST)
            wanted = exp(self._past.mean + at_once)
            self.control.strength = min(max(wanted, LEAST), self._most)
            is_stuck = gives_way or self._is_strongest
            self._stuck_since = min(self._stuck_since, time) if is_stuck else inf
        if self._n_measured % _PLAIN_EVERY == 0:
            plain = self.control.plain_exposure(lists)
            self._gini_plain = self._gini_plain if plain is None else gini(plain)
        self._n_measured += 1
        self.history.add(WindowPoint(time, *measure[:3], self.control.strength))

    @property
    def _is_strongest(self) -> bool:
        return self.control.strength >= self._most * (1 - 1e-9)

    def _error(self, measure: Measure, filled: float) -> tuple[float, bool]:
        """Return by what power of e strength should grow, as far as usual slopes tell.

        Tells, too, whether a wish for exposure gives way to a bound of the loss.
        """
        wishes, bounds = [], []
        for goal in map(self._now, self.goal.goals):
            scale = _USUAL_SLOPES[goal.kind]
            if goal.is_loss:
                most = max(goal.value * (1 - _INSIDE), 1e-6)
                bounds.append(min(max((most - measure.loss) / most, -1.0), 1.0) / scale)
            else:
                wishes.append(self._possible(goal, filled).lack(measure) / scale)
        if not wishes:
            return min(bounds), False
        return min([*bounds, max(wishes)]), bool(bounds) and min(bounds) < max(wishes)

    def _now(self, goal: Goal) -> Goal:
        """Return what is asked for now, on the way from where another target was.

        At once, the next lists would have to make up for all others of the window, and the window
        would be far beyond the target when these are forgotten.
        """
        if self._from is None or self._gone >= 1:
            return goal
        start = getattr(self._from, _FIGURES[goal.kind])
        return Goal(goal.kind, start + self._gone * (goal.value - start))

    def _possible(self, goal: Goal, filled: float) -> Goal:
        """Return what can be asked of so few lists; of enough lists, what was asked.

        While the window fills, its lists are to be like those that follow: less even by themselves
        than the whole window. If they were as even, relevance would be wasted on them, and prices
        would swing when they are forgotten.
        """
        floor, room = self._floor, 1 - self._floor
        # Where there are fewer places than items, each further one must go to an item without any.
        spare = 0.1 * min(floor, room)
        thinned = thinned_evenness(self._per_item, filled)
        if goal.kind == "gini":
            return Goal("gini", max(1 - (1 - goal.value) * thinned, floor + spare))
        return Goal(goal.kind, min(goal.value * thinned, room - spare))

    def status(self) -> TargetStatus:
        """Say what is asked, what is held, at what cost, and what is out of reach."""
        measure, accounts = self._measure, self._accounts()
        missed = [one for one in accounts if one.outside > _OUTSIDE]
        is_met = measure is not None and all(g.is_met(measure) for g in self.goal.goals)
        is_stuck = not is_met and self._lasts(self._stuck_since, _STUCK)
        is_outside = bool(missed) and self._lasts(self._outside_since, 1.0)
        notes = self._notes(is_stuck=is_stuck)
        if is_outside:
            worst = max(missed, key=lambda one: one.outside)
            is_above = worst.share > worst.cap
            side, bound = ("above", worst.cap) if is_above else ("below", worst.floor)
            notes.append(
                f"{worst.group!r} has been {side} its bound of {100 * bound:g} % for more than a "
                f"window: it has {percent(worst.share, 2)}, at a price of {worst.price:.3g} places."
            )
        return TargetStatus(
            asked=self.goal.asked,
            measure=measure,
            strength=self.control.strength,
            is_met=is_met and not missed,
            is_reachable=not is_stuck and not is_outside,
            notes=tuple(notes),
            accounts=accounts,
            history=self.history.points,
            gini_plain=self._gini_plain,
        )

    def _lasts(self, since: float, windows: float) -> bool:
        return self._measured_at - since >= windows * self.window

    def _notes(self, *, is_stuck: bool) -> list[str]:
        measure = self._measure
        if measure is None:
            return ["Nothing was measured yet."]
        notes = []
        reached = f"a Gini index of {measure.gini:.3f}, a coverage of {percent(measure.coverage)}"
        if self.goal.gini is not None and self.goal.gini < self._floor:
            lists, floor = self.ledger.lists, self._floor
            notes.append(f"{lists:,.0f} lists cannot have a Gini index below {floor:.3f}.")
        elif is_stuck and self._is_strongest:
            notes.append(f"Out of reach: {self.goal}. The largest strength gives {reached}.")
        elif is_stuck:
            notes.append(f"Out of reach: {self.goal}. Within that loss there is {reached}.")
        if self.goal.goals and self.control.strength <= LEAST * 1.001:
            notes.append("The target is met without control.")
        return notes

    def _accounts(self) -> tuple[Account, ...]:
        whole, prices, members = float(self.ledger.totals.sum()), self.prices, self.ledger.groups
        if prices is None or members is None or whole <= 0:
            return ()
        shares = self.ledger.group_totals / whole
        columns = (shares, prices.low, prices.high, prices.prices)
        return tuple(
            Account(members.group_ids[group], *(float(column[group]) for column in columns))
            for group in np.argsort(-prices.outside(shares), kind="stable").tolist()
        )

    def state(self) -> dict[str, Any]:
        """Return what :meth:`restore` takes, to be stored beside the ledger; JSON can hold it."""
        return {
            "past": self._past.state(),
            "strength": self.control.strength,
            "measured_at": _finite(self._measured_at),
            "stuck_since": _finite(self._stuck_since),
            "outside_since": _finite(self._outside_since),
            "new": [self._new, self._new_for_prices],
            "gini_plain": self._gini_plain,
            "moved": None if self._from is None else [self._gone, *self._from],
            "prices": {} if self.prices is None else self.prices.state(),
            "history": self.history.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where another one was; prices of other groups are left alone."""
        try:
            past, strength = PastStrengths.restored(state["past"]), float(state["strength"])
            if not 0 <= strength < inf:
                message = f"strength={strength}"
                raise ValueError(message)  # noqa: TRY301
            measured, stuck, outside = (
                _number(state[name], default)
                for name, default in (
                    ("measured_at", -inf),
                    ("stuck_since", inf),
                    ("outside_since", inf),
                )
            )
            new, new_for_prices = (int(count) for count in state["new"])
            plain, moved = state["gini_plain"], state["moved"]
            gone, *start = [1.0] if moved is None else [float(value) for value in moved]
            begun = Measure(*start) if start else None
            history = History(1.0)
            history.restore(state["history"])
            if self.prices is not None:
                self.prices.restore(state["prices"])
        except (KeyError, TypeError, ValueError) as error:
            message = f"no state of a target: {type(error).__name__} {error}"
            raise DataError(message, hint="start anew, without it") from error
        self._past = past
        self._measured_at, self._stuck_since, self._outside_since = measured, stuck, outside
        self._new, self._new_for_prices, self.history = new, new_for_prices, history
        self._gini_plain = None if plain is None else float(plain)
        self._from, self._gone = begun, gone
        if self.goal.goals:
            self.control.strength = min(max(strength, LEAST), self._most)
        if self.prices is not None:
            self.control.prices = self.prices.prices
        self._look()


def _finite(value: float) -> float | None:
    return value if abs(value) < inf else None


def _number(value: Any, default: float) -> float:
    return default if value is None else float(value)
