"""What the machine with the most shards holds in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight.scale.traffic import packed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._arrays import Float64, Int64
    from limelight.scale.workload import Cluster, Workload

_FLOAT, _INDEX, _POINTER = 4, 4, 8


@dataclass(frozen=True)
class Footprint:
    """Bytes by what they hold; Python and Ray come on top, about 300 MB a worker."""

    held: Mapping[str, float]
    """All the time."""
    v_step: Mapping[str, float]
    """While items are updated."""
    u_step: Mapping[str, float]
    """While users are updated."""

    @property
    def peak(self) -> float:
        """The most that is held at once."""
        steps = (sum(self.v_step.values()), sum(self.u_step.values()))
        return sum(self.held.values()) + max(steps)


def footprint(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> Footprint:
    """Say what the machine with the most shards holds."""
    share = cluster.largest_share
    users, items, pairs = (
        share * count for count in (work.n_users, work.n_items, work.n_interactions)
    )
    row = work.width * _FLOAT
    held = {
        "users' factors": users * row,
        "all items' factors": work.n_items * row,
        "interactions by user": pairs * _INDEX + users * _POINTER,
        "interactions by item": pairs * _INDEX + items * _POINTER,
        # Which rows go where, written down once.
        "routing": float(routes.sum(axis=1).max()) * _INDEX,
    }
    v_step = {
        # Rows travel rotated into the eigenbasis that the items' systems are solved in.
        "users' factors, rotated": users * row,
        # A matrix and a right-hand side for each item, to which rows are added as they come.
        "accumulators": items * (packed(work.width) + work.width) * _FLOAT,
        "row buffers": _buffers(work, cluster, routes),
    }
    u_step = {}
    if work.solver != "admm":  # whose gradient needs no eigenbasis
        u_step["all items' factors, rotated"] = work.n_items * row
    return Footprint(held, v_step, u_step)


def _buffers(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> float:
    """What goes out of one shard, and what comes in: two parts, or all that waits for its turn."""
    row = work.width * cluster.wire_bytes
    out = float(routes.sum(axis=1).max()) * row / int(cluster.held[0])
    into = float(routes.sum(axis=0).max()) * row
    parts = cluster.n_shards - int(cluster.held[0])
    waiting = 1.0 if cluster.deterministic else min(1.0, 2 / max(parts, 1))
    return out + waiting * into
