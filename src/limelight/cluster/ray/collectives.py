"""How ranks on Ray work together: the verbs of `limelight.cluster.collectives`."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.cluster.collectives import deal
from limelight.cluster.ray.coordinator import TermOverError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64

_LOOK_UP_SECONDS = 5.0
"""How long to wait for rows before asking whether the term still lasts."""


@dataclass(frozen=True)
class Seat:
    """A rank's place in a term of a run."""

    rank: int
    size: int
    n_shards: int
    deterministic: bool
    threads: int
    term: int
    meeting: Any
    """The handle of the actor that is the meeting."""


class RayExchange:
    """The verbs of a rank, for one term.

    Small arrays go to the meeting and are added up there. Rows go from store to store: the meeting
    passes on only references to them, and ranks on one machine read the same memory.

    Bytes are counted as if each rank were a machine of its own, and as if the meeting were on the
    machine of rank 0: what a rank sends of rows to others, and of a sum, for every rank but 0, what
    it sends up (one array a shard) and gets back (one). Where every rank has one shard, sums thus
    come to 2 (size - 1) arrays.

    Parameters
    ----------
    seat
        The place of this rank.
    traffic
        The bytes that this rank has sent before, to go on from.
    """

    def __init__(self, seat: Seat, traffic: Counter[str] | None = None) -> None:
        self.rank = seat.rank
        self.size = seat.size
        self.n_shards = seat.n_shards
        self.threads = seat.threads
        """How many threads this rank may use."""
        self.traffic: Counter[str] = Counter() if traffic is None else traffic
        self.is_over = False
        """Whether the term has ended before the work did."""
        self._seat = seat
        self._runs = deal(seat.n_shards, seat.size)
        self._number = 0
        self._on_loan: list[Any] = []
        self._promises: list[Any] = []

    def sum_small(self, parts: Sequence[Float64]) -> Float64:
        """Sum one array a shard over all shards, in shard order; every rank gets the sum."""
        total = self._meet(self._seat.meeting.sum_small, list(parts))
        if self.rank:
            self.traffic["sum_small"] += _n_bytes(tuple(parts)) + total.nbytes
        return np.array(total)

    def gather_items(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Concatenate every rank's rows in rank order; every rank gets all of them."""
        shared = self._put(mine) if self.size > 1 else None
        parcels = self._trade("gather_items", [shared] * self.size)
        self.traffic["gather_items"] += mine.nbytes * (self.size - 1)
        parcels[self.rank] = mine
        self._order(parcels)
        return np.concatenate([self._fetch(parcel) for parcel in parcels])

    def exchange_rows(self, outgoing: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Send a payload from each shard of this rank to each rank; yield those for this one.

        If bits are not to depend on who holds which shard, everything is sent before anything is
        read, to be read in shard order. Otherwise shards go in waves, one of each rank at a time,
        and each rank reads its own first, then its neighbour's, so that nobody is stormed.
        """
        most = max(len(run) for run in self._runs)
        a_time = most if self._seat.deterministic else 1
        mine = zip(self._runs[self.rank], outgoing, strict=True)
        for _ in range(most // a_time):
            yield from self._wave(list(islice(mine, a_time)))

    def commit(self, epoch: int) -> None:
        """Say that this rank's part of the checkpoint of an epoch is on disk; do not wait."""
        seat = self._seat
        self._promises.append(seat.meeting.commit.remote(seat.term, seat.rank, epoch))

    def tell(self, epoch: int, news: dict[str, Any]) -> bool:
        """Tell who started the fit how it goes; true if all ranks are to stop after this epoch."""
        seat = self._seat
        answer = self._fetch(seat.meeting.tell.remote(seat.term, seat.rank, epoch, news))
        return bool(answer)

    def settle(self) -> None:
        """Wait until all that this rank has said was heard."""
        for promise in self._promises:
            self._fetch(promise)

    def _wave(self, shards: list[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, Any]]:
        parcels: list[list[tuple[int, Any]]] = [[] for _ in range(self.size)]
        for shard, payloads in shards:
            for to, payload in enumerate(payloads):
                parcels[to].append((shard, payload if to == self.rank else self._put(payload)))
                if to != self.rank:
                    self.traffic["exchange_rows"] += _n_bytes(payload)
        mine, parcels[self.rank] = parcels[self.rank], []
        arrived = self._trade("exchange_rows", parcels)
        arrived[self.rank] = mine
        turned = arrived[self.rank :] + arrived[: self.rank]
        queue = deque(payload for parcel in turned for payload in parcel)
        if self._seat.deterministic:
            queue = deque(sorted(queue, key=lambda one: one[0]))
        while queue:
            self._order(payload for _, payload in islice(queue, 2))
            shard, payload = queue.popleft()
            yield shard, self._fetch(payload)

    def _order(self, payloads: Iterable[Any]) -> None:
        """Let rows set out for here, so that they come while others are worked on."""
        import ray

        ordered = [payload for payload in payloads if isinstance(payload, ray.ObjectRef)]
        if ordered:
            ray.wait(ordered, timeout=0)

    def _trade(self, verb: str, parcels: list[Any]) -> list[Any]:
        """Swap parcels with all ranks."""
        arrived: list[Any] = self._meet(self._seat.meeting.trade, verb, parcels)
        return arrived

    def _meet(self, verb: Any, *brings: Any) -> Any:
        """Take part in the next rendezvous.

        Everybody has read what was lent to them in the last one: otherwise they would not be here.
        So that is let go, and what is lent now is held until all meet again.
        """
        self._number += 1
        seat = self._seat
        made = self._fetch(verb.remote(seat.term, self._number, seat.rank, *brings))
        self._on_loan = list(brings)
        return made

    def _put(self, payload: Any) -> Any:
        import ray

        return ray.put(payload)

    def _fetch(self, payload: Any) -> Any:
        """Wait for what a reference stands for; anything else is there already.

        Who waits for rows of a machine that died may hear of it late, or never; the meeting knows
        better.
        """
        import ray
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError

        if not isinstance(payload, ray.ObjectRef):
            return payload
        seat = self._seat
        try:
            while True:
                try:
                    return ray.get(payload, timeout=_LOOK_UP_SECONDS)
                except GetTimeoutError:
                    ray.get(seat.meeting.check.remote(seat.term))
        except RayTaskError as error:
            self.is_over = isinstance(error.cause, TermOverError)
            raise error.cause from None
        except RayError as error:
            self.is_over = True
            raise TermOverError(seat.term) from error


def _n_bytes(payload: Any) -> int:
    """Count the bytes of an array, or of a tuple of them."""
    if isinstance(payload, tuple):
        return sum(map(_n_bytes, payload))
    return int(payload.nbytes)
