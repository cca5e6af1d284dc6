"""Run a program on all ranks of a Ray cluster, and go on when some of them are lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from limelight._base.errors import ConfigError, LimelightError
from limelight._base.text import first_words
from limelight.cluster.ray.actors import ActorGroup, RankResult
from limelight.cluster.ray.collectives import Membership
from limelight.cluster.ray.connect import connected
from limelight.cluster.ray.coordinator import Commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limelight.cluster.collectives import Program
    from limelight.cluster.ray.coordinator import Event


OnCommit: TypeAlias = Callable[[int], None]
"""Called with an epoch, once all ranks have their parts of its checkpoint on disk."""
OnNews: TypeAlias = Callable[[int, int, dict[str, Any]], None]
"""Called with a rank, an epoch, and what the rank told of it."""
_LISTEN_SECONDS = 0.2
"""How often to ask whether the run should stop."""
_FRUITLESS = 5
"""How often something may be lost in a row without a checkpoint in between."""
_RESUME = "give the command again with --resume: it goes on from the last checkpoint"


@dataclass(frozen=True)
class Hooks:
    """The functions that the driver calls while a run goes on."""

    on_commit: OnCommit
    on_news: OnNews
    should_stop: Callable[[], bool]


class Driver:
    """Leads the actors through generations until all ranks have run to the end.

    In a generation, some ranks prepare or all of them run. When something is lost, the next
    generation begins at once, so that no rank waits for the lost one; that is replaced when all
    calls of the old generation have returned.
    """

    def __init__(
        self,
        program: Program,
        actors: ActorGroup,
        hooks: Hooks,
        n_shards: int,
        *,
        deterministic: bool,
    ) -> None:
        self._program = program
        self._actors = actors
        self._hooks = hooks
        self._n_shards = n_shards
        self._deterministic = deterministic
        self._generation = 0
        self._epoch = 0
        self._n_events = 0
        self._n_fruitless = 0
        self._lost: dict[int, Exception] = {}
        self._is_stopping = False
        self._next_events = self._listen()

    def drive(self) -> list[Any]:
        """Return what each rank returned.

        Each turn of the loop is a generation. It prepares the ranks that have no data yet, or runs
        all of them if there are none. The first time, ranks need each other to prepare: each reads
        some files, and rows go to the rank that has their user. So a loss before all were prepared
        sends all of them back to the beginning. Afterwards the shards are on disk: only a new rank
        prepares, alone, and the others keep their data in memory.
        """
        everyone = set(range(self._actors.size))
        unprepared = everyone
        had_all = False
        while True:
            results = self._run_generation(unprepared or everyone, is_preparing=bool(unprepared))
            if results is None:
                replaced = self._replace_lost()
                unprepared = unprepared | replaced if had_all else everyone
            elif unprepared:
                unprepared, had_all = set(), True
            else:
                return [results[rank] for rank in sorted(everyone)]

    def _run_generation(self, ranks: Iterable[int], *, is_preparing: bool) -> dict[int, Any] | None:
        """Let ranks work; return their results, or None if something was lost."""
        self._begin_generation()
        calls = {self._call(rank, is_preparing=is_preparing): rank for rank in ranks}
        results: dict[int, Any] = {}
        is_over = False
        while calls:
            for answer in self._next_answers(calls):
                rank = calls.pop(answer)
                outcome = self._outcome(rank, answer)
                results[rank] = outcome.result
                if outcome.is_over and not is_over:
                    is_over = True
                    self._begin_generation()
        self._catch_up()
        return None if is_over else results

    def _call(self, rank: int, *, is_preparing: bool) -> Any:
        actors = self._actors
        membership = Membership(
            rank=rank,
            size=actors.size,
            n_shards=self._n_shards,
            deterministic=self._deterministic,
            threads=actors.threads,
            generation=self._generation,
            coordinator=actors.coordinator,
        )
        if is_preparing:
            return actors.rank(rank).prepare.remote(membership, self._program)
        return actors.rank(rank).run.remote(membership)

    def _outcome(self, rank: int, answer: Any) -> RankResult:
        """Return the result of a rank; raise its error.

        Commits that were complete before the error are passed on first, so that they count.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        try:
            outcome: RankResult = ray.get(answer)
        except RayTaskError:
            self._catch_up()
            raise
        except RayError as error:
            self._lost[rank] = error
            return RankResult(is_over=True)
        if outcome.error:
            self._catch_up()
            raise outcome.error from outcome.system
        return outcome

    def _replace_lost(self) -> set[int]:
        """Make lost ranks anew; return them. None is lost where only rows were."""
        lost, self._lost = self._lost, {}
        why = {rank: first_words(error) for rank, error in lost.items()}
        self._n_fruitless += 1
        if self._n_fruitless > _FRUITLESS:
            message = f"lost ranks {_FRUITLESS + 1} times without a checkpoint in between: {why}"
            hint = f"memory is often why; see the logs of Ray. Then {_RESUME}"
            raise LimelightError(message, hint=hint) from next(iter(lost.values()), None)
        for rank, words in why.items():
            self._hooks.on_news(rank, self._epoch, {"lost": words})
        self._actors.replace(sorted(lost))
        return set(lost)

    def _next_answers(self, calls: Iterable[Any]) -> list[Any]:
        """Wait a moment for answers of ranks; meanwhile pass events on, and the wish to stop."""
        import ray

        if not self._is_stopping and self._hooks.should_stop():
            self._is_stopping = True
            self._ask(self._actors.coordinator.ask_to_stop.remote())
        ready, _ = ray.wait([*calls, self._next_events], timeout=_LISTEN_SECONDS)
        if self._next_events not in ready:
            return list(ready)
        self._pass_on(self._ask(self._next_events))
        self._next_events = self._listen()
        return []

    def _begin_generation(self) -> None:
        self._generation += 1
        self._ask(self._actors.coordinator.begin.remote(self._generation))

    def _listen(self) -> Any:
        """Ask the coordinator to answer when something happens."""
        return self._actors.coordinator.events.remote(self._n_events, wait=True)

    def _catch_up(self) -> None:
        """Pass on all that has happened."""
        self._pass_on(self._ask(self._actors.coordinator.events.remote(self._n_events, wait=False)))

    def _pass_on(self, events: list[Event]) -> None:
        for number, what in events:
            if number < self._n_events:
                continue
            self._n_events += 1
            if isinstance(what, Commit):
                self._epoch = what.epoch
                self._n_fruitless = 0
                self._hooks.on_commit(what.epoch)
            else:
                self._hooks.on_news(what.rank, what.epoch, what.news)

    def _ask(self, question: Any) -> Any:
        """Wait for an answer of the coordinator; the run ends if the coordinator is lost."""
        import ray
        from ray.exceptions import RayActorError

        try:
            return ray.get(question)
        except RayActorError as error:
            message = f"the coordinator of the workers was lost: {first_words(error)}"
            raise LimelightError(message, hint=_RESUME) from error


def run_on_ray(  # noqa: PLR0913 - a run and its hooks
    program: Program,
    *,
    workers: int,
    n_shards: int,
    deterministic: bool,
    address: str | None = None,
    threads: int | None = None,
    on_commit: OnCommit = lambda epoch: None,
    on_news: OnNews = lambda rank, epoch, news: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Any]:
    """Run a program on the ranks of a Ray cluster; return what each rank returned.

    A rank that dies, alone or with its machine, is made anew elsewhere, and all ranks go on from
    the last checkpoint that was committed; the others keep their data. What they return is the
    same, bit for bit, as if nothing had happened, if that holds for the program when it is resumed.

    Parameters
    ----------
    program
        What every rank runs: a picklable `limelight.cluster.collectives.Program`. A rank that is
        made anew after all were prepared prepares alone, so that it must not wait for others.
    workers
        How many ranks there are. They are spread over the machines of the cluster.
    n_shards
        Into how many shards users and items are cut; at least one for each rank.
    deterministic
        Whether rows are exchanged in an order that does not depend on the number of ranks.
    address
        Where the head of the cluster listens; see `limelight.cluster.ray.connect.connected`.
    threads
        How many threads each rank uses, which Ray is asked to keep free for it. None takes a fair
        share of the machine.
    on_commit
        Called here with an epoch, once all ranks have their parts of its checkpoint on disk.
    on_news
        Called here with a rank, an epoch and what the rank told; of a rank that was lost, the
        epoch from which the run goes on and ``{"lost": why}``.
    should_stop
        Asked a few times a second; once true, all ranks are told to stop after their epoch.

    Raises
    ------
    ConfigError
        If Ray is not installed, no cluster answers, or there are fewer shards than ranks.
    LimelightError
        What a rank raised; or, if ranks are lost again and again, or the coordinator is, how to go
        on.
    """
    if not 1 <= workers <= n_shards:
        message = f"there must be from 1 to {n_shards} workers, one for each shard: {workers}"
        raise ConfigError(message, hint="use fewer workers, or more shards")
    with connected(address):
        actors = ActorGroup(workers, threads)
        try:
            hooks = Hooks(on_commit, on_news, should_stop)
            return Driver(program, actors, hooks, n_shards, deterministic=deterministic).drive()
        finally:
            actors.dismiss()
