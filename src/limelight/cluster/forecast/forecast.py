"""A prediction, as text for people and as numbers for programs.

What a fit on a cluster would move, hold and take, from its size alone.

Nothing is run and nothing is allocated. The sums are those of the exchange that a fit uses
(:mod:`limelight.cluster.forecast.traffic`); seconds are as good as the speeds they are worked
out from.

What a fit on a cluster would take, before it begins or, with ``--dry-run``, instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight._base.documents import Table
from limelight._base.errors import ConfigError
from limelight._base.machine import peak
from limelight._native import resolve_threads
from limelight.cluster.forecast.memory import footprint
from limelight.cluster.forecast.time import phases
from limelight.cluster.forecast.traffic import expected_routes, traffic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight._base.arrays import Int64
    from limelight.cluster.forecast.memory import Footprint
    from limelight.cluster.forecast.time import Phase
    from limelight.cluster.forecast.traffic import Load
    from limelight.cluster.forecast.workload import Cluster, Solver, Workload
    from limelight.models.base import FactorConfig


_VERBS = {
    "exchange_rows": "rows of users, to the items' machines",
    "gather_items": "items, to all machines",
    "sum_small": "sums over all shards",
    "head_items": "sums of head items",
}


@dataclass(frozen=True)
class Forecast:
    """What a fit on a cluster would move, hold and take."""

    work: Workload
    cluster: Cluster
    traffic: Mapping[str, Load]
    """Bytes of an epoch, by verb."""
    memory: Footprint
    """Bytes of the machine with the most shards."""
    phases: Mapping[str, Phase]
    """Seconds of an epoch, by part."""

    @property
    def busiest_bytes(self) -> float:
        """Bytes of an epoch on the busiest line, in the direction that has more."""
        return sum(load.busiest for load in self.traffic.values())

    @property
    def epoch_seconds(self) -> float:
        """How long an epoch takes."""
        return sum(phase.total for phase in self.phases.values())

    @property
    def fit_seconds(self) -> float:
        """How long all epochs take; reading and writing come on top."""
        return self.work.epochs * self.epoch_seconds

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers under flat names, unrounded: bytes and seconds."""
        record: dict[str, Any] = {
            "users": self.work.n_users,
            "items": self.work.n_items,
            "interactions": self.work.n_interactions,
            "factors": self.work.factors,
            "solver": self.work.solver,
            "epochs": self.work.epochs,
            "machines": self.cluster.machines,
            "shards": self.cluster.n_shards,
            "deterministic": self.cluster.deterministic,
        }
        for verb, load in self.traffic.items():
            record[f"traffic_{verb}"] = load.total
            record[f"traffic_{verb}_busiest"] = load.busiest
        record["traffic_busiest"] = self.busiest_bytes
        for parts in (self.memory.held, *self.memory.moments.values()):
            record |= {f"memory_{_key(part)}": held for part, held in parts.items()}
        record["memory_peak"] = self.memory.peak
        for part, phase in self.phases.items():
            record[f"seconds_{_key(part)}"] = phase.total
        return record | {"seconds_epoch": self.epoch_seconds, "seconds_fit": self.fit_seconds}

    def __str__(self) -> str:
        """Show the question and, below it, three tables."""
        return "\n\n".join(
            [
                self._question(),
                self._traffic_table(),
                self._memory_table(),
                self._time_table(),
            ]
        )

    def brief(self) -> str:
        """Say in one line what does not depend on how fast the machines are.

        Examples
        --------
        >>> from limelight.cluster.forecast.forecast import simulate
        >>> from limelight.cluster.forecast.workload import Cluster, Workload
        >>> work = Workload(n_users=10**8, n_items=10**7, n_interactions=10**10, factors=128)
        >>> simulate(work, Cluster(machines=64)).brief()
        'a machine holds about ... and sends about ... an epoch'
        """
        return (
            f"a machine holds about {amount(self.memory.peak)} and sends about "
            f"{amount(self.busiest_bytes)} an epoch"
        )

    def _question(self) -> str:
        work, cluster = self.work, self.cluster
        histories = f"spread {work.spread:g}" if work.user_lengths is None else "as in the data"
        lines = (
            (
                f"{work.n_users:,} users",
                f"{work.n_items:,} items",
                f"{work.n_interactions:,} interactions",
                f"histories {histories}",
            ),
            (f"{work.factors} factors", f"solver {work.solver}", f"{work.epochs} epochs"),
            (
                f"{cluster.machines} machine" + "s" * (cluster.machines > 1),
                f"{cluster.n_shards} shards" + " in order" * cluster.deterministic,
                f"{cluster.network:g} Gb/s",
                f"{cluster.cores} cores of {cluster.core_speed:.3g} Gflop/s at "
                f"{cluster.efficiency:.0%}",
                f"memory at {cluster.memory_speed:g} GB/s",
            ),
        )
        return "\n".join(", ".join(line) for line in lines)

    def _traffic_table(self) -> str:
        rows = [
            (_VERBS[verb], amount(load.total), amount(load.busiest))
            for verb, load in self.traffic.items()
        ]
        total = sum(load.total for load in self.traffic.values())
        return _table(
            [
                ("traffic of an epoch", "all machines", "busiest line"),
                *rows,
                ("together", amount(total), amount(self.busiest_bytes)),
            ]
        )

    def _memory_table(self) -> str:
        memory = self.memory
        moments = [
            (part, amount(held), moment)
            for moment, parts in memory.moments.items()
            for part, held in parts.items()
        ]
        return _table(
            [
                ("memory of a machine", "", "while in"),
                *((part, amount(held), "") for part, held in memory.held.items()),
                *moments,
                ("peak", amount(memory.peak), ""),
            ]
        )

    def _time_table(self) -> str:
        rows = [
            (part, *(duration(seconds) for seconds in phase)) for part, phase in self.phases.items()
        ]
        return _table(
            [
                ("time of an epoch", "work", "network", "together"),
                *rows,
                ("epoch", "", "", duration(self.epoch_seconds)),
                (f"{self.work.epochs} epochs", "", "", duration(self.fit_seconds)),
            ]
        )


def amount(n_bytes: float) -> str:
    """Write bytes for people, in powers of 1,000 as networks and disks are sold.

    Examples
    --------
    >>> amount(2.558e12), amount(999.9e6), amount(0)
    ('2.56 TB', '1 GB', '0 B')
    """
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= 0.9995 * factor:
            return f"{_three(n_bytes / factor)} {unit}"
    return f"{n_bytes:.0f} B"


def duration(seconds: float) -> str:
    """Write seconds for people; nothing for none.

    Examples
    --------
    >>> duration(0.01234), duration(75), duration(1200), duration(7200), duration(0)
    ('12.3 ms', '75 s', '20 min', '2 h', '')
    """
    if seconds == 0:
        return ""
    for least, factor, unit in ((7200, 3600, "h"), (120, 60, "min"), (1, 1, "s")):
        if seconds >= least:
            return f"{_three(seconds / factor)} {unit}"
    return f"{seconds * 1e3:.3g} ms"


def _three(value: float) -> str:
    """Write three digits, and no power of ten."""
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def _key(part: str) -> str:
    """Turn words into a name."""
    return part.replace("'", "").replace(",", "").replace(" ", "_")


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows below a heading, words to the left and numbers to the right."""
    heading, *rest = rows
    return Table(heading, [("  " + first, *others) for first, *others in rest]).text()


def simulate(work: Workload, cluster: Cluster, *, routes: Int64 | None = None) -> Forecast:
    """Predict the traffic, the memory and the time of a fit.

    Parameters
    ----------
    work
        What is to be fitted.
    cluster
        On what.
    routes
        How many rows of users each machine sends to each other one, as
        :func:`limelight.cluster.forecast.traffic.count_routes` counts them in a data set.
        Without it, users' items are taken to lie on machines at random.

    Examples
    --------
    >>> from limelight.cluster.forecast.workload import Cluster, Workload
    >>> work = Workload(n_users=10**8, n_items=10**7, n_interactions=10**10, factors=128)
    >>> forecast = simulate(work, Cluster(machines=64, network=25))
    >>> round(forecast.traffic["exchange_rows"].total / 1e12, 2)
    2.56
    """
    ways = expected_routes(work, cluster) if routes is None else routes
    loads = traffic(work, cluster, ways)
    return Forecast(
        work, cluster, loads, footprint(work, cluster, ways), phases(work, cluster, loads)
    )


def predict(  # noqa: PLR0913
    *,
    n_users: int,
    n_items: int,
    n_interactions: int,
    config: FactorConfig,
    machines: int,
    shards: int,
    deterministic: bool = False,
    network: float = 10.0,
    speeds: Mapping[str, float] | None = None,
    user_lengths: Int64 | None = None,
    item_lengths: Int64 | None = None,
    routes: Int64 | None = None,
) -> Forecast:
    """Predict what a fit on a cluster would move, hold and take.

    Parameters
    ----------
    n_users, n_items, n_interactions
        The size of the data.
    config
        The hyper-parameters of the model.
    machines, shards, deterministic
        How the work is dealt out.
    network
        Gigabits a second of a machine.
    speeds
        Cores of a machine and their speed, where they were measured: only seconds depend on them.
    user_lengths, item_lengths
        How long histories are, where the data have been read.
    routes
        How many rows of users each machine sends to each other one, where that has been counted.
    """
    from limelight.cluster.forecast.workload import Cluster, Workload

    work = Workload(
        n_users=n_users,
        n_items=n_items,
        n_interactions=n_interactions,
        factors=config.factors,
        solver=solver_of(config),
        epochs=config.epochs,
        user_lengths=user_lengths,
        item_lengths=item_lengths,
    )
    cluster = Cluster(
        machines=machines,
        shards=shards,
        network=network,
        deterministic=deterministic,
        **(speeds or {}),  # type: ignore[arg-type]
    )
    return simulate(work, cluster, routes=routes)


def solver_of(config: FactorConfig) -> Solver:
    """Name the way to fit that the hyper-parameters ask for.

    Examples
    --------
    >>> from limelight.models.exadmm import ExADMMConfig
    >>> solver_of(ExADMMConfig()), solver_of(ExADMMConfig(penalty=1.0))
    ('exact', 'admm')
    """
    from limelight.models.exadmm import ExADMMConfig

    if config.row_solver != "cholesky":
        message = f"only exact row solves can be predicted: row_solver={config.row_solver!r}"
        raise ConfigError(message, hint="use row_solver='cholesky'")
    if not isinstance(config, ExADMMConfig):
        return "ials"
    return "exact" if config.is_exact else "admm"


def this_machine() -> dict[str, float]:
    """Count the cores that the process may use, and measure how fast they multiply matrices."""
    cores = resolve_threads(0)
    return {"cores": cores, "core_speed": peak(cores, rounds=3) / cores / 1e9}
