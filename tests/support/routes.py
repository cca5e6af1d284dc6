"""Routes of a fit on a cluster, counted in a data set."""

import numpy as np


def count_routes(indptr, indices, user_bounds, item_bounds, heads):
    """Count how many rows of users each machine has for each machine, exactly.

    Machine r holds the users from ``user_bounds[r]`` to before ``user_bounds[r + 1]``, and items
    likewise. Items of a user are sorted. No rows are sent for ``heads``.
    """
    machines = len(user_bounds) - 1
    is_sent = ~np.isin(indices, heads)
    user = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[is_sent]
    sender = np.searchsorted(user_bounds, user, side="right") - 1
    receiver = np.searchsorted(item_bounds, indices[is_sent], side="right") - 1
    # Items are sorted, and so are their machines: a new one is one that differs from the last.
    is_new = np.ones(len(user), dtype=bool)
    is_new[1:] = (np.diff(user) > 0) | (np.diff(receiver) > 0)
    route = sender[is_new] * machines + receiver[is_new]
    return np.bincount(route, minlength=machines**2).reshape(machines, machines)
