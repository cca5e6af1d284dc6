"""The exposure that prices of items follow: that of a window, forgotten little by little.

A window forgets all at once. Prices that followed it would have what was shown together, such as
items that came new, missing together one window later, and shown again, and so on. That wastes
relevance for many windows. What fades has no such echo.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

from limelight.serve.ledger.buckets import UNIT

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32
    from limelight.serve.ledger.ledger import Ledger

WINDOWS = 0.5
"""After how many windows 1 / e is left. A longer memory wastes less while users stay the same,
because chance moves it less, and more when their taste changes."""


class FadingExposure:
    """Exposure by item that a ledger counted; what is older counts less.

    It fades with every bucket of the window. With a half-life, the ledger itself fades, and this is
    what it has. It is made from the window when a ledger is first seen; later it has the rest of
    what was before, too.

    Attributes
    ----------
    lists : float
        How many lists it is of.

    Examples
    --------
    >>> from limelight.serve.ledger.ledger import Ledger
    >>> ledger, faded = Ledger(3, window=48.0), FadingExposure()
    >>> for time in (0.5, 1.5):
    ...     counted = ledger.count(np.array([2], dtype=np.int32), time=time)
    ...     faded.follow(ledger)
    >>> faded.of(np.array([2, 0], dtype=np.int32)).round(2), round(faded.lists, 2)
    (array([1.96, 0.  ]), 1.96)
    """

    def __init__(self) -> None:
        self._ledger: Ledger | None = None
        self._revision = self._bucket = -1
        self._faded: Float64 = np.zeros(0)
        self._more: Float32 = np.zeros(0, dtype=np.float32)
        self._faded_lists = self._known_lists = 0.0

    def follow(self, ledger: Ledger) -> None:
        """Take notice of the buckets that a ledger has closed since it was last looked at."""
        bucket = ledger.bucket_of(ledger.time)
        is_same = ledger is self._ledger and ledger.revision == self._revision
        if (is_same and bucket == self._bucket) or ledger.half_life is not None:
            self._ledger = ledger
            return
        first = self._bucket
        if not is_same:
            # Items may have other numbers now.
            first, self._faded, self._faded_lists = ledger.oldest, np.zeros(ledger.n_items), 0.0
        self._ledger, self._revision, self._bucket = ledger, ledger.revision, bucket
        self._close(ledger, first, bucket)

    def _close(self, ledger: Ledger, first: int, current: int) -> None:
        """Add the buckets from the first one to the one before the current, and let all fade."""
        left, now = exp(-1 / (WINDOWS * ledger.n_buckets)), first
        for number, _, part in ledger.parts():
            if not first <= number < current:
                continue
            if number > now:
                self._fade(left ** (number - now))
                now = number
            self._faded[part.items] += part.amounts
            self._faded_lists += part.lists
        self._fade(left ** (current - now))
        # What the open bucket has already is counted below, as what is new since this.
        known, self._known_lists = ledger.totals.copy(), float(ledger.lists)
        for number, _, part in ledger.parts():
            if number >= current:
                known[part.items] -= part.amounts
                self._known_lists -= part.lists
        # One small array beside the totals: in a large catalogue every look-up misses the caches.
        self._more = ((self._faded - known) * (1 / UNIT)).astype(np.float32)

    def _fade(self, left: float) -> None:
        self._faded *= left
        self._faded_lists *= left

    @property
    def lists(self) -> float:
        """How many lists it is of."""
        assert self._ledger is not None
        if self._ledger.half_life is not None:
            return self._ledger.lists
        return self._faded_lists + self._ledger.lists - self._known_lists

    def of(self, items: Int32) -> Float64:
        """Return the exposure of items, 1.0 being the first place of one list."""
        assert self._ledger is not None
        held: Float64 = self._ledger.totals[items] * (1 / UNIT)
        if self._ledger.half_life is None:
            held += self._more[items]
        return held

    def all(self) -> Float64:
        """Return the exposure of all items."""
        assert self._ledger is not None
        return self.of(np.arange(self._ledger.n_items, dtype=np.int32))
