"""Expected exposure: whether items that a user likes alike are shown to her alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
import scipy  # loads its packages when they are used

from limelight._base.arrays import batches
from limelight._base.errors import DataError
from limelight.data.groups import Groups, as_groups, membership, owned_by
from limelight.metrics.lists import (
    check_lists,
    given_weights,
    mean_over_users,
    position_weights,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight._base.arrays import Float64, Int64
    from limelight.metrics.accuracy import Sparse
    from limelight.metrics.lists import FloatArray, Weight

_Value = TypeVar("_Value", bound="float | FloatArray")
_ROWS = 4096
"""How many users' groups are held at once."""


class ExpectedExposure(NamedTuple, Generic[_Value]):
    """EE-L, EE-D and EE-R: means over users, or one value per user."""

    loss: _Value
    """EE-L, |e - t|^2: 0 if exposure is as it should be."""
    disparity: _Value
    """EE-D, |e|^2: low if exposure is spread."""
    relevance: _Value
    """EE-R, e . t: high if exposure goes to relevant items."""


@overload
def expected_exposure(
    ids: ArrayLike,
    targets: Sparse,
    k: int | None = None,
    *,
    users: ArrayLike | None = None,
    groups: Any = None,
    weight: Weight = "log",
    per_user: Literal[False] = False,
) -> ExpectedExposure[float]: ...


@overload
def expected_exposure(
    ids: ArrayLike,
    targets: Sparse,
    k: int | None = None,
    *,
    users: ArrayLike | None = None,
    groups: Any = None,
    weight: Weight = "log",
    per_user: Literal[True],
) -> ExpectedExposure[FloatArray]: ...


def expected_exposure(
    ids: ArrayLike,
    targets: Sparse,
    k: int | None = None,
    *,
    users: ArrayLike | None = None,
    groups: Any = None,
    weight: Weight = "log",
    per_user: bool = False,
) -> ExpectedExposure[float] | ExpectedExposure[FloatArray]:
    """Measure expected exposure, EE-L, EE-D and EE-R (Diaz et al. 2020).

    Exposure e_j of an item is the mean, over the lists that a user was given, of the weight of the
    place that shows it. It should be t_j: what the item would get if all orders that put the
    relevant items first were equally likely. With m relevant items among n, weights w_r up to rank
    k, W(r) their sum up to rank r and c = min(m, k),

        t_j = W(c) / m  if j is relevant,  (W(k) - W(c)) / (n - m)  if not

        EE-L = |e - t|^2 = EE-D - 2 EE-R + |t|^2,   EE-D = |e|^2,   EE-R = e . t

    The three are means over users who have relevant items and lists. One list per user cannot reach
    a loss of 0 unless m = 1 = k or all weights are equal; several lists, drawn at random, can.

    Parameters
    ----------
    ids
        Lists x k item numbers, best first, padded with -1, as `recommend` returns them.
    targets
        Sparse users x items matrix; a stored positive value is a relevant item.
    k
        Count the first k places only; by default all.
    users
        Whose each list is: a row number of ``targets``. By default there is one list per row. Give
        it where users have several lists, such as those of a recommender that draws at random.
    groups
        What :func:`read_groups` returns, or a label per item: e and t are then summed by group.
    weight
        What a place at rank r is worth: "log" 1 / log2(r + 1), "uniform" 1, a patience p p^(r - 1).
    per_user
        Return one value per user, nan for one without relevant items or lists.

    Examples
    --------
    The user likes two of three items. A list of two that shows them in one order, and both orders:

    >>> likes = scipy.sparse.csr_array([[1, 1, 0]])
    >>> expected_exposure([[0, 1]], likes, weight=0.5)
    ExpectedExposure(loss=0.125, disparity=1.25, relevance=1.125)
    >>> expected_exposure([[0, 1], [1, 0]], likes, users=[0, 0], weight=0.5)
    ExpectedExposure(loss=0.0, disparity=1.125, relevance=1.125)
    """
    found = user_expected_exposure(ids, targets, k, users=users, groups=groups, weight=weight)
    return found if per_user else ExpectedExposure(*map(mean_over_users, found))


def user_expected_exposure(
    ids: ArrayLike,
    targets: Sparse,
    k: int | None = None,
    *,
    users: ArrayLike | None = None,
    groups: Any = None,
    weight: Weight = "log",
) -> ExpectedExposure[FloatArray]:
    """Measure the expected exposure of every user, nan for one without relevant items or lists.

    The parameters are those of :func:`expected_exposure`.

    Examples
    --------
    >>> likes = scipy.sparse.csr_array([[1, 0], [0, 0]])
    >>> user_expected_exposure([[0], [1]], likes).loss
    array([ 0., nan])
    """
    n_users, n_items = targets.shape
    lists = check_lists(ids, n_items, k)
    owners = _owners(users, len(lists), n_users)
    relevant = _relevant(targets)
    weights = position_weights(lists.shape[1], weight)
    given, n_lists = _mean_exposure(given_weights(lists, weights, n_items), owners, n_users)
    liked, rest = _fair_shares(relevant, weights)
    if groups is None:
        found = _by_item(given, relevant, liked, rest)
    else:
        found = _by_group(given, relevant, liked, rest, as_groups(groups, n_items))
    scored = (n_lists > 0) & (np.diff(relevant.indptr) > 0)
    return ExpectedExposure(*(np.where(scored, values, np.nan) for values in found))


def _owners(users: ArrayLike | None, n_lists: int, n_users: int) -> Int64:
    """Return whose each list is."""
    if users is None:
        if n_lists != n_users:
            message = f"lists for {n_lists:,} users, but targets for {n_users:,}"
            raise DataError(message, hint="pass users=... where users have several lists")
        return np.arange(n_users, dtype=np.int64)
    owners = np.asarray(users)
    if owners.shape != (n_lists,) or not np.issubdtype(owners.dtype, np.integer):
        message = f"users must be one row number for each of {n_lists:,} lists: {owners.shape}"
        raise DataError(message, hint="say for each list which row of targets its user is")
    wrong = owners[(owners < 0) | (owners >= n_users)]
    if len(wrong):
        message = f"user number outside the {n_users:,} rows of targets: {wrong[0]}"
        raise DataError(message, hint="users count from 0, as the rows of targets do")
    return owners.astype(np.int64)


def _relevant(targets: Sparse) -> Any:
    """Return a matrix with 1 for each relevant pair."""
    pairs = scipy.sparse.coo_array(targets)
    kept = pairs.data > 0
    rows, items = (index[kept] for index in pairs.coords)
    ones: Any = np.ones(len(rows)), (rows, items)
    relevant = scipy.sparse.csr_array(ones, shape=targets.shape)
    relevant.sum_duplicates()
    relevant.data[:] = 1.0
    return relevant


def _mean_exposure(given: Any, owners: Int64, n_users: int) -> tuple[Any, Int64]:
    """Return users x items, the mean over each user's lists, and how many of those show anything.

    Empty lists say nothing about whom they expose, and are left out.
    """
    is_list = np.diff(given.indptr) > 0
    n_lists = np.bincount(owners[is_list], minlength=n_users)
    shares: Any = 1.0 / n_lists[owners[is_list]], (owners[is_list], np.flatnonzero(is_list))
    return scipy.sparse.csr_array(shares, shape=(n_users, len(owners))) @ given, n_lists


def _fair_shares(relevant: Any, weights: FloatArray) -> tuple[Float64, Float64]:
    """Return what each relevant item, and each other item, of a user should get."""
    n_relevant = np.diff(relevant.indptr)
    n_others = relevant.shape[1] - n_relevant
    up_to = np.append(0.0, np.cumsum(weights))
    first = up_to[np.minimum(n_relevant, len(weights))]
    return first / np.maximum(n_relevant, 1), (up_to[-1] - first) / np.maximum(n_others, 1)


def _by_item(given: Any, relevant: Any, liked: Float64, rest: Float64) -> tuple[Float64, ...]:
    n_relevant = np.diff(relevant.indptr)
    n_others = given.shape[1] - n_relevant
    disparity = given.power(2).sum(axis=1)
    hit = (given * relevant).sum(axis=1)
    relevance = liked * hit + rest * (given.sum(axis=1) - hit)
    ideal = n_relevant * liked**2 + n_others * rest**2
    # Rounding may leave a tiny negative number where exposure is as it should be.
    return np.maximum(disparity - 2 * relevance + ideal, 0.0), disparity, relevance


def _by_group(
    given: Any, relevant: Any, liked: Float64, rest: Float64, members: Groups
) -> tuple[Float64, ...]:
    belongs, owned = membership(members, given.shape[1]), owned_by(members)
    found = np.empty((3, given.shape[0]))
    for rows in batches(given.shape[0], _ROWS):
        e = (given[rows] @ belongs).toarray()
        likes = (relevant[rows] @ belongs).toarray()
        t = rest[rows, np.newaxis] * (owned - likes) + liked[rows, np.newaxis] * likes
        found[:, rows] = ((e - t) ** 2).sum(axis=1), (e**2).sum(axis=1), (e * t).sum(axis=1)
    return tuple(found)
