"""Where the ranks of a run meet: sums, trades, checkpoints, news. Plain asyncio, no Ray in it.

One object serves all ranks. It lives through *terms*: whenever a rank is lost, the driver begins a
new term, everybody who waits for the lost rank is sent home at once, and messages of former terms
are refused, so that nothing of a failed attempt ever mixes with the next.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float64


class TermOverError(Exception):
    """The term of a message has ended: a rank or something it had sent was lost."""


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
    """One rendezvous of all ranks."""

    verb: str
    brought: dict[int, Any] = field(default_factory=dict)
    made: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """What was made of what all ranks brought."""


class Meeting:
    """The place where ranks wait for each other.

    Every message says its term; those of a rendezvous also say which one it is, counted by each
    rank from the beginning of the term.

    Parameters
    ----------
    size
        How many ranks there are.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._term = 0
        self._stop = False
        self._rounds: dict[int, _Round] = {}
        self._committed: dict[int, set[int]] = {}
        self._answers: dict[int, bool] = {}
        self._events: list[Event] = []
        self._n_events = 0
        self._bell = asyncio.Event()

    async def begin(self, term: int) -> None:
        """Begin a term: who waits in another gets `TermOverError`, and half a commit is void."""
        for waiting in self._rounds.values():
            waiting.made.set_exception(TermOverError(self._term))
        self._term = term
        self._rounds.clear()
        self._committed.clear()
        self._answers.clear()

    async def check(self, term: int) -> None:
        """Raise `TermOverError` if another term has begun."""
        if term != self._term:
            raise TermOverError(term)

    async def sum_small(
        self, term: int, number: int, rank: int, parts: Sequence[Float64]
    ) -> Float64:
        """Sum one array a shard over all ranks, one by one in shard order.

        Ranks hold contiguous runs of shards, so that shard order is rank order. The bits of the sum
        do not depend on who holds which shard, because it is always added up in this one place.
        """
        total: Float64 = await self._meet(term, number, rank, "sum_small", parts, make=_sum)
        return total

    async def trade(
        self, term: int, number: int, rank: int, verb: str, parcels: Sequence[Any]
    ) -> list[Any]:
        """Bring a parcel for each rank; take home those for this one, in rank order."""
        brought = await self._meet(term, number, rank, verb, parcels, make=list)
        return [parcels[rank] for parcels in brought]

    async def commit(self, term: int, rank: int, epoch: int) -> None:
        """Note that a rank's part of a checkpoint is on disk; the last one makes it an event."""
        await self.check(term)
        ranks = self._committed.setdefault(epoch, set())
        ranks.add(rank)
        if len(ranks) == self._size:
            del self._committed[epoch]
            self._happen(Commit(epoch))

    async def tell(self, term: int, rank: int, epoch: int, news: dict[str, Any]) -> bool:
        """Pass news on; answer whether to stop after this epoch.

        Who asks first settles the answer for all, so that nobody needs to wait for the others.
        """
        await self.check(term)
        self._happen(News(rank, epoch, news))
        return self._answers.setdefault(epoch, self._stop)

    async def ask_to_stop(self) -> None:
        """Let all ranks stop after the next epoch that nobody has told of."""
        self._stop = True

    async def events(self, after: int, *, wait: bool) -> list[Event]:
        """Return what happened after the first so many events, which are forgotten.

        Parameters
        ----------
        after
            How many events are known.
        wait
            Whether to wait until there is another.
        """
        self._events = [event for event in self._events if event[0] >= after]
        while wait and not self._events:
            self._bell.clear()
            await self._bell.wait()
        return list(self._events)

    def _happen(self, what: Commit | News) -> None:
        self._events.append((self._n_events, what))
        self._n_events += 1
        self._bell.set()

    async def _meet(
        self,
        term: int,
        number: int,
        rank: int,
        verb: str,
        brings: Any,
        *,
        make: Callable[[list[Any]], Any],
    ) -> Any:
        """Wait for all ranks; the last one makes something of what they brought, in rank order."""
        await self.check(term)
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
    first, *others = (part for run in runs for part in run)
    total = first.copy()
    for part in others:
        total += part
    return total
