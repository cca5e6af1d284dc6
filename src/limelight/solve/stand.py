"""The state of a fit as a checkpoint: every field, bit for bit, and the trace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import DataError
from limelight.solve.measure import TraceRecord
from limelight.solve.state import Shift
from limelight.store.checkpoint import Stand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.solve.state import State

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
