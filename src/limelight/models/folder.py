"""Models to folders and back, and every model under the name that folders know it by."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import first_words, short
from limelight.data.features import Encoding
from limelight.models.config import AUTO
from limelight.solve.loop import Status
from limelight.solve.problem import sparse_rows
from limelight.store.model_folder import (
    ModelFolder,
    load_model_folder,
    open_model_folder,
    save_model_folder,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from limelight._native._kernels import Csr
    from limelight.models.base import Model
    from limelight.models.config import Config
    from limelight.store.model_folder import StoredControl


MODELS: dict[str, tuple[type[Model], type[Config]]] = {}
"""Models and their configs by name; ``limelight.models`` adds its own."""
_COUNTS = "item_counts"
"""How many training users have each item, for users without a history."""
_CHANGED = "the file config.json was changed; save the model again"


def save_model(
    model: Model,
    path: str | Path,
    *,
    history: bool = True,
    control: StoredControl | None = None,
    promise: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to a folder, whole or not at all.

    A folder that holds a model is replaced, any other is left alone. Without its history, ``load``
    gives a model that cannot leave out of its lists what users have seen. ``control`` says how its
    lists are re-ranked, if they are; ``promise`` what was asked of their exposure.
    """
    learned = model.learned
    seen, counts = learned.seen, learned.counts() if model.ranks_by_history else None
    config = config_of(
        model,
        learned.fingerprint,
        learned.trace,
        learned.status,
        model.chosen_,
        weighted=learned.weighted,
        has_ids=learned.has_ids,
    )
    if learned.features is not None:
        config["features"] = learned.features
    save_model_folder(
        path,
        ModelFolder(
            config=config,
            arrays={**learned.arrays, **({} if counts is None else {_COUNTS: counts})},
            user_ids=learned.user_ids,
            item_ids=learned.item_ids,
            seen=(seen.indptr, seen.indices) if history and seen is not None else None,
            seen_weights=None if seen is None else seen.weights,
            control=control,
            promise=promise,
        ),
    )


def config_of(
    model: Model,
    fingerprint: str,
    trace: Sequence[Any],
    status: Status | None,
    chosen: Mapping[str, Any] | None = None,
    *,
    weighted: bool = False,
    has_ids: bool = True,
) -> dict[str, Any]:
    """Say what a folder holds: a model with its settings, and how a fit to some data went."""
    data: dict[str, Any] = {"fingerprint": fingerprint, "has_ids": has_ids}
    if weighted:
        data["weighted"] = True
    return {
        "model": type(model).__name__,
        "hyperparameters": asdict(model.config),
        "data": data,
        "fit": {
            "status": status.name if status else None,
            "trace": [asdict(record) for record in trace],
            "chosen": dict(chosen or {}),
        },
    }


def load_model(path: str | Path) -> Model:
    """Read a model that :meth:`save` wrote, as it was, without what re-ranks its lists.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> path = tempfile.mkdtemp() + "/model"
    >>> ll.IALS(factors=8, epochs=2).fit(data).save(path)
    >>> load_model(path)
    IALS(factors=8, epochs=2) fitted to 300 users x 100 items
    """
    return _model(load_model_folder(path), path)


def open_model(path: str | Path) -> Model:
    """Read a model without its users: their factors stay on disk until they are looked at.

    It has no histories, and row numbers for user ids. What is in the files is not checked: let
    :func:`load_model` do that once.
    """
    return _model(open_model_folder(path), path)


def _model(folder: ModelFolder, path: str | Path) -> Model:
    name = folder.config["model"]
    if name not in MODELS:
        message = f"model folder {str(path)!r} holds an unknown model: {short(name)}"
        raise DataError(message, hint=f"this limelight knows: {', '.join(MODELS)}")
    kind, config = MODELS[name]
    settings = folder.config["hyperparameters"]
    unknown = sorted(set(settings) - {field.name for field in fields(config)})
    if unknown:
        message = f"model folder {str(path)!r} has an unknown hyper-parameter: {short(unknown[0])}"
        raise DataError(message, hint="it was written by another version of limelight")
    try:
        model = kind(**settings)
        _restore(model, folder, str(path))
    except ConfigError as error:
        message = f"model folder {str(path)!r} has a setting that cannot be used: {error.message}"
        raise DataError(message, hint=_CHANGED) from error
    return model


def _restore(model: Model, folder: ModelFolder, name: str) -> None:
    """Take over what a fit left behind, unless a model with these settings cannot have left it."""
    trace, status, model.chosen_ = _read_fit(folder.config.get("fit", {}), model, name)
    arrays, counts = dict(folder.arrays), None
    if model.ranks_by_history and _COUNTS in arrays and arrays[_COUNTS].ndim == 1:
        counts = arrays.pop(_COUNTS)
    shapes = {array: values.shape for array, values in arrays.items()}
    expected = model.shapes(len(folder.user_ids), len(folder.item_ids))
    features = folder.config.get("features")
    if features is not None:
        # A map has a row for the constant and for each feature, and makes vectors of items.
        width = 1 + Encoding.of(features).width
        expected["feature_map"] = (width, *expected.get("item_factors", ())[1:])
    if shapes not in (expected, expected | model.optional_shapes()):
        message = f"model folder {name!r} has arrays that do not fit its settings: {short(shapes)}"
        raise DataError(message, hint="its parts come from different models; save it again")
    model.restore(
        arrays=arrays,
        user_ids=folder.user_ids,
        item_ids=folder.item_ids,
        fingerprint=str(folder.config["data"].get("fingerprint", "")),
        seen=_seen(folder),
        trace=trace,
        status=status,
        item_counts=counts,
        weighted=folder.config["data"].get("weighted") is True,
        has_ids=_has_ids(folder),
        features=features,
    )


def _has_ids(folder: ModelFolder) -> bool:
    ids = folder.item_ids
    # Folders of before do not say it: ids that count from 0 were most often made up.
    counted = np.array_equal(ids, np.arange(len(ids)))
    return folder.config["data"].get("has_ids", not counted) is True


def _seen(folder: ModelFolder) -> Csr | None:
    if folder.seen is None:
        return None
    return sparse_rows(*folder.seen, len(folder.item_ids), folder.seen_weights)


def _read_fit(
    fit: dict[str, Any], model: Model, name: str
) -> tuple[list[Any], Status | None, dict[str, Any]]:
    """Read the trace, the status and what "auto" came to; refuse what a fit cannot have written."""
    try:
        trace = [model.record(**_numbers(values)) for values in fit.get("trace", [])]
        status = Status[fit["status"]] if fit.get("status") else None
        chosen = _checked_choice(_numbers(fit.get("chosen", {})), model.config)
    except (TypeError, KeyError, AttributeError, ConfigError) as error:
        message = f"model folder {name!r} describes its fit in an unknown way: {first_words(error)}"
        raise DataError(message, hint=_CHANGED) from error
    return trace, status, chosen


def _checked_choice(chosen: dict[str, Any], config: Config) -> dict[str, Any]:
    """Refuse numbers for settings that were not left to the fit, or that they cannot have."""
    given = asdict(config)
    if any(given[name] != AUTO for name in chosen):
        message = f"chosen is {short(chosen)}"
        raise TypeError(message)
    type(config)(**{**given, **chosen})
    return chosen


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse a record with anything but numbers."""
    for name, value in values.items():
        if not (value is None or isinstance(value, int | float)):
            message = f"{short(name)} is {short(value)}"
            raise TypeError(message)
    return values
