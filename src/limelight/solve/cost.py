"""What a fit costs: the floating-point operations of exact row solves, and the memory of a fit.

A multiplication and an addition count as two operations. n is the length of a history, a number or
an array of them, and d the number of factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.solve.problem import padded_width

if TYPE_CHECKING:
    from limelight._base.arrays import Float64


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


_FLOAT = 4
_INDEX = 4
_POINTER = 8
_MOST_FACTORS = 1 << 12


def fit_bytes(*, n_users: int, n_items: int, n_entries: int, factors: int, threads: int) -> int:
    """Estimate the bytes that a fit takes beside the interactions themselves.

    The factors are held once, and once more while a traced epoch is compared with the one before.
    The larger side is also rotated into a copy. The interactions are held by item as well.

    Examples
    --------
    >>> fit_bytes(n_users=1000, n_items=100, n_entries=5000, factors=64, threads=1) // 1024
    972
    """
    width = padded_width(factors)
    both_sides = (n_users + n_items) * width * _FLOAT
    rotated = max(n_users, n_items) * width * _FLOAT
    by_item = n_entries * _INDEX + (n_items + 1) * _POINTER
    per_row = (n_users + n_items) * 2 * _FLOAT
    scratch = threads * 3 * width * (width + 128) * _FLOAT
    return 2 * both_sides + rotated + by_item + per_row + scratch


def grow_bytes(
    *, n_users: int, n_items: int, n_entries: int, factors: int, threads: int, weighted: bool
) -> int:
    """Estimate the bytes that new interactions take, to be united with the others and solved for.

    Pairs are first sorted, with their weights. The histories are then held anew, and those of
    rows that have changed once more, with the place of each entry: at worst all of them.

    Examples
    --------
    >>> sizes = {"n_users": 1000, "n_items": 100, "n_entries": 5000, "factors": 64, "threads": 1}
    >>> grow_bytes(**sizes, weighted=False) // 1024
    1090
    """
    entry = _INDEX + (_FLOAT if weighted else 0)
    united = n_entries * (6 * _INDEX + (4 * _POINTER if weighted else 0))
    n_stored = n_entries * entry // _INDEX
    sizes = {"n_users": n_users, "n_items": n_items, "n_entries": n_stored, "factors": factors}
    return max(united, fit_bytes(**sizes, threads=threads) + n_entries * (2 * entry + 2 * _POINTER))


def most_factors(room: int, *, n_users: int, n_items: int, n_entries: int, threads: int) -> int:
    """Return the largest number of factors that a fit has room for, a multiple of 16; 0 for none.

    Examples
    --------
    >>> sizes = {"n_users": 1000, "n_items": 100, "n_entries": 5000, "threads": 1}
    >>> most_factors(1 << 20, **sizes), most_factors(1 << 10, **sizes)
    (64, 0)
    """
    sizes = {"n_users": n_users, "n_items": n_items, "n_entries": n_entries, "threads": threads}
    fits = range(padded_width(1), _MOST_FACTORS, padded_width(1))
    return max(
        (factors for factors in fits if fit_bytes(factors=factors, **sizes) <= room), default=0
    )
