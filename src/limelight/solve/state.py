"""Where a fit stands: factors, mean user, dual variable. The state is the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._arrays import factor_matrix
from limelight._native import kernels
from limelight.solve.problem import padded_width

if TYPE_CHECKING:
    from limelight._arrays import Float32, Float64

_BLOCK = 1024


class SideNumber(IntEnum):
    """Which stream of random numbers a side draws its first factors from."""

    USERS = 0
    ITEMS = 1


class Shift(NamedTuple):
    """u_i <- u_i - step_i h, for every user."""

    steps: Float32
    h: Float32


@dataclass
class State:
    """What one epoch hands to the next; the steps overwrite the factors in place."""

    U: Float32
    V: Float32
    s: Float64
    """The auxiliary mean user, which the penalty on exposure acts on."""
    w: Float64
    """The scaled dual variable of mean(U) = s; with exact steps, the price itself."""
    epoch: int = 0

    # What makes the next epoch cheaper; all of it follows from the fields above and the data.
    curvature: Float32 | None = None
    """Largest eigenvalue of every user's own Gramian, nearly; refreshed now and then."""
    penalty: float = 0.0
    """rho, the weight of the constraint; 0 before the first epoch."""
    caution: float = 1.0
    """How many times its usual size an automatic penalty has, because mean(U) strayed from s."""
    smallest_gap: float = np.inf
    """The smallest |mean(U) - s| since the caution was last raised."""
    gramian_U: Float64 | None = None
    """U^T U, if a step came by it."""
    pending: Shift | None = None
    """What U still lacks: applied when U is next read, not in a pass of its own."""

    def settle(self, threads: int) -> None:
        """Apply what is pending, so that U is what it stands for."""
        if self.pending is not None:
            kernels.shift_rows(self.U, *self.pending, threads)
            self.pending = None


def initial_factors(
    rows: range, factors: int, *, scale: float, seed: int, side: SideNumber
) -> Float32:
    """Draw factors from N(0, scale^2 / factors), padded with columns of zeros.

    A block of 1,024 rows depends on the seed, the side and its own number alone, so that any
    machine can draw any rows.

    Examples
    --------
    >>> all_rows = initial_factors(range(3000), 8, scale=0.1, seed=0, side=SideNumber.USERS)
    >>> some = initial_factors(range(1000, 1500), 8, scale=0.1, seed=0, side=SideNumber.USERS)
    >>> bool((all_rows[1000:1500] == some).all()), all_rows.shape
    (True, (3000, 16))
    """
    out = factor_matrix(len(rows), padded_width(factors))
    out[:, factors:] = 0
    for first in range(rows.start - rows.start % _BLOCK, rows.stop, _BLOCK):
        generator = np.random.default_rng([seed, side, first // _BLOCK])
        stop = min(first + _BLOCK, rows.stop)
        drawn = generator.standard_normal((stop - first, factors), dtype=np.float32)
        with np.errstate(over="ignore"):  # the first Gramian tells of it
            drawn *= np.float32(scale / np.sqrt(factors))
        begin = max(first, rows.start)
        out[begin - rows.start : stop - rows.start, :factors] = drawn[begin - first :]
    return out


def pad_factors(matrix: np.ndarray) -> Float32:
    """Copy factors into a float32 matrix whose width the kernels can work in."""
    n_rows, factors = matrix.shape
    out = factor_matrix(n_rows, padded_width(factors))
    out[:, :factors], out[:, factors:] = matrix, 0
    return out
