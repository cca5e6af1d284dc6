"""What one process has counted in one stretch of time, and how such reports are put together."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from limelight.serve.ledger.buckets import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int32, Int64

_MOST_LATE = 1 << 12
_NO_ITEMS: Int32 = np.empty(0, dtype=np.int32)
_NO_AMOUNTS: Int64 = np.empty(0, dtype=np.int64)


def new_source() -> str:
    """Make a name to count under that no other process has."""
    return secrets.token_hex(8)


class Witness(Protocol):
    """Whoever is told of every list that is counted, such as a journal."""

    def counted(self, bucket: int, items: Int32, plain: int, shown: int, key: int) -> None:
        """Take notice of a list; ``key`` is of its event, 0 without one."""
        ...


class SourcePart:
    """What one source has counted in one bucket: whole numbers, of items in ascending order."""

    __slots__ = ("_amounts", "_items", "_late", "lists", "plain", "shown")

    def __init__(
        self,
        items: Int32 = _NO_ITEMS,
        amounts: Int64 = _NO_AMOUNTS,
        lists: int = 0,
        plain: int = 0,
        shown: int = 0,
    ) -> None:
        self._items, self._amounts = items, amounts
        self._late: list[tuple[Int32, Int64]] = []
        self.lists, self.plain, self.shown = lists, plain, shown

    @property
    def items(self) -> Int32:
        """Numbers of items, ascending."""
        self._settle()
        return self._items

    @property
    def amounts(self) -> Int64:
        """Exposure of the items."""
        self._settle()
        return self._amounts

    def add(self, items: Int32, amounts: Int64) -> None:
        """Add amounts, of items in any order, also repeated."""
        # Merged later and together: a list that comes late must not cost a pass over the bucket.
        self._late.append((items, amounts))
        if len(self._late) >= _MOST_LATE:
            self._settle()

    def of(self, items: Int32) -> Int64:
        """Return the amounts of items, 0 of those that it does not have."""
        self._settle()
        if not len(self._items):
            return np.zeros(len(items), dtype=np.int64)
        places = np.minimum(np.searchsorted(self._items, items), len(self._items) - 1)
        return np.where(self._items[places] == items, self._amounts[places], 0)

    def merged(self, other: SourcePart) -> SourcePart:
        """Return what two reports of the same source say together: the later one of each item.

        Sums only grow, so the later one is the larger one; and a report may be of some items only.
        """
        items = np.union1d(self.items, other.items).astype(np.int32)
        later = max(self, other, key=lambda part: part.lists)
        return SourcePart(
            items,
            np.maximum(self.of(items), other.of(items)),
            later.lists,
            later.plain,
            later.shown,
        )

    def exceeds(self, other: SourcePart) -> bool:
        """Tell whether it has anything that another report of the same source has not."""
        return self.lists > other.lists or bool((self.amounts > other.of(self.items)).any())

    def copy(self) -> SourcePart:
        """Return a part that stays as this one is now."""
        return SourcePart(self.items, self.amounts, self.lists, self.plain, self.shown)

    def plus(self, other: SourcePart) -> SourcePart:
        """Return what two reports say together that count different lists."""
        if not len(self.items) or not len(other.items):
            kept = self if len(self.items) else other
            found = SourcePart(kept.items, kept.amounts)
        else:
            items = np.concatenate([self.items, other.items])
            found = SourcePart(*summed(items, np.concatenate([self.amounts, other.amounts])))
        found.lists = self.lists + other.lists
        found.plain, found.shown = self.plain + other.plain, self.shown + other.shown
        return found

    def renumbered(self, numbers: Int32) -> SourcePart:
        """Return the same with new numbers of items; those below 0 are dropped."""
        items = numbers[self.items]
        kept = items >= 0
        return SourcePart(
            *summed(items[kept], self.amounts[kept]), self.lists, self.plain, self.shown
        )

    def _settle(self) -> None:
        if self._late:
            items, amounts = zip((self._items, self._amounts), *self._late, strict=True)
            self._late = []
            self._items, self._amounts = summed(np.concatenate(items), np.concatenate(amounts))


def packed(
    parts: list[tuple[int, str, SourcePart]],
    events: Mapping[int, NDArray[np.uint64]],
    clock: tuple[float, float],
) -> dict[str, NDArray[Any]]:
    """Put parts, each of a bucket and a source, and ids of events by bucket into arrays."""
    sizes = [len(keys) for keys in events.values()]
    return {
        "clock": np.array(clock),
        "event_buckets": np.repeat(np.array(list(events), dtype=np.int64), sizes),
        "events": np.concatenate([np.empty(0, dtype=np.uint64), *events.values()]),
        "buckets": np.array([bucket for bucket, _, _ in parts], dtype=np.int64),
        "sources": np.frombuffer(json.dumps([s for _, s, _ in parts]).encode(), dtype=np.uint8),
        "sums": np.array(
            [(part.lists, part.plain, part.shown) for _, _, part in parts], dtype=np.int64
        ).reshape(-1, 3),
        "sizes": np.array([len(part.items) for _, _, part in parts], dtype=np.int64),
        "items": np.concatenate([_NO_ITEMS, *(part.items for _, _, part in parts)]),
        "amounts": np.concatenate([_NO_AMOUNTS, *(part.amounts for _, _, part in parts)]),
    }


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Iterator[tuple[int, str, SourcePart]]:
    """Take parts out of arrays.

    Examples
    --------
    >>> part = SourcePart(np.array([3], dtype=np.int32), np.array([5]), lists=1)
    >>> [(bucket, source, _)] = unpacked(packed([(7, "a", part)], {}, (0.0, 1.0)))
    >>> bucket, source
    (7, 'a')
    """
    start = 0
    sources = json.loads(arrays["sources"].tobytes())
    for bucket, source, sums, size in zip(
        arrays["buckets"].tolist(),
        sources,
        arrays["sums"].tolist(),
        arrays["sizes"].tolist(),
        strict=True,
    ):
        rows = slice(start, start + size)
        yield bucket, str(source), SourcePart(arrays["items"][rows], arrays["amounts"][rows], *sums)
        start += size


def summed(items: Int32, amounts: Int64) -> tuple[Int32, Int64]:
    """Add up the amounts of every item; items ascend.

    Examples
    --------
    >>> summed(np.array([7, 3, 7], dtype=np.int32), np.array([1, 2, 3]))
    (array([3, 7], dtype=int32), array([2, 4]))
    """
    found, places = np.unique(items, return_inverse=True)
    sums = np.zeros(len(found), dtype=np.int64)
    np.add.at(sums, places, amounts)
    return found.astype(np.int32), sums


def spread_evenly(
    exposure: Float64, lists: float, n_buckets: int, step: float
) -> Iterator[SourcePart]:
    """Cut exposure into whole pieces that differ by at most one, a bucket each, the oldest first.

    Parameters
    ----------
    exposure
        By item; 1.0 is the first place of one list.
    lists
        How many lists that is of.
    n_buckets
        How many pieces.
    step
        By what a piece weighs less with every bucket that it is older: pieces are larger by so much
        that their sum, as it counts, is what was given.

    Examples
    --------
    >>> [part.lists for part in spread_evenly(np.array([2.5]), 5, 3, 1.0)]
    [2, 1, 2]
    """
    amounts = np.rint(np.asarray(exposure, dtype=np.float64) * UNIT).astype(np.int64)
    items = np.flatnonzero(amounts).astype(np.int32)
    decay = float(np.mean(step ** np.arange(n_buckets)))
    # The last number is that of lists.
    whole = np.rint(np.append(amounts[items], round(lists)) / decay).astype(np.int64)
    done = np.zeros_like(whole)
    for end in np.arange(1, n_buckets + 1) / n_buckets:
        upto = np.rint(whole * end).astype(np.int64)
        piece, done = upto - done, upto
        yield SourcePart(items, piece[:-1], int(piece[-1]))
