"""Drop rare users and items: once, in a chosen order, or until nothing more falls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from limelight._native import kernels
from limelight.data.grouping import row_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.data.interactions import Interactions

    Mask: TypeAlias = NDArray[np.bool_]

FilterOrder: TypeAlias = Literal["together", "items-first", "users-first"]


def keep(data: Interactions, users: Mask, items: Mask) -> Interactions:
    """Keep the pairs of some users with some items, and only those who still have one.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from limelight.data.interactions import Interactions
    >>> data = Interactions.from_matrix(csr_matrix([[1, 1, 0], [0, 0, 1]]))
    >>> keep(data, np.array([True, True]), np.array([False, True, True])).item_ids
    array([1, 2])
    """
    by_user, by_item = _count(data, users, items)
    users, items = by_user > 0, by_item > 0
    if users.all() and items.all():
        return data
    numbers = np.where(items, np.cumsum(items) - 1, -1).astype(np.int32)
    indptr = row_starts(by_user[users])
    indices = np.empty(indptr[-1], dtype=np.int32)
    order = None if data.order is None else np.empty_like(indices)
    kernels.keep_pairs(data.indptr, data.indices, data.order, users, numbers, indices, order)
    user_ids, item_ids = data.user_ids[users], data.item_ids[items]
    return replace(
        data, indptr=indptr, indices=indices, user_ids=user_ids, item_ids=item_ids, order=order
    )


def drop_unused(data: Interactions) -> Interactions:
    """Drop users and items without any pair.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from limelight.data.interactions import Interactions
    >>> drop_unused(Interactions.from_matrix(csr_matrix([[0, 1], [0, 0]]))).shape
    (1, 1)
    """
    return keep(data, *_everything(data))


def drop_rare(
    data: Interactions, min_user: int | None, min_item: int | None, filter_order: FilterOrder
) -> Interactions:
    """Drop users and items with too few distinct pairs, in one pass.

    Parameters
    ----------
    data
        The interactions.
    min_user, min_item
        Fewest pairs of a user and of an item; None drops none.
    filter_order
        ``"together"`` counts both before either filter, so that fewer may remain afterwards;
        ``"items-first"`` counts users after items are gone, ``"users-first"`` the reverse.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from limelight.data.interactions import Interactions
    >>> data = Interactions.from_matrix(csr_matrix([[1, 1, 0], [1, 1, 0], [1, 0, 1]]))
    >>> drop_rare(data, 2, 2, "together").shape, drop_rare(data, 2, 2, "items-first").shape
    ((3, 2), (2, 2))
    """
    least_of_user, least_of_item = min_user or 0, min_item or 0
    everybody, everything = _everything(data)
    by_user, by_item = _count(data, everybody, everything)
    users, items = by_user >= least_of_user, by_item >= least_of_item
    if filter_order == "items-first":
        users = _count(data, everybody, items)[0] >= least_of_user
    elif filter_order == "users-first":
        items = _count(data, users, everything)[1] >= least_of_item
    return keep(data, users, items)


def k_core(data: Interactions, k: int) -> Interactions:
    """Drop users and items with fewer than k pairs, again and again until none is left.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from limelight.data.interactions import Interactions
    >>> data = Interactions.from_matrix(csr_matrix([[1, 1, 0], [1, 1, 0], [1, 0, 1]]))
    >>> k_core(data, 2).shape
    (2, 2)
    """
    users, items = _everything(data)
    while True:
        by_user, by_item = _count(data, users, items)
        frequent = by_user >= k, by_item >= k
        if np.array_equal(frequent[0], users) and np.array_equal(frequent[1], items):
            return keep(data, users, items)
        users, items = frequent


def _everything(data: Interactions) -> tuple[Mask, Mask]:
    return np.ones(data.n_users, dtype=bool), np.ones(data.n_items, dtype=bool)


def _count(
    data: Interactions, users: Mask, items: Mask
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count, by user and by item, the pairs of which both are kept."""
    by_user, by_item = np.empty(data.n_users, np.int64), np.empty(data.n_items, np.int64)
    kernels.count_pairs(data.indptr, data.indices, users, items, by_user, by_item)
    return by_user, by_item
