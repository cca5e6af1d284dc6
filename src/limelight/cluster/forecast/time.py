"""How long the parts of an epoch take on the machine that the others wait for.

Work takes as long as the busier of cores and memory. While the rows of one shard are added up,
those of the next travel: the two overlap but for one shard. Nothing else overlaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limelight.cluster.forecast.traffic import sums_width
from limelight.solve.cost import added_up, factorised, row_solve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight.cluster.forecast.traffic import Load
    from limelight.cluster.forecast.workload import Cluster, Workload

_FLOAT = 4
_COPY = 2
"""A copy is read and written."""


class Phase(NamedTuple):
    """Seconds of a part of an epoch: of work, on the wire, and by the clock."""

    work: float
    network: float
    total: float


def phases(work: Workload, cluster: Cluster, loads: Mapping[str, Load]) -> dict[str, Phase]:
    """Return the parts of an epoch in their order."""
    seconds, sending = cluster.work_seconds, cluster.network_seconds
    rows = [loads[verb] for verb in ("exchange_rows", "head_items") if verb in loads]
    total, busiest = (sum(column) for column in zip(*rows, strict=True))
    return {
        # Each row is gathered, and copied to where other processes can read it.
        "gather users' rows": _one_by_one(
            seconds(rotation_flops(work, cluster), 2 * _COPY * busiest), 0.0
        ),
        "add up users' rows": _overlapped(
            seconds(adding_flops(work, cluster), accumulator_bytes(work, cluster)),
            # In shard order all machines read from the same one, whose line alone is busy.
            sending(total if cluster.deterministic else busiest),
            cluster.n_shards,
        ),
        "solve items": _one_by_one(seconds(item_flops(work, cluster)), 0.0),
        "send items to all": _one_by_one(
            # They are put together, and copied to where they belong.
            seconds(0.0, 2 * _COPY * work.n_items * work.width * _FLOAT),
            sending(loads["gather_items"].busiest),
        ),
        "update users": _one_by_one(
            seconds(user_flops(work, cluster), history_bytes(work, cluster)), 0.0
        ),
        "add up sums": _one_by_one(0.0, sending(loads["sum_small"].busiest)),
    }


def rotation_flops(work: Workload, cluster: Cluster) -> float:
    """Count a product with a d x d matrix for each user: rows travel in the basis of the solves."""
    return cluster.largest_share * 2 * work.n_users * work.width**2


def adding_flops(work: Workload, cluster: Cluster) -> float:
    """Count an outer product for each interaction."""
    return cluster.largest_share * work.items.sum(lambda n: added_up(n, work.width))


def accumulator_bytes(work: Workload, cluster: Cluster) -> float:
    """Count what is read and written of the accumulators.

    They are too many for a cache, so each shard of users fetches, once, those of the items that
    it has: of S shards an item of n interactions meets S (1 - (1 - 1/S)^n).
    """
    shards = cluster.n_shards
    visits = cluster.largest_share * shards * work.items.reached(1 / shards)
    return _COPY * visits * sums_width(work.width) * _FLOAT


def item_flops(work: Workload, cluster: Cluster) -> float:
    """Count a factorisation for each item, a rotation back, and the Gramian."""
    d, items = work.width, cluster.largest_share * work.n_items
    return items * (factorised(d) + 2 * d**2 + d**2)


def user_flops(work: Workload, cluster: Cluster) -> float:
    """Count a gradient step or a solve for each user, and the Gramian.

    A gradient takes two products with the history and one with the Gramian. Solves also rotate
    users back, and all items before: each machine does the latter for itself.
    """
    d, share, n_users = work.width, cluster.largest_share, work.n_users
    gramian = share * n_users * d**2
    if work.solver == "admm":
        return gramian + share * (4 * work.n_interactions * d + 2 * n_users * d**2)
    solves = work.users.sum(lambda n: row_solve(n, d))
    return gramian + share * (solves + 2 * n_users * d**2) + 2 * work.n_items * d**2


def history_bytes(work: Workload, cluster: Cluster) -> float:
    """Count the items' rows that users' histories fetch from memory."""
    return cluster.largest_share * work.n_interactions * work.width * _FLOAT


def _one_by_one(work: float, network: float) -> Phase:
    return Phase(work, network, work + network)


def _overlapped(work: float, network: float, parts: int) -> Phase:
    """While one part is worked on the next one travels."""
    return Phase(work, network, max(work, network) + min(work, network) / parts)
