"""Where a fit stands: factors, mean user, dual variable. The state is the checkpoint.

The state of a fit as a checkpoint: every field, bit for bit, and the trace.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.arrays import factor_matrix
from limelight._base.errors import DataError
from limelight._native import kernels
from limelight.solve.problem import padded_width
from limelight.solve.trace import TraceRecord
from limelight.store.checkpoint import Stand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64


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


_ARRAYS = ("U", "V", "s", "w")
_CACHES = ("curvature", "gramian_U")
_NUMBERS = ("epoch", "penalty", "caution", "smallest_gap")


def as_stand(state: State, trace: Sequence[TraceRecord], seconds: float) -> Stand:
    """Take down where a fit stands.

    What is pending stays so: a state that was settled early is another one in its last bits.
    """
    numbers = {name: float(getattr(state, name)) for name in _NUMBERS}
    record = numbers | {"seconds": seconds, "trace": [asdict(one) for one in trace]}
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    arrays |= {name: getattr(state, name) for name in _CACHES if getattr(state, name) is not None}
    if state.pending is not None:
        arrays |= {f"pending_{name}": part for name, part in state.pending._asdict().items()}
    return Stand(record, arrays)


def restore(stand: Stand, state: State, trace: list[TraceRecord]) -> float:
    """Put a state and a trace back to where they stood; returns the seconds spent so far."""
    record, arrays = stand
    for name in _ARRAYS:
        own, stored = getattr(state, name), arrays.get(name)
        if stored is None or stored.shape != own.shape or stored.dtype != own.dtype:
            message = f"the checkpoint has no {name} of this fit"
            raise DataError(message, hint="delete it to start from the beginning")
        own[...] = stored
    for name in _CACHES:
        setattr(state, name, arrays.get(name))
    for name in _NUMBERS:
        setattr(state, name, record[name])
    state.epoch = int(state.epoch)
    if "pending_h" in arrays:
        state.pending = Shift(arrays["pending_steps"], arrays["pending_h"])
    trace += [TraceRecord(**one) for one in record["trace"]]
    if not all(np.isfinite(getattr(state, name)).all() for name in _ARRAYS):
        message = "the checkpoint holds numbers that are not finite"
        raise DataError(message, hint="delete it to start from the beginning")
    return float(record["seconds"])
