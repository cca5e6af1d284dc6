"""What the machine with the most shards holds in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limelight.cluster.forecast.traffic import sums_width

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64, Int64
    from limelight.cluster.forecast.workload import Cluster, Workload

_FLOAT, _INDEX, _POINTER = 4, 4, 8
_AHEAD = 2
"""Rows that have come: those that are being added up, and the next."""


@dataclass(frozen=True)
class Footprint:
    """Bytes by what they hold; Python and Ray come on top, about 300 MB a worker."""

    held: Mapping[str, float]
    """All the time."""
    moments: Mapping[str, Mapping[str, float]]
    """At times: in the exchange of users' rows, the gather of items, the update of users."""

    @property
    def peak(self) -> float:
        """The most that is held at once."""
        extra = max(sum(parts.values()) for parts in self.moments.values())
        return sum(self.held.values()) + extra


def footprint(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> Footprint:
    """Say what the machine with the most shards holds."""
    share, row = cluster.largest_share, work.width * _FLOAT
    users, items, pairs = (
        share * count for count in (work.n_users, work.n_items, work.n_interactions)
    )
    all_items = work.n_items * row
    rows_out = float(routes.sum(axis=1).max())
    held = {
        "users' factors": users * row,
        "all items' factors": all_items,
        # The last epoch is always traced, and a traced epoch is compared with the one before.
        "both, an epoch ago": users * row + all_items,
        # Workers that are not lost go on from a copy in memory, which is written in the meantime.
        "both, at the last checkpoint": users * row + all_items,
        # A matrix and a right-hand side for each item, to which rows are added as they come.
        "accumulators": items * sums_width(work.width) * _FLOAT,
        "interactions by user": pairs * _INDEX + users * _POINTER,
        # Which of a shard's rows an item needs: each shard comes by itself.
        "interactions by item": pairs * _INDEX + items * cluster.n_shards * _POINTER,
        "routing": rows_out * _INDEX,
    }
    gather = {
        "items' factors, as they come": (1 - share) * all_items,
        "items' factors, joined": all_items,
    }
    # Solves are done in another basis; gradients are not.
    rotated = {} if work.solver == "admm" else {"all items' factors, rotated": all_items}
    exchange = _exchange(work, cluster, routes)
    return Footprint(held, {"exchange": exchange, "gather": gather, "users": rotated})


def _exchange(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> dict[str, float]:
    """One shard's rows go out at a time; all of a machine's, if they are to be read in order."""
    most = int(cluster.held[0])
    at_once = most if cluster.deterministic else 1
    row = work.width * cluster.wire_bytes
    moving = routes - np.diag(np.diag(routes))
    # Rows to send are gathered, and then copied to where other processes can read them.
    out = float((routes.sum(axis=1) + moving.sum(axis=1)).max())
    into = float(moving.sum(axis=0).max())
    return {
        "a shard of users, rotated": work.n_users / cluster.n_shards * work.width * _FLOAT,
        "rows to send": out * row * at_once / most,
        "rows that came": _AHEAD * into * row / cluster.n_shards,
    }
