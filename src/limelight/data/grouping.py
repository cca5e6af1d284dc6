"""From pairs in file order to sorted rows, and back.

A row is sorted and unique, because kernels and merges want it so. The order of the file is kept
beside it as a permutation inside each row, because the published split depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Rows(NamedTuple):
    """Sorted rows of unique item numbers, with the order in which each row was first written."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    order: NDArray[np.int32]
    duplicates: int


def group(users: NDArray[Any], items: NDArray[Any], n_users: int, n_items: int) -> Rows:
    """Group pairs by user, sort each row by item and merge repeated pairs.

    Parameters
    ----------
    users, items
        Row and column numbers, in file order.
    n_users, n_items
        The shape; both numbers stay below 2^31, so that their product fits an int64.

    Returns
    -------
    Rows
        ``indices[row][order[row]]`` is the row in file order; a repeated pair counts where it
        first appears.

    Examples
    --------
    >>> rows = group(np.array([1, 0, 1, 1]), np.array([2, 0, 1, 2]), 2, 3)
    >>> rows.indptr, rows.indices, rows.order, rows.duplicates
    (array([0, 1, 3]), array([0, 1, 2], dtype=int32), array([0, 1, 0], dtype=int32), 1)
    """
    key = users.astype(np.int64) * n_items
    key += items
    by_pair = np.argsort(key, kind="stable")
    key = key[by_pair]
    first = np.ones(len(key), dtype=bool)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    del key
    position = by_pair[first]
    del by_pair
    indices = items[position].astype(np.int32)
    owner = users[position]
    indptr = row_starts(np.bincount(owner, minlength=n_users))
    del owner
    order = _order_in_file(users, position, indptr)
    return Rows(indptr, indices, order, len(users) - len(indices))


def _order_in_file(
    users: NDArray[Any], position: NDArray[np.int64], indptr: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Rank the slots of each row by the position at which their pair was first written."""
    slot = np.full(len(users), -1, dtype=np.int64)
    slot[position] = np.arange(len(position))
    kept = slot >= 0
    slot, users = slot[kept], users[kept]
    by_user = np.argsort(users, kind="stable")
    slot, users = slot[by_user], users[by_user]
    slot -= indptr[users]
    return slot.astype(np.int32)


def row_starts(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Turn row lengths into row pointers.

    Examples
    --------
    >>> row_starts(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def row_numbers(indptr: NDArray[np.int64]) -> NDArray[np.int32]:
    """Name the row of every stored entry.

    Examples
    --------
    >>> row_numbers(np.array([0, 2, 2, 3]))
    array([0, 0, 2], dtype=int32)
    """
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))


def file_slots(indptr: NDArray[np.int64], order: NDArray[np.int32] | None) -> NDArray[np.int64]:
    """List the slots of all rows, each row in file order.

    Examples
    --------
    >>> file_slots(np.array([0, 1, 3]), np.array([0, 1, 0], dtype=np.int32))
    array([0, 2, 1])
    """
    if order is None:
        return np.arange(indptr[-1], dtype=np.int64)
    slots = np.repeat(indptr[:-1], np.diff(indptr))
    slots += order
    return slots


def walk(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    order: NDArray[np.int32] | None,
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Walk the given rows one after the other, each in file order.

    Returns
    -------
    tuple
        Row pointers of the walk, and the item numbers met on it.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3]), np.array([5, 6, 7], dtype=np.int32)
    >>> walk(indptr, indices, np.array([0, 1, 0], dtype=np.int32), np.array([1, 0]))
    (array([0, 2, 3]), array([7, 6, 5], dtype=int32))
    """
    starts = row_starts(np.diff(indptr)[rows])
    base = np.repeat(indptr[rows], np.diff(starts))
    slot = np.arange(starts[-1], dtype=np.int64)
    slot -= np.repeat(starts[:-1], np.diff(starts))
    slot += base
    if order is not None:
        slot = base + order[slot]
    return starts, indices[slot]
