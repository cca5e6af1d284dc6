"""Where a fit of factors stands: factors, mean user, dual variable.

The state is the checkpoint: every field of it is saved, bit for bit, and the trace beside it.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.arrays import factor_matrix
from limelight._base.errors import DataError
from limelight._native import kernels
from limelight.solve.problem import padded_width
from limelight.solve.trace import TraceRecord
from limelight.store.checkpoint import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64


_BLOCK = 1024
_BY_USER = "by_user"
"""Metadata of a field with a row for each user: what its array has behind its name when saved."""


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
    """What one epoch hands to the next; the steps overwrite the factors in place.

    A field without a default is an array, and so is one whose default is None, as soon as there is
    one. Other defaults are numbers. :func:`to_snapshot` saves all fields, also those to come.
    """

    U: Float32 = field(metadata={_BY_USER: ""})
    V: Float32
    s: Float64
    """The auxiliary mean user, which the penalty on exposure acts on."""
    w: Float64
    """The scaled dual variable of mean(U) = s; with exact steps, the price itself."""
    epoch: int = 0

    # What makes the next epoch cheaper; all of it follows from the fields above and the data.
    curvature: Float32 | None = field(default=None, metadata={_BY_USER: ""})
    """Largest eigenvalue of every user's own Gramian, nearly; refreshed now and then."""
    penalty: float = 0.0
    """rho, the weight of the constraint; 0 before the first epoch."""
    caution: float = 1.0
    """How many times its usual size an automatic penalty has, because mean(U) strayed from s."""
    smallest_gap: float = np.inf
    """The smallest |mean(U) - s| since the caution was last raised."""
    gramian_U: Float64 | None = None
    """U^T U, if a step came by it."""
    pending: Shift | None = field(default=None, metadata={_BY_USER: "_steps"})
    """What U still lacks: applied when U is next read, not in a pass of its own."""

    def settle(self, threads: int) -> None:
        """Apply what is pending, so that U holds the users' factors."""
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
        with np.errstate(over="ignore"):  # eigenbasis() refuses a Gramian that is not finite
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


def arrays_by_user() -> list[str]:
    """Name the arrays of a snapshot that have a row for each user.

    Examples
    --------
    >>> arrays_by_user()
    ['U', 'curvature', 'pending_steps']
    """
    marked = [one for one in fields(State) if _BY_USER in one.metadata]
    return [one.name + one.metadata[_BY_USER] for one in marked]


def to_snapshot(state: State, trace: Sequence[TraceRecord], seconds: float) -> Snapshot:
    """Take down where a fit stands.

    What is pending stays so: a state that was settled early is another one in its last bits.
    """
    record: dict[str, Any] = {"seconds": seconds, "trace": [asdict(one) for one in trace]}
    arrays: dict[str, Any] = {}
    for name in (one.name for one in fields(state)):
        value = getattr(state, name)
        if isinstance(value, Shift):
            arrays |= {f"{name}_{part}": array for part, array in value._asdict().items()}
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        elif value is not None:
            record[name] = float(value)
    return Snapshot(record, arrays)


def from_snapshot(stored: Snapshot, state: State) -> tuple[list[TraceRecord], float]:
    """Put a state back to where it stood; return the trace and the seconds spent so far."""
    record, arrays = stored
    for one in fields(state):
        if one.default is MISSING:
            _overwrite(getattr(state, one.name), arrays.get(one.name), one.name)
        elif one.default is not None:
            setattr(state, one.name, type(one.default)(record[one.name]))
        elif f"{one.name}_h" in arrays:
            parts = (arrays[f"{one.name}_{part}"] for part in Shift._fields)
            setattr(state, one.name, Shift(*parts))
        else:
            setattr(state, one.name, arrays.get(one.name))
    return [TraceRecord(**one) for one in record["trace"]], float(record["seconds"])


def _overwrite(own: Float32 | Float64, stored: Any, name: str) -> None:
    """Copy a stored array over that of a first state, which says how it should look."""
    if stored is None or stored.shape != own.shape or stored.dtype != own.dtype:
        message = f"the checkpoint has no {name} of this fit"
    elif not np.isfinite(stored).all():
        message = "the checkpoint holds numbers that are not finite"
    else:
        own[...] = stored
        return
    raise DataError(message, hint="delete it to start from the beginning")
