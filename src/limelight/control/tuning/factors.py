"""Successive halving of the settings of a factor model, with warm starts.

A trial with few factors costs a fraction of one with many, and tells much about it. So many
settings are tried with few factors, the better half of them with twice as many, and so on. A trial
of a later round starts from the factors of the one before, padded with random ones; a trial of the
first round starts from that of its nearest neighbour. In the end the neighbours of the best are
tried, from where that one is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.control.tuning.search import Search
from limelight.control.tuning.space import FactorSpace, Plan, Round, around, spread_out
from limelight.solve.cost import row_solve
from limelight.solve.state import SideNumber, initial_factors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight._base.arrays import Float64
    from limelight.control.tuning.result import Trial
    from limelight.control.tuning.search import Factors

NUMBERS_OF_TRIALS = 64, 48, 32, 24, 16, 12, 8, 6
"""Of which a budget chooses."""
_ROUGH = 1e-3
"""The tolerance of a trial: enough to compare settings with."""
_EPOCHS_NEAR, _EPOCHS_PADDED = 4, 5
"""At most so many epochs from the factors of a neighbour, and from padded ones."""
_LAST_EPOCHS = 2.0
"""How many more epochs than the first trial the fits at the end take, which end later."""
_STEP, _LEAST_STEP = 0.2, 0.04
_MIDDLE = 0.5, 0.5, 0.0
"""The place of "auto"."""
_SLOW_FACTORS = 32
_TIMID = 0.9
"""Which share of a budget is planned for: a prediction is not always right."""


@dataclass
class _Candidate:
    """Settings that are tried in round after round."""

    number: int
    place: tuple[float, ...] | None
    last: str = ""
    """The name of the last trial that came to factors."""
    ndcg: float = 0.0
    trial: int = 0
    """The number of the last trial."""

    def take(self, name: str, trial: Trial) -> None:
        """Take over what a trial came to."""
        self.last, self.ndcg, self.trial = name if trial.ndcg else "", trial.ndcg, trial.number


class FactorSearch(Search):
    """Tries settings of a factor model with more and more factors, from those of before."""

    def trials(self) -> Iterator[Trial]:
        """Run the rounds, then look around the best."""
        self.space = FactorSpace(self.base.config, self.split.train)
        most = self.most = self.space.settled().factors
        self.is_fixed = "factors" in self.base.config.changed()
        plan = Plan.of(self.limits.trials or max(NUMBERS_OF_TRIALS), most, fixed=self.is_fixed)
        first = self.first = _Candidate(0, None)
        yield self._advance(0, first, plan.rounds[0].factors)
        if self.limits.trials is None:
            plan = self._affordable(most)
            self.most = plan.rounds[-1].factors
        candidates = [first]
        for place in self._places(plan.rounds[0].trials - 1):
            candidates.append(_Candidate(len(candidates), place))
        tried: list[_Candidate] = []
        for number, one in enumerate(plan.rounds):
            tried = []
            for candidate in candidates:
                if not (number == 0 and candidate is first and candidate.last):
                    if tried and not self._has_time(one, plan.rounds[number + 1 :]):
                        break
                    yield self._advance(number, candidate, one.factors, near=tried)
                tried.append(candidate)
            candidates = self._promoted(tried, plan.rounds[number + 1 : number + 2])
        yield from self._refine(plan, max(tried, key=lambda c: c.ndcg))

    def _places(self, most: int) -> list[tuple[float, ...]]:
        """Return places of different settings, fewer where most settings were given."""
        found: dict[str, tuple[float, ...]] = {str(self.space.settings(None)): _MIDDLE}
        for place, _ in zip(spread_out(self.space.dimensions), range(4 * most), strict=False):
            if len(found) <= most:
                found.setdefault(str(self.space.settings(place)), place)
        return list(found.values())[1:]

    def _promoted(self, tried: list[_Candidate], following: tuple[Round, ...]) -> list[_Candidate]:
        """Return those who go on: the first one, to compare with, and the best of the others."""
        if not following:
            return []
        others = sorted(tried[1:], key=lambda c: -c.ndcg)[: following[0].trials - 1]
        gone = [c.last for c in tried[1:] if c not in others]
        self.kept.forget(gone)
        return [tried[0], *others]

    def _advance(
        self, number: int, candidate: _Candidate, factors: int, near: list[_Candidate] | None = None
    ) -> Trial:
        """Try a candidate in a round, from its own factors or those of the nearest one."""
        name = f"round-{number}-{candidate.number}"
        settings = {**self.space.settings(candidate.place), "factors": factors}
        started = [other for other in near or () if other.last]

        def find_out() -> tuple[Trial, Any]:
            if candidate.last:
                start = padded(self.kept.factors(candidate.last), factors, self.base.config)
                # New factors begin small: at first they change the objective by next to nothing.
                return self.run(number, settings, start, epochs=_EPOCHS_PADDED, tolerance=0.0)
            if started:
                closest = min(started, key=lambda other: _distance(other.place, candidate.place))
                # A budget may leave fewer factors than the first trial had.
                start = padded(self.kept.factors(closest.last), factors, self.base.config)
                return self.run(number, settings, start, epochs=_EPOCHS_NEAR, tolerance=_ROUGH)
            return self.run(number, settings, tolerance=_ROUGH)

        trial = self.note(self.kept.trial(name, find_out))
        if candidate.last:
            self.kept.forget([candidate.last])
        candidate.take(name, trial)
        return trial

    def _refine(self, plan: Plan, best: _Candidate) -> Iterator[Trial]:
        """Look around the best, from where it is, in smaller and smaller steps.

        With a budget alone, this goes on until the time is up or the steps are too small to matter.
        """
        factors, step = plan.rounds[-1].factors, _STEP
        self.final = best
        left, tried = plan.refined, {str(self.space.settings(best.place))}
        if self.limits.trials is None:
            left = max(left, max(NUMBERS_OF_TRIALS) - len(self.found))
        number = len(plan.rounds)
        while left and step >= _LEAST_STEP:
            near = around(self.final.place or _MIDDLE, step)
            places = [p for p in near if str(self.space.settings(p)) not in tried]
            if not places:
                step /= 2
                continue
            if not self._has_time(Round(factors, 1), ()):
                return
            tried.add(str(self.space.settings(places[0])))
            candidate = _Candidate(len(tried) - 1, places[0])
            settings = {**self.space.settings(candidate.place), "factors": factors}
            start = self.final.last
            name = f"round-{number}-{candidate.number}"
            trial = self.kept.trial(
                name,
                lambda s=settings, f=start: self.run(  # type: ignore[misc]
                    number, s, self.kept.factors(f), epochs=_EPOCHS_NEAR, tolerance=_ROUGH
                ),
            )
            candidate.take(name, trial)
            if candidate.ndcg > self.final.ndcg:
                self.final = candidate
            else:
                self.kept.forget([name])
            left -= 1
            yield self.note(trial)

    @property
    def best(self) -> Trial:
        """The best trial of the last round, or of those around it."""
        return next(trial for trial in self.found if trial.number == self.final.trial)

    def start(self) -> tuple[Trial, dict[str, Any]]:
        """Return the last trial of the defaults, and numbers in place of those that are "auto"."""
        last = next(trial for trial in self.found if trial.number == self.first.trial)
        return last, self.space.defaults(self.most)

    def _affordable(self, most: int) -> Plan:
        """Plan as many trials as the budget has time for, with fewer factors if need be."""

        def plan() -> list[int]:
            assert self.limits.seconds is not None
            widths = [most] if self.is_fixed else [max(16, most // n) for n in (1, 2, 4, 8)]
            for factors in widths:
                for trials in NUMBERS_OF_TRIALS:
                    found = Plan.of(trials, factors, fixed=self.is_fixed)
                    if self._predicted(found) <= _TIMID * self.limits.seconds:
                        return [trials, factors]
            return [NUMBERS_OF_TRIALS[-1], widths[-1]]

        trials, factors = self.kept.once("plan", plan)
        if factors < most:
            self.notes.append(
                f"The budget is too short for {most} factors: at most {factors} were tried, "
                "and the defaults were measured with at most as many."
            )
        return Plan.of(trials, factors, fixed=self.is_fixed)

    def _predicted(self, plan: Plan) -> float:
        """Predict the seconds of a plan, and of the two fits at its end."""
        last = plan.rounds[-1].factors
        rounds = sum(one.trials * self._seconds(one.factors) for one in plan.rounds)
        refined = plan.refined * self._seconds(last, _EPOCHS_NEAR)
        return rounds + refined + self._seconds_of_ends(last)

    def _has_time(self, one: Round, following: tuple[Round, ...]) -> bool:
        """Tell whether there is time for one more trial, and for two of each round that follows."""
        later = sum(2 * self._seconds(later.factors) for later in following)
        last = (following or (one,))[-1].factors
        ends = self._seconds_of_ends(last)
        return self.limits.allow(self._seconds(one.factors) + later + ends)

    def _seconds_of_ends(self, factors: int) -> float:
        """Predict the seconds of the two fits from scratch, by the first trial, which is one."""
        epochs = _LAST_EPOCHS * max(self.found[0].epochs, _EPOCHS_PADDED)
        return 2 * self._seconds(factors, min(epochs, self.base.config.epochs))

    def _seconds(self, factors: int, epochs: float = _EPOCHS_PADDED) -> float:
        """Predict the seconds of a trial by the last one."""
        last = self.found[-1]
        trained = last.training_seconds or last.seconds
        speed = max(1, last.epochs) * self._work(last.settings["factors"]) / trained
        return epochs * self._work(factors) / speed + (last.seconds - trained)

    def _work(self, factors: int) -> float:
        """Return how long an epoch takes, in operations at the speed of many factors.

        Kernels are half as fast with 32 factors as with very many.
        """
        train = self.split.train
        users = np.diff(train.indptr).astype(np.float64)
        items = np.bincount(train.indices, minlength=train.n_items).astype(np.float64)
        rows: Float64 = np.concatenate([users, items])
        operations = float(row_solve(rows, factors).sum() + 2 * len(rows) * factors**2)
        return operations * (1 + _SLOW_FACTORS / factors)


def _distance(one: tuple[float, ...] | None, other: tuple[float, ...] | None) -> float:
    a, b = (np.asarray(place or _MIDDLE) for place in (one, other))
    return float(np.linalg.norm(a - b))


def padded(factors: Factors, width: int, config: Any) -> Factors:
    """Make factors longer, with random ones as a fit from scratch starts with, or cut them.

    Examples
    --------
    >>> import limelight as ll
    >>> short = np.ones((3, 2), np.float32), np.ones((4, 2), np.float32)
    >>> [one.shape for width in (8, 1) for one in padded(short, width, ll.IALS().config)]
    [(3, 8), (4, 8), (3, 1), (4, 1)]
    """
    found = []
    for old, side in zip(factors, SideNumber, strict=True):
        new = initial_factors(
            range(len(old)), width, scale=config.init_scale, seed=config.random_state, side=side
        )[:, :width].copy()
        new[:, : old.shape[1]] = old[:, :width]
        found.append(new)
    return found[0], found[1]
