"""How long training and inference take (Table 3)."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from limelight.lab.bench.memory import bytes_taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limelight.data import Split
    from limelight.lab.paper.methods import PaperMethod
    from limelight.models.base import Model

_REPEAT_UP_TO = 20.0  # seconds: what is quicker is repeated, and the fastest counts
_REPEATS = 3
_PROBE = 4  # epochs from which the rest is estimated


def training_time(
    method: PaperMethod, settings: Mapping[str, Any], split: Split, patience: float
) -> dict[str, Any]:
    """Time the training for as many epochs as the paper's.

    Where that would take longer than ``patience`` seconds, or the run was told to train for less,
    the rest is extrapolated from the epochs that ran, and marked so.
    """
    own = {**settings, **_to_the_end(method)}
    if method.epochs is None:
        return {"seconds": _fastest(lambda: method.fit(own, split)), "epochs": None}
    asked = min(int(method.make(own).get_params()["epochs"]), method.epochs)
    probe = per_epoch(method.fit({**own, "epochs": min(_PROBE, asked)}, split))
    epochs = max(1, min(asked, int(patience / probe)))
    fitted: list[Model] = []
    whole = _fastest(lambda: fitted.append(method.fit({**own, "epochs": epochs}, split)))
    if "early_stopping" in own:
        # Neural models also measure validation users after every epoch, outside of their clock.
        whole = min(float(model.trace_[-1].seconds) for model in fitted)
    each = per_epoch(fitted[-1])
    return {
        "seconds": whole + each * (method.epochs - epochs),
        "seconds_per_epoch": each,
        "epochs": epochs,
        "extrapolated": epochs < method.epochs,
    }


def training_bytes(method: PaperMethod, settings: Mapping[str, Any], split: Split) -> int:
    """Measure by how much one epoch of training raises the peak of this process."""
    own = {**settings, **_to_the_end(method)}
    if method.epochs is not None:
        own["epochs"] = 1
    return bytes_taken(lambda: method.fit(own, split))


def inference_times(recommend: Callable[[int], object], cutoffs: Sequence[int]) -> dict[str, float]:
    """Time lists of some lengths."""
    return {str(k): _fastest(partial(recommend, k)) for k in cutoffs}


def _to_the_end(method: PaperMethod) -> dict[str, Any]:
    """Return settings with which no fit ends early, because the paper trains to the end."""
    known = method.defaults()
    never = {"early_stopping": 0, "tolerance": 0.0}
    return {name: value for name, value in never.items() if name in known}


def per_epoch(model: Model) -> float:
    """Return the seconds of an epoch, without the first, which may hold a compilation."""
    first, last = model.trace_[0], model.trace_[-1]
    if last.epoch == first.epoch:
        return float(last.seconds / last.epoch)
    return float((last.seconds - first.seconds) / (last.epoch - first.epoch))


def seconds_of(job: Callable[[], object]) -> float:
    """Run a job; return how long it took by the clock on the wall."""
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def _fastest(job: Callable[[], object]) -> float:
    taken: list[float] = []
    while len(taken) < _REPEATS and (not taken or sum(taken) + min(taken) < _REPEAT_UP_TO):
        taken.append(seconds_of(job))
    return min(taken)
