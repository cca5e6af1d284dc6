"""How sure the shares of groups are: what each user gives to each group, and exact intervals.

Without user u, who gives t_u of all exposure T and a_ug of it to group g, the share s_g = A_g / T
becomes (A_g - a_ug) / (T - t_u), which is

    (s_g t_u - a_ug) / (T - t_u)

away from s_g. The standard error of a share is that of these over the users (the jackknife).

A share may be near 0, where a figure ± 1.96 standard errors says nothing: a group that no list
shows has no error at all. So the error is turned into a number of independent observations,
n_g = s_g (1 - s_g) / error², and the interval is the exact one of s_g n_g successes among n_g
(Clopper and Pearson 1934; Korn and Graubard 1998 for samples of clusters). Groups with few
observations take those of the others into account: one observation as they are on average is
added to each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # loads its packages when they are used

from limelight.data.rows import cut_rows, row_starts
from limelight.metrics.lists import rank_weights

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32, Int64
    from limelight.data.groups import Groups
    from limelight.metrics.intervals import RankedRows

_AT_ONCE = 1 << 18
"""Rows that are looked at together."""
_ALIKE = 1e-9
"""What rounding may leave of the variance of one user."""


class GroupSums(NamedTuple):
    """What users add up to, group by group: sums over other users may be added."""

    users: int
    """Those who have rows."""
    own: float
    """The sum of t / (T - t) over the users, and of its square."""
    own_squared: float
    given: Float64
    """For each group, the sum of a / (T - t), of its square, and of its product with the above."""
    given_squared: Float64
    product: Float64
    reached: Int64
    """How many users saw at least one item of each group."""

    def plus(self, other: GroupSums) -> GroupSums:
        """Add the sums over other users."""
        pairs: Any = zip(self, other, strict=True)
        return GroupSums(*(one + more for one, more in pairs))

    def errors(self, shares: Float64) -> Float64 | None:
        """Give the standard error of each group's share; None for fewer than two users."""
        if self.users < 2:
            return None
        sums = shares * self.own - self.given
        squares = shares**2 * self.own_squared - 2.0 * shares * self.product + self.given_squared
        spread = np.maximum(squares - sums**2 / self.users, 0.0)
        return np.asarray(np.sqrt((self.users - 1) / self.users * spread))


def sum_groups(rows: RankedRows, members: Groups, total: float) -> GroupSums:
    """Add up what users give to groups, where all users together give so much exposure.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from limelight.data.groups import Groups
    >>> one_each, first = np.array([0, 1]), np.array([1, 1])
    >>> lists = SimpleNamespace(users=one_each, items=one_each, ranks=first, n_users=2)
    >>> groups = Groups(one_each, one_each, np.ones(2), ["x", "y"], 0)
    >>> found = sum_groups(lists, groups, total=2.0)
    >>> found.reached, found.errors(np.array([0.5, 0.5]))
    (array([1, 1]), array([0.5, 0.5]))
    """
    n_groups = len(members.group_ids)
    order = np.argsort(members.items, kind="stable")
    n_items = int(max(members.items.max(), rows.items.max(initial=0))) + 1
    starts = row_starts(np.bincount(members.items, minlength=n_items))
    of_items = _Membership(starts, members.groups[order], members.weights[order], n_groups)
    zeros = np.zeros(n_groups)
    found = GroupSums(0, 0.0, 0.0, zeros, zeros, zeros, np.zeros(n_groups, np.int64))
    by_user = np.argsort(rows.users, kind="stable")
    indptr = row_starts(np.bincount(rows.users, minlength=rows.n_users))
    for users in cut_rows(indptr, _AT_ONCE):
        own = by_user[indptr[users.start] : indptr[users.stop]]
        weights = rank_weights(rows.ranks[own])
        numbers = rows.users[own] - users.start
        taken = np.bincount(numbers, weights, users.stop - users.start).astype(np.float64)
        found = found.plus(_block(of_items, numbers, rows.items[own], weights, taken, total))
    return found


class _Membership(NamedTuple):
    """The groups of each item, item by item."""

    starts: Int64
    groups: Int64
    weights: Float64
    n_groups: int


def _block(
    members: _Membership, users: Int32, items: Int32, weights: Float64, taken: Float64, total: float
) -> GroupSums:
    """Add up what the users of a block give; they are numbered from 0."""
    lengths = (members.starts[1:] - members.starts[:-1])[items]
    row = np.repeat(np.arange(len(items)), lengths)
    first = np.repeat(members.starts[items] - row_starts(lengths)[:-1], lengths)
    entry = first + np.arange(len(row))
    pairs = users[row].astype(np.int64) * members.n_groups + members.groups[entry]
    keys, at = np.unique(pairs, return_inverse=True)
    amount = np.bincount(at, weights[row] * members.weights[entry], len(keys))
    user, group = np.divmod(keys, members.n_groups)
    left = np.where(total > taken, total - taken, np.inf)  # one user alone leaves nothing
    own, given = taken / left, amount / left[user]

    def by_group(values: Float64) -> Float64:
        return np.asarray(np.bincount(group, values, members.n_groups), np.float64)

    return GroupSums(
        users=int(np.count_nonzero(taken)),
        own=float(own.sum()),
        own_squared=float(np.square(own).sum()),
        given=by_group(given),
        given_squared=by_group(given**2),
        product=by_group(given * own[user]),
        reached=np.bincount(group, minlength=members.n_groups).astype(np.int64),
    )


def share_bounds(
    shares: Float64, errors: Float64, users: int, level: float = 0.95
) -> tuple[Float64, Float64]:
    """Give the interval of each group's share, from its standard error over so many users.

    Parameters
    ----------
    shares, errors
        One entry for each group; all groups, because those with few observations take the others
        into account.
    users
        How many the errors are over. The fewer, the less the errors themselves are known, and the
        wider the intervals (by Student's t).
    level
        The probability with which each interval holds.

    Examples
    --------
    >>> low, high = share_bounds(np.array([0.5, 0.0]), np.array([0.05, 0.0]), users=1000)
    >>> np.round(low, 3), np.round(high, 3)
    (array([0.398, 0.   ]), array([0.602, 0.036]))
    """
    tail = (1.0 - level) / 2.0
    spread, variance = shares * (1.0 - shares), errors**2
    usual = variance.sum() / (spread.sum() or np.inf)
    if usual * users < _ALIKE:  # no user differs from another: each is taken for one observation
        usual = 1.0 / users
    n = (spread + usual) / (variance + usual**2)
    n *= (scipy.special.ndtri(tail) / scipy.special.stdtrit(users - 1, tail)) ** 2
    return exact_bounds(shares * n, n, level)


def exact_bounds(
    found: Float64, n: Float64 | float, level: float = 0.95
) -> tuple[Float64, Float64]:
    """Give the exact interval of a share that was found so often in n observations.

    Examples
    --------
    >>> low, high = exact_bounds(np.array([0.0, 5.0]), 10)
    >>> np.round(low, 4), np.round(high, 4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    tail = (1.0 - level) / 2.0
    missed = np.maximum(n - found, 0.0)
    with np.errstate(invalid="ignore"):
        low = np.where(found > 0, scipy.special.betaincinv(found, missed + 1.0, tail), 0.0)
        high = np.where(missed > 0, scipy.special.betaincinv(found + 1.0, missed, 1.0 - tail), 1.0)
    return np.asarray(low), np.asarray(high)
