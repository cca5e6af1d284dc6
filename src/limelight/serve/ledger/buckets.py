"""What a ledger counts with: units, groups of items in whole numbers, and ids of events."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Int64
    from limelight.data.groups import Groups

UNIT = 1 << 20
"""Exposure 1.0 in whole numbers."""
FINE = 1 << 30
"""Relevance 1.0 in whole numbers, so that its sums are the same in every order as well."""
GROUP_UNIT = 1 << 12
"""The weight 1.0 of an item in a group, in whole numbers."""
_MOST_RELEVANCE = float(1 << 20)
_MOST_EVENTS = 1 << 23
"""Ids of events that are remembered at most, 8 bytes each; the oldest are forgotten first."""
_LEAST_FILTER = 1 << 16
_CHUNK, _LARGEST_CHUNK = 1 << 14, 1 << 16


def place_units(k: int) -> Int64:
    """Return the exposure of the first k places of a list, in whole numbers.

    Examples
    --------
    >>> place_units(3)
    array([1048576,  661578,  524288])
    """
    found: Int64 = np.rint(UNIT / np.log2(np.arange(k) + 2.0)).astype(np.int64)
    return found


def fine(relevance: float) -> int:
    """Return relevance in whole numbers; what is no number counts as none.

    Examples
    --------
    >>> fine(0.5), fine(float("nan"))
    (536870912, 0)
    """
    if not -_MOST_RELEVANCE <= relevance <= _MOST_RELEVANCE:
        if relevance != relevance:  # noqa: PLR0124
            return 0
        relevance = _MOST_RELEVANCE if relevance > 0 else -_MOST_RELEVANCE
    return round(relevance * FINE)


def event_key(event: str) -> int:
    """Return 64 bits of the hash of an id; never 0, which stands for no id.

    Among 8 million ids of a window, the next one is taken for a known one by mistake once in
    2 million million events.
    """
    found = hashlib.blake2b(event.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "little") or 1


class GroupUnits:
    """The groups of every item, with weights in whole numbers.

    So the exposure of groups follows from that of items, whatever the order is in which they were
    counted and whoever counted them.
    """

    def __init__(self, groups: Groups, n_items: int) -> None:
        self.n_groups = len(groups.group_ids)
        kept = (groups.items >= 0) & (groups.items < n_items)
        items = groups.items[kept]
        order = np.argsort(items, kind="stable")
        self._groups = groups.groups[kept][order].astype(np.int64)
        weights = np.rint(groups.weights[kept][order] * GROUP_UNIT)
        self._weights = np.maximum(weights, 1).astype(np.int64)
        self._counts = np.bincount(items, minlength=n_items).astype(np.int64)
        self._starts = np.append(0, np.cumsum(self._counts)).astype(np.int64)
        self._is_plain = bool((self._counts == 1).all() and (self._weights == GROUP_UNIT).all())

    def of(self, items: NDArray[np.integer], amounts: Int64) -> tuple[Int64, Int64]:
        """Return groups, maybe repeated, and what they get if items get amounts."""
        if self._is_plain:
            return self._groups[items], amounts * GROUP_UNIT
        counts = self._counts[items]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(self._starts[items] - ends + counts, counts)
        return self._groups[places], self._weights[places] * np.repeat(amounts, counts)


class EventIds:
    """Ids of events by bucket, as 64 bits each.

    New ids lie in a set; when that is full, they become a sorted array. A filter of bytes tells of
    nearly every new id, at the cost of one look, that it is in none of them.

    Examples
    --------
    >>> events = EventIds()
    >>> events.add(7, event_key("a"))
    >>> event_key("a") in events, event_key("b") in events
    (True, False)
    >>> events.close(8)
    >>> event_key("a") in events
    False
    """

    def __init__(self, most: int = _MOST_EVENTS) -> None:
        self._most = most
        self._new: dict[int, set[int]] = {}
        self._old: dict[int, list[NDArray[np.uint64]]] = {}
        self._n_keys = 0
        self._refill()

    def __len__(self) -> int:
        """How many ids are remembered."""
        return self._n_keys

    def __contains__(self, key: int) -> bool:
        """Whether an id is known."""
        if not self._filter[key & self._mask]:
            return False
        if any(key in keys for keys in self._new.values()):
            return True
        wanted = np.uint64(key)
        return any(_has(keys, wanted) for chunks in self._old.values() for keys in chunks)

    def add(self, bucket: int, key: int) -> None:
        """Remember an id that is not known yet."""
        new = self._new.setdefault(bucket, set())
        new.add(key)
        self._filter[key & self._mask] = 1
        self._n_keys += 1
        if len(new) >= _CHUNK:
            self._pack(bucket)
        if 4 * self._n_keys > len(self._filter):
            self._refill()

    def close(self, oldest: int) -> None:
        """Forget the buckets before the oldest, and more where there are too many ids."""
        for bucket in list(self._new):
            self._pack(bucket)
        for bucket in sorted(self._old):
            if bucket < oldest or self._n_keys > self._most:
                self._n_keys -= sum(map(len, self._old.pop(bucket)))
        self._refill()

    def keys(self) -> dict[int, NDArray[np.uint64]]:
        """Return all ids by bucket."""
        for bucket in list(self._new):
            self._pack(bucket)
        return {bucket: np.concatenate(chunks) for bucket, chunks in self._old.items()}

    def put(self, bucket: int, keys: NDArray[np.uint64]) -> None:
        """Remember many ids of a bucket, none of them known; :meth:`close` is to follow."""
        self._old.setdefault(bucket, []).append(np.sort(keys))
        self._n_keys += len(keys)

    def _pack(self, bucket: int) -> None:
        """Turn the set of a bucket into an array, merged with the last ones if they are small."""
        keys = np.sort(np.fromiter(self._new.pop(bucket), dtype=np.uint64))
        chunks = self._old.setdefault(bucket, [])
        while chunks and len(chunks[-1]) <= len(keys) <= _LARGEST_CHUNK:
            keys = np.sort(np.concatenate([chunks.pop(), keys]))
        chunks.append(keys)

    def _refill(self) -> None:
        """Make the filter anew, with eight bytes an id, because forgotten ids still stand in it."""
        size = _LEAST_FILTER
        while size < 8 * self._n_keys:
            size *= 2
        self._mask = size - 1
        self._filter = bytearray(size)
        view = np.frombuffer(self._filter, dtype=np.uint8)
        new = [np.fromiter(keys, dtype=np.uint64) for keys in self._new.values()]
        for keys in (*new, *(keys for chunks in self._old.values() for keys in chunks)):
            view[(keys & np.uint64(self._mask)).astype(np.int64)] = 1


def _has(keys: NDArray[np.uint64], wanted: np.uint64) -> bool:
    place = int(np.searchsorted(keys, wanted))
    return place < len(keys) and bool(keys[place] == wanted)
