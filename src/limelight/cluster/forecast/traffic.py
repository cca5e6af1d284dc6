"""What travels between machines in an epoch, by the verb of the exchange that sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int64
    from limelight.cluster.forecast.workload import Cluster, Workload

_SUM_BYTES = 8
"""Sums are float64."""
_SQUARES = {"ials": 2, "exact": 3, "admm": 2}
"""Matrices that all shards add up: both Gramians; exact also the mean inverse of some users."""
_VECTORS = {"ials": 0, "exact": 2, "admm": 2}
"""And vectors: the mean user, and how far users moved or what their step sizes weigh."""


class Load(NamedTuple):
    """Bytes of a verb: of all machines together, and on the busiest line."""

    total: float
    busiest: float


def expected_routes(work: Workload, cluster: Cluster) -> Float64:
    """Return how many rows of users each machine (row) has for each machine (column).

    A row is sent once to every machine that holds an item of the user's. Machine q misses a
    history of n with probability (1 - share_q)^n. With equal shares, what is off the diagonal adds
    up to sum_u (M - 1) (1 - (1 - 1/M)^n_u).
    """
    users, shares = work.users, cluster.shares
    rest = 1 - work.heads(cluster.n_shards).share
    users = users._replace(lengths=users.lengths * rest)
    # At most two shares differ: the machines with a shard more, and the others.
    reached = {share: users.reached(share) for share in np.unique(shares).tolist()}
    return np.outer(shares, [reached[share] for share in shares.tolist()])


def traffic(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> dict[str, Load]:
    """Return the bytes of an epoch by verb; the sums of heads travel with the rows."""
    loads = {
        "exchange_rows": _rows(work, cluster, routes),
        "gather_items": _items(work, cluster),
        "sum_small": _sums(work, cluster),
    }
    if work.heads(cluster.n_shards).items:
        loads["head_items"] = _heads(work, cluster)
    return loads


def sums_width(width: int) -> int:
    """Count the floats of an item's equations: a triangle in tiles of 16 x 16, and a vector.

    Examples
    --------
    >>> sums_width(16), sums_width(32)
    (272, 800)
    """
    return width * (width + 16) // 2 + width


def _rows(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> Load:
    """Rows of users go where their items are; some of them are there already."""
    row = work.width * cluster.wire_bytes
    moving = routes - np.diag(np.diag(routes))
    out, into = moving.sum(axis=1).max(), moving.sum(axis=0).max()
    return Load(row * float(moving.sum()), row * float(max(out, into)))


def _items(work: Workload, cluster: Cluster) -> Load:
    """Every machine sends its items to all others: a user may know any of them.

    The first also sends the basis that all solve in.
    """
    row = work.width * cluster.wire_bytes
    others, basis = cluster.machines - 1, work.width + 1
    out = others * (cluster.largest_share * work.n_items + basis)
    into = (1 - float(cluster.shares.min())) * work.n_items + basis
    return Load(others * (work.n_items + basis) * row, max(out, into) * row if others else 0.0)


def _sums(work: Workload, cluster: Cluster) -> Load:
    """One machine adds up the parts of all shards, in their order, and tells all others.

    Beside matrices and vectors, whether all is finite: a number for each shard.
    """
    numbers = _SQUARES[work.solver] * work.width**2 + _VECTORS[work.solver] * work.width
    size = (numbers + cluster.n_shards) * _SUM_BYTES
    into, out = cluster.n_shards - int(cluster.held[0]), cluster.machines - 1
    return Load((into + out) * size, max(into, out) * size)


def _heads(work: Workload, cluster: Cluster) -> Load:
    """Every shard sends one sum for each head, wherever the head is."""
    heads = work.heads(cluster.n_shards).items
    sums = heads * sums_width(work.width) * cluster.wire_bytes * cluster.n_shards
    share = cluster.largest_share
    return Load((1 - 1 / cluster.machines) * sums, (1 - share) * share * sums)
