"""``limelight simulate``: what a fit on a cluster would move, hold and take."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from limelight._base.errors import ConfigError
from limelight._base.text import parse_count, parse_share
from limelight.cli.flags import Json, given_flags, option, takes_flags
from limelight.cli.output import report

if TYPE_CHECKING:
    from limelight.cluster.forecast.workload import Cluster, Workload


class SolverName(StrEnum):
    """The ways to fit that are known to the simulator."""

    exact = "exact"
    admm = "admm"
    ials = "ials"


@dataclass(frozen=True)
class Fit:
    """The size of the data and of the model, which a `Workload` checks."""

    users: Annotated[str, option("N", "How many users there are.")]
    items: Annotated[str, option("N", "How many items there are.")]
    interactions: Annotated[str, option("N", "How many pairs of a user and an item are observed.")]
    factors: Annotated[int, option("N", "Length of the vectors.")] = 64
    solver: Annotated[
        SolverName,
        option(
            "exact|admm|ials",
            "exADMM with all users at once, or by alternating directions; or iALS.",
        ),
    ] = SolverName.exact
    epochs: Annotated[int, option("N", "How many epochs there are.")] = 16
    spread: Annotated[
        float,
        option(
            "SIGMA",
            "How unequal users' histories are: 0 if all are equally long, the worst case; "
            "1 to 1.5 is usual (lognormal).",
        ),
    ] = 0.0

    def workload(self) -> "Workload":
        """Read the numbers that people write, and make the workload."""
        from limelight.cluster.forecast.workload import Workload

        return Workload(
            n_users=parse_count("--users", self.users),
            n_items=parse_count("--items", self.items),
            n_interactions=parse_count("--interactions", self.interactions),
            factors=self.factors,
            solver=self.solver.value,
            epochs=self.epochs,
            spread=self.spread,
        )


@dataclass(frozen=True)
class Machines:
    """The machines; what was not given is left to `Cluster`."""

    machines: Annotated[int, option("N", "How many machines there are, one worker each.")]
    shards: Annotated[
        int | None,
        option(
            "N",
            "Into how many parts users and items are cut: more take less memory and more "
            "time.  [default: 4 a machine, at least 16]",
        ),
    ] = None
    network: Annotated[float, option("GBIT/S", "Speed at which a machine sends and receives.")] = (
        10.0
    )
    cores: Annotated[int | None, option("N", "Cores of a machine.  [default: 16]")] = None
    core_speed: Annotated[
        float | None, option("GFLOP/S", "Speed of a core in a product of matrices.  [default: 20]")
    ] = None
    local: Annotated[
        bool,
        typer.Option(
            "--local", help="Cores and their speed are those of this machine, measured now."
        ),
    ] = False
    efficiency: Annotated[str, option("SHARE", "Share of that speed that a fit reaches.")] = "50%"
    memory_speed: Annotated[float, option("GB/S", "Speed of a machine's memory.")] = 50.0
    wire_bytes: Annotated[int, option("N", "Bytes of a number on the wire.")] = 4
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic", help="Rows wait for their turn: the same bits on any machines."
        ),
    ] = False

    def cluster(self) -> "Cluster":
        """Make the cluster, with the speeds of this machine if --local was given."""
        from limelight.cluster.forecast.workload import Cluster

        speeds = given_flags(cores=self.cores, core_speed=self.core_speed)
        if self.local:
            if speeds:
                flag = "--" + next(iter(speeds)).replace("_", "-")
                message = f"--local measures what was also given: {flag}"
                raise ConfigError(message, hint="leave one of them out")
            from limelight.cluster.forecast.forecast import this_machine

            speeds = this_machine()
        return Cluster(
            machines=self.machines,
            shards=self.shards,
            network=self.network,
            efficiency=parse_share("--efficiency", self.efficiency) or 0.0,
            memory_speed=self.memory_speed,
            wire_bytes=self.wire_bytes,
            deterministic=self.deterministic,
            **speeds,
        )


@takes_flags
def simulate(*, fit: Fit, machines: Machines, as_json: Json = False) -> None:
    """Predict what a fit on a cluster would take.

    In: the size of the data and of the machines; numbers may be written 100M, 10B or 2.5k. Out:
    what travels between machines in an epoch, what a machine holds, and how long an epoch takes.
    Nothing is run, and no cluster is needed.

    Bytes follow from the method and are exact but for chance: users' items are taken to lie on
    machines at random. Seconds are as good as the speeds that are given: a network at its full
    speed, and machines that nobody else uses. Reading, writing and Python itself (about 300 MB a
    worker) come on top.

    If memory is short: more --machines, or more --shards. If adding up rows takes longest, and
    less with fewer --shards, then memory is what it waits for. If it waits for the network: while
    there are fewer machines than items in a history, more of them do not help; fewer --factors do.

    \b
    Examples:
      limelight simulate --users 2M --items 300k --interactions 500M --machines 4
      limelight simulate --users 100M --items 10M --interactions 10B --factors 128 \\
        --machines 64 --shards 256 --network 25 --spread 1
      limelight simulate --users 2M --items 300k --interactions 500M --machines 4 --local --json
    """
    from limelight.cluster.forecast.forecast import simulate as predict

    forecast = predict(fit.workload(), machines.cluster())
    report(str(forecast), forecast.as_dict(), as_json=as_json)
