"""How many floating-point operations exact row solves need.

A multiplication and an addition are two. n is the length of a history, a number or an array of
them, and d the number of factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from limelight._arrays import Float64


def added_up(n: Float64, d: int) -> Float64:
    """Count n outer products, of which half is kept, and the sum of n vectors."""
    return n * (d**2 + 2 * d)


def factorised(d: int) -> float:
    """Count a Cholesky factorisation of a d x d matrix, and two substitutions."""
    return d**3 / 3 + 2 * d**2


def direct(n: Float64, d: int) -> Float64:
    """Count a d x d system: n outer products, a factorisation, two substitutions.

    Examples
    --------
    >>> float(direct(np.float64(10), 3))
    177.0
    """
    return added_up(n, d) + factorised(d)


def short(n: Float64, d: int) -> Float64:
    """Count an n x n system (Woodbury): n^2 d for its matrix, 4 n d to get there and back."""
    return n**2 * d + 4 * n * d + n**3 / 3 + 2 * n**2


def row_solve(n: Float64, d: int) -> Float64:
    """Count an exact solve by the cheaper way: an n x n system if n < d, else a d x d one.

    The kernels decide by whole panels of 16 rows instead. For n a little below d they may take the
    other way, at about the same cost.

    Examples
    --------
    >>> row_solve(np.array([2.0, 100.0]), 8) == [short(2.0, 8), direct(100.0, 8)]
    array([ True,  True])
    """
    return np.where(n < d, short(n, d), direct(n, d))
