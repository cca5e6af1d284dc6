"""The traffic, memory and time that a fit on a cluster would take, from its size alone.

Nothing is run and nothing is allocated. Bytes are those of the exchange that a fit uses
(:mod:`limelight.cluster.forecast.traffic`); seconds are as good as the speeds they are worked out
from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight._base.documents import Table
from limelight._base.machine import peak
from limelight._base.text import percent
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
    from limelight.cluster.forecast.workload import Cluster, Workload


_VERBS = {
    "exchange_rows": "rows of users, to the items' machines",
    "gather_items": "items, to all machines",
    "sum_small": "sums over all shards",
    "head_items": "sums of head items",
}


@dataclass(frozen=True)
class Forecast:
    """The traffic, memory and time that a fit on a cluster would take."""

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
        tables = (self._traffic_table(), self._memory_table(), self._time_table())
        return "\n\n".join([self._question(), *tables])

    def brief(self) -> str:
        """Say in one line what does not depend on how fast the machines are.

        Examples
        --------
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
                f"{percent(cluster.efficiency, 0)}",
                f"memory at {cluster.memory_speed:g} GB/s",
            ),
        )
        return "\n".join(", ".join(line) for line in lines)

    def _traffic_table(self) -> str:
        total = sum(load.total for load in self.traffic.values())
        return _table(
            ("traffic of an epoch", "all machines", "busiest line"),
            *((_VERBS[verb], *map(amount, load)) for verb, load in self.traffic.items()),
            ("together", amount(total), amount(self.busiest_bytes)),
        )

    def _memory_table(self) -> str:
        moments = {"": self.memory.held, **self.memory.moments}
        return _table(
            ("memory of a machine", "", "while in"),
            *(
                (part, amount(held), moment)
                for moment, parts in moments.items()
                for part, held in parts.items()
            ),
            ("peak", amount(self.memory.peak), ""),
        )

    def _time_table(self) -> str:
        return _table(
            ("time of an epoch", "work", "network", "together"),
            *((part, *map(duration, phase)) for part, phase in self.phases.items()),
            ("epoch", "", "", duration(self.epoch_seconds)),
            (f"{self.work.epochs} epochs", "", "", duration(self.fit_seconds)),
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


def _table(head: Sequence[str], *rows: Sequence[str]) -> str:
    """Align rows below a heading, words to the left and numbers to the right."""
    return Table(head, [(f"  {first}", *others) for first, *others in rows]).text()


def simulate(work: Workload, cluster: Cluster, *, routes: Int64 | None = None) -> Forecast:
    """Predict the traffic, the memory and the time of a fit.

    ``routes`` says how many rows of users each machine sends to each other one, where that has
    been counted. Without it, users' items are taken to lie on machines at random.

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


def this_machine() -> dict[str, float]:
    """Count the cores that the process may use, and measure how fast they multiply matrices."""
    cores = resolve_threads(0)
    return {"cores": cores, "core_speed": peak(cores, rounds=3) / cores / 1e9}
