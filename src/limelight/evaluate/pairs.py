"""Pairs of numbers as single keys: finding a repeated pair without a table of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    span = int(right.max()) + 1
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
