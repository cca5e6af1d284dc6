"""Sums over a window of time: buckets that open, close and are forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError
from limelight.serve.ledger.buckets import GroupUnits
from limelight.serve.ledger.parts import SourcePart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limelight._base.arrays import Int32, Int64
    from limelight.data.groups import Groups

HALF_LIVES = 12
"""After so many half-lives, what is left, 0.02 %, is forgotten."""
_MOST_BUCKETS = 1 << 14


@dataclass(slots=True)
class Bucket:
    """What was counted in one stretch of time: by this process, and by others, by name."""

    own: SourcePart = field(default_factory=SourcePart)
    others: dict[str, SourcePart] = field(default_factory=dict)

    def parts(self) -> Iterator[SourcePart]:
        """Go through all parts."""
        yield self.own
        yield from self.others.values()


class BucketedSums:
    """Exposure by item and by group, lists and their relevance, over all buckets of a window.

    What this process counts in the newest bucket lies in one number an item; everything else is
    sparse. With a half-life, all sums are multiplied at every step to a new bucket.

    Attributes
    ----------
    totals, group_sums : arrays
        Whole numbers, or float64 with a half-life.
    lists, plain, shown : int or float
    current : int
        The number of the newest bucket.
    """

    def __init__(self, window: float | None, half_life: float | None, n_buckets: int) -> None:
        seconds = _checked_seconds(window, half_life)
        if not 1 <= n_buckets <= _MOST_BUCKETS:
            message = f"a window has from 1 to {_MOST_BUCKETS:,} buckets, not {n_buckets}"
            raise ConfigError(message, hint="48 are usual")
        self.n_buckets, self.is_whole = n_buckets, half_life is None
        self.width = (seconds if self.is_whole else HALF_LIVES * seconds) / n_buckets
        self.step = 1.0 if self.is_whole else 2.0 ** (-self.width / seconds)
        self.current = 0
        self.buckets: dict[int, Bucket] = {}
        self.lists: float = 0
        self.plain: float = 0
        self.shown: float = 0
        self._open: Int64 = np.zeros(0, dtype=np.int64)
        self.reshape(0, None)

    def reshape(self, n_items: int, groups: Groups | None) -> None:
        """Take another catalogue; the parts must be numbered as it is."""
        self.close()
        self.n_items = n_items
        self._groups = None if groups is None else GroupUnits(groups, n_items)
        self._open = np.zeros(n_items, dtype=np.int64)
        self._sum_up()

    @property
    def oldest(self) -> int:
        """The number of the oldest bucket in the window."""
        return self.current - self.n_buckets + 1

    def bucket(self, number: int) -> Bucket:
        """Return a bucket, a new one if need be."""
        found = self.buckets.get(number)
        if found is None:
            found = self.buckets[number] = Bucket()
        return found

    def count(self, number: int, items: Int32, amounts: Int64, plain: int, shown: int) -> None:
        """Count a list of this process."""
        own = self.bucket(number).own
        if number == self.current:
            np.add.at(self._open, items, amounts)
        else:
            own.add(items, amounts)
        own.lists, own.plain, own.shown = own.lists + 1, own.plain + plain, own.shown + shown
        self._tally(number, items, amounts, 1, plain, shown)

    def own(self, number: int, items: Int32) -> SourcePart:
        """Return what this process has counted in a bucket, of some items."""
        own = self.bucket(number).own
        amounts = own.of(items)
        if number == self.current:
            amounts = amounts + self._open[items]
        return SourcePart(items, amounts, own.lists, own.plain, own.shown)

    def parts(self, own: str) -> Iterator[tuple[int, str, SourcePart]]:
        """Go through what every source has counted in every bucket; they do not change later."""
        for number, bucket in sorted(self.buckets.items()):
            kept = bucket.own
            if number == self.current:
                items = np.flatnonzero(self._open).astype(np.int32)
                kept = SourcePart(items, self._open[items]).plus(kept)
            if kept.lists:
                yield number, own, kept.copy()
            for source, part in bucket.others.items():
                yield number, source, part.copy()

    def replace(self, number: int, old: SourcePart, new: SourcePart) -> None:
        """Move the sums from one state of a part, which is in a bucket, to a later one."""
        gained = new.amounts - old.of(new.items)
        grown = gained != 0
        sums = new.lists - old.lists, new.plain - old.plain, new.shown - old.shown
        self._tally(number, new.items[grown], gained[grown], *sums)

    def move_to(self, current: int) -> bool:
        """Open a bucket; tells whether another one was forgotten."""
        self.close()
        steps, self.current = current - self.current, current
        if not self.is_whole:
            factor = self.step**steps
            self.totals *= factor
            self.group_sums *= factor
            self.lists, self.plain = self.lists * factor, self.plain * factor
            self.shown *= factor
        forgotten = [number for number in self.buckets if number < self.oldest]
        for number in forgotten:
            for part in self.buckets.pop(number).parts():
                sums = -part.lists, -part.plain, -part.shown
                self._tally(number, part.items, -part.amounts, *sums)
        if not self.buckets:
            # What rounding left of a half-life.
            self._sum_up()
        return bool(forgotten)

    def close(self) -> None:
        """Store what this process counted in the newest bucket sparse, as in the others."""
        items = np.flatnonzero(self._open).astype(np.int32)
        if len(items):
            self.bucket(self.current).own.add(items, self._open[items])
            self._open[items] = 0

    def _tally(
        self, number: int, items: Int32, amounts: Int64, lists: int, plain: int, shown: int
    ) -> None:
        """Add to the sums what was counted in a bucket, as its age has it."""
        # A window has the weight 1, a whole number, so that its sums stay whole numbers.
        weight = 1 if self.is_whole else self.step ** (self.current - number)
        np.add.at(self.totals, items, amounts if weight == 1 else amounts * weight)
        self.lists += weight * lists
        self.plain += weight * plain
        self.shown += weight * shown
        if self._groups is not None:
            groups, shares = self._groups.of(items, amounts)
            np.add.at(self.group_sums, groups, shares if weight == 1 else shares * weight)

    def _sum_up(self) -> None:
        """Make all sums anew from the buckets."""
        kind = np.int64 if self.is_whole else np.float64
        n_groups = 0 if self._groups is None else self._groups.n_groups
        self.totals: NDArray[Any] = np.zeros(self.n_items, dtype=kind)
        self.group_sums: NDArray[Any] = np.zeros(n_groups, dtype=kind)
        self.lists = self.plain = self.shown = 0
        for number, bucket in self.buckets.items():
            for part in bucket.parts():
                self._tally(number, part.items, part.amounts, part.lists, part.plain, part.shown)


def _checked_seconds(window: float | None, half_life: float | None) -> float:
    given = [value for value in (window, half_life) if value is not None]
    if len(given) != 1:
        message = f"a ledger has a window or a half-life, not {window=}, {half_life=}"
        raise ConfigError(message, hint="pass one of them, in seconds")
    if not (isfinite(given[0]) and given[0] > 0):
        message = f"a window and a half-life are above 0 seconds: {given[0]}"
        raise ConfigError(message, hint="a week is 604800")
    return float(given[0])
