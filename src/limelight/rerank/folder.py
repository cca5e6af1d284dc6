"""Re-ranked models to folders and back: a model folder, with what controls it beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError, DataError, LimelightError
from limelight._base.text import first_words, short
from limelight.models.folder import load_model, open_model, save_model
from limelight.rerank.methods.allocate import Allocate, AllocateConfig
from limelight.rerank.methods.best_response import (
    BestResponse,
    BestResponseConfig,
    MarketConfig,
    Online,
)
from limelight.rerank.methods.fairrec import FairRec, FairRecConfig
from limelight.rerank.methods.frank_wolfe import FrankWolfe, FrankWolfeConfig, Prices
from limelight.rerank.methods.group_shares import GroupPrices, GroupSharesConfig
from limelight.rerank.relevance import Relevance, ScoreRelevance
from limelight.rerank.reranker import Memory, Reranked, Reranker
from limelight.rerank.welfare import GiniWelfare, Impact, MinimumExposure, Power, TargetShares
from limelight.store.model_folder import StoredControl, load_control

if TYPE_CHECKING:
    from pathlib import Path

    from limelight._base.settings import Settings
    from limelight.models.base import Model

_RERANKERS: dict[str, tuple[type[Reranker], type[Settings]]] = {
    "Allocate": (Allocate, AllocateConfig),
    "BestResponse": (BestResponse, BestResponseConfig),
    "FairRec": (FairRec, FairRecConfig),
    "FrankWolfe": (FrankWolfe, FrankWolfeConfig),
    "GroupPrices": (GroupPrices, GroupSharesConfig),
    "Online": (Online, MarketConfig),
    "Prices": (Prices, FrankWolfeConfig),
}
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


def save_reranked(reranked: Reranked, path: str | Path, *, history: bool = True) -> None:
    """Write a model and its re-ranker to one folder, whole or not at all.

    Parameters
    ----------
    reranked
        Whose model has been fitted.
    path
        The folder; one that holds a model is replaced, any other is left alone.
    history
        Whether to keep the training histories.
    """
    reranker = reranked.reranker
    name = type(reranker).__name__
    if name not in _RERANKERS:
        message = f"this re-ranker cannot be saved: {reranker!r}"
        raise ConfigError(message, hint=f"these can: {', '.join(_RERANKERS)}")
    memory = reranker.memory()
    settings = {
        field.name: _encoded(getattr(reranker.config, field.name))
        for field in fields(reranker.config)
    }
    values = {key: _encoded(value) for key, value in memory.values.items()}
    record = {"reranker": name, "settings": settings, "memory": values}
    save_model(reranked.model, path, history=history, control=StoredControl(record, memory.arrays))


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
    control = load_control(path)
    if control is None:
        return model
    name = control.record.get("reranker")
    if not isinstance(name, str) or name not in _RERANKERS:
        message = f"model folder {str(path)!r} holds an unknown re-ranker: {short(name)}"
        raise DataError(message, hint=f"this limelight knows: {', '.join(_RERANKERS)}")
    kind, config = _RERANKERS[name]
    try:
        settings = {key: _decoded(value) for key, value in control.record["settings"].items()}
        reranker = kind.__new__(kind)
        reranker.config = config(**settings)
        values = {key: _decoded(value) for key, value in control.record["memory"].items()}
        reranker.remember(Memory(values, control.arrays), len(model.item_ids))
    except (LimelightError, TypeError, KeyError, AttributeError, ValueError) as error:
        reason = getattr(error, "message", f"{type(error).__name__} {first_words(error)}")
        message = f"model folder {str(path)!r} has a re-ranker that cannot be used: {reason}"
        raise DataError(message, hint="its parts come from different models; save it again") from (
            error
        )
    return Reranked(reranker, model)


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
