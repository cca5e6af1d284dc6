"""What a window forgot, remembered for a while longer by those who set prices.

A window forgets all at once, and how often an item was shown in it is a small number that chance
moves. Prices that followed it alone would follow chance, and what was shown in one window would be
missing, and so be shown again, one window later. Both waste relevance.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32, Int64
    from limelight.serve.ledger import Ledger

WINDOWS = 0.3
"""After how many windows 1 / e of what was forgotten is still remembered. A longer memory wastes
less while users stay the same, and more when their taste changes."""


class FadingMemory:
    """Exposure that left the window of a ledger, and fades.

    With a half-life, exposure fades by itself, and there is nothing to remember.

    Attributes
    ----------
    exposure : array or None
        By item, in the unit of the ledger; None while there is nothing.
    lists : float
        How many lists that is of.

    Examples
    --------
    >>> from limelight.serve.ledger import UNIT, Ledger
    >>> ledger, memory = Ledger(3, window=48.0), FadingMemory()
    >>> memory.follow(ledger)
    >>> counted = ledger.count(np.array([2], dtype=np.int32), time=0.5)
    >>> for time in (1.0, 47.5, 48.5):
    ...     moved = ledger.advance(time)
    ...     memory.follow(ledger)
    >>> ledger.lists, memory.lists, memory.exposure / UNIT
    (0, 1.0, array([0., 0., 1.]))
    """

    def __init__(self) -> None:
        self.exposure: Float64 | None = None
        self.lists = 0.0
        self._ledger: Ledger | None = None
        self._revision = self._bucket = -1
        self._parts: dict[int, list[tuple[Int32, Int64, int]]] = {}

    def follow(self, ledger: Ledger) -> None:
        """Take in what the ledger has forgotten since it was last looked at."""
        bucket = ledger.bucket_of(ledger.time)
        if ledger is self._ledger and ledger.revision == self._revision:
            if bucket == self._bucket:
                return
            self._fade(bucket - self._bucket, ledger)
        else:
            # Items may have other numbers now.
            self.exposure, self.lists = None, 0.0
        self._ledger, self._revision, self._bucket = ledger, ledger.revision, bucket
        self._parts = {}
        if ledger.window is not None:
            for number, _, part in ledger.parts():
                entry = part.items, part.amounts, part.lists
                self._parts.setdefault(number, []).append(entry)

    def _fade(self, steps: int, ledger: Ledger) -> None:
        per_bucket = 1 / (WINDOWS * ledger.n_buckets)
        if self.exposure is not None:
            self.exposure *= exp(-steps * per_bucket)
            self.lists *= exp(-steps * per_bucket)
        for number, parts in self._parts.items():
            late = ledger.oldest - 1 - number
            if late < 0:
                continue
            if self.exposure is None:
                self.exposure = np.zeros(ledger.n_items)
            left = exp(-late * per_bucket)
            for items, amounts, lists in parts:
                self.exposure[items] += left * amounts
                self.lists += left * lists
