"""A model that is served: its engine, its ledger, what holds its target, and the thread of all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from limelight._base.errors import LimelightError
from limelight.serve.http.batching import Batcher
from limelight.serve.http.recent import RecentLists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float64, Int32
    from limelight.data.interactions import Ids
    from limelight.serve.http.wire import ShownEvent
    from limelight.serve.ledger import Ledger
    from limelight.serve.requests import Answer, Request

UNIT = 1 << 20


class ListMaker(Protocol):
    """What makes lists: :class:`limelight.serve.engine.Engine`."""

    item_ids: Ids

    def answer(
        self,
        requests: Sequence[Request],
        ledger: Ledger | None = None,
        *,
        time: float = 0.0,
        count: bool = True,
    ) -> Sequence[Answer | LimelightError]:
        """Answer requests; the error of one stands in its place."""
        ...

    def numbers(self, ids: Sequence[str | int]) -> Int32:
        """Return the numbers of items; -1 for those that the catalogue does not have."""
        ...


class Keeper(Protocol):
    """What keeps a ledger: a journal on disk, other replicas, or both."""

    def flush(self, time: float) -> None:
        """Write and exchange what is due."""
        ...

    def status(self) -> dict[str, Any]:
        """Say what `/v1/exposure` should tell of it."""
        ...

    def close(self) -> None:
        """Write all, and let go."""
        ...


class ShownCounts(NamedTuple):
    """What became of events."""

    accepted: int
    known: int
    late: int
    unknown: list[str]


class LedgerCopy(NamedTuple):
    """What a ledger held at a time."""

    exposure: Float64
    groups: Float64
    lists: float
    plain: float
    shown: float
    time: float


class Loaded(NamedTuple):
    """What a model folder gave."""

    engine: Any
    fingerprint: str = ""
    """Which model it is; changes when another one is read."""
    titles: Sequence[str] | None = None
    front: list[dict[str, Any]] | None = None
    notes: tuple[str, ...] = ()


class Arm:
    """A model by its name in answers and figures.

    Everything that changes its ledger happens in the thread of its :attr:`batcher`.
    """

    def __init__(  # noqa: PLR0913
        self,
        name: str,
        loaded: Loaded,
        ledger: Ledger,
        *,
        target: dict[str, Any] | None = None,
        hold: Callable[[dict[str, Any], Any, Ledger], Any] | None = None,
        keepers: Sequence[Keeper] = (),
        counts_served: bool = False,
        durable: bool = False,
        waiting: int = 512,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.loaded, self.ledger = name, loaded, ledger
        self._hold, self.keepers = hold, tuple(keepers)
        self.target: dict[str, Any] = {}
        self.holder: Any = None
        self.counts_served, self.durable, self.clock = counts_served, durable, clock
        self.recent = RecentLists()
        self.batcher: Batcher[Request, Answer | LimelightError] = Batcher(
            self._answer, waiting=waiting
        )
        self.answered = self.reported = 0
        """Lists that were made, and those that were reported as shown, since the start."""
        self.aim(target or {})

    @property
    def fingerprint(self) -> str:
        """Which model answers."""
        return self.loaded.fingerprint

    @property
    def control(self) -> Any:
        """What chooses for the sake of exposure; None if nothing does."""
        return getattr(self.loaded.engine, "control", None)

    @property
    def strength(self) -> float:
        """How strong exposure control is."""
        return float(getattr(self.control, "strength", 0.0))

    @property
    def loss(self) -> float:
        """The share of relevance that control costs over the window."""
        plain = self.ledger.plain
        return 1.0 - self.ledger.shown / plain if plain > 0 else 0.0

    @property
    def engine(self) -> ListMaker:
        """What makes the lists."""
        found: ListMaker = self.loaded.engine
        return found

    def _answer(self, requests: list[Request]) -> Sequence[Answer | LimelightError]:
        now = self.clock()
        self.ledger.advance(now)
        made = self.engine.answer(requests, self.ledger, time=now, count=self.counts_served)
        for request, one in zip(requests, made, strict=True):
            if not isinstance(one, LimelightError):
                self.answered += 1
                if not self.counts_served and request.id is not None:
                    self.recent.add(request.id, one)
        self._settle(now, is_counted=self.counts_served)
        return made

    def _settle(self, now: float, *, is_counted: bool) -> None:
        """Let the target follow, and make sure that what must not be lost is written."""
        if self.holder is not None:
            self.holder.tick(now)
        if is_counted and self.durable:
            for keeper in self.keepers:
                keeper.flush(now)

    def count(self, events: Sequence[ShownEvent]) -> ShownCounts:
        """Count what was shown; done by the thread of the batcher."""
        now = self.clock()
        self.ledger.advance(now)
        accepted = known = late = 0
        unknown: list[str] = []
        for event in events:
            found = None if event.id is None else self.recent.find(event.id)
            at = now if event.time is None else min(event.time, now)
            if event.items is not None:
                numbers = self.engine.numbers(event.items)
            elif found is not None:
                numbers = found.numbers
            else:
                unknown.append(event.id or "")
                continue
            if self.ledger.bucket_of(at) < self.ledger.oldest:
                late += 1
                continue
            plain, shown = (0.0, 0.0) if found is None else found.part(len(numbers))
            if self.ledger.count(numbers, time=at, plain=plain, shown=shown, event=event.id):
                accepted += 1
            else:
                known += 1
        self.reported += accepted
        self._settle(now, is_counted=accepted > 0)
        return ShownCounts(accepted, known, late, unknown)

    def tick(self) -> None:
        """Do what is due though nobody asks; done by the thread of the batcher."""
        now = self.clock()
        self.ledger.advance(now)
        if self.holder is not None:
            self.holder.tick(now)
        for keeper in self.keepers:
            keeper.flush(now)

    def copy(self) -> LedgerCopy:
        """Copy what the ledger holds; done by the thread of the batcher."""
        ledger = self.ledger
        ledger.advance(self.clock())
        return LedgerCopy(
            np.asarray(ledger.totals, np.float64) / UNIT,
            np.asarray(ledger.group_totals, np.float64) / UNIT,
            float(ledger.lists),
            ledger.plain,
            ledger.shown,
            ledger.time,
        )

    def status(self) -> dict[str, Any]:
        """Say what is asked and reached; done by the thread of the batcher."""
        found: dict[str, Any] = {"strength": self.strength, "target": self.target or None}
        if self.holder is not None:
            found |= self.holder.status().to_dict()
        for keeper in self.keepers:
            found |= keeper.status()
        return found

    def aim(self, target: dict[str, Any]) -> None:
        """Hold another target from now on; done by the thread of the batcher."""
        if target or self.holder is not None:
            assert self._hold is not None
            self.holder = self._hold(target, self.control, self.ledger) if target else None
        self.target = dict(target)

    def swap(self, loaded: Loaded) -> None:
        """Answer with another model; done by the thread of the batcher.

        The ledger stays: items keep what they have by their ids.
        """
        strength = self.strength
        self.ledger.renumber(self.engine.item_ids, loaded.engine.item_ids)
        self.loaded = loaded
        self.recent.clear()
        if self.control is not None and self.target:
            self.control.strength = strength
        self.aim(self.target)

    async def close(self) -> None:
        """Answer all that waits, and write the ledger."""
        await self.batcher.run(self.tick)
        await self.batcher.close()
        for keeper in self.keepers:
            keeper.close()
