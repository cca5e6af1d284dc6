"""The actor through which ranks exchange data, commit checkpoints and send news; plain asyncio.

One object serves all ranks. A run is a sequence of *generations*: whenever a rank is lost, the
driver begins a new generation, everybody who waits for the lost rank gets an error at once, and
messages of former generations are refused, so that nothing of a failed attempt ever mixes with the
next.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from limelight.cluster.collectives import ALL_REDUCE, add_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float64


class GenerationOverError(Exception):
    """The generation of a message has ended: a rank or something it had sent was lost."""


@dataclass(frozen=True)
class Commit:
    """Every rank has its part of the checkpoint of this epoch on disk."""

    epoch: int


@dataclass(frozen=True)
class News:
    """What a rank tells of an epoch."""

    rank: int
    epoch: int
    news: dict[str, Any]


Event: TypeAlias = tuple[int, Commit | News]
"""What happened, with its number in the run."""


@dataclass(frozen=True)
class _Round:
    """One collective that all ranks take part in."""

    verb: str
    brought: dict[int, Any] = field(default_factory=dict)
    made: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """What was made of what all ranks brought."""


class Coordinator:
    """Where ``size`` ranks wait for each other.

    Every message says its generation; those of a collective also say which one it is, counted by
    each rank from the beginning of the generation.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._generation = 0
        self._stop = False
        self._rounds: dict[int, _Round] = {}
        self._committed: dict[int, set[int]] = {}
        self._answers: dict[int, bool] = {}
        self._events: list[Event] = []
        self._n_events = 0
        self._has_events = asyncio.Event()

    async def begin(self, generation: int) -> None:
        """Begin a generation: whoever waits in another gets an error, and half a commit is void."""
        for waiting in self._rounds.values():
            waiting.made.set_exception(GenerationOverError(self._generation))
        self._generation = generation
        self._rounds.clear()
        self._committed.clear()
        self._answers.clear()

    async def check(self, generation: int) -> None:
        """Raise `GenerationOverError` if another generation has begun."""
        if generation != self._generation:
            raise GenerationOverError(generation)

    async def all_reduce(
        self, generation: int, number: int, rank: int, parts: Sequence[Float64]
    ) -> Float64:
        """Sum one array a shard over all ranks, one by one in shard order.

        Ranks hold contiguous runs of shards, so that shard order is rank order. The bits of the sum
        do not depend on who holds which shard, because it is always added up in this one place.
        """
        total: Float64 = await self._join_round(
            generation, number, rank, ALL_REDUCE, parts, make=_sum
        )
        return total

    async def all_to_all(
        self, generation: int, number: int, rank: int, verb: str, messages: Sequence[Any]
    ) -> list[Any]:
        """Bring a message for each rank; take home those for this one, in rank order."""
        brought = await self._join_round(generation, number, rank, verb, messages, make=list)
        return [messages[rank] for messages in brought]

    async def commit(self, generation: int, rank: int, epoch: int) -> None:
        """Note that a rank's part of a checkpoint is on disk; the last one makes it an event."""
        await self.check(generation)
        ranks = self._committed.setdefault(epoch, set())
        ranks.add(rank)
        if len(ranks) == self._size:
            del self._committed[epoch]
            self._happen(Commit(epoch))

    async def tell(self, generation: int, rank: int, epoch: int, news: dict[str, Any]) -> bool:
        """Pass news on; answer whether to stop after this epoch.

        Who asks first settles the answer for all, so that nobody needs to wait for the others.
        """
        await self.check(generation)
        self._happen(News(rank, epoch, news))
        return self._answers.setdefault(epoch, self._stop)

    async def ask_to_stop(self) -> None:
        """Let all ranks stop after the next epoch that nobody has told of."""
        self._stop = True

    async def events(self, after: int, *, wait: bool) -> list[Event]:
        """Return what happened after the first ``after`` events, which are forgotten.

        With ``wait`` the answer comes as soon as there is another event.
        """
        self._events = [event for event in self._events if event[0] >= after]
        while wait and not self._events:
            self._has_events.clear()
            await self._has_events.wait()
        return list(self._events)

    def _happen(self, what: Commit | News) -> None:
        self._events.append((self._n_events, what))
        self._n_events += 1
        self._has_events.set()

    async def _join_round(
        self,
        generation: int,
        number: int,
        rank: int,
        verb: str,
        brings: Any,
        *,
        make: Callable[[list[Any]], Any],
    ) -> Any:
        """Wait for all ranks; the last one makes something of what they brought, in rank order."""
        await self.check(generation)
        if number not in self._rounds:
            self._rounds[number] = _Round(verb)
        this = self._rounds[number]
        if verb != this.verb:
            message = f"rank {rank} came to {verb} while others wait in {this.verb}"
            raise RuntimeError(message)
        this.brought[rank] = brings
        if len(this.brought) == self._size:
            del self._rounds[number]
            this.made.set_result(make([this.brought[rank] for rank in range(self._size)]))
        return await this.made


def _sum(runs: list[Sequence[Float64]]) -> Float64:
    """Add up the parts of all ranks one by one."""
    return add_up([part for run in runs for part in run])
