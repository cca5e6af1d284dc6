"""A model on disk: a folder of arrays, ids and settings that any tool can read.

factors.safetensors   the learnt arrays, and how many training users have each item
config.json           schema and package version, model, hyper-parameters, data fingerprint,
                      how features of items are read
users.parquet         user_id by row number
items.parquet         item_id by column number
seen.safetensors      indptr, indices and perhaps weights of the training histories, if kept
control.json          how its lists are re-ranked, if they are
control.safetensors   all of this that serving changes: exposure so far, lists that were decided
target.json           what was asked of the exposure of whom, what was reached, and the front
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limelight._base.errors import DataError
from limelight._base.files import atomic_folder
from limelight._base.machine import package_version
from limelight._base.text import short
from limelight.data.ids import ids_to_arrow
from limelight.store.arrays import load_arrays, map_arrays, read_ids, save_arrays, write_ids
from limelight.store.card import CARD, is_card
from limelight.store.json import plain_number, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SCHEMA_VERSION = 3
"""Raised when an older limelight could not read what this one writes."""
FACTORS, CONFIG, USERS, ITEMS, SEEN, CONTROL, CONTROL_ARRAYS, TARGET = _FILES = (
    "factors.safetensors",
    "config.json",
    "users.parquet",
    "items.parquet",
    "seen.safetensors",
    "control.json",
    "control.safetensors",
    "target.json",
)
_FACTORS = ("user_factors", "item_factors")
_LONGEST_VERSION = 40
_TEMPORARY = re.compile(r"\..*\.tmp|\.tmp\w{6}")
_NOT_SAVED = "pass the folder that `model.save` wrote"
_INCOMPLETE = "the folder is incomplete; save the model again"
_DAMAGED = "the file is damaged; save the model again"
_MIXED = "its parts come from different models; save it again"
_REQUIRED = {"model": str, "hyperparameters": dict, "data": dict}
_OPTIONAL = {"fit": dict, "features": dict}
_ADDED = {"schema_version": int, "limelight_version": str}


class StoredControl(NamedTuple):
    """How a model's lists are re-ranked, as it stands in the folder."""

    record: dict[str, Any]
    """JSON."""
    arrays: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ModelFolder:
    """What a model folder holds."""

    config: dict[str, Any]
    """`model` (a name), `hyperparameters`, `data` (its fingerprint) and perhaps `fit` (how the
    fit went), all JSON. Once loaded also `schema_version` and `limelight_version`."""

    arrays: dict[str, NDArray[Any]]
    """Finite numbers. A name that starts with `user_` or `item_` has one row per user or item."""

    user_ids: NDArray[Any]
    item_ids: NDArray[Any]
    seen: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None
    """`indptr` and `indices` of the training histories, which `recommend` filters."""
    seen_weights: NDArray[np.float32] | None = None
    control: StoredControl | None = None
    promise: dict[str, Any] | None = None


def save_model_folder(path: str | os.PathLike[str], folder: ModelFolder) -> None:
    """Write a model folder, whole or not at all.

    Parameters
    ----------
    path
        The folder. An older model folder is replaced; anything else in the way is an error.
    folder
        What to write; checked first.

    Examples
    --------
    >>> import tempfile
    >>> folder = ModelFolder(
    ...     config={"model": "popularity", "hyperparameters": {}, "data": {}},
    ...     arrays={"item_counts": np.array([3.0, 1.0])},
    ...     user_ids=np.array([7]),
    ...     item_ids=np.array(["a", "b"], dtype=object),
    ... )
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> save_model_folder(path, folder)
    >>> load_model_folder(path).item_ids
    array(['a', 'b'], dtype=object)
    """
    text = config_text(folder.config)
    _check_folder(folder, "the model")
    with atomic_folder(path, replace_if=is_model_folder) as temporary:
        (temporary / CONFIG).write_text(text, encoding="utf-8")
        save_arrays(temporary / FACTORS, folder.arrays)
        write_ids(temporary / USERS, "user_id", folder.user_ids)
        write_ids(temporary / ITEMS, "item_id", folder.item_ids)
        if folder.seen is not None:
            types = {"indptr": np.int64, "indices": np.int32, "weights": np.float32}
            seen = zip(types.items(), (*folder.seen, folder.seen_weights), strict=True)
            arrays = {name: a.astype(dtype) for (name, dtype), a in seen if a is not None}
            save_arrays(temporary / SEEN, arrays)
        if folder.control is not None:
            text = _to_json(folder.control.record)
            (temporary / CONTROL).write_text(text + "\n", encoding="utf-8")
            save_arrays(temporary / CONTROL_ARRAYS, folder.control.arrays)
        if folder.promise is not None:
            (temporary / TARGET).write_text(_to_json(folder.promise) + "\n", encoding="utf-8")


def config_text(config: dict[str, Any]) -> str:
    r"""Write a config as it stands in a folder, with versions; refuse one that does not fit.

    Examples
    --------
    >>> config_text({"model": "popularity", "hyperparameters": {}, "data": {}})
    '{\n  "schema_version": 3,...}\n'
    """
    versions = {"schema_version": SCHEMA_VERSION, "limelight_version": package_version()}
    config = versions | {k: v for k, v in config.items() if k not in versions}
    _check_config(config, "the model")
    return _to_json(config) + "\n"


def load_model_folder(path: str | os.PathLike[str]) -> ModelFolder:
    """Read a model folder and check that its parts belong together.

    Parameters
    ----------
    path
        A folder that `save_model_folder` wrote.

    Raises
    ------
    DataError
        If it is missing, damaged, or written by a newer limelight.

    Examples
    --------
    >>> load_model_folder("no/such/model")
    Traceback (most recent call last):
    ...
    limelight._base.errors.DataError: model folder not found: 'no/such/model'
    ...
    """
    root, config = require_complete(path)
    folder = ModelFolder(
        config=config,
        arrays=load_arrays(root / FACTORS),
        user_ids=read_ids(root / USERS, "user_id"),
        item_ids=read_ids(root / ITEMS, "item_id"),
        **_read_seen(root),
    )
    _check_folder(folder, f"model folder {os.fspath(path)!r}")
    return folder


def open_model_folder(path: str | os.PathLike[str]) -> ModelFolder:
    """Read a model folder but for its users, whose arrays stay on disk until they are looked at.

    User ids are row numbers, histories are left out, and what the files hold is not checked.
    """
    root, config = require_complete(path)
    arrays = {
        name: values if name.startswith("user_") else np.array(values)
        for name, values in map_arrays(root / FACTORS).items()
    }
    return ModelFolder(
        config=config,
        arrays=arrays,
        user_ids=np.arange(pq.read_metadata(root / USERS).num_rows),
        item_ids=read_ids(root / ITEMS, "item_id"),
    )


def read_histories(
    path: str | os.PathLike[str], start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None] | None:
    """Read histories of some users: `indptr`, `indices`, perhaps weights; None if not kept."""
    file = Path(path) / SEEN
    if not file.exists():
        return None
    seen = map_arrays(file)
    _check_names(seen)
    indptr = np.array(seen["indptr"][start : stop + 1])
    own = slice(indptr[0], indptr[-1])
    weights = np.array(seen["weights"][own]) if "weights" in seen else None
    return indptr - indptr[0], np.array(seen["indices"][own]), weights


def require_complete(path: str | os.PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """Refuse a folder that lacks a file; return it with its settings."""
    root, name = Path(path), repr(os.fspath(path))
    if not root.is_dir():
        _refuse(f"model folder not found: {name}", _NOT_SAVED)
    config = _read_config(root)
    for file in (FACTORS, USERS, ITEMS):
        if not (root / file).is_file():
            _refuse(f"model folder {name} lacks {file!r}", _INCOMPLETE)
    return root, config


def load_control(path: str | os.PathLike[str]) -> StoredControl | None:
    """Read how the lists of a model are re-ranked, if they are."""
    root, name = Path(path), repr(os.fspath(path))
    if not (root / CONTROL).exists():
        if (root / CONTROL_ARRAYS).exists():
            what = f"model folder {name} lacks {CONTROL!r}, which says how lists are re-ranked"
            _refuse(what, _INCOMPLETE)
        return None
    record = read_object(root, CONTROL)
    if not (root / CONTROL_ARRAYS).exists():
        _refuse(f"model folder {name} lacks {CONTROL_ARRAYS!r}", _INCOMPLETE)
    return StoredControl(record, load_arrays(root / CONTROL_ARRAYS))


def read_object(root: Path, file: str) -> dict[str, Any]:
    """Read a JSON file of a model folder that must be an object."""
    name = repr(os.fspath(root))
    try:
        record = read_json(root / file)
    except (OSError, ValueError) as error:
        _refuse(f"cannot read {file} of model folder {name}: {error}", _DAMAGED, error)
    if not isinstance(record, dict):
        _refuse(f"{file} of model folder {name} must be an object: {short(record)}", _DAMAGED)
    return record


def is_model_folder(path: Path) -> bool:
    """Tell whether a folder holds a model, perhaps its card, and may be replaced."""
    entries = (entry.name for entry in path.iterdir())
    # A stream that was killed while it wrote its state leaves a temporary file behind.
    names = {name for name in entries if not _TEMPORARY.fullmatch(name)}
    if is_card(path / CARD):
        names.discard(CARD)
    if CONFIG not in names or names.difference(_FILES):
        return False
    try:
        config = read_json(path / CONFIG)
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "limelight_version" in config


def _read_config(root: Path) -> dict[str, Any]:
    name = repr(os.fspath(root))
    try:
        config = read_json(root / CONFIG)
    except FileNotFoundError as error:
        _refuse(f"not a model folder, it has no {CONFIG}: {name}", _NOT_SAVED, error)
    except (OSError, ValueError, RecursionError) as error:
        _refuse(f"cannot read {CONFIG} of model folder {name}: {error}", _DAMAGED, error)
    version = config.get("schema_version") if isinstance(config, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        _refuse(f"not a model folder, {CONFIG} has no schema_version: {name}", _NOT_SAVED)
    if version < 1:
        hint = "the file config.json was changed; save the model again"
        _refuse(f"model folder {name} has no such schema: {short(version)}", hint)
    if version > SCHEMA_VERSION:
        writer = str(config.get("limelight_version", "a newer version"))[:_LONGEST_VERSION]
        message = (
            f"model folder {name} has schema {short(version)}, "
            f"this limelight reads {SCHEMA_VERSION}"
        )
        raise DataError(message, hint=f"upgrade limelight; the model was written by {writer}")
    _check_config(config, f"model folder {name}")
    return dict(config)


def _read_seen(root: Path) -> dict[str, Any]:
    if not (root / SEEN).exists():
        return {}
    arrays = load_arrays(root / SEEN)
    _check_names(arrays)
    weights = arrays.pop("weights", None)
    for name, array in arrays.items():
        limits = np.iinfo(np.int64 if name == "indptr" else np.int32)
        # `astype` would wrap a number that is too large, and the history name another item.
        if array.dtype.kind not in "iu" or (
            array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max
        ):
            what = f"{SEEN}: {name} must hold whole numbers up to {limits.max}: {array.dtype}"
            _refuse(what, _DAMAGED)
    seen = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int32)
    return {"seen": seen, "seen_weights": weights}


def _check_names(arrays: Mapping[str, NDArray[Any]]) -> None:
    if set(arrays) - {"weights"} != {"indptr", "indices"}:
        _refuse(f"{SEEN} must hold indptr and indices, found: {short(sorted(arrays))}", _DAMAGED)


def _check_config(config: dict[str, Any], what: str) -> None:
    """Refuse a config with missing, unknown or mistyped keys."""
    for key, kind in (_ADDED | _REQUIRED | _OPTIONAL).items():
        if key in _OPTIONAL and key not in config:
            continue
        if key not in config:
            _refuse(f"config of {what} lacks the key {key!r}", f"it needs {', '.join(_REQUIRED)}")
        if not isinstance(config[key], kind):
            message = f"config of {what}: {key!r} must be {kind.__name__}, got {short(config[key])}"
            raise DataError(message, hint="save the model again")
    unknown = sorted(set(config) - {*_ADDED, *_REQUIRED, *_OPTIONAL})
    if unknown:
        message = f"config of {what} has an unknown key: {short(unknown[0])}"
        raise DataError(message, hint=f"known are {', '.join([*_ADDED, *_REQUIRED, *_OPTIONAL])}")


def _check_folder(folder: ModelFolder, what: str) -> None:
    """Refuse arrays and ids that cannot belong to one model."""
    rows = {"user": len(folder.user_ids), "item": len(folder.item_ids)}
    for side, ids in (("user", folder.user_ids), ("item", folder.item_ids)):
        distinct = pc.count_distinct(ids_to_arrow(ids)).as_py()
        if distinct != len(ids):
            message = f"{what} has {len(ids):,} {side} ids, of which {distinct:,} are distinct"
            _refuse(message, "an id may occur only once")
    for name, array in folder.arrays.items():
        side = name.split("_")[0]
        if side in rows and (array.ndim == 0 or len(array) != rows[side]):
            shape = f"has shape {array.shape} for {rows[side]:,} {side} ids"
            _refuse(f"{what}: {name!r} {shape}", _MIXED)
        require_finite(array, f"{what}: {name!r}")
    widths = {n: folder.arrays[n].shape[1:] for n in _FACTORS if n in folder.arrays}
    if len(set(widths.values())) > 1:
        _refuse(f"{what}: factors of different width: {widths}", _MIXED)
    if folder.seen is not None:
        _check_seen(*folder.seen, folder.seen_weights, rows["user"], rows["item"], what)


def require_finite(array: NDArray[Any], what: str) -> None:
    """Refuse an array that holds anything but finite numbers."""
    if not np.isfinite(array).all():
        hint = "the fit diverged or the file is damaged; fit again"
        _refuse(f"{what} holds values that are not finite", hint)


def _check_seen(
    indptr: NDArray[Any], indices: NDArray[Any], weights: Any, n_users: int, n_items: int, what: str
) -> None:
    fits = (
        indptr.shape == (n_users + 1,)
        and indices.ndim == 1
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and bool((np.diff(indptr) >= 0).all())
        and (not indices.size or 0 <= indices.min() <= indices.max() < n_items)
        and _ascends(indptr, indices)
        and (weights is None or weights.shape == indices.shape)
        and (weights is None or bool(((weights > 0) & (weights < np.inf)).all()))
    )
    if not fits:
        _refuse(f"{what}: the histories do not fit {n_users:,} users and {n_items:,} items", _MIXED)


def _ascends(indptr: NDArray[Any], indices: NDArray[Any]) -> bool:
    """Tell whether the items of every history rise from one to the next."""
    rises = np.diff(indices) > 0
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rises.all())


def _refuse(message: str, hint: str, cause: Exception | None = None) -> NoReturn:
    raise DataError(message, hint=hint) from cause


def _to_json(config: dict[str, Any]) -> str:
    """Write settings as JSON; NumPy numbers count as numbers."""
    try:
        return json.dumps(config, indent=2, default=plain_number, allow_nan=False)
    except (TypeError, ValueError) as error:
        hint = "settings are finite numbers, text, lists and dicts"
        _refuse(f"cannot store this in {CONFIG}: {error}", hint, error)
