"""From pairs in file order to sorted rows and back, and pairs of numbers as single keys.

A row is sorted and unique, because kernels and merges want it so. The order of the file is kept
beside it as a permutation inside each row, because the published split depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from limelight._native import kernels, resolve_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limelight._base.arrays import Int64


T = TypeVar("T", bound=np.generic)


class Rows(NamedTuple):
    """Sorted rows of unique item numbers, with the order in which each row was first written."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    order: NDArray[np.int32]
    duplicates: int


class Repeats(NamedTuple):
    """The rows of pairs that came more than once, which a split by time tells apart."""

    entries: NDArray[np.int64]
    """Where the pair of each row stands among all pairs."""
    times: NDArray[np.float64]
    weights: NDArray[np.float64] | None

    @classmethod
    def of(
        cls, entries: NDArray[np.int64], times: NDArray[Any], weights: NDArray[Any] | None
    ) -> Repeats:
        """Take those of all rows, given the pair, the time and the weight of each.

        Examples
        --------
        >>> Repeats.of(np.array([0, 1, 0]), np.array([5.0, 6.0, 7.0]), None).times
        array([5., 7.])
        """
        again = np.bincount(entries)[entries] > 1
        return cls(entries[again], times[again], None if weights is None else weights[again])

    def among(self, kept: NDArray[np.bool_]) -> Repeats:
        """Keep the rows of some pairs, numbered anew."""
        mine, places = kept[self.entries], np.cumsum(kept) - 1
        weights = None if self.weights is None else self.weights[mine]
        return Repeats(places[self.entries[mine]], self.times[mine], weights)


def group(
    users: NDArray[Any],
    items: NDArray[Any],
    n_users: int,
    n_items: int,
    times: NDArray[Any] | None = None,
) -> Rows:
    """Group pairs by user, sort each row by item and merge repeated pairs.

    Parameters
    ----------
    users, items
        Row and column numbers, in file order.
    n_users, n_items
        The shape, both below 2^31.
    times
        When the pairs happened, int32, int64 or float64. They, and the file only where they are
        equal, then give the order in each row.

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
    indptr = np.empty(n_users + 1, dtype=np.int64)
    indices, order = np.empty(len(users), dtype=np.int32), np.empty(len(users), dtype=np.int32)
    users, items = (np.ascontiguousarray(array, dtype=np.int32) for array in (users, items))
    n_kept = kernels.group_pairs(
        users,
        items,
        times,
        n_items=n_items,
        indptr=indptr,
        indices=indices,
        order=order,
        threads=resolve_threads(0),
    )
    # Where pairs repeat, the arrays are longer than what they hold: give the rest back in place.
    indices.resize(n_kept, refcheck=False)
    order.resize(n_kept, refcheck=False)
    return Rows(indptr, indices, order, len(users) - n_kept)


def by_pair(
    users: NDArray[Any], items: NDArray[Any], n_items: int, *columns: tuple[NDArray[Any], np.ufunc]
) -> list[NDArray[Any]]:
    """Put columns of pairs in the order in which :func:`group` puts the pairs.

    Each column comes with what makes one number of those of a repeated pair.

    Examples
    --------
    >>> users, items = np.array([1, 0, 1]), np.array([2, 0, 2])
    >>> by_pair(users, items, 3, (np.array([0.5, 1.0, 2.0]), np.add))
    [array([1. , 2.5])]
    """
    keys = pair_numbers(users, items, n_items)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    del keys
    if is_first.all():
        return [values[order] for values, _ in columns]
    starts = np.flatnonzero(is_first)
    return [merge.reduceat(values[order], starts) for values, merge in columns]


def as_weights(values: NDArray[Any]) -> NDArray[np.float32]:
    """Round weights to 32 bits; what is too large becomes infinite, and is refused as such.

    Examples
    --------
    >>> as_weights(np.array([0.5, 1e300]))
    array([0.5, inf], dtype=float32)
    """
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


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


def walk(
    indptr: NDArray[np.int64],
    values: NDArray[T],
    order: NDArray[np.int32] | None,
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[T]]:
    """Walk the given rows one after the other, each in file order.

    Returns
    -------
    tuple
        Row pointers of the walk, and the values met on it: item numbers, or what stands by them.

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
    return starts, values[slot]


def pair_numbers(rows: NDArray[Any], items: NDArray[Any], n_items: int) -> NDArray[np.int64]:
    """Give every pair of a row and an item a number of its own.

    Examples
    --------
    >>> pair_numbers(np.array([0, 2], np.int32), np.array([1, 1], np.int32), 5)
    array([ 1, 11])
    """
    return np.asarray(rows.astype(np.int64) * n_items + items)


class Repeat(NamedTuple):
    """A pair that occurs again, and how many rows repeat one."""

    left: int
    right: int
    rows: int


def repeated_pair(left: NDArray[np.int32], right: NDArray[np.int32]) -> Repeat | None:
    """Find a pair of numbers that occurs again, and count the rows that repeat one.

    Examples
    --------
    >>> repeated_pair(np.array([1, 1, 1]), np.array([7, 8, 7]))
    Repeat(left=1, right=7, rows=1)
    """
    span = int(right.max(initial=0)) + 1
    keys = sorted_keys(left, right, span)
    again = keys[1:][keys[1:] == keys[:-1]]
    if not again.size:
        return None
    return Repeat(*divmod(int(again[0]), span), len(again))


def sorted_keys(left: NDArray[np.int32], right: NDArray[np.int32], span: int) -> NDArray[np.int64]:
    """Give left * span + right of every row, sorted; all of `right` are below `span`.

    Examples
    --------
    >>> sorted_keys(np.array([1, 0]), np.array([2, 1]), span=10)
    array([ 1, 12])
    """
    keys = left.astype(np.int64)
    keys *= span
    keys += right
    keys.sort()
    return keys


def cut_rows(indptr: Int64, most: int) -> Iterator[slice]:
    """Cut rows into stretches of at most `most` entries; a longer row is one of its own.

    Examples
    --------
    >>> list(cut_rows(np.array([0, 2, 4, 9, 10]), 4))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    start = 0
    while start < len(indptr) - 1:
        stop = int(np.searchsorted(indptr, indptr[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
