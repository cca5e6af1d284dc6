"""The exposure that answers gave, in whole numbers, over a window of time.

Time is cut into buckets, at the same moments everywhere, and what left the window is subtracted
again, bucket by bucket. Each source, a process that counts, has its own sums in every bucket; the
ledger is the sum over sources. So replicas that tell each other their sums agree, in whatever order
and however often they do.
"""

from __future__ import annotations

from math import inf, isfinite, nextafter
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.serve.ledger.buckets import (
    FINE,
    GROUP_UNIT,
    EventIds,
    event_key,
    fine,
    place_units,
)
from limelight.serve.ledger.parts import SourcePart, packed, spread_evenly, unpacked
from limelight.serve.ledger.window import BucketedSums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int32
    from limelight.data.groups import Groups
    from limelight.serve.ledger.parts import Witness

MODEL = "model"
"""The source of what a model had shown before it was served."""


class Ledger:
    """Exposure by item and by group, lists and their relevance, over a window or with a half-life.

    Exactly one of ``window`` and ``half_life`` is given, in seconds. A window is cut into
    ``buckets``, so it covers at least ``window`` less one bucket, and at most ``window``. With a
    half-life, buckets are a quarter of it (by default), a bucket's exposure is multiplied by
    2^(-age / half-life) at every step, and after 12 half-lives it is forgotten.

    Time is always given by the caller. Counting a list costs some microseconds; a step to the next
    bucket costs one pass over the catalogue and over what is forgotten. Older buckets are stored
    sparse: 12 bytes for every item that was shown in one, so at most 48 x 12 bytes an item. Event
    ids cost 8 bytes each, at most 64 MB: among more than 8 million, the oldest are forgotten.

    Only one thread at a time may use a ledger.

    Attributes
    ----------
    time : float
        The latest time seen.
    source : str
        The name under which this process counts.
    witness : Witness or None
        Told of every list that is counted.
    revision : int
        Grows whenever the ledger changes otherwise than by counting, by time and by other sources.

    Examples
    --------
    >>> from limelight.serve.ledger.buckets import UNIT
    >>> ledger = Ledger(4, window=3600)
    >>> ledger.count(np.array([2, 0], dtype=np.int32), time=1000.0, event="a")
    True
    >>> ledger.count(np.array([2, 0], dtype=np.int32), time=1001.0, event="a")
    False
    >>> ledger.totals / UNIT
    array([0.63092995, 0.        , 1.        , 0.        ])
    >>> ledger.advance(9000.0), ledger.lists
    (True, 0)
    """

    def __init__(
        self,
        n_items: int,
        *,
        window: float | None = None,
        half_life: float | None = None,
        groups: Groups | None = None,
        buckets: int = 48,
        time: float = 0.0,
        source: str = "own",
    ) -> None:
        self._sums = BucketedSums(window, half_life, buckets)
        self.window, self.half_life = window, half_life
        self.n_buckets, self.width = buckets, self._sums.width
        self.n_items, self.groups = n_items, groups
        self.time, self.source = time, source
        self.witness: Witness | None = None
        self.revision = 0
        self.events = EventIds()
        self._places = place_units(64)
        self._changed: dict[int, list[Int32]] | None = None
        self._new_events: list[tuple[int, int]] = []
        self._sums.current = self.bucket_of(time)
        self._sums.reshape(n_items, groups)

    @property
    def totals(self) -> NDArray[Any]:
        """Exposure by item: whole numbers of 1 / UNIT, or float64 with a half-life."""
        return self._sums.totals

    @property
    def group_totals(self) -> NDArray[Any]:
        """Exposure by group, in the same unit; without groups, an empty array."""
        found = self._sums.group_sums
        return found // GROUP_UNIT if self._sums.is_whole else found / GROUP_UNIT

    @property
    def lists(self) -> float:
        """How many lists are in the window."""
        return self._sums.lists

    @property
    def plain(self) -> float:
        """Relevance of the lists that users would have got without control."""
        return float(self._sums.plain / FINE)

    @property
    def shown(self) -> float:
        """Relevance of the lists that were shown."""
        return float(self._sums.shown / FINE)

    @property
    def oldest(self) -> int:
        """The number of the oldest bucket in the window."""
        return self._sums.oldest

    def bucket_of(self, time: float) -> int:
        """Return the number of the bucket of a time; buckets begin at the same times everywhere."""
        return int(time // self.width)

    # Counting

    def count(
        self,
        items: Int32,
        *,
        time: float,
        plain: float = 0.0,
        shown: float = 0.0,
        event: str | None = None,
    ) -> bool:
        """Count one list, the best place first; tells whether it was counted.

        It is not if its time is before the window, or if its event was counted before. The first
        time sets the clock. Later, a time that is more than one bucket ahead of the ledger moves it
        by one bucket and no more, so that one wrong clock does not wipe the window; whoever knows
        the time calls :meth:`advance` first. Numbers that the catalogue does not have are skipped,
        but use up their place.
        """
        key = 0 if event is None else event_key(event)
        bucket = self.bucket_of(self._settle(time))
        if bucket < self._sums.oldest or (key and key in self.events):
            return False
        ready, of_plain, of_shown = np.ascontiguousarray(items, np.int32), fine(plain), fine(shown)
        self.count_in(bucket, ready, of_plain, of_shown, key)
        if self.witness is not None:
            self.witness.counted(bucket, ready, of_plain, of_shown, key)
        return True

    def count_in(self, bucket: int, items: Int32, plain: int, shown: int, key: int) -> bool:
        """Count a list in a bucket, relevance in whole numbers, as a journal has it.

        The event must be unknown. Tells whether the bucket is in the window.
        """
        if bucket < self._sums.oldest:
            return False
        if bucket > self._sums.current:
            self.advance(self._beginning(bucket))
        if key:
            self.events.add(bucket, key)
        if len(items) > len(self._places):
            self._places = place_units(2 * len(items))
        amounts = self._places[: len(items)]
        # Numbers below 0 are large ones if they are read without a sign.
        if len(items) and int(items.view(np.uint32).max()) >= self.n_items:
            known = (items >= 0) & (items < self.n_items)
            items, amounts = items[known], amounts[known]
        self._sums.count(bucket, items, amounts, plain, shown)
        if self._changed is not None:
            self._changed.setdefault(bucket, []).append(items)
            if key:
                self._new_events.append((bucket, key))
        return True

    def _settle(self, time: float) -> float:
        """Take notice of a list's time; returns the one that it is counted at."""
        if time <= self.time:
            return time
        if time - self.time > self.width and self._sums.buckets and isfinite(time):
            # Into the next bucket and no further; a ledger that is behind catches up list by list.
            time = min(time, (self._sums.current + 1.5) * self.width)
        self.advance(time)
        return self.time

    def _beginning(self, bucket: int) -> float:
        time = bucket * self.width
        while self.bucket_of(time) < bucket:  # rounding
            time = nextafter(time, inf)
        return time

    def advance(self, time: float) -> bool:
        """Go on to a time and forget what left the window; tells whether anything did."""
        if not (time > self.time and isfinite(time)):
            return False
        self.time = time
        current = self.bucket_of(time)
        return current > self._sums.current and self._move_to(current)

    def _move_to(self, current: int) -> bool:
        is_less = self._sums.move_to(current)
        if self._changed is not None:
            self._changed = {b: c for b, c in self._changed.items() if b >= self.oldest}
        self.events.close(self.oldest)
        return is_less

    def clock_notes(self, now: float) -> list[str]:
        """Say if a clock is so far behind that what it tells is before the window.

        That is so when it was ahead for a while. The ledger does not follow it back: a clock that
        is behind for a moment, such as after a boot, must not wipe the window.
        """
        if self.bucket_of(now) >= self.oldest:
            return []
        behind = f"{self.time - now:,.0f} s"
        return [f"lists do not count, because the clock is before the ledger's window, by {behind}"]

    # Sources

    def parts(self) -> Iterator[tuple[int, str, SourcePart]]:
        """Go through what every source has counted in every bucket."""
        return self._sums.parts(self.source)

    def merge(self, bucket: int, source: str, part: SourcePart) -> bool:
        """Take in what a source has counted in a bucket, in all or of some items.

        The same report changes nothing the second time, nor does an older one. What is before the
        window is ignored, as is what is three buckets ahead: the clock of that source is wrong.
        """
        if not self.oldest <= bucket <= self._sums.current + 2:
            return False
        place = self._sums.bucket(bucket)
        if source == self.source:
            self._sums.close()
            known, place.own = place.own, place.own.merged(part)
            self._sums.replace(bucket, known, place.own)
        else:
            known = place.others.get(source, SourcePart())
            place.others[source] = known.merged(part)
            self._sums.replace(bucket, known, place.others[source])
        return True

    def rename(self, source: str) -> None:
        """Count under another name from now on; what was counted stays under the old one."""
        self._sums.close()
        for bucket in self._sums.buckets.values():
            own, bucket.own = bucket.own, SourcePart()
            if own.lists:
                bucket.others[self.source] = own.merged(
                    bucket.others.get(self.source, SourcePart())
                )
        self.source = source
        self._begin_anew()

    def track(self) -> None:
        """Keep in mind from now on which sums of this process change; all are new at first."""
        self._changed = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.revision += 1
        if self._changed is not None:
            self._sums.close()
            owned = ((b, bucket.own) for b, bucket in self._sums.buckets.items())
            self._changed = {number: [own.items] for number, own in owned if own.lists}

    def take_changes(self) -> dict[int, SourcePart]:
        """Return the sums of this process that changed since it was last asked, by bucket."""
        changed = self._changed or {}
        if changed:
            self._changed = {}
        return {
            number: self._sums.own(number, np.unique(np.concatenate(pieces)).astype(np.int32))
            for number, pieces in changed.items()
        }

    def part(self, bucket: int, source: str) -> SourcePart:
        """Return what a source has counted in a bucket."""
        found = self._sums.buckets.get(bucket)
        if found is None:
            return SourcePart()
        if source == self.source:
            self._sums.close()
            return found.own.copy()
        return found.others.get(source, SourcePart())

    def others(self) -> Iterator[tuple[int, str]]:
        """Go through the buckets in which other sources have counted, with their names."""
        for number, bucket in self._sums.buckets.items():
            for source in bucket.others:
                yield number, source

    def take_events(self) -> list[tuple[int, int]]:
        """Return the buckets and keys of events since it was last asked, if changes are tracked."""
        found, self._new_events = self._new_events, []
        return found

    def know_events(self, events: Iterable[tuple[int, int]]) -> None:
        """Remember events that others counted."""
        for bucket, key in events:
            if self.oldest <= bucket <= self._sums.current + 2 and key not in self.events:
                self.events.add(bucket, key)

    # What there was before, and what there is afterwards

    def start_from(self, exposure: Float64, lists: float, *, time: float) -> None:
        """Begin with what a model had shown before, spread evenly over the window.

        Parameters
        ----------
        exposure
            By item; 1.0 is the first place of one list.
        lists
            How many lists that is of.
        time
            Now. It is forgotten in the course of one window (or with the half-life) from then on.
        """
        self.advance(time)
        pieces = spread_evenly(exposure, lists, self.n_buckets, self._sums.step)
        for bucket, piece in enumerate(pieces, self.oldest):
            self.merge(bucket, MODEL, piece)
        self.revision += 1

    def renumber(self, numbers: Int32, n_items: int, groups: Groups | None = None) -> None:
        """Go on with another catalogue, and maybe with other groups.

        Parameters
        ----------
        numbers
            The new number of every item of the old catalogue, -1 of those that are gone. Their
            exposure is dropped; the lists that they were shown in still count.
        n_items
            Of the new catalogue.
        groups
            Of the items of the new catalogue.
        """
        self._sums.close()
        for bucket in self._sums.buckets.values():
            bucket.own = bucket.own.renumbered(numbers)
            bucket.others = {name: p.renumbered(numbers) for name, p in bucket.others.items()}
        self.n_items, self.groups = n_items, groups
        self._sums.reshape(n_items, groups)
        self._begin_anew()

    def freeze(self) -> Callable[[], dict[str, NDArray[Any]]]:
        """Hold on to everything that was counted; what is returned makes arrays of it.

        That may be done in another thread, while this one goes on counting.
        """
        parts, events, clock = list(self.parts()), self.events.keys(), (self.time, self.width)
        return lambda: packed(parts, events, clock)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that was counted, as arrays."""
        return self.freeze()()

    def restore(self, state: Mapping[str, NDArray[Any]], numbers: Int32 | None = None) -> None:
        """Take in a state; what was counted then stays under the names that it has there.

        It is added to what there is. A state may be of a window of another length: what a bucket
        has then goes where its middle lies. ``numbers`` are those of items, if the state is of
        another catalogue; see :meth:`renumber`.
        """
        time, width = state["clock"].tolist()
        self.advance(time)
        sums: dict[tuple[int, str], SourcePart] = {}
        for bucket, source, part in unpacked(state):
            place = self.same_bucket(bucket, width), source
            known = part if numbers is None else part.renumbered(numbers)
            sums[place] = known.plus(sums[place]) if place in sums else known
        for (bucket, source), part in sums.items():
            self.merge(bucket, source, part)
        for bucket in np.unique(state["event_buckets"]).tolist():
            keys = state["events"][state["event_buckets"] == bucket]
            self.events.put(self.same_bucket(bucket, width), keys)
        self.events.close(self.oldest)
        self._begin_anew()

    def same_bucket(self, bucket: int, width: float) -> int:
        """Return the bucket in which the middle of another one lies, which had another width."""
        return bucket if width == self.width else self.bucket_of((bucket + 0.5) * width)
