"""How long the parts of an epoch take on the machine that the others wait for.

A part takes as long as the busiest of three: cores, memory, network. Where rows are added up while
others still travel, the two overlap but for one shard: the first must come before the work begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limelight.scale.traffic import packed
from limelight.solve.work import added_up, factorised, row_solve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight.scale.traffic import Load
    from limelight.scale.workload import Cluster, Workload

_FLOAT = 4


class Phase(NamedTuple):
    """Seconds of a part of an epoch: of work, on the wire, and by the clock."""

    work: float
    network: float
    total: float


def phases(work: Workload, cluster: Cluster, loads: Mapping[str, Load]) -> dict[str, Phase]:
    """Return the parts of an epoch in their order."""
    rows = loads["exchange_rows"].busiest
    if "head_items" in loads:
        rows += loads["head_items"].busiest
    return {
        "add up users' rows": _overlapped(
            cluster.work_seconds(adding_flops(work, cluster), accumulator_bytes(work, cluster)),
            cluster.network_seconds(rows),
            cluster.n_shards,
        ),
        "solve items": _working(cluster.work_seconds(item_flops(work, cluster))),
        "send items to all": _sending(cluster.network_seconds(loads["gather_items"].busiest)),
        "update users": _working(
            cluster.work_seconds(user_flops(work, cluster), history_bytes(work, cluster))
        ),
        "add up sums": _sending(cluster.network_seconds(loads["sum_small"].busiest)),
    }


def adding_flops(work: Workload, cluster: Cluster) -> float:
    """Count an outer product for each interaction, and a rotation of every user before."""
    d, share = work.width, cluster.largest_share
    return share * (work.items.sum(lambda n: added_up(n, d)) + 2 * work.n_users * d**2)


def accumulator_bytes(work: Workload, cluster: Cluster) -> float:
    """Count what is read and written of the accumulators.

    They are too many for a cache, so each shard of users fetches, once, those of the items that
    it has: of S shards an item of n interactions meets S (1 - (1 - 1/S)^n).
    """
    shards = cluster.n_shards
    visits = cluster.largest_share * shards * work.items.reached(1 / shards)
    return 2 * visits * (packed(work.width) + work.width) * _FLOAT


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


def _working(seconds: float) -> Phase:
    return Phase(seconds, 0.0, seconds)


def _sending(seconds: float) -> Phase:
    return Phase(0.0, seconds, seconds)


def _overlapped(work: float, network: float, parts: int) -> Phase:
    """While one part is worked on the next one travels."""
    return Phase(work, network, max(work, network) + min(work, network) / parts)
