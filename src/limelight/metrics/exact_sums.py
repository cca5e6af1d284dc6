"""Sums of weights as whole numbers: the same bits in whatever order, and on however many machines.

A weight from 0 to 1 is a whole number of units of 2^-56, which is as fine as its own last digit
or finer down to a weight of 1/16. It is kept in two halves of 28 bits, whose sums stay within
64 bits for 2^35 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight._base.arrays import Int64
    from limelight.metrics.lists import FloatArray, IntArray

_HALF = 28
BLOCK_ROWS = 1 << 20


def exact_sums(items: IntArray, weights: FloatArray, n_items: int) -> Int64:
    """Add up the weights of each item; sums of other rows may be added to the result.

    Parameters
    ----------
    items
        The item of each row.
    weights
        From 0 to 1.
    n_items
        How many items there are.

    Returns
    -------
    2 x items whole numbers, for :func:`as_weights`.

    Examples
    --------
    >>> one = exact_sums(np.array([0, 1, 0]), np.array([0.1, 0.5, 0.2]), n_items=3)
    >>> as_weights(one), as_weights(one + one)
    (array([0.3, 0.5, 0. ]), array([0.6, 1. , 0. ]))
    """
    sums = np.zeros((2, n_items), dtype=np.int64)
    for rows in blocks(len(items)):
        units = np.rint(np.ldexp(weights[rows], 2 * _HALF))
        upper = np.floor(np.ldexp(units, -_HALF))
        # Exact: a block's sum of 28-bit numbers has at most 49 bits.
        sums[0] += np.bincount(items[rows], upper, n_items).astype(np.int64)
        lower = units - np.ldexp(upper, _HALF)
        sums[1] += np.bincount(items[rows], lower, n_items).astype(np.int64)
    return sums


def as_weights(sums: Int64) -> FloatArray:
    """Turn whole numbers back into sums of weights, rounded once."""
    upper, lower = sums.astype(np.float64)
    return np.asarray(np.ldexp(upper, -_HALF) + np.ldexp(lower, -2 * _HALF))


def blocks(n_rows: int) -> Iterator[slice]:
    """Walk over rows in blocks, so that temporary arrays stay small."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, n_rows, BLOCK_ROWS))
