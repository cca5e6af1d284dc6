"""A model that is served: its engine, its ledger, what holds its target, and the thread of all."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from limelight._base.errors import LimelightError
from limelight.data.ids import ids_to_arrow, positions
from limelight.serve.control import RequestControl
from limelight.serve.http.batching import Batcher
from limelight.serve.http.recent import RecentLists
from limelight.serve.ledger.buckets import UNIT, event_key
from limelight.serve.targets.goal import ServedGoal
from limelight.serve.targets.holder import TargetHolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from limelight._base.arrays import Float64
    from limelight.serve.engine import Engine
    from limelight.serve.http.wire import ShownEvent
    from limelight.serve.ledger.ledger import Ledger
    from limelight.serve.requests import Answer, Request
    from limelight.serve.start import ControlStart


class Keeper(Protocol):
    """What keeps a ledger through kills: a journal on disk, or other replicas."""

    def flush(self, time: float) -> None:
        """Write and exchange what is due."""
        ...

    def learn(self, events: Iterable[str | None]) -> None:
        """Find out which events others counted just now, before they are counted here."""
        ...

    def renumbered(self, item_ids: Any) -> None:
        """Take notice that the ledger has another catalogue now."""
        ...

    def status(self) -> dict[str, Any]:
        """Say what `/v1/exposure` should tell of it."""
        ...

    def write_state(self, state: dict[str, Any]) -> None:
        """Keep what holds the target, beside the ledger."""
        ...

    def read_state(self) -> dict[str, Any] | None:
        """Return what was kept last; None if there is nothing."""
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
    """Ids of requests that nobody remembers."""
    unknown_items: list[str | int]


class LedgerCopy(NamedTuple):
    """What a ledger held at a time."""

    exposure: Float64
    groups: Float64
    lists: float
    plain: float
    shown: float
    time: float
    plain_exposure: Float64 | None
    """By item, of the lists without control, up to a factor; None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a model folder gave."""

    engine: Engine
    start: ControlStart
    """What control starts from."""
    fingerprint: str = ""
    """Which model it is; changes when another one is read."""
    titles: Sequence[str] | None = None
    front: list[dict[str, Any]] | None = None
    notes: tuple[str, ...] = ()


class Arm:
    """A model by its name in answers and figures.

    Everything that changes its ledger happens in the thread of its :attr:`batcher`.

    Parameters
    ----------
    name
        Of the model.
    loaded
        What its folder gave.
    ledger
        What was shown; it has the groups of ``loaded.start``.
    keeper
        What keeps the ledger through kills.
    target
        What is to be held over the window, as :class:`ServedGoal` takes it; empty: nothing.
    counts_served
        Whether an answer counts as shown, or only what clients report.
    durable
        Whether what was counted is kept before it is answered.
    waiting
        How many requests may wait.
    clock
        Tells the time in seconds.
    """

    def __init__(  # noqa: PLR0913
        self,
        name: str,
        loaded: Loaded,
        ledger: Ledger,
        *,
        keeper: Keeper | None = None,
        target: dict[str, Any] | None = None,
        counts_served: bool = False,
        durable: bool = False,
        waiting: int = 512,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.loaded, self.ledger, self.keeper = name, loaded, ledger, keeper
        self.counts_served, self.durable, self.clock = counts_served, durable, clock
        self.target: dict[str, Any] = {}
        self.holder: TargetHolder | None = None
        self.recent = RecentLists()
        self.batcher: Batcher[Request, Answer | LimelightError] = Batcher(
            self._answer, waiting=waiting
        )
        self.answered = self.reported = 0
        """Lists that were made, and those that were reported as shown, since the start."""
        self.notes: list[str] = []
        """What was found at the start."""
        self.engine.control = self._control()
        self.aim(target or {})
        self._take_up()

    @property
    def engine(self) -> Engine:
        """What makes the lists."""
        return self.loaded.engine

    @property
    def fingerprint(self) -> str:
        """Which model answers."""
        return self.loaded.fingerprint

    @property
    def strength(self) -> float:
        """How strong exposure control is."""
        return 0.0 if self.engine.control is None else self.engine.control.strength

    @property
    def loss(self) -> float:
        """The share of relevance that control costs over the window."""
        plain = self.ledger.plain
        return 1.0 - self.ledger.shown / plain if plain > 0 else 0.0

    def _control(self, *, is_held: bool = False) -> RequestControl | None:
        """Make the control that the model's folder asks for; None if it asks for none.

        Where a target is held, strength takes the place of prices that were found for another one.
        """
        config, strength = self.loaded.start.config, self.loaded.start.strength
        if is_held:
            return RequestControl(replace(config, offsets_of=None), strength)
        has_prices = config.offsets is not None or config.offsets_of is not None
        return RequestControl(config, strength) if strength or has_prices else None

    def _take_up(self) -> None:
        """Go on holding the target from where the last process was."""
        state = None if self.keeper is None else self.keeper.read_state()
        if self.holder is not None and state is not None:
            try:
                self.holder.restore(state)
            except LimelightError as error:
                self.notes.append(f"the saved state of the target was not used: {error.message}")

    # All that follows is done by the thread of the batcher.

    def _answer(self, requests: list[Request]) -> Sequence[Answer | LimelightError]:
        now = self.clock()
        self.ledger.advance(now)
        if self.counts_served and self.durable and self.keeper is not None:
            self.keeper.learn(request.id for request in requests)
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
        if is_counted and self.durable and self.keeper is not None:
            self.keeper.flush(now)

    def count(self, events: Sequence[ShownEvent]) -> ShownCounts:
        """Count what was shown."""
        now = self.clock()
        self.ledger.advance(now)
        if self.durable and self.keeper is not None:
            self.keeper.learn(event.id for event in events)
        accepted = known = late = 0
        unknown: list[str] = []
        strangers: dict[str | int, None] = {}
        for event in events:
            found = None if event.id is None else self.recent.find(event.id)
            at = now if event.time is None else min(event.time, now)
            if event.items is not None:
                numbers = self.engine.numbers(event.items)
                if numbers.min() < 0:
                    pairs = zip(event.items, numbers.tolist(), strict=True)
                    strangers |= dict.fromkeys(id_ for id_, number in pairs if number < 0)
            elif found is not None:
                numbers = found.numbers
            elif self.has_counted(event.id or ""):
                known += 1
                continue
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
        return ShownCounts(accepted, known, late, unknown, list(strangers))

    def has_counted(self, event: str) -> bool:
        """Tell whether an event was counted."""
        return event_key(event) in self.ledger.events

    def tick(self) -> None:
        """Do what is due though nobody asks."""
        now = self.clock()
        self.ledger.advance(now)
        if self.holder is not None:
            self.holder.tick(now)
        if self.keeper is not None:
            if self.holder is not None:
                self.keeper.write_state(self.holder.state())
            self.keeper.flush(now)

    def copy(self) -> LedgerCopy:
        """Copy what the ledger holds."""
        ledger, control = self.ledger, self.engine.control
        ledger.advance(self.clock())
        plain = None if control is None else control.plain_exposure(ledger.lists)
        return LedgerCopy(
            np.asarray(ledger.totals, np.float64) / UNIT,
            np.asarray(ledger.group_totals, np.float64) / UNIT,
            float(ledger.lists),
            ledger.plain,
            ledger.shown,
            ledger.time,
            None if plain is None else plain.copy(),
        )

    def status(self) -> dict[str, Any]:
        """Say what is asked and reached."""
        told: list[dict[str, Any]] = [{"strength": self.strength}]
        if self.holder is not None:
            told.append(self.holder.status().to_dict())
        if self.keeper is not None:
            told.append(self.keeper.status())
        notes = [*self.notes, *(note for one in told for note in one.get("notes", ()))]
        found = {name: value for one in told for name, value in one.items()}
        return found | {"notes": notes, "target": self.target or None}

    def aim(self, target: dict[str, Any]) -> None:
        """Hold another target from now on; an empty one ends control beyond the model's own."""
        if target:
            goal = ServedGoal(**target)
            if self.holder is None:
                control = self._control(is_held=True)
                assert control is not None
                window = seconds_that_count(self.ledger)
                self.holder = TargetHolder(goal, control, self.ledger, window=window)
                self.engine.control = control
            else:
                self.holder.aim(goal)
        elif self.holder is not None:
            self.holder, self.engine.control = None, self._control()
        self.target = dict(target)

    def swap(self, loaded: Loaded) -> None:
        """Answer with another model.

        The ledger stays: items keep what they have by their ids.
        """
        if self.keeper is not None:
            self.keeper.flush(self.clock())
        old, new = self.engine.item_ids, loaded.engine.item_ids
        numbers = positions(ids_to_arrow(old), ids_to_arrow(new)).astype(np.int32)
        self.ledger.renumber(numbers, len(new), loaded.start.config.groups)
        if self.keeper is not None:
            self.keeper.renumbered(new)
        self.loaded = loaded
        self.recent.renumber(numbers)
        self.engine.control = self._control(is_held=self.holder is not None)
        if self.holder is not None:
            assert self.engine.control is not None
            self.holder.serve_with(self.engine.control, self.ledger)

    async def close(self) -> None:
        """Answer all that waits, and write the ledger."""
        try:
            await self.batcher.run(self.tick)
        finally:
            await self.batcher.close()
            if self.keeper is not None:
                self.keeper.close()

    def unwritten(self) -> list[str]:
        """Say what of the ledger could not be written, after :meth:`close`."""
        return [] if self.keeper is None else list(self.keeper.status().get("notes", ()))


def seconds_that_count(ledger: Ledger) -> float:
    """Return the window of a ledger, or with a half-life the mean age of what counts."""
    if ledger.window is not None:
        return ledger.window
    assert ledger.half_life is not None
    return ledger.half_life / float(np.log(2.0))
