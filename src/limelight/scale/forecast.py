"""A prediction, as text for people and as numbers for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight._base.documents import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight.scale.footprint import Footprint
    from limelight.scale.phases import Phase
    from limelight.scale.traffic import Load
    from limelight.scale.workload import Cluster, Workload

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
        >>> from limelight.scale.simulate import simulate
        >>> from limelight.scale.workload import Cluster, Workload
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
