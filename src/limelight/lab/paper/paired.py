"""Who finds more at the same evenness: differences between methods over the same test users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from limelight.metrics.intervals import bootstrap_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from limelight._base.arrays import Float64

BASE = "exADMM"
LEVELS = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
"""The most unequal that lists may be, by the Gini on the validation users."""


class Difference(NamedTuple):
    """A method beside the base, each at the best of its settings that keep a level."""

    level: float
    name: str
    accuracy: float
    gini: float
    base_accuracy: float
    base_gini: float
    difference: float
    low: float
    high: float


def best_within(points: Sequence[Mapping[str, Any]], level: float) -> Mapping[str, Any] | None:
    """Return the most accurate point of a level, both as the validation users have it.

    Examples
    --------
    >>> points = [{"validation": {"ndcg": n, "gini": g}} for n, g in ((0.1, 0.9), (0.05, 0.7))]
    >>> best_within(points, 0.8)
    {'validation': {'ndcg': 0.05, 'gini': 0.7}}
    >>> best_within(points, 0.6) is None
    True
    """
    kept = [one for one in points if one["validation"]["gini"] <= level]
    return max(kept, key=lambda one: one["validation"]["ndcg"], default=None)


def differences(
    points: Mapping[str, Sequence[Mapping[str, Any]]],
    k: int,
    by_user: Callable[[Mapping[str, Any]], Float64],
) -> Iterator[Difference]:
    """Yield all others beside the base, by level, with bootstrapped 95 % intervals over users."""
    for level in LEVELS:
        base = best_within(points.get(BASE, ()), level)
        if base is None:
            continue
        for name, series in points.items():
            one = best_within(series, level)
            if one is None or name == BASE:
                continue
            apart = by_user(one) - by_user(base)
            low, high = bootstrap_interval(apart[:, None])
            yield Difference(
                level,
                name,
                one[f"ndcg@{k}"],
                one[f"gini@{k}"],
                base[f"ndcg@{k}"],
                base[f"gini@{k}"],
                float(apart.mean()),
                float(low[0]),
                float(high[0]),
            )
