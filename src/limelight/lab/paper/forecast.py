"""What a run will take, known before it starts: seconds and bytes of each method.

An epoch is timed on some of the users and scaled to all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._native import resolve_threads
from limelight.data import Interactions
from limelight.lab.paper.rerankers import reranking_method
from limelight.lab.paper.times import per_epoch, seconds_of
from limelight.models.ease import EASE
from limelight.models.neural.model import NeuralModel
from limelight.solve.cost import fit_bytes, row_solve
from limelight.solve.ease import inverse_bytes

if TYPE_CHECKING:
    from limelight._base.arrays import Float64
    from limelight.data import Split
    from limelight.lab.paper.methods import PaperMethod

_USERS = 2_000
"""So many users are timed at most."""
_ASKERS = 500
_ITEMS = 1_000
"""So many items of EASE, whose time grows with their cube."""
_USUAL_EPOCHS = 200
"""After about so many, fits of factors were seen to stand still."""
_PROBE = 3
_CANDIDATES = 128
_FLOAT = 4


class MethodForecast(NamedTuple):
    """What one trial of a method takes."""

    seconds: float
    n_bytes: int
    epoch: float | None = None
    """Seconds of an epoch; None for what has none."""
    epochs: int | None = None
    """About how many will run."""


def forecast_method(method: PaperMethod, split: Split, k: int) -> MethodForecast:
    """Time a few epochs of a method on some of the users, and the lists of some."""
    data = split.train
    some = _first_users(data, _USERS)
    settings = dict(method.first[0]) if method.first else {}
    model = method.make(settings)
    if isinstance(model, EASE):
        return _forecast_ease(model, data)
    config: Any = model.config
    if method.epochs is None:
        seconds = seconds_of(lambda: model.fit(some)) * data.n_users / some.n_users
        return MethodForecast(seconds + _seconds_of_lists(model, split, k), data.n_users * k * 8)
    if isinstance(model, NeuralModel):
        probe = method.make({**settings, "epochs": _PROBE, "early_stopping": 0})
        ratio, epochs = data.n_users / some.n_users, int(config.epochs)
        n_bytes = _network_bytes(data, config)
    else:
        probe = method.make({**settings, "epochs": _PROBE, "tolerance": 0.0, "trace_every": 1})
        ratio = _work(data, config.factors) / _work(some, config.factors)
        epochs = min(int(config.epochs), _USUAL_EPOCHS)
        n_bytes = fit_bytes(
            n_users=data.n_users,
            n_items=data.n_items,
            n_entries=data.nnz,
            factors=config.factors,
            threads=resolve_threads(config.num_threads),
        )
    epoch = per_epoch(probe.fit(some)) * ratio
    seconds = epoch * epochs + _seconds_of_lists(probe, split, k)
    return MethodForecast(seconds, n_bytes, epoch, epochs)


def forecast_reranker(name: str, base: PaperMethod, split: Split, k: int) -> MethodForecast:
    """Time the lists of some validation users over a model that was hardly trained."""
    model = base.make({**base.first[0], "epochs": 1}).fit(_first_users(split.train, _USERS))
    method, history = reranking_method(name, model, k), split.validation.history
    asking = min(_ASKERS, history.shape[0])
    settings = method.first[len(method.first) // 2]
    seconds = seconds_of(lambda: method.fit(settings, split).recommend(history[:asking], k))
    n_bytes = history.shape[0] * max(4 * k, _CANDIDATES) * 2 * _FLOAT
    return MethodForecast(seconds * history.shape[0] / asking, n_bytes)


def _forecast_ease(model: EASE, data: Interactions) -> MethodForecast:
    items = min(_ITEMS, data.n_items)
    some = Interactions.from_matrix(data.matrix[:, :items])
    seconds = seconds_of(lambda: model.fit(some)) * (data.n_items / items) ** 3
    threads = resolve_threads(model.config.num_threads)
    return MethodForecast(seconds, inverse_bytes(data.n_items, data.nnz, threads))


def _seconds_of_lists(model: Any, split: Split, k: int) -> float:
    history = split.validation.history
    asking = min(_ASKERS, history.shape[0])
    taken = seconds_of(lambda: model.recommend(history[:asking], k=k))
    return taken * history.shape[0] / asking


def _first_users(data: Interactions, users: int) -> Interactions:
    """Take the first users with all items; they come in random order from the split."""
    if data.n_users <= users:
        return data
    return Interactions.from_matrix(data.matrix[:users])


def _work(data: Interactions, factors: int) -> float:
    """Count the operations of an epoch of exact row solves, on both sides."""
    by_item = np.bincount(data.indices, minlength=data.n_items)
    sides: tuple[Float64, ...] = tuple(
        lengths.astype(np.float64) for lengths in (np.diff(data.indptr), by_item)
    )
    return float(sum(row_solve(lengths, factors).sum() for lengths in sides))


def _network_bytes(data: Interactions, config: Any) -> int:
    """Estimate weights, gradients and two moments, and the scores of a batch a few times."""
    width = int(config.latent)
    weights = 2 * data.n_items * width + 4 * width**2
    batch = min(int(config.batch_size), data.n_users) * data.n_items
    return _FLOAT * (4 * weights + 4 * batch)
