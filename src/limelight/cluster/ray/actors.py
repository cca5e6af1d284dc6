"""The actors of a run on Ray: what a rank does, where it is placed, how a lost one is replaced.

A rank holds its program, and data with it, from one generation to the next.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from limelight._base.errors import LimelightError
from limelight.cluster.ray.collectives import RayCommunicator
from limelight.cluster.ray.coordinator import Coordinator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from limelight.cluster.collectives import Communicator, Program
    from limelight.cluster.ray.collectives import Membership


@dataclass(frozen=True)
class RankResult:
    """What a rank returned or raised in a generation, or that the generation ended early."""

    result: Any = None
    error: LimelightError | None = None
    system: OSError | None = None
    """What the operating system said, where that was the cause: causes do not travel."""
    is_over: bool = False
    """Whether the generation ended before the work did, because something was lost."""


class Rank:
    """What runs in the process of a rank."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._traffic: Counter[str] = Counter()

    def is_here(self) -> bool:
        """Answer true, so that the caller knows that the process has started."""
        return True

    def prepare(self, membership: Membership, program: Program) -> RankResult:
        """Take over a program and let it load its data."""
        self._program = program
        return self._work(membership, program.prepare)

    def run(self, membership: Membership) -> RankResult:
        """Run the program that was prepared."""
        assert self._program is not None
        return self._work(membership, self._program.run)

    def _work(self, membership: Membership, work: Callable[[Communicator], Any]) -> RankResult:
        """Do the work; an error of ours is returned, because Ray would wrap what is raised.

        The communicator knows that the generation is over, whatever the program made of its error.
        """
        comm = RayCommunicator(membership, self._traffic)
        try:
            result = work(comm)
            comm.settle()
        except Exception as error:
            if comm.is_over:
                return RankResult(is_over=True)
            if isinstance(error, LimelightError):
                cause = error.__cause__
                return RankResult(error=error, system=cause if isinstance(cause, OSError) else None)
            raise
        return RankResult(result=result)


_PLACING_SECONDS = 30.0
"""How long a rank may wait for processors that nobody else uses."""
_POLL_SECONDS = 0.5
_COORDINATOR_CALLS = 10_000
"""How many calls may wait in the coordinator at once: a few of each rank."""


class ActorGroup:
    """One actor for each rank and one for the coordinator; Ray neither restarts nor retries them.

    Ranks are called ``limelight-rank-0`` and so on in the dashboard, and are spread over the nodes.
    The coordinator is on the node of the driver: if that is lost, so is the driver. Each of
    ``size`` ranks uses so many threads; None for a fair share of the smallest node.
    """

    def __init__(self, size: int, threads: int | None) -> None:
        self.size = size
        share = share_of_a_node(_processors(), size)
        self.threads = threads or max(1, math.floor(share))
        self._cpus = min(self.threads, share)
        self._namespace = f"limelight-{uuid4().hex}"
        self._n_made = 0
        self.coordinator = self._make_coordinator()
        self._ranks: dict[int, Any] = {}
        self.replace(range(size))

    def rank(self, number: int) -> Any:
        """Return the handle of a rank."""
        return self._ranks[number]

    def replace(self, ranks: Collection[int]) -> None:
        """Make ranks anew, anywhere.

        After the loss of a node there may be no processors that nobody uses. Then a rank works
        beside another one, which is slower, but better than to wait.
        """
        late = self._make(ranks, self._cpus)
        end = time.monotonic() + _PLACING_SECONDS
        while late and time.monotonic() < end and self._has_room():
            late = _not_up(late, timeout=_POLL_SECONDS)
        _not_up(self._make(late.values(), 0), timeout=None)

    def dismiss(self) -> None:
        """End all processes."""
        for actor in (*self._ranks.values(), self.coordinator):
            _end(actor)

    def _make(self, ranks: Collection[int], cpus: float) -> dict[Any, int]:
        """Make ranks; return what they will answer once they are up."""
        for number in ranks:
            if number in self._ranks:
                _end(self._ranks[number])
            self._ranks[number] = self._make_rank(number, cpus)
        return {self._ranks[number].is_here.remote(): number for number in ranks}

    def _has_room(self) -> bool:
        """Tell whether the nodes could hold all ranks; Ray may report a lost node late."""
        return has_room(_processors(), self.size, self._cpus)

    def _make_rank(self, number: int, cpus: float) -> Any:
        """Make the actor of a rank.

        A lost one keeps its name until the cluster is sure that it is dead, so that every new one
        has a namespace of its own.
        """
        self._n_made += 1
        return _actor(
            Rank,
            name=f"limelight-rank-{number}",
            namespace=f"{self._namespace}-{self._n_made}",
            num_cpus=cpus,
            scheduling_strategy="SPREAD",
        ).remote()

    def _make_coordinator(self) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = ray.get_runtime_context().get_node_id()
        return _actor(
            Coordinator,
            name="limelight-meeting",
            namespace=self._namespace,
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False),
            max_concurrency=_COORDINATOR_CALLS,
        ).remote(self.size)


def _actor(kind: type, **options: Any) -> Any:
    """Return what starts an actor that Ray neither restarts nor retries."""
    import ray

    return ray.remote(kind).options(max_restarts=0, max_task_retries=0, **options)


def share_of_a_node(nodes: Sequence[float], size: int) -> float:
    """Return how many processors each of ``size`` ranks may ask for, to find a place on idle nodes.

    Examples
    --------
    >>> share_of_a_node([16.0, 8.0], size=2), share_of_a_node([2.0], size=3)
    (8, 0.6666)
    """
    usable = [cpus for cpus in nodes if cpus > 0]
    if not usable:
        return 0
    share = min(usable) / math.ceil(size / len(usable))
    # Ray takes whole processors, or a part of one, to four digits.
    return math.floor(share) if share >= 1 else math.floor(share * 10_000) / 10_000


def has_room(nodes: Sequence[float], size: int, cpus: float) -> bool:
    """Tell whether idle nodes could hold so many ranks with so many processors each.

    Examples
    --------
    >>> has_room([4.0, 4.0], size=2, cpus=4), has_room([4.0, 7.0], size=3, cpus=4)
    (True, False)
    """
    return cpus == 0 or sum(math.floor(node / cpus) for node in nodes) >= size


def _processors() -> list[float]:
    """Return the processors of each node that is alive."""
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return [node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]]


def _not_up(answers: dict[Any, int], *, timeout: float | None) -> dict[Any, int]:
    """Wait for ranks to come up; return those that have not."""
    import ray

    if not answers:
        return {}
    _, waiting = ray.wait(list(answers), num_returns=len(answers), timeout=timeout)
    return {answer: answers[answer] for answer in waiting}


def _end(actor: Any) -> None:
    import ray

    ray.kill(actor, no_restart=True)
