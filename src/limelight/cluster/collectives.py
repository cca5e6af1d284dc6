"""How the processes of one fit work together: the collectives of MPI, over shards.

A fit over many machines is the same loop on each of them. The users and the items are cut into
*shards*, runs of rows; a process, a *rank*, has a run of shards. Sums are added up shard by shard,
in the order of the shards, so that they do not depend on who has which.

A :class:`Communicator` has three collectives, and is all that threads or Ray have to provide. The
functions below add what reading data needs, in terms of these three.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from limelight._base.errors import (
    ConfigError,
    DataError,
    LimelightError,
    MemoryLimitError,
    SolveError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int64


Result = TypeVar("Result")
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL = "sum_small", "gather_items", "exchange_rows"
"""What the collectives are called where bytes are counted, as users see them."""


class Communicator(Protocol):
    """What a rank reaches the others by; all ranks have to call a collective together."""

    rank: int
    size: int
    n_shards: int
    threads: int
    """How many threads this rank may use."""
    traffic: Counter[str]
    """Bytes sent to other ranks since the start, by collective."""

    def all_reduce(self, parts: Sequence[Float64]) -> Float64:
        """Add up one array of each shard; every rank gives those of its own and gets the sum."""

    def all_gather(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Put the rows of all ranks one below the other; every rank gets all of them."""

    def all_to_all(self, outgoing: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Give every rank what each of my shards has for it, and get what is for me.

        ``outgoing`` has, for each shard of this rank in order, an array or a tuple of arrays for
        each rank. Yields the number of a shard and what it has for this rank, for all shards.
        """

    def commit(self, epoch: int) -> None:
        """Say that this rank's part of the checkpoint of an epoch is on disk; does not wait."""

    def tell(self, epoch: int, news: dict[str, Any]) -> bool:
        """Say how the fit goes; all ranks learn whether to stop after this epoch."""


class Program(Protocol):
    """What every rank of a run does; it travels to them as a pickle."""

    def prepare(self, comm: Communicator) -> None:
        """Load this rank's data, which it keeps when another rank is lost.

        A rank that takes the place of a lost one prepares alone: it must not wait for the others.
        """

    def run(self, comm: Communicator) -> Any:
        """Do the work, from the last checkpoint that all have committed or from the beginning."""


def deal(n_shards: int, size: int) -> list[range]:
    """Deal shards to ranks: runs of them, as equal as they can be.

    Examples
    --------
    >>> deal(5, 2)
    [range(0, 3), range(3, 5)]
    """
    if not 1 <= size <= n_shards:
        message = f"{n_shards} shards cannot be dealt to {size} workers"
        raise ConfigError(message, hint="use at least one worker, and at least a shard for each")
    ends = [-(-n_shards * rank // size) for rank in range(size + 1)]
    return [range(first, end) for first, end in pairwise(ends)]


def shard_order(n_shards: int, size: int, rank: int, *, deterministic: bool) -> list[int]:
    """Say in which order a rank adds up what the shards have for it.

    In ascending order the sums do not depend on the number of ranks. Otherwise they come in waves,
    the first shard of every rank, the second, and so on, each rank beginning with its own: so
    nobody is asked by all others at once, and little waits.

    Examples
    --------
    >>> shard_order(4, 2, 1, deterministic=True), shard_order(4, 2, 1, deterministic=False)
    ([0, 1, 2, 3], [2, 0, 3, 1])
    """
    if deterministic:
        return list(range(n_shards))
    dealt = deal(n_shards, size)
    turns = [dealt[(rank + turn) % size] for turn in range(size)]
    return [shards[wave] for wave in range(len(dealt[0])) for shards in turns if wave < len(shards)]


def sent(payload: Any) -> int:
    """Count the bytes of an array, or of a tuple of arrays.

    Examples
    --------
    >>> sent((np.zeros(2), np.zeros(1, np.int32)))
    20
    """
    parts = payload if isinstance(payload, tuple) else (payload,)
    return sum(part.nbytes for part in parts)


class _SharedState:
    """What the ranks of one process, which are threads, share."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.slots: dict[int, Any] = {}
        self.lock = threading.Lock()
        self.committed: Counter[int] = Counter()
        self.answers: dict[int, bool] = {}

    def exchange(self, rank: int, value: Any) -> dict[int, Any]:
        """Give a value and get those of all ranks."""
        self.slots[rank] = value
        self.barrier.wait()
        found = dict(self.slots)
        self.barrier.wait()
        return found


class LocalCommunicator:
    """One of several ranks that are threads of one process.

    ``deterministic`` says whether sums over rows are to be the same for any number of ranks.
    ``on_commit`` is called with an epoch when all ranks have committed it, and ``on_news`` with
    what a rank tells: if it answers true, the fit stops.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        n_shards: int,
        shared: _SharedState,
        *,
        deterministic: bool,
        on_commit: Callable[[int], object],
        on_news: Callable[[int, int, dict[str, Any]], object],
    ) -> None:
        self.rank, self.size, self.n_shards, self.threads = rank, size, n_shards, 1
        self.traffic: Counter[str] = Counter()
        self._shared, self._deterministic = shared, deterministic
        self._on_commit, self._on_news = on_commit, on_news

    def all_reduce(self, parts: Sequence[Float64]) -> Float64:
        """Add up one array of each shard, in the order of the shards."""
        found = self._shared.exchange(self.rank, parts)
        if self.rank:
            # A rank sends one array for each of its shards, and gets one sum back.
            self.traffic[ALL_REDUCE] += (len(parts) + 1) * parts[0].nbytes
        return add_up([part for rank in range(self.size) for part in found[rank]])

    def all_gather(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Put the rows of all ranks one below the other."""
        self.traffic[ALL_GATHER] += (self.size - 1) * mine.nbytes
        found = self._shared.exchange(self.rank, mine)
        return np.concatenate([found[rank] for rank in range(self.size)])

    def all_to_all(self, outgoing: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Give every rank what each of my shards has for it, and get what is for me."""
        mine = dict(zip(deal(self.n_shards, self.size)[self.rank], outgoing, strict=True))
        for payloads in mine.values():
            others = (p for rank, p in enumerate(payloads) if rank != self.rank)
            self.traffic[ALL_TO_ALL] += sum(map(sent, others))
        found = self._shared.exchange(self.rank, mine)
        shards = {shard: payloads for rank in found for shard, payloads in found[rank].items()}
        order = shard_order(self.n_shards, self.size, self.rank, deterministic=self._deterministic)
        for shard in order:
            yield shard, shards[shard][self.rank]

    def commit(self, epoch: int) -> None:
        """Say that this rank's part of the checkpoint of an epoch is on disk."""
        with self._shared.lock:
            self._shared.committed[epoch] += 1
            if self._shared.committed[epoch] == self.size:
                self._on_commit(epoch)

    def tell(self, epoch: int, news: dict[str, Any]) -> bool:
        """Say how the fit goes; the first to ask decides for all."""
        with self._shared.lock:
            answer = bool(self._on_news(self.rank, epoch, news))
            return self._shared.answers.setdefault(epoch, answer)


def add_up(parts: Sequence[Float64]) -> Float64:
    """Add up arrays in their order."""
    total = np.array(parts[0], np.float64)
    for part in parts[1:]:
        total += part
    return total


def run_locally(
    work: Callable[[Communicator], Result],
    size: int,
    n_shards: int,
    *,
    deterministic: bool = False,
    on_commit: Callable[[int], object] = lambda _: None,
    on_news: Callable[[int, int, dict[str, Any]], object] = lambda *_: False,
) -> list[Result]:
    """Do the same work in several threads that are ranks, and return what each returned.

    If one fails, all end, and its error is raised.

    Examples
    --------
    >>> def count(comm):
    ...     return comm.all_gather(np.array([comm.rank]))
    >>> run_locally(count, 3, 3)[0]
    array([0, 1, 2])
    """
    shared, results, errors = _SharedState(size), dict[int, Result](), list[BaseException]()

    def rank_work(rank: int) -> None:
        comm = LocalCommunicator(
            rank, size, n_shards, shared,
            deterministic=deterministic, on_commit=on_commit, on_news=on_news,
        )  # fmt: skip
        try:
            results[rank] = work(comm)
        except threading.BrokenBarrierError:
            pass  # another rank failed, and says why
        except BaseException as error:  # it is raised again below
            errors.append(error)
            shared.barrier.abort()

    threads = [threading.Thread(target=rank_work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(size)]


def all_to_all_objects(comm: Communicator, payloads: Sequence[Any]) -> list[Any]:
    """Give each rank its payload, arrays or a tuple of them; return what each has for this one.

    Examples
    --------
    >>> def greet(comm):
    ...     mine = [np.array([10 * comm.rank + to]) for to in range(3)]
    ...     return [int(one[0]) for one in all_to_all_objects(comm, mine)]
    >>> run_locally(greet, 3, 5)
    [[0, 10, 20], [1, 11, 21], [2, 12, 22]]
    """
    dealt = deal(comm.n_shards, comm.size)
    nothing = [np.empty(0)] * comm.size
    mine = dealt[comm.rank]
    # Everything goes with the first shard of each rank.
    outgoing = (payloads if shard == mine[0] else nothing for shard in mine)
    sender = {shards[0]: rank for rank, shards in enumerate(dealt)}
    found = {sender.get(shard): payload for shard, payload in comm.all_to_all(outgoing)}
    return [found[rank] for rank in range(comm.size)]


def all_gather_objects(comm: Communicator, payload: Any) -> list[Any]:
    """Give every rank the same, and return what every rank gave.

    Examples
    --------
    >>> run_locally(lambda comm: all_gather_objects(comm, np.array([comm.rank])), 2, 2)[0]
    [array([0]), array([1])]
    """
    return all_to_all_objects(comm, [payload] * comm.size)


def gather(comm: Communicator, payload: Any) -> list[Any] | None:
    """Give something to the first rank, which gets it of all; the others get None.

    Examples
    --------
    >>> run_locally(lambda comm: gather(comm, np.array([comm.rank])), 2, 2)
    [[array([0]), array([1])], None]
    """
    found = all_to_all_objects(comm, [payload, *[np.empty(0)] * (comm.size - 1)])
    return None if comm.rank else found


def all_reduce_counts(comm: Communicator, counts: Int64) -> Int64:
    """Add up an array of counts over all ranks; each adds up a stretch of it.

    Examples
    --------
    >>> run_locally(lambda comm: all_reduce_counts(comm, np.array([1, 2, 3])), 2, 2)[1]
    array([2, 4, 6])
    """
    stretches = all_to_all_objects(comm, np.array_split(counts, comm.size))
    return comm.all_gather(np.stack(stretches).sum(axis=0, dtype=np.int64))


def all_agree(comm: Communicator, holds: object) -> bool:
    """Tell whether something holds for every rank.

    Examples
    --------
    >>> run_locally(lambda comm: all_agree(comm, comm.rank < 1), 2, 2)
    [False, False]
    """
    return bool(comm.all_gather(np.array([bool(holds)])).all())


def barrier(comm: Communicator) -> None:
    """Wait until every rank has come this far."""
    all_agree(comm, holds=True)


@contextmanager
def raise_together(comm: Communicator) -> Iterator[None]:
    """Fail where any rank fails, with the error of the first of them.

    Ranks read in the order of their numbers, so this is what one machine would have met first.

    Examples
    --------
    >>> def fail(comm):
    ...     with raise_together(comm):
    ...         if comm.rank:
    ...             raise DataError(f"row {comm.rank} is bad")
    >>> run_locally(fail, 3, 3)
    Traceback (most recent call last):
    limelight._base.errors.DataError: row 1 is bad
    """
    failure = None
    try:
        yield
    except LimelightError as error:
        failure = error
    for rank, packed in enumerate(all_gather_objects(comm, _pack(failure))):
        if len(packed):
            raise failure if failure and rank == comm.rank else _unpack(packed)


_KINDS = {kind.__name__: kind for kind in (ConfigError, DataError, MemoryLimitError, SolveError)}


def _pack(error: LimelightError | None) -> Any:
    if error is None:
        return np.empty(0, np.uint8)
    text = json.dumps([type(error).__name__, error.message, error.hint])
    return np.frombuffer(text.encode(), np.uint8)


def _unpack(packed: Any) -> LimelightError:
    kind, message, hint = json.loads(bytes(packed))
    return _KINDS.get(kind, LimelightError)(message, hint=hint)
