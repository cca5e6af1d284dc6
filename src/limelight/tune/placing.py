"""Where along its control a method is tried next: where the curve has its widest gap."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_DOWN = 8.0
"""How much smaller than the smallest strength the next one towards 0 is."""


class Tried(NamedTuple):
    """A strength, and where it led."""

    strength: float
    accuracy: float
    """As a share of what the plain lists have, so that it is of the size of a Gini index."""
    gini: float


def next_strength(tried: Sequence[Tried], first: Sequence[float]) -> float:
    """Say which strength to try next.

    After the first ones, the two neighbours that lie furthest apart in the plane of accuracy and
    Gini get a point between them: few points where nothing happens, many where the curve bends.

    Parameters
    ----------
    tried
        What is known, in any order.
    first
        What to try at first, rising from 0.

    Examples
    --------
    >>> ends = [Tried(0, 1.0, 0.9), Tried(0.1, 0.99, 0.8), Tried(10, 0.7, 0.4)]
    >>> next_strength(ends[:2], first=(0, 0.1, 10))
    10
    >>> next_strength(ends, first=(0, 0.1, 10))
    1.0
    """
    if len(tried) < len(first):
        return first[len(tried)]
    weaker, stronger = max(pairwise(sorted(tried)), key=lambda pair: _distance(*pair))
    return between(weaker.strength, stronger.strength)


def between(weaker: float, stronger: float) -> float:
    """Return the middle of two strengths, which are felt in proportion and not by difference.

    Examples
    --------
    >>> between(0.1, 10), between(0, 8)
    (1.0, 1.0)
    """
    return math.sqrt(weaker * stronger) if weaker else stronger / _DOWN


def nearest(strengths: Sequence[float], strength: float) -> int:
    """Return the place of the strength that is nearest in proportion; of two, the weaker.

    Nothing is as near as it gets to 0, unless there is nothing else.

    Examples
    --------
    >>> nearest([0, 10, 0.1], 1.0), nearest([0], 0.1)
    (2, 0)
    """

    def far(place: int) -> tuple[float, float]:
        other = strengths[place]
        return (abs(math.log(other / strength)) if other else math.inf, other)

    return min(range(len(strengths)), key=far)


def _distance(a: Tried, b: Tried) -> float:
    return math.hypot(a.accuracy - b.accuracy, a.gini - b.gini)
