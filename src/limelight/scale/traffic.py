"""What travels between machines in an epoch, by the verb of the exchange that sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from limelight._arrays import Float64, Int64
    from limelight.scale.workload import Cluster, Workload

_SUM_BYTES = 8
"""Sums are float64: what all machines add up is added up exactly enough once."""
_SQUARES = {"ials": 2, "exact": 3, "admm": 2}
"""Matrices that all shards add up: both Gramians; exact also the mean inverse of some users."""
_VECTORS = {"ials": 0, "exact": 2, "admm": 2}
"""And vectors: the mean user, and how far users moved or what their step sizes weigh."""


class Load(NamedTuple):
    """Bytes of a verb: of all machines together, and on the busiest line."""

    total: float
    busiest: float


def expected_routes(work: Workload, cluster: Cluster) -> Float64:
    """Return how many rows of users each machine (row) sends to each other one (column).

    A row is sent once to every machine that holds an item of the user's. Machine q misses a
    history of n with probability (1 - share_q)^n. With equal shares the sum is
    sum_u (M - 1) (1 - (1 - 1/M)^n_u).
    """
    users = work.users
    users = users._replace(lengths=users.lengths * (1 - work.head_share))
    shares = cluster.shares
    # At most two shares differ: the machines with a shard more, and the others.
    reached = {share: users.reached(share) for share in np.unique(shares).tolist()}
    routes = np.outer(shares, [reached[share] for share in shares.tolist()])
    np.fill_diagonal(routes, 0)
    return routes


def count_routes(indptr: Int64, indices: Int64, user_bounds: Int64, item_bounds: Int64) -> Int64:
    """Count how many rows of users each machine sends to each other one, exactly.

    Parameters
    ----------
    indptr, indices
        The interactions by user, with sorted items.
    user_bounds, item_bounds
        Machine r holds the users from ``user_bounds[r]`` to before ``user_bounds[r + 1]``, and
        items likewise.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 3]), np.array([0, 3, 1])
    >>> count_routes(indptr, indices, np.array([0, 2, 3]), np.array([0, 2, 4]))
    array([[0, 1],
           [0, 0]])
    """
    machines = len(user_bounds) - 1
    user = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    sender = np.searchsorted(user_bounds, user, side="right") - 1
    receiver = np.searchsorted(item_bounds, indices, side="right") - 1
    # Items are sorted, and so are their machines: a new one is one that differs from the last.
    is_new = np.ones(len(indices), dtype=bool)
    is_new[1:] = (np.diff(user) > 0) | (np.diff(receiver) > 0)
    route = sender[is_new] * machines + receiver[is_new]
    routes = np.bincount(route, minlength=machines**2).reshape(machines, machines)
    np.fill_diagonal(routes, 0)
    return routes


def traffic(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> dict[str, Load]:
    """Return the bytes of an epoch by verb."""
    loads = {
        "exchange_rows": _rows(work, cluster, routes),
        "gather_items": _items(work, cluster),
        "sum_small": _sums(work, cluster),
    }
    if work.head_items:
        loads["head_items"] = _heads(work, cluster)
    return loads


def packed(width: int) -> int:
    """Count the floats of a symmetric matrix: its lower triangle, in tiles of 16 x 16.

    Examples
    --------
    >>> packed(16), packed(32)
    (256, 768)
    """
    return width * (width + 16) // 2


def _rows(work: Workload, cluster: Cluster, routes: Float64 | Int64) -> Load:
    """Rows of users go where their items are."""
    row = work.width * cluster.wire_bytes
    out, into = routes.sum(axis=1).max(), routes.sum(axis=0).max()
    return Load(row * float(routes.sum()), row * float(max(out, into)))


def _items(work: Workload, cluster: Cluster) -> Load:
    """Every machine sends its items to all others: a user may know any of them."""
    all_items = work.n_items * work.width * cluster.wire_bytes
    others = cluster.machines - 1
    out, into = others * cluster.largest_share, 1 - cluster.shares.min()
    return Load(others * all_items, float(max(out, into)) * all_items if others else 0.0)


def _sums(work: Workload, cluster: Cluster) -> Load:
    """One machine adds up the parts of all shards, in their order, and tells all others."""
    numbers = _SQUARES[work.solver] * work.width**2 + _VECTORS[work.solver] * work.width
    into, out = cluster.n_shards - int(cluster.held[0]), cluster.machines - 1
    return Load((into + out) * numbers * _SUM_BYTES, max(into, out) * numbers * _SUM_BYTES)


def _heads(work: Workload, cluster: Cluster) -> Load:
    """Items that nearly every user knows get one sum from each machine instead of all rows."""
    sums = work.head_items * (packed(work.width) + work.width) * cluster.wire_bytes
    others = cluster.machines - 1
    return Load(others * sums, others * cluster.largest_share * sums)
