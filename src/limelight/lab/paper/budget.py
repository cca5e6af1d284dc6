"""How the time for tuning is divided, and what each method does with its part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight._base.memory import size
from limelight.lab.paper.plan import OVER_IALS
from limelight.lab.tables import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight.lab.paper.forecast import MethodForecast

_LEAST_SHARE = 0.1
"""Of the epochs; a method that has time for fewer is left out."""


@dataclass(frozen=True)
class MethodPlan:
    """Whether and how a method is run."""

    first: int
    """How many of the settings that are tried first."""
    at_most: int | None = None
    """So many epochs; None: as many as it needs."""
    left_out: str = ""
    """Why it is not run at all."""
    mark: str = ""
    """What tables say of a method that was shortened."""


@dataclass(frozen=True)
class Claim:
    """What a method asks of the time for tuning."""

    share: float
    """Relative to those of the others."""
    first: int
    """How many settings it tries before the search."""
    searches: int = 1
    """How many searches divide its time: those of a re-ranker are for one cutoff each."""


def decide(
    forecast: MethodForecast, first: int, seconds: float | None, room: int | None
) -> MethodPlan:
    """Decide how a method is run in so many seconds, or without a limit.

    Examples
    --------
    >>> from limelight.lab.paper.forecast import MethodForecast
    >>> one = MethodForecast(seconds=10.0, n_bytes=1, epoch=0.2, epochs=50)
    >>> decide(one, 4, 25.0, None)
    MethodPlan(first=2, at_most=None, left_out='', mark='2 of 4 first settings')
    >>> decide(one, 4, 2.5, None).mark
    'at 12 of 50 epochs'
    >>> decide(one, 4, 0.1, None).left_out
    'one epoch takes about 200 ms, and its share of the budget is 100 ms'
    """
    if room is not None and forecast.n_bytes > room:
        has = f"it needs about {size(forecast.n_bytes)} of memory, and there are {size(room)}"
        return MethodPlan(0, left_out=has)
    if seconds is None or forecast.seconds * first <= seconds:
        return MethodPlan(first)
    if forecast.seconds <= seconds:
        tried = int(seconds // forecast.seconds)
        return MethodPlan(tried, mark=f"{tried} of {first} first settings")
    share = f"its share of the budget is {duration(seconds)}"
    if forecast.epoch is None or forecast.epochs is None:
        takes = f"one setting takes about {duration(forecast.seconds)}"
        return MethodPlan(0, left_out=f"{takes}, and {share}")
    lists = max(0.0, forecast.seconds - forecast.epoch * forecast.epochs)
    fitting = int((seconds - lists) / forecast.epoch)
    if fitting < max(1, _LEAST_SHARE * forecast.epochs):
        takes = f"one epoch takes about {duration(forecast.epoch)}"
        return MethodPlan(0, left_out=f"{takes}, and {share}")
    return MethodPlan(1, fitting, mark=f"at {fitting} of {forecast.epochs} epochs")


def divide(
    claims: Mapping[str, Claim], names: list[str], seconds: float | None
) -> dict[str, float | None]:
    """Divide the time among methods: the seconds of one search of each; None: no limit.

    Methods without a share have nothing to search, and take what they take.

    Examples
    --------
    >>> divide({"iALS": Claim(1.0, 1), "EASE": Claim(3.0, 4)}, ["iALS", "EASE"], 60.0)
    {'iALS': 15.0, 'EASE': 45.0}
    """
    total = sum(claims[name].share for name in names) or 1.0
    return {
        name: None
        if seconds is None or not claims[name].share
        else seconds * claims[name].share / total / claims[name].searches
        for name in names
    }


def decide_all(
    forecasts: Mapping[str, MethodForecast],
    claims: Mapping[str, Claim],
    seconds: float | None,
    room: int | None,
) -> dict[str, MethodPlan]:
    """Decide how all methods are run.

    Of those that do not fit the slowest is left out first, and its time goes to the others, which
    may fit then.
    """
    names, decided = list(forecasts), dict[str, MethodPlan]()
    while True:
        parts = divide(claims, names, seconds)
        now = {
            name: decide(forecasts[name], claims[name].first, parts[name], room) for name in names
        }
        out = [name for name in names if now[name].left_out]
        if not out:
            decided |= now
            return {name: decided[name] for name in forecasts}
        slowest = max(out, key=lambda name: forecasts[name].seconds)
        decided[slowest] = now[slowest]
        names.remove(slowest)
        if slowest == "iALS":
            reason = "it starts from iALS, which is left out"
            decided |= {name: MethodPlan(0, left_out=reason) for name in OVER_IALS if name in names}
            names = [name for name in names if name not in OVER_IALS]


def told(name: str, forecast: MethodForecast, decision: MethodPlan) -> str:
    """Say of a method what one of its settings takes, and how it is run.

    Examples
    --------
    >>> from limelight.lab.paper.forecast import MethodForecast
    >>> told("EASE", MethodForecast(3.0, 2**30), MethodPlan(1))
    'EASE: about 3 s a setting, 1.0 GiB'
    >>> told("EASE", MethodForecast(3.0, 2**30), MethodPlan(0, left_out="too slow"))
    'EASE: about 3 s a setting, 1.0 GiB; left out: too slow'
    """
    epoch = f" ({duration(forecast.epoch)} an epoch)" if forecast.epoch is not None else ""
    text = f"{name}: about {duration(forecast.seconds)} a setting{epoch}, {size(forecast.n_bytes)}"
    if decision.left_out:
        return f"{text}; left out: {decision.left_out}"
    return f"{text}; {decision.mark}" if decision.mark else text
