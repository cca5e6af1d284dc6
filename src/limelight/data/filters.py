"""Drop rare users and items: once, in a chosen order, or until nothing more is dropped."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from limelight._native import kernels
from limelight.data.rows import row_numbers, row_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from limelight.data.interactions import Interactions

    Mask: TypeAlias = NDArray[np.bool_]
    Counts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
    Count: TypeAlias = Callable[[Mask, Mask], Counts]
    """Counts, by user and by item, the pairs of which both are kept."""

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
    indptr = row_starts(by_user[users])
    indices = np.empty(indptr[-1], dtype=np.int32)
    order = None if data.order is None else np.empty_like(indices)
    kernels.keep_pairs(
        data.indptr,
        data.indices,
        data.order,
        keep_users=users,
        item_numbers=new_numbers(items),
        out_indices=indices,
        out_order=order,
    )
    user_ids, item_ids = data.user_ids[users], data.item_ids[items]
    values: dict[str, Any] = {name: getattr(data, name) for name in ("weights", "times")}
    if any(array is not None for array in values.values()):
        kept = users[row_numbers(data.indptr)] & items[data.indices]
        values = {name: array if array is None else array[kept] for name, array in values.items()}
        values["repeats"] = data.repeats and data.repeats.among(kept)
    return replace(
        data,
        indptr=indptr,
        indices=indices,
        user_ids=user_ids,
        item_ids=item_ids,
        order=order,
        **values,
    )


def new_numbers(items: Mask) -> NDArray[np.int32]:
    """Number the items that are kept; the others have -1.

    Examples
    --------
    >>> new_numbers(np.array([True, False, True]))
    array([ 0, -1,  1], dtype=int32)
    """
    return np.where(items, np.cumsum(items) - 1, -1).astype(np.int32)


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
    users, items = frequent(
        partial(_count, data), *_everything(data), min_user, min_item, filter_order
    )
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
    return keep(data, *core_of(partial(_count, data), *_everything(data), k))


def frequent(
    count: Count,
    everybody: Mask,
    everything: Mask,
    min_user: int | None,
    min_item: int | None,
    filter_order: FilterOrder,
) -> tuple[Mask, Mask]:
    """Tell which users and items are not rare; `count` may count on one machine or on many."""
    least_of_user, least_of_item = min_user or 0, min_item or 0
    by_user, by_item = count(everybody, everything)
    users, items = by_user >= least_of_user, by_item >= least_of_item
    if filter_order == "items-first":
        users = count(everybody, items)[0] >= least_of_user
    elif filter_order == "users-first":
        items = count(users, everything)[1] >= least_of_item
    return users, items


def core_of(
    count: Count,
    users: Mask,
    items: Mask,
    k: int,
    agree: Callable[[bool], bool] = bool,
) -> tuple[Mask, Mask]:
    """Tell which users and items are in the k-core.

    Where several machines count, each its own users, `agree` tells whether all of them are done.
    """
    while True:
        by_user, by_item = count(users, items)
        left = by_user >= k, by_item >= k
        if agree(np.array_equal(left[0], users) and np.array_equal(left[1], items)):
            return users, items
        users, items = left


def _everything(data: Interactions) -> tuple[Mask, Mask]:
    return np.ones(data.n_users, dtype=bool), np.ones(data.n_items, dtype=bool)


def _count(data: Interactions, users: Mask, items: Mask) -> Counts:
    return count_rows(data.indptr, data.indices, users, items)


def count_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], users: Mask, items: Mask
) -> Counts:
    """Count, by user and by item, the pairs of which both are kept.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32)
    >>> count_rows(indptr, indices, np.array([True, True]), np.array([False, True]))
    (array([1, 1]), array([0, 2]))
    """
    by_user, by_item = np.empty(len(users), np.int64), np.empty(len(items), np.int64)
    kernels.count_pairs(
        indptr, indices, keep_users=users, keep_items=items, by_user=by_user, by_item=by_item
    )
    return by_user, by_item
