"""A small market that is served request by request, to hold targets in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.data.groups import as_groups
from limelight.metrics.exposure import gini
from limelight.rerank.relevance.laws import ScoreRelevance
from limelight.serve.control import ControlConfig, RequestControl
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.targets.goal import ServedGoal
from limelight.serve.targets.holder import TargetHolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.data.groups import Groups

N_ITEMS, N_USERS, K, WINDOW = 200, 300, 10, 1000.0
"""There is a request every second or so, hence about a thousand lists in a window."""


def made_up(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidates of every user, best first, and their relevance: few items are liked."""
    generator = np.random.default_rng(seed)
    popular = generator.lognormal(0.0, 1.2, N_ITEMS)
    scores = popular * generator.lognormal(0.0, 0.7, (N_USERS, N_ITEMS))
    items = np.argsort(-scores, axis=1).astype(np.int32)
    relevance = np.take_along_axis(scores, items, axis=1) / scores.max()
    return items, relevance.astype(np.float32)


def sellers(n_groups: int = 8) -> Groups:
    """Return groups of items of different sizes."""
    owned = np.floor(n_groups * np.linspace(0, 1, N_ITEMS, endpoint=False) ** 2).astype(int)
    return as_groups([f"seller {number}" for number in owned.tolist()], N_ITEMS)


class SmallService:
    """Requests, a ledger, a control and what holds a target, as in a service."""

    def __init__(self, *, seed: int = 0, strength: float = 0.3, **asked: Any) -> None:
        look_back = {"half_life": asked.pop("half_life")} if "half_life" in asked else {}
        self.look_back = look_back or {"window": WINDOW}
        self.groups = sellers() if {"group_cap", "group_floor"} & set(asked) else None
        self.items, self.relevance = made_up()
        self.generator, self.time = np.random.default_rng(seed), 0.0
        self.goal = ServedGoal(**asked)
        self.ledger = self.new_ledger()
        self.control = self.new_control(strength)
        self.holder = TargetHolder(self.goal, self.control, self.ledger)
        self.seen: list[tuple[float, float]] = []

    def new_ledger(self) -> Ledger:
        return Ledger(N_ITEMS, groups=self.groups, time=self.time, **self.look_back)

    def new_control(self, strength: float) -> RequestControl:
        unit = float(self.relevance[:, :K].mean())
        config = ControlConfig(
            n_items=N_ITEMS, law=ScoreRelevance(), unit=unit, length=K, groups=self.groups
        )
        return RequestControl(config, strength)

    def answer(self, user: int) -> np.ndarray:
        self.ledger.advance(self.time)
        items = self.items[user]
        chosen = self.control.choose(items, self.relevance[user], K, self.ledger)
        shown = items[chosen.places]
        self.ledger.count(shown, time=self.time, plain=chosen.plain, shown=chosen.shown)
        self.holder.tick(self.time)
        return shown

    def serve(
        self,
        windows: float,
        *,
        users: slice = slice(None),
        rate: float = 1.0,
        look: Callable[[], float] | None = None,
    ) -> None:
        """Answer requests at Poisson times; look at a figure now and then, by default the Gini."""
        end = self.time + windows * WINDOW
        who = np.arange(N_USERS)[users]
        look, number = look or (lambda: self.gini), 0
        while self.time < end:
            self.time += float(self.generator.exponential(1 / rate))
            self.answer(int(self.generator.choice(who)))
            number += 1
            if number % 50 == 0:
                self.seen.append((self.time / WINDOW, look()))

    def restart(self) -> None:
        """End, and begin anew with what was stored."""
        ledger, holder = self.ledger.state(), json.loads(json.dumps(self.holder.state()))
        self.ledger = self.new_ledger()
        self.ledger.restore(ledger)
        self.control = self.new_control(0.05)
        self.holder = TargetHolder(self.goal, self.control, self.ledger)
        self.holder.restore(holder)

    def off(self, target: float, since: float) -> float:
        """Return the largest distance that was seen from a figure, from a window on."""
        return max(abs(seen - target) for window, seen in self.seen if window >= since)

    @property
    def gini(self) -> float:
        return gini(self.ledger.totals)

    @property
    def loss(self) -> float:
        return 1 - self.ledger.shown / self.ledger.plain

    @property
    def shares(self) -> np.ndarray:
        return np.asarray(self.ledger.group_totals / self.ledger.totals.sum())
