"""How a window fills: lists that are new, and how even a part of a window can be."""

from __future__ import annotations

from math import exp2, inf
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import i0e, i1e

from limelight.metrics.lists import position_weights

if TYPE_CHECKING:
    from limelight.serve.ledger.ledger import Ledger

_LONGEST = 1000
_GIVEN = np.cumsum(position_weights(_LONGEST))
_LEAST_PART = 0.01
"""Of a window: what less than that has says nothing."""


class Growth:
    """How many lists were counted since it was asked last, whatever was forgotten meanwhile."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bucket = ledger.bucket_of(ledger.time)
        self._lists = ledger.lists
        self._later = self._count(self._bucket)
        self._oldest = self._find_oldest()

    def take(self) -> int:
        """Return how many are new."""
        ledger = self._ledger
        bucket = ledger.bucket_of(ledger.time)
        if bucket == self._bucket and ledger.lists >= self._lists:
            grown = round(ledger.lists - self._lists)
            self._later += grown
        else:
            grown = max(self._count(self._bucket) - self._later, 0)
            self._bucket, self._later = bucket, self._count(bucket)
            self._oldest = self._find_oldest()
        self._lists = ledger.lists
        return grown

    def filled(self, time: float) -> float:
        """Return what part of the window has lists, by the age of the oldest bucket with any."""
        ledger = self._ledger
        age = time - min(self._oldest, ledger.bucket_of(time)) * ledger.width
        if ledger.half_life is not None:
            part = 1 - exp2(-age / ledger.half_life)
        else:
            # The oldest bucket of a full window is about to be forgotten.
            part = age / (max(ledger.n_buckets - 1, 1) * ledger.width)
        return min(max(part, _LEAST_PART), 1.0)

    def _count(self, bucket: int) -> int:
        return sum(part.lists for number, _, part in self._ledger.parts() if number >= bucket)

    def _find_oldest(self) -> float:
        numbers = [number for number, _, part in self._ledger.parts() if part.lists]
        return min(numbers, default=inf)


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
