"""A communicator whose ranks are actors of Ray."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.cluster.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, deal, sent
from limelight.cluster.ray.coordinator import GenerationOverError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64

_CHECK_SECONDS = 5.0
"""How long to wait for rows before asking whether the generation still lasts."""


@dataclass(frozen=True)
class Membership:
    """A rank's place in a generation of a run."""

    rank: int
    size: int
    n_shards: int
    deterministic: bool
    threads: int
    generation: int
    coordinator: Any
    """The handle of the actor that is the coordinator."""


class RayCommunicator:
    """The communicator of a rank, for one generation; it goes on counting from ``traffic``.

    Small arrays go to the coordinator and are added up there. Rows go from store to store: the
    coordinator passes on only references to them, and ranks on one machine read the same memory.

    Bytes are counted as if each rank were a machine of its own, and as if the coordinator were on
    the machine of rank 0: what a rank sends of rows to others, and of a sum, for every rank but 0,
    what it sends up (one array a shard) and gets back (one). Where every rank has one shard, sums
    thus come to 2 (size - 1) arrays.
    """

    def __init__(self, membership: Membership, traffic: Counter[str] | None = None) -> None:
        self.rank = membership.rank
        self.size = membership.size
        self.n_shards = membership.n_shards
        self.threads = membership.threads
        self.traffic: Counter[str] = Counter() if traffic is None else traffic
        self.is_over = False
        """Whether the generation has ended before the work did."""
        self._membership = membership
        self._coordinator = membership.coordinator
        self._runs = deal(membership.n_shards, membership.size)
        self._number = 0
        self._held: list[Any] = []
        self._commits: list[Any] = []

    def all_reduce(self, parts: Sequence[Float64]) -> Float64:
        """Sum one array a shard over all shards, in shard order; every rank gets the sum."""
        total = self._join_round(self._coordinator.all_reduce, list(parts))
        if self.rank:
            self.traffic[ALL_REDUCE] += sent(tuple(parts)) + total.nbytes
        return np.array(total)

    def all_gather(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Concatenate every rank's rows in rank order; every rank gets all of them."""
        shared = self._put(mine) if self.size > 1 else None
        messages = self._all_to_all(ALL_GATHER, [shared] * self.size)
        self.traffic[ALL_GATHER] += mine.nbytes * (self.size - 1)
        messages[self.rank] = mine
        self._prefetch(messages)
        return np.concatenate([self._fetch(message) for message in messages])

    def all_to_all(self, outgoing: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Send a payload from each shard of this rank to each rank; yield those for this one.

        If bits are not to depend on who holds which shard, everything is sent before anything is
        read, to be read in shard order. Otherwise shards go in waves, one of each rank at a time,
        and each rank reads its own first, then its neighbour's, so that no rank is asked by all
        others at the same time.
        """
        most = max(len(run) for run in self._runs)
        a_time = most if self._membership.deterministic else 1
        mine = zip(self._runs[self.rank], outgoing, strict=True)
        for _ in range(most // a_time):
            yield from self._wave(list(islice(mine, a_time)))

    def commit(self, epoch: int) -> None:
        """Say that this rank's part of the checkpoint of an epoch is on disk; do not wait."""
        self._commits.append(self._send(self._coordinator.commit, self.rank, epoch))

    def tell(self, epoch: int, news: dict[str, Any]) -> bool:
        """Tell who started the fit how it goes; true if all ranks are to stop after this epoch."""
        return bool(self._fetch(self._send(self._coordinator.tell, self.rank, epoch, news)))

    def settle(self) -> None:
        """Wait until the coordinator has taken note of all commits of this rank."""
        for commit in self._commits:
            self._fetch(commit)

    def _wave(self, shards: list[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, Any]]:
        messages: list[list[tuple[int, Any]]] = [[] for _ in range(self.size)]
        for shard, payloads in shards:
            for to, payload in enumerate(payloads):
                messages[to].append((shard, payload if to == self.rank else self._put(payload)))
                if to != self.rank:
                    self.traffic[ALL_TO_ALL] += sent(payload)
        mine, messages[self.rank] = messages[self.rank], []
        arrived = self._all_to_all(ALL_TO_ALL, messages)
        arrived[self.rank] = mine
        turned = arrived[self.rank :] + arrived[: self.rank]
        queue = deque(payload for message in turned for payload in message)
        if self._membership.deterministic:
            queue = deque(sorted(queue, key=lambda one: one[0]))
        while queue:
            self._prefetch(payload for _, payload in islice(queue, 2))
            shard, payload = queue.popleft()
            yield shard, self._fetch(payload)

    def _prefetch(self, payloads: Iterable[Any]) -> None:
        """Ask Ray to fetch rows, so that they arrive while others are worked on."""
        import ray

        ordered = [payload for payload in payloads if isinstance(payload, ray.ObjectRef)]
        if ordered:
            ray.wait(ordered, timeout=0)

    def _all_to_all(self, verb: str, messages: list[Any]) -> list[Any]:
        """Send a message to each rank; return those for this one."""
        arrived: list[Any] = self._join_round(self._coordinator.all_to_all, verb, messages)
        return arrived

    def _join_round(self, verb: Any, *brings: Any) -> Any:
        """Take part in the next round of all ranks.

        Ray deletes an object when nobody refers to it, so a rank must hold what it sends until the
        others have read it. A rank comes to a round when it has read all of the last one: what was
        sent in that is let go, and what is sent now is held until the next round.
        """
        self._number += 1
        made = self._fetch(self._send(verb, self._number, self.rank, *brings))
        self._held = list(brings)
        return made

    def _send(self, method: Any, *arguments: Any) -> Any:
        """Call the coordinator; return what its answer will be found by."""
        return method.remote(self._membership.generation, *arguments)

    def _put(self, payload: Any) -> Any:
        import ray

        return ray.put(payload)

    def _fetch(self, payload: Any) -> Any:
        """Wait for what a reference stands for; anything else is there already.

        Ray may tell late, or never, that a machine died whose rows are waited for. So the
        coordinator is asked now and then whether the generation still lasts.
        """
        import ray
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError

        if not isinstance(payload, ray.ObjectRef):
            return payload
        try:
            while True:
                try:
                    return ray.get(payload, timeout=_CHECK_SECONDS)
                except GetTimeoutError:
                    ray.get(self._send(self._coordinator.check))
        except RayTaskError as error:
            self.is_over = isinstance(error.cause, GenerationOverError)
            raise error.cause from None
        except RayError as error:
            self.is_over = True
            raise GenerationOverError(self._membership.generation) from error
