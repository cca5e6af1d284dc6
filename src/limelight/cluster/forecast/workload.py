"""A fit and a cluster, described by the numbers that a forecast depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from limelight._base.errors import ConfigError
from limelight._base.settings import check_choice, check_integer, check_number
from limelight.cluster.ingest.routing import MOST_SHARDS
from limelight.cluster.partition import HEAD
from limelight.models.config import settled
from limelight.models.exadmm import ExADMMConfig
from limelight.solve.problem import padded_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float64, Int64
    from limelight.models.config import FactorConfig


_NODES = 64
"""Lengths that stand for a lognormal distribution; twice as many change nothing that is shown."""


class Histories(NamedTuple):
    """Lengths of histories, and how many rows have each of them."""

    lengths: Float64
    rows: Float64

    @classmethod
    def lognormal(cls, n_rows: int, n_entries: int, sigma: float) -> Histories:
        """Spread entries over rows: evenly if sigma is 0, ever more unevenly above.

        Examples
        --------
        >>> Histories.lognormal(10, 200, 0).lengths
        array([20.])
        >>> round(Histories.lognormal(10, 200, 1.5).sum(lambda n: n))
        200
        """
        mean = n_entries / n_rows
        if sigma == 0:
            return cls(np.array([mean]), np.array([float(n_rows)]))
        # Gauss-Hermite: the mean of any smooth function of a normal number, from a few of them.
        normal, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        return cls(mean * np.exp(sigma * normal - sigma**2 / 2), n_rows * weights / weights.sum())

    @classmethod
    def counted(cls, lengths: Int64) -> Histories:
        """Take the lengths of a data set as they are.

        Examples
        --------
        >>> Histories.counted(np.array([3, 1, 3]))
        Histories(lengths=array([1., 3.]), rows=array([1., 2.]))
        """
        found, rows = np.unique(lengths, return_counts=True)
        return cls(found.astype(np.float64), rows.astype(np.float64))

    def sum(self, of: Callable[[Float64], Float64]) -> float:
        """Add up a function of the length over all rows."""
        return float(np.dot(self.rows, of(self.lengths)))

    def reached(self, share: float) -> float:
        """Count the rows with at least one entry in a part that holds this share of all.

        Entries are supposed to be drawn at random, so a history of n misses the part with
        probability (1 - share)^n.

        Examples
        --------
        >>> Histories.lognormal(100, 200, 0).reached(0.5)
        75.0
        """
        return self.sum(lambda n: 1 - (1 - share) ** n)


Solver: TypeAlias = Literal["ials", "exact", "admm"]
"""iALS; exADMM with all users solved at once; exADMM with a gradient step of the users."""
_MOST = 10**15
_GIGA = 1e9


class Heads(NamedTuple):
    """Items that are too much for one machine."""

    items: int
    share: float
    """Their share of all interactions."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The sizes and settings of a fit on which its cost depends.

    Examples
    --------
    >>> Workload(n_users=1000, n_items=100, n_interactions=5000, factors=60).width
    64
    """

    n_users: int
    n_items: int
    n_interactions: int
    factors: int = 64
    """Length of the vectors; they are held and sent padded to a multiple of 16."""
    solver: Solver = "exact"
    epochs: int = 16
    spread: float = 0.0
    """How unequal the histories of users are: sigma of a lognormal distribution, 0 if all are
    equally long, which is the worst case for traffic."""
    user_lengths: Int64 | None = None
    item_lengths: Int64 | None = None
    """The lengths of a data set, instead of ``spread``."""
    head_items: int = 0
    head_share: float = 0.0
    """Heads are items that so many users have that shards send sums for them instead of rows: how
    many there are, and their share of all interactions. Where ``item_lengths`` are known, heads
    follow from them."""

    @classmethod
    def of(cls, config: FactorConfig, **sizes: Any) -> Workload:
        """Take the hyper-parameters of a model, and the size of the data.

        Examples
        --------
        >>> from limelight.models.exadmm import ExADMMConfig
        >>> data = {"n_users": 1000, "n_items": 100, "n_interactions": 5000}
        >>> Workload.of(ExADMMConfig(penalty=1.0), **data).solver
        'admm'
        """
        if config.row_solver != "cholesky":
            message = f"only exact row solves can be predicted: row_solver={config.row_solver!r}"
            raise ConfigError(message, hint="use row_solver='cholesky'")
        solver: Solver = "ials"
        if isinstance(config, ExADMMConfig):
            solver = "exact" if config.is_exact else "admm"
        numbers = settled(
            asdict(config),
            n_users=sizes["n_users"],
            n_items=sizes["n_items"],
            observed=sizes["n_interactions"],
        )
        return cls(factors=numbers.factors, epochs=config.epochs, solver=solver, **sizes)

    def __post_init__(self) -> None:
        """Refuse sizes and settings that no fit can have."""
        for name in ("n_users", "n_items", "n_interactions"):
            check_integer(name, getattr(self, name), least=1, most=_MOST)
        check_integer("factors", self.factors, least=1, most=2**15)
        check_integer("epochs", self.epochs, least=1)
        check_integer("head_items", self.head_items, least=0, most=self.n_items)
        check_choice("solver", self.solver, get_args(Solver))
        for name in ("spread", "head_share"):
            check_number(name, getattr(self, name))
        if self.n_interactions > self.n_users * self.n_items:
            pairs = self.n_users * self.n_items
            message = f"there are only {pairs:,} pairs: n_interactions={self.n_interactions}"
            raise ConfigError(message, hint="check n_users, n_items and n_interactions")
        if self.head_share > 1:
            message = f"head_share must be at most 1: {self.head_share}"
            raise ConfigError(message, hint="use a share of all interactions, such as 0.1")

    @property
    def width(self) -> int:
        """Floats of a factor row, in memory and on the wire."""
        return padded_width(self.factors)

    @property
    def users(self) -> Histories:
        """How long the histories of users are."""
        if self.user_lengths is not None:
            return Histories.counted(self.user_lengths)
        return Histories.lognormal(self.n_users, self.n_interactions, self.spread)

    @property
    def items(self) -> Histories:
        """How long the histories of items are; equal ones, where they are not known."""
        if self.item_lengths is not None:
            return Histories.counted(self.item_lengths)
        return Histories.lognormal(self.n_items, self.n_interactions, 0.0)

    def heads(self, n_shards: int) -> Heads:
        """Return how many items are heads, if users are cut into so many shards."""
        if self.item_lengths is None:
            return Heads(self.head_items, self.head_share)
        is_head = self.item_lengths > HEAD * self.n_interactions / n_shards
        share = float(self.item_lengths[is_head].sum()) / self.n_interactions
        return Heads(int(is_head.sum()), share)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Machines that are all alike, and how the work is dealt to them.

    Examples
    --------
    >>> Cluster(machines=3, shards=16).held
    array([6, 5, 5])
    """

    machines: int
    """How many machines there are, one worker each."""
    shards: int | None = None
    """Into how many parts users and items are cut; None: four a machine, and at least 16."""
    network: float = 10.0
    """Gigabits a second that a machine sends and, at the same time, receives."""
    cores: int = 16
    """Cores of a machine."""
    core_speed: float = 20.0
    """Gflop/s of one core in a product of large matrices."""
    efficiency: float = 0.5
    """The share of that speed that a fit reaches."""
    memory_speed: float = 50.0
    """GB/s between the memory and the cores of a machine."""
    wire_bytes: int = 4
    """Bytes of a number on the wire."""
    deterministic: bool = False
    """Whether rows wait for their turn, so that the bits do not depend on the machines."""

    def __post_init__(self) -> None:
        """Refuse clusters that cannot be."""
        check_integer("machines", self.machines, least=1, most=2**12)
        if self.shards is not None:
            check_integer("shards", self.shards, least=1, most=MOST_SHARDS)
            if self.shards < self.machines:
                message = f"every machine needs a shard: {self.shards} for {self.machines} machines"
                raise ConfigError(message, hint=f"use shards={4 * self.machines}")
        check_integer("cores", self.cores, least=1, most=2**12)
        check_integer("wire_bytes", self.wire_bytes, least=1, most=8)
        for name in ("network", "core_speed", "memory_speed", "efficiency"):
            check_number(name, getattr(self, name), above=0)
        if self.efficiency > 1:
            message = f"efficiency must be at most 1: {self.efficiency}"
            raise ConfigError(message, hint="use a share of the speed, such as 0.5")

    @property
    def n_shards(self) -> int:
        """Into how many parts users and items are cut."""
        return max(16, 4 * self.machines) if self.shards is None else self.shards

    @property
    def held(self) -> Int64:
        """How many shards each machine holds: as equal as can be, the first one the most."""
        ends = -(-self.n_shards * np.arange(self.machines + 1) // self.machines)
        return np.diff(ends)

    @property
    def shares(self) -> Float64:
        """Which share of users, items and interactions each machine holds."""
        return self.held / self.n_shards

    @property
    def largest_share(self) -> float:
        """The share of the machine that all others wait for."""
        return float(self.shares[0])

    def network_seconds(self, n_bytes: float) -> float:
        """Return how long a machine takes to send, or to receive, so many bytes."""
        return 8 * n_bytes / (self.network * _GIGA)

    def work_seconds(self, flops: float, n_bytes: float = 0.0) -> float:
        """Return how long a machine works: as long as its cores, or its memory, are busy."""
        speed = self.cores * self.core_speed * self.efficiency
        return max(flops / (speed * _GIGA), n_bytes / (self.memory_speed * _GIGA))
