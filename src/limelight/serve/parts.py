"""What one process has counted in one stretch of time, and how such reports are put together."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

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


class Part:
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

    def merged(self, other: Part) -> Part:
        """Return what two reports of the same source say together: the later one of each item.

        Sums only grow, so the later one is the larger one; and a report may be of some items only.
        """
        items = np.union1d(self.items, other.items).astype(np.int32)
        later = max(self, other, key=lambda part: part.lists)
        return Part(
            items,
            np.maximum(self.of(items), other.of(items)),
            later.lists,
            later.plain,
            later.shown,
        )

    def exceeds(self, other: Part) -> bool:
        """Tell whether it has anything that another report of the same source has not."""
        return self.lists > other.lists or bool((self.amounts > other.of(self.items)).any())

    def copy(self) -> Part:
        """Return a part that stays as this one is now."""
        return Part(self.items, self.amounts, self.lists, self.plain, self.shown)

    def plus(self, other: Part) -> Part:
        """Return what two reports say together that count different lists."""
        if not len(self.items) or not len(other.items):
            kept = self if len(self.items) else other
            found = Part(kept.items, kept.amounts)
        else:
            items = np.concatenate([self.items, other.items])
            found = Part(*summed(items, np.concatenate([self.amounts, other.amounts])))
        found.lists = self.lists + other.lists
        found.plain, found.shown = self.plain + other.plain, self.shown + other.shown
        return found

    def renumbered(self, numbers: Int32) -> Part:
        """Return the same with new numbers of items; those below 0 are dropped."""
        items = numbers[self.items]
        kept = items >= 0
        return Part(*summed(items[kept], self.amounts[kept]), self.lists, self.plain, self.shown)

    def _settle(self) -> None:
        if self._late:
            items, amounts = zip((self._items, self._amounts), *self._late, strict=True)
            self._late = []
            self._items, self._amounts = summed(np.concatenate(items), np.concatenate(amounts))


def packed(
    parts: list[tuple[int, str, Part]],
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


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Iterator[tuple[int, str, Part]]:
    """Take parts out of arrays.

    Examples
    --------
    >>> part = Part(np.array([3], dtype=np.int32), np.array([5]), lists=1)
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
        yield bucket, str(source), Part(arrays["items"][rows], arrays["amounts"][rows], *sums)
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


def spread(amounts: Int64, weights: Float64) -> Iterator[Int64]:
    """Cut whole numbers into whole pieces, in proportion to weights, whose sum is the whole.

    Examples
    --------
    >>> [piece.tolist() for piece in spread(np.array([5, 1]), np.ones(3))]
    [[2, 0], [1, 1], [2, 0]]
    """
    done = np.zeros_like(amounts)
    for end in (np.cumsum(weights) / np.sum(weights)).tolist():
        upto = np.rint(amounts * end).astype(np.int64)
        yield upto - done
        done = upto
