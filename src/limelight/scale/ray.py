"""Run a program on all ranks of a Ray cluster, and go on when some of them are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limelight._errors import ConfigError
from limelight.scale.ray_cluster import connected
from limelight.scale.ray_crew import Crew
from limelight.scale.ray_driver import Driver, Hooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.scale.ray_driver import OnCommit, OnNews
    from limelight.solve.exchange import Program


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
        What every rank runs: a picklable `limelight.solve.exchange.Program`. A rank that is made
        anew after all were prepared prepares alone, so that it must not wait for others in it.
    workers
        How many ranks there are. They are spread over the machines of the cluster.
    n_shards
        Into how many shards users and items are cut; at least one for each rank.
    deterministic
        Whether rows are exchanged in an order that does not depend on the number of ranks.
    address
        Where the head of the cluster listens; see `limelight.scale.ray_cluster.connected`.
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
        What a rank raised; or, if ranks are lost again and again, or the meeting with them, how to
        go on.
    """
    if not 1 <= workers <= n_shards:
        message = f"there must be from 1 to {n_shards} workers, one for each shard: {workers}"
        raise ConfigError(message, hint="use fewer workers, or more shards")
    with connected(address):
        crew = Crew(workers, threads)
        try:
            hooks = Hooks(on_commit, on_news, should_stop)
            return Driver(program, crew, hooks, n_shards, deterministic=deterministic).drive()
        finally:
            crew.dismiss()
