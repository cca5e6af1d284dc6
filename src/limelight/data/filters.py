"""Drop rare users and items: once, in a chosen order, or until nothing more falls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from limelight.data.grouping import file_slots, row_numbers, row_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.data.interactions import Interactions

FilterOrder: TypeAlias = Literal["together", "items-first", "users-first"]


def keep_pairs(data: Interactions, keep: NDArray[np.bool_]) -> Interactions:
    """Keep some pairs, and only the users and items that still have one.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from limelight.data.interactions import Interactions
    >>> data = Interactions.from_matrix(csr_matrix([[1, 1, 0], [0, 0, 1]]))
    >>> keep_pairs(data, np.array([False, True, True])).item_ids
    array([1, 2])
    """
    rows, indices = row_numbers(data.indptr)[keep], data.indices[keep]
    lengths = np.bincount(rows, minlength=data.n_users)
    users, items = lengths > 0, np.zeros(data.n_items, dtype=bool)
    items[indices] = True
    number = np.cumsum(items, dtype=np.int32) - np.int32(1)
    indptr = row_starts(lengths[users])
    order = None
    if data.order is not None:
        slots = file_slots(data.indptr, data.order)
        slots = (np.cumsum(keep, dtype=np.int64) - 1)[slots[keep[slots]]]
        slots -= np.repeat(indptr[:-1], np.diff(indptr))
        order = slots.astype(np.int32)
    return replace(
        data,
        indptr=indptr,
        indices=number[indices],
        user_ids=data.user_ids[users],
        item_ids=data.item_ids[items],
        order=order,
    )


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
    rows, everything = row_numbers(data.indptr), np.ones(data.nnz, dtype=bool)
    users = _Side(rows, data.n_users, min_user or 0)
    items = _Side(data.indices, data.n_items, min_item or 0)
    if filter_order == "together":
        keep = users.frequent(everything) & items.frequent(everything)
    else:
        first, second = (items, users) if filter_order == "items-first" else (users, items)
        keep = first.frequent(everything)
        keep &= second.frequent(keep)
    return keep_pairs(data, keep)


class _Side(NamedTuple):
    """The users, or the items, of all pairs."""

    numbers: NDArray[np.int32]
    size: int
    least: int

    def frequent(self, counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the pairs whose user (or item) has enough of the counted pairs."""
        frequent = np.bincount(self.numbers[counted], minlength=self.size) >= self.least
        return frequent[self.numbers]


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
    keep = np.ones(data.nnz, dtype=bool)
    rows, items = row_numbers(data.indptr), data.indices
    while True:
        enough = np.bincount(rows, minlength=data.n_users)[rows] >= k
        enough &= np.bincount(items, minlength=data.n_items)[items] >= k
        if enough.all():
            return keep_pairs(data, keep)
        keep[keep] = enough
        rows, items = rows[enough], items[enough]
