"""How much memory a fit takes, before it takes it."""

from __future__ import annotations

from limelight.solve.problem import padded_width

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
