"""Re-ranked models to folders and back: a model folder, with what controls it beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError, LimelightError
from limelight._base.text import first_words, short
from limelight.metrics.lists import Lists
from limelight.models.folder import load_model, open_model
from limelight.rerank.methods import rerankers
from limelight.rerank.relevance import Relevance, ScoreRelevance
from limelight.rerank.welfare import GiniWelfare, Impact, MinimumExposure, Power, TargetShares
from limelight.store.model_folder import StoredControl, load_control
from limelight.store.model_state import load_promise

if TYPE_CHECKING:
    from pathlib import Path

    from limelight.models.base import Model
    from limelight.rerank.reranker import Reranked, Reranker

_KINDS = {
    kind.__name__: kind
    for kind in (
        Relevance,
        ScoreRelevance,
        Power,
        Impact,
        GiniWelfare,
        MinimumExposure,
        TargetShares,
    )
}
_PAIRS = "pairs"
LIST_ITEMS, LIST_SCORES = "list_items", "list_scores"
"""The arrays of lists that were decided for training users."""


def control_of(reranker: Reranker, lists: Lists | None = None) -> StoredControl:
    """Return what a folder says of a re-ranker: its name, its settings, its state and its lists.

    All that serving changes is in arrays, so that one file holds it.
    """
    name, known = type(reranker).__name__, rerankers()
    if name not in known:
        message = f"this re-ranker cannot be saved: {reranker!r}"
        raise ConfigError(message, hint=f"these can: {', '.join(known)}")
    settings = {own.name: getattr(reranker.config, own.name) for own in fields(reranker.config)}
    if reranker.law_ is not None:
        settings["relevance"] = reranker.law_
    state = reranker.state().saved()
    arrays = {
        key: np.asarray(value, dtype=np.float64) if isinstance(value, float) else value
        for key, value in state.items()
        if isinstance(value, (np.ndarray, float))
    }
    values = {key: value for key, value in state.items() if key not in arrays}
    record = {"reranker": name, "settings": _encoded_all(settings), "memory": _encoded_all(values)}
    if lists is not None:
        arrays |= {LIST_ITEMS: lists.ids, LIST_SCORES: lists.scores}
    return StoredControl(record, arrays)


def load(path: str | Path) -> Model | Reranked:
    """Read a model, with its re-ranker where it was saved with one.

    Parameters
    ----------
    path
        The folder that ``save`` wrote.

    Returns
    -------
    Model or Reranked
        As it was when it was saved.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.IALS(factors=8, epochs=2).fit(data)
    >>> path = tempfile.mkdtemp() + "/model"
    >>> ll.BestResponse(strength=0.3).over(model).save(path)
    >>> ll.load(path)
    BestResponse(strength=0.3) over IALS(factors=8, epochs=2) fitted to 300 users x 100 items
    """
    return _controlled(load_model(path), path)


def open_light(path: str | Path) -> Model | Reranked:
    """Read a model without its users, as :func:`~limelight.models.folder.open_model` does."""
    return _controlled(open_model(path), path)


def _controlled(model: Model, path: str | Path) -> Model | Reranked:
    control, promise = load_control(path), load_promise(path)
    if control is None:
        model.promise = promise
        return model
    name = control.record.get("reranker")
    known = rerankers()
    if not isinstance(name, str) or name not in known:
        message = f"model folder {str(path)!r} holds an unknown re-ranker: {short(name)}"
        raise DataError(message, hint=f"this limelight knows: {', '.join(known)}")
    kind, config = known[name]
    try:
        reranker = kind.__new__(kind)
        reranker.config = config(**_decoded_all(control.record["settings"]))
        arrays = {
            key: value if value.ndim else value.item() for key, value in control.arrays.items()
        }
        saved = _decoded_all(control.record["memory"]) | arrays
        reranker.restore(reranker.state_type.of(saved), len(model.item_ids))
        lists = _lists(arrays, len(model.user_ids), len(model.item_ids))
    except (LimelightError, TypeError, KeyError, AttributeError, ValueError) as error:
        reason = getattr(error, "message", f"{type(error).__name__} {first_words(error)}")
        message = f"model folder {str(path)!r} has a re-ranker that cannot be used: {reason}"
        raise DataError(message, hint="its parts come from different models; save it again") from (
            error
        )
    found = reranker.over(model)
    found.lists, found.promise = lists, promise
    return found


def _lists(arrays: Mapping[str, Any], n_users: int, n_items: int) -> Lists | None:
    """Return the lists of training users, if they were kept."""
    if LIST_ITEMS not in arrays:
        return None
    ids, scores = arrays[LIST_ITEMS], arrays[LIST_SCORES]
    are_numbers = ids.dtype.kind == "i" and scores.dtype.kind == "f"
    are_lists = ids.ndim == 2 and ids.shape == scores.shape and len(ids) == n_users
    if not (are_numbers and are_lists and ids.shape[1] and not np.isnan(scores).any()):
        message = (
            f"lists of shape {ids.shape}, {ids.dtype} and {scores.dtype}, for {n_users:,} users"
        )
        raise DataError(message, hint="save the model again")
    if ids.size and not (ids.min() >= -1 and ids.max() < n_items):
        message = f"lists show items beyond the {n_items:,} that there are"
        raise DataError(message, hint="save the model again")
    return Lists(ids.astype(np.int32, copy=False), scores.astype(np.float32, copy=False))


def _encoded_all(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _encoded(value) for name, value in values.items()}


def _decoded_all(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _decoded(value) for name, value in values.items()}


def _encoded(value: Any) -> Any:
    """Turn a setting into JSON; laws and welfares become their fields, mappings become pairs."""
    if is_dataclass(value) and type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, **asdict(value)}  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        return {"kind": _PAIRS, _PAIRS: [[key, share] for key, share in value.items()]}
    if value is None or isinstance(value, (int, float, str)):
        return value
    message = f"this setting cannot be saved: {value!r}"
    raise ConfigError(message, hint=f"use one of: {', '.join(_KINDS)}")


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    settings = dict(value)
    kind = settings.pop("kind")
    return dict(settings[_PAIRS]) if kind == _PAIRS else _KINDS[kind](**settings)
