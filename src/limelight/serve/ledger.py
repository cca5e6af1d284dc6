"""The exposure that answers gave, in whole numbers, over a window of time.

Time is cut into buckets, at the same moments everywhere, and what left the window is subtracted
again, bucket by bucket. Each source, a process that counts, has its own sums in every bucket; the
ledger is the sum over sources. So replicas that tell each other their sums agree, in whatever order
and however often they do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from limelight._base.errors import ConfigError
from limelight.serve.buckets import (
    FINE,
    GROUP_UNIT,
    UNIT,
    EventIds,
    GroupUnits,
    Part,
    event_key,
    fine,
    packed,
    place_units,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int32
    from limelight.data.groups import Groups

HALF_LIVES = 12
"""After so many half-lives, what is left, 0.02 %, is forgotten."""
MODEL = "model"
"""The source of what a model had shown before it was served."""
_MOST_BUCKETS = 1 << 14


class Witness(Protocol):
    """Whoever is told of every list that is counted, such as a journal."""

    def counted(self, bucket: int, items: Int32, plain: int, shown: int, key: int) -> None:
        """Take notice of a list; ``key`` is of its event, 0 without one."""
        ...


@dataclass(slots=True)
class _Bucket:
    """What was counted in one stretch of time."""

    own: Part = field(default_factory=Part)
    others: dict[str, Part] = field(default_factory=dict)

    def parts(self) -> Iterator[Part]:
        yield self.own
        yield from self.others.values()


class Ledger:
    """Exposure by item and by group, lists and their relevance, over a window or with a half-life.

    Exactly one of ``window`` and ``half_life`` is given, in seconds. A window is cut into
    ``buckets``, so it covers at least ``window`` less one bucket, and at most ``window``. With a
    half-life, buckets are a quarter of it (by default), a bucket's exposure is multiplied by
    2^(-age / half-life) at every step, and after 12 half-lives it is forgotten.

    Time is always given by the caller. Counting a list costs some microseconds; a step to the next
    bucket costs one pass over the catalogue and over what is forgotten. Older buckets are stored
    sparse: 12 bytes for every item that was shown in one, so at most 48 x 12 bytes an item. Event
    ids cost 8 bytes each, at most 64 MB.

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
        Grows whenever the ledger changes otherwise than by counting lists and by time.

    Examples
    --------
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
        seconds = _checked_seconds(window, half_life)
        if not 1 <= buckets <= _MOST_BUCKETS:
            message = f"a window has from 1 to {_MOST_BUCKETS:,} buckets, not {buckets}"
            raise ConfigError(message, hint="48 are usual")
        self.window, self.half_life, self.n_buckets = window, half_life, buckets
        self.width = (seconds if half_life is None else HALF_LIVES * seconds) / buckets
        self._step = 1.0 if half_life is None else 2.0 ** (-self.width / half_life)
        self.time, self.source = time, source
        self.witness: Witness | None = None
        self.revision = 0
        self.events = EventIds()
        self._buckets: dict[int, _Bucket] = {}
        self.lists: float = 0
        self._plain: float = 0
        self._shown: float = 0
        self._places = place_units(64)
        self._changed: dict[int, list[Int32]] | None = None
        self._current = self.bucket_of(time)
        self._shape(n_items, groups)
        self._sum_up()

    def _shape(self, n_items: int, groups: Groups | None) -> None:
        self.n_items, self.groups = n_items, groups
        self._group_units = None if groups is None else GroupUnits(groups, n_items)
        self._open = np.zeros(n_items, dtype=np.int64)

    # Reading

    @property
    def totals(self) -> NDArray[Any]:
        """Exposure by item: whole numbers of 1 / UNIT, or float64 with a half-life."""
        return self._totals

    @property
    def group_totals(self) -> NDArray[Any]:
        """Exposure by group, in the same unit; without groups, an empty array."""
        found = self._group_sums
        return found // GROUP_UNIT if self.half_life is None else found / GROUP_UNIT

    @property
    def plain(self) -> float:
        """Relevance of the lists that users would have got without control."""
        return float(self._plain / FINE)

    @property
    def shown(self) -> float:
        """Relevance of the lists that were shown."""
        return float(self._shown / FINE)

    def exposure_of(self, items: Int32) -> Float64:
        """Return the exposure of items, 1.0 being the first place of one list."""
        return np.asarray(self._totals[items] / UNIT, dtype=np.float64)

    # Counting

    def bucket_of(self, time: float) -> int:
        """Return the number of the bucket of a time; buckets begin at the same times everywhere."""
        return int(time // self.width)

    @property
    def oldest(self) -> int:
        """The number of the oldest bucket in the window."""
        return self._current - self.n_buckets + 1

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
        if bucket < self.oldest or (key and key in self.events):
            return False
        ready, plain_units, shown_units = (
            np.asarray(items, dtype=np.int32),
            fine(plain),
            fine(shown),
        )
        self.count_in(bucket, ready, plain_units, shown_units, key)
        if self.witness is not None:
            self.witness.counted(bucket, ready, plain_units, shown_units, key)
        return True

    def count_many(
        self,
        lists: Iterable[Int32],
        *,
        time: float,
        plain: Iterable[float] = (),
        shown: Iterable[float] = (),
        events: Iterable[str | None] = (),
    ) -> int:
        """Count lists of one time; returns how many were."""
        own, of_shown, ids = iter(plain), iter(shown), iter(events)
        return sum(
            self.count(
                items,
                time=time,
                plain=next(own, 0.0),
                shown=next(of_shown, 0.0),
                event=next(ids, None),
            )
            for items in lists
        )

    def count_in(self, bucket: int, items: Int32, plain: int, shown: int, key: int) -> bool:
        """Count a list in a bucket, relevance in whole numbers; as a journal has it.

        The event must be unknown. Tells whether the bucket is in the window.
        """
        if bucket < self.oldest:
            return False
        if bucket > self._current:
            self._move_to(bucket)
        if key:
            self.events.add(bucket, key)
        if len(items) > len(self._places):
            self._places = place_units(2 * len(items))
        amounts = self._places[: len(items)]
        if len(items) and not 0 <= items.min() <= items.max() < self.n_items:
            known = (items >= 0) & (items < self.n_items)
            items, amounts = items[known], amounts[known]
        own = self._bucket(bucket).own
        if bucket == self._current:
            np.add.at(self._open, items, amounts)
        else:
            own.add(items, amounts)
        own.lists, own.plain, own.shown = own.lists + 1, own.plain + plain, own.shown + shown
        self._add(bucket, Part(items, amounts, 1, plain, shown))
        if self._changed is not None:
            self._changed.setdefault(bucket, []).append(items)
        return True

    def _settle(self, time: float) -> float:
        """Take notice of a list's time; returns the one that it is counted at."""
        if time <= self.time:
            return time
        if time - self.time > self.width and self._buckets and isfinite(time):
            # Into the next bucket and no further; a ledger that is behind catches up list by list.
            time = (self._current + 1.5) * self.width
        self.advance(time)
        return self.time

    def advance(self, time: float) -> bool:
        """Go on to a time and forget what left the window; tells whether anything did."""
        if not (time > self.time and isfinite(time)):
            return False
        self.time = time
        current = self.bucket_of(time)
        return current > self._current and self._move_to(current)

    def _move_to(self, current: int) -> bool:
        """Open a bucket; tells whether another one was forgotten."""
        self._close()
        steps, self._current = current - self._current, current
        if self.half_life is not None:
            factor = self._step**steps
            self._totals *= factor
            self._group_sums *= factor
            self.lists, self._plain, self._shown = (
                factor * value for value in (self.lists, self._plain, self._shown)
            )
        forgotten = [number for number in self._buckets if number < self.oldest]
        for number in forgotten:
            self._forget(number)
        if not self._buckets:
            self._sum_up()
        if self._changed is not None:
            self._changed = {b: c for b, c in self._changed.items() if b >= self.oldest}
        self.events.close(self.oldest)
        return bool(forgotten)

    def _forget(self, number: int) -> None:
        for part in self._buckets.pop(number).parts():
            self._add(number, part, -1)

    def _close(self) -> None:
        """Store what was counted in the newest bucket with the others, sparse."""
        items = np.flatnonzero(self._open).astype(np.int32)
        if len(items):
            self._bucket(self._current).own.add(items, self._open[items])
            self._open[items] = 0

    def _bucket(self, number: int) -> _Bucket:
        found = self._buckets.get(number)
        if found is None:
            found = self._buckets[number] = _Bucket()
        return found

    def _add(self, bucket: int, part: Part, sign: int = 1) -> None:
        """Add to the sums of the window what was counted in a bucket, as its age has it."""
        weight: float = sign
        if self.half_life is not None:
            weight *= self._step ** (self._current - bucket)
        items, amounts = part.items, part.amounts
        np.add.at(self._totals, items, amounts * weight)
        if self._group_units is not None:
            groups, shares = self._group_units.of(items, amounts)
            np.add.at(self._group_sums, groups, shares * weight)
        self.lists += weight * part.lists
        self._plain += weight * part.plain
        self._shown += weight * part.shown

    def _sum_up(self) -> None:
        """Make all sums anew from the buckets."""
        self._close()
        kind = np.int64 if self.half_life is None else np.float64
        n_groups = 0 if self._group_units is None else self._group_units.n_groups
        self._totals: NDArray[Any] = np.zeros(self.n_items, dtype=kind)
        self._group_sums: NDArray[Any] = np.zeros(n_groups, dtype=kind)
        self.lists = self._plain = self._shown = 0
        for number, bucket in self._buckets.items():
            for part in bucket.parts():
                self._add(number, part)

    # Other sources

    def parts(self) -> Iterator[tuple[int, str, Part]]:
        """Go through what every source has counted in every bucket."""
        self._close()
        for number, bucket in sorted(self._buckets.items()):
            yield number, self.source, bucket.own
            for source, part in bucket.others.items():
                yield number, source, part

    def merge(self, bucket: int, source: str, part: Part) -> bool:
        """Take in what another source has counted in a bucket, in all or of some items.

        The same report changes nothing the second time, nor does an older one. What is before the
        window is ignored, as is what is three buckets ahead: the clock of that source is wrong.
        """
        if not self.oldest <= bucket <= self._current + 2:
            return False
        if source == self.source:
            self._close()
        place = self._bucket(bucket)
        known = place.own if source == self.source else place.others.get(source, Part())
        found = known.merged(part)
        if source == self.source:
            place.own = found
        else:
            place.others[source] = found
        gained = found.amounts - known.of(found.items)
        grown = gained != 0
        self._add(
            bucket,
            Part(
                found.items[grown],
                gained[grown],
                found.lists - known.lists,
                found.plain - known.plain,
                found.shown - known.shown,
            ),
        )
        return True

    def rename(self, source: str) -> None:
        """Count under another name from now on; what was counted stays under the old one."""
        self._close()
        for bucket in self._buckets.values():
            own, bucket.own = bucket.own, Part()
            bucket.others[self.source] = own.merged(bucket.others.get(self.source, Part()))
        self.source = source
        self._track_anew()

    def track(self) -> None:
        """Keep in mind from now on which sums of this process change; all are new at first."""
        self._changed = {}
        self._track_anew()

    def _track_anew(self) -> None:
        self.revision += 1
        if self._changed is not None:
            self._close()
            self._changed = {
                number: [bucket.own.items]
                for number, bucket in self._buckets.items()
                if bucket.own.lists
            }

    def take_changes(self) -> dict[int, Part]:
        """Return the sums of this process that changed since it was last asked, by bucket."""
        changed, found = self._changed or {}, {}
        for number, pieces in changed.items():
            own = self._bucket(number).own
            items = np.unique(np.concatenate(pieces)).astype(np.int32)
            amounts = own.of(items)
            if number == self._current:
                amounts = amounts + self._open[items]
            found[number] = Part(items, amounts, own.lists, own.plain, own.shown)
        if self._changed is not None:
            self._changed = {}
        return found

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
        amounts = np.rint(np.asarray(exposure, dtype=np.float64) * UNIT).astype(np.int64)
        items = np.flatnonzero(amounts).astype(np.int32)
        amounts, n, all_lists = amounts[items], self.n_buckets, round(lists)
        weights = self._step ** np.arange(n - 1, -1, -1)
        # Whole numbers whose sum is the whole: what is left of one bucket goes into the next.
        ends = np.cumsum(weights) / np.sum(weights)
        done, done_lists = np.zeros_like(amounts), 0
        for bucket, end in zip(range(self.oldest, self._current + 1), ends.tolist(), strict=True):
            upto, upto_lists = np.rint(amounts * end).astype(np.int64), round(all_lists * end)
            part = Part(items, upto - done, upto_lists - done_lists)
            self.merge(bucket, MODEL, part)
            done, done_lists = upto, upto_lists
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
        self._close()
        for bucket in self._buckets.values():
            bucket.own = bucket.own.renumbered(numbers)
            bucket.others = {name: p.renumbered(numbers) for name, p in bucket.others.items()}
        self._shape(n_items, groups)
        self._sum_up()
        self._track_anew()

    # Snapshots

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that was counted, as arrays."""
        events = self.events.keys()
        keys = [np.empty(0, dtype=np.uint64), *events.values()]
        return {
            **packed(list(self.parts())),
            "clock": np.array([self.time, self.width]),
            "event_buckets": np.repeat(
                np.array(list(events), dtype=np.int64), [len(k) for k in events.values()]
            ),
            "events": np.concatenate(keys),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take in a state; what was this process's own then stays under its old name.

        It is added to what there is. A state may be of a window of another length: what a bucket has
        then goes where its middle lies.
        """
        time, width = state["clock"].tolist()
        self.advance(time)
        sums: dict[tuple[int, str], Part] = {}
        for bucket, source, part in unpacked(state):
            place = self._same_bucket(bucket, width), source
            sums[place] = part.plus(sums.get(place, Part()))
        for (bucket, source), part in sums.items():
            self.merge(bucket, source, part)
        for bucket in np.unique(state["event_buckets"]).tolist():
            keys = state["events"][state["event_buckets"] == bucket]
            self.events.put(self._same_bucket(bucket, width), keys)
        self.events.close(self.oldest)
        self.revision += 1

    def _same_bucket(self, bucket: int, width: float) -> int:
        return bucket if width == self.width else self.bucket_of((bucket + 0.5) * width)


def _checked_seconds(window: float | None, half_life: float | None) -> float:
    given = [value for value in (window, half_life) if value is not None]
    if len(given) != 1:
        message = f"a ledger has a window or a half-life, not window={window}, {half_life=}"
        raise ConfigError(message, hint="pass one of them, in seconds")
    if not (isfinite(given[0]) and given[0] > 0):
        message = f"a window and a half-life are above 0 seconds: {given[0]}"
        raise ConfigError(message, hint="a week is 604800")
    return float(given[0])
