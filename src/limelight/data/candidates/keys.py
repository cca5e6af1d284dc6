"""Items and scores as integers that sort: the highest score first, ties by item number.

A key is 64 bits: the score, turned so that better ones are lower, above the item. Sorting plain
integers is many times faster than sorting two columns, and a sorted key still holds both.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Int32, Int64


_LOW = 0xFFFFFFFF
_MAGNITUDE = np.int32(0x7FFFFFFF)


def encode(items: Int32, scores: Float32) -> Int64:
    """Make keys of items and finite scores.

    Examples
    --------
    >>> keys = encode(np.array([4, 9, 2], np.int32), np.array([0.5, 7, 0.5], np.float32))
    >>> keys.sort()
    >>> decode(keys)
    (array([9, 2, 4], dtype=int32), array([7. , 0.5, 0.5], dtype=float32))
    """
    keys = _ordered((0 - scores).view(np.int32)).astype(np.int64)
    keys <<= 32
    keys |= items
    return keys


def decode(keys: Int64) -> tuple[Int32, Float32]:
    """Return the items and scores of keys."""
    negated = _ordered((keys >> 32).astype(np.int32)).view(np.float32)
    # 0 - x and not -x, because that gives both zeros the same bits.
    return (keys & _LOW).astype(np.int32), 0 - negated


def _ordered(bits: Int32) -> Int32:
    """Turn the bits of numbers into integers of the same order, and back."""
    # Negative numbers have the sign bit set, and grow with their magnitude.
    turned: Int32 = bits ^ ((bits >> 31) & _MAGNITUDE)
    return turned


def order_by_user(users: Int32) -> Int64:
    """List the rows by user.

    Examples
    --------
    >>> order_by_user(np.array([2, 0, 2, 1], dtype=np.int32))
    array([1, 3, 0, 2])
    """
    tagged = users.astype(np.int64)
    tagged <<= 32
    tagged |= np.arange(len(users))
    tagged.sort()  # argsort would take three times as long
    tagged &= _LOW
    return tagged


def sort_rows(indptr: Int64, keys: Int64) -> None:
    """Sort the keys of each row, in place.

    Examples
    --------
    >>> keys = np.array([3, 1, 2, 0])
    >>> sort_rows(np.array([0, 2, 4]), keys)
    >>> keys
    array([1, 3, 0, 2])
    """
    for start, stop in pairwise(indptr.tolist()):
        keys[start:stop].sort()
