"""Models to folders and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError
from limelight.models.exadmm import ExADMM, ExADMMConfig
from limelight.models.ials import IALS, IALSConfig
from limelight.models.learned import Learned
from limelight.solve.loop import Status
from limelight.solve.measure import TraceRecord
from limelight.solve.problem import sparse_rows
from limelight.store.model_folder import ModelFolder, load_model_folder, save_model_folder

if TYPE_CHECKING:
    from pathlib import Path

    from limelight.models.config import FactorConfig
    from limelight.models.factor_model import FactorModel

_MODELS: dict[str, tuple[type[FactorModel], type[FactorConfig]]] = {
    "IALS": (IALS, IALSConfig),
    "ExADMM": (ExADMM, ExADMMConfig),
}

_SIDES = ("user_factors", "item_factors")
_VECTORS = ("mean_user", "dual")


def save_model(model: FactorModel, path: str | Path, *, history: bool = True) -> None:
    """Write a fitted model to a folder, whole or not at all.

    Parameters
    ----------
    model
        A fitted model.
    path
        The folder; one that holds a model is replaced, any other is left alone.
    history
        Whether to keep the training histories, which ``recommend`` leaves out of the lists.
    """
    learned = model.learned
    seen = learned.seen
    config = {
        "model": type(model).__name__,
        "hyperparameters": model.get_params(),
        "data": {"fingerprint": learned.fingerprint},
        "fit": {
            "status": learned.status.name if learned.status else None,
            "trace": [asdict(record) for record in learned.trace],
        },
    }
    save_model_folder(
        path,
        ModelFolder(
            config=config,
            arrays={
                "user_factors": learned.user_factors,
                "item_factors": learned.item_factors,
                **learned.vectors,
            },
            user_ids=learned.user_ids,
            item_ids=learned.item_ids,
            seen=(seen.indptr, seen.indices) if history and seen is not None else None,
        ),
    )


def load(path: str | Path) -> FactorModel:
    """Read a model that :meth:`save` wrote.

    Parameters
    ----------
    path
        The model folder.

    Returns
    -------
    IALS or ExADMM
        The model, as it was when it was saved.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> path = tempfile.mkdtemp() + "/model"
    >>> ll.IALS(factors=8, epochs=2).fit(data).save(path)
    >>> ll.load(path)
    IALS(factors=8, epochs=2) fitted to 300 users x 100 items
    """
    folder = load_model_folder(path)
    name = folder.config["model"]
    if name not in _MODELS:
        message = f"model folder {str(path)!r} holds an unknown model: {name!r}"
        raise DataError(message, hint=f"this limelight knows: {', '.join(_MODELS)}")
    kind, config = _MODELS[name]
    settings = folder.config["hyperparameters"]
    unknown = sorted(set(settings) - {field.name for field in fields(config)})
    if unknown:
        message = f"model folder {str(path)!r} has an unknown hyper-parameter: {unknown[0]!r}"
        raise DataError(message, hint="it was written by another version of limelight")
    model = kind(**settings)
    model._learned = _learned(folder, model.config.factors, str(path))
    return model


def _learned(folder: ModelFolder, factors: int, name: str) -> Learned:
    _check_arrays(folder, factors, name)
    arrays = dict(folder.arrays)
    user_factors, item_factors = (arrays.pop(side) for side in _SIDES)
    trace, status = _read_fit(folder.config.get("fit", {}), name)
    return Learned(
        user_factors=user_factors.astype(np.float32, copy=False),
        item_factors=item_factors.astype(np.float32, copy=False),
        user_ids=folder.user_ids,
        item_ids=folder.item_ids,
        fingerprint=str(folder.config["data"].get("fingerprint", "")),
        seen=sparse_rows(*folder.seen, len(folder.item_ids)) if folder.seen else None,
        vectors=arrays,
        trace=trace,
        status=status,
    )


def _check_arrays(folder: ModelFolder, factors: int, name: str) -> None:
    """Refuse arrays that a model with these settings cannot have."""
    shapes = {array: values.shape for array, values in folder.arrays.items()}
    sizes = len(folder.user_ids), len(folder.item_ids)
    expected = {side: (n, factors) for side, n in zip(_SIDES, sizes, strict=True)}
    if shapes != expected | dict.fromkeys(_VECTORS, (factors,)):
        message = f"model folder {name!r} has arrays that do not fit {factors} factors: {shapes}"
        raise DataError(message, hint="its parts come from different models; save it again")


def _read_fit(fit: dict[str, Any], name: str) -> tuple[list[TraceRecord], Status | None]:
    """Read how the fit went; the factors do not depend on it, but what is shown must be true."""
    try:
        trace = [TraceRecord(**record) for record in fit.get("trace", [])]
        status = Status[fit["status"]] if fit.get("status") else None
    except (TypeError, KeyError) as error:
        message = f"model folder {name!r} tells of its fit in an unknown way: {error}"
        raise DataError(
            message, hint="the file config.json was changed; save the model again"
        ) from error
    return trace, status
