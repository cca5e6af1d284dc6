"""Pareto fronts: which of many results no other beats in both accuracy and evenness."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def front(
    results: Sequence[T], accuracy: Callable[[T], float], inequality: Callable[[T], float]
) -> list[T]:
    """Keep what no other result beats in both, from the most even to the most accurate.

    Examples
    --------
    >>> front([(0.1, 0.9), (0.2, 0.8), (0.05, 0.5)], lambda r: r[0], lambda r: r[1])
    [(0.05, 0.5), (0.2, 0.8)]
    """
    kept: list[T] = []
    for result in sorted(results, key=lambda result: (inequality(result), -accuracy(result))):
        if not kept or accuracy(result) > accuracy(kept[-1]):
            kept.append(result)
    return kept


def thin(results: Sequence[T], most: int, position: Callable[[T], float]) -> list[T]:
    """Keep at most so many results, spread evenly over their positions, the ends included.

    Examples
    --------
    >>> thin([0, 1, 2, 3, 9, 10], 3, float)
    [0, 3, 10]
    """
    if len(results) <= most:
        return list(results)
    places = np.array([position(result) for result in results])
    wanted = np.linspace(places[0], places[-1], most)
    nearest = {int(np.abs(places - place).argmin()) for place in wanted}
    return [results[number] for number in sorted(nearest)]
