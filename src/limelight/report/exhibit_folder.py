"""An exhibit on disk: RUN/exhibit, beside whatever else a run has written.

exhibit.json          points with their figures and settings, groups, titles, words
arrays.safetensors    exposure and lists of every point, examples, memberships
items.parquet         item_id by number
users.parquet         user_id of the examples
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight._base.files import atomic_folder
from limelight._base.text import first_words, short
from limelight.data.groups import Groups
from limelight.report.exhibit import ExampleUsers, Exhibit, ExhibitPoint, ShownLists
from limelight.store.arrays import load_arrays, read_ids, save_arrays, write_ids
from limelight.store.json import read_json

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

FOLDER = "exhibit"
_SCHEMA = 1
_RECORD, _ARRAYS = "exhibit.json", "arrays.safetensors"
_ITEMS, _USERS = "items.parquet", "users.parquet"
_WORDS = ("kind", "title", "k", "base", "chosen", "titles", "data", "made", "notes")
_OF_POINT = ("method", "label", "figures", "strength", "settings", "on_front")


def save_exhibit(run: str | os.PathLike[str], exhibit: Exhibit) -> None:
    """Write an exhibit into the folder of a run, whole or not at all."""
    record = {"schema_version": _SCHEMA} | {name: getattr(exhibit, name) for name in _WORDS}
    record["points"] = [{name: getattr(p, name) for name in _OF_POINT} for p in exhibit.points]
    arrays: dict[str, NDArray[Any]] = {}
    for number, point in enumerate(exhibit.points):
        arrays |= {f"{number}/{name}": a for name, a in shown_arrays(point.shown).items()}
    if exhibit.interactions is not None:
        arrays["interactions"] = exhibit.interactions
    if exhibit.groups is not None:
        record["groups"] = [_plain(group) for group in exhibit.groups.group_ids]
        for name in ("items", "groups", "weights"):
            arrays[f"member_{name}"] = getattr(exhibit.groups, name)
    folder = Path(run) / FOLDER
    with atomic_folder(folder, replace_if=lambda old: (old / _RECORD).is_file()) as temporary:
        if exhibit.examples is not None:
            write_ids(temporary / _USERS, "user_id", exhibit.examples.user_ids)
            for name in ("history", "liked"):
                arrays |= _ragged(name, getattr(exhibit.examples, name))
        text = json.dumps(record, default=_plain, ensure_ascii=False)
        (temporary / _RECORD).write_text(text + "\n", encoding="utf-8")
        write_ids(temporary / _ITEMS, "item_id", exhibit.item_ids)
        save_arrays(temporary / _ARRAYS, arrays)


def load_exhibit(run: str | os.PathLike[str]) -> Exhibit:
    """Read the exhibit of a folder that ``limelight demo``, ``frontier`` or ``reproduce`` wrote."""
    folder = Path(run) / FOLDER
    if not (folder / _RECORD).is_file():
        message = f"nothing to show in {str(run)!r}"
        made = "`limelight demo`, `limelight frontier` or `limelight reproduce`"
        raise DataError(message, hint=f"name a folder that {made} wrote with -o")
    try:
        record = read_json(folder / _RECORD)
        _check_version(record)
        return _rebuild(folder, record, load_arrays(folder / _ARRAYS))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        message = f"cannot read {str(folder)!r}: {first_words(error)}"
        raise DataError(message, hint="the folder is damaged; run the command again") from error


def _check_version(record: Mapping[str, Any]) -> None:
    version = record["schema_version"]
    if version > _SCHEMA:
        message = (
            f"the run was written by a newer limelight: version {short(version)} of an exhibit"
        )
        raise DataError(message, hint="upgrade limelight")


def _rebuild(folder: Path, record: dict[str, Any], arrays: Arrays) -> Exhibit:
    item_ids = read_ids(folder / _ITEMS, "item_id")
    points = tuple(
        ExhibitPoint(
            **{name: given[name] for name in _OF_POINT}, shown=_shown_of(arrays, f"{number}/")
        )
        for number, given in enumerate(record["points"])
    )
    _check_words(record)
    words = {name: record[name] for name in _WORDS}
    words["notes"] = tuple(words["notes"])
    words["titles"] = None if words["titles"] is None else tuple(map(str, words["titles"]))
    exhibit = Exhibit(
        **words,
        points=points,
        item_ids=item_ids,
        interactions=arrays.get("interactions"),
        groups=_groups_of(record, arrays),
        examples=_examples_of(folder, arrays),
    )
    _check(exhibit)
    return exhibit


def shown_arrays(shown: ShownLists) -> dict[str, NDArray[Any]]:
    """Name the arrays of shown lists."""
    arrays: dict[str, NDArray[Any]] = {}
    if shown.exposure is not None:
        arrays["exposure"] = shown.exposure
    if shown.lists is not None:
        arrays["lists"] = shown.lists
    trace = {f"trace/{name}": np.asarray(values, float) for name, values in shown.trace.items()}
    return arrays | trace


def _shown_of(arrays: Arrays, prefix: str = "") -> ShownLists:
    trace = f"{prefix}trace/"
    columns = {
        name.removeprefix(trace): values.tolist()
        for name, values in arrays.items()
        if name.startswith(trace)
    }
    return ShownLists(arrays.get(f"{prefix}exposure"), arrays.get(f"{prefix}lists"), columns)


def load_shown_lists(path: str | os.PathLike[str]) -> ShownLists:
    """Read what ``save_arrays(path, shown_arrays(shown))`` wrote."""
    return _shown_of(load_arrays(path))


def _groups_of(record: Mapping[str, Any], arrays: Arrays) -> Groups | None:
    if "groups" not in record:
        return None
    items, groups, weights = (arrays[f"member_{name}"] for name in ("items", "groups", "weights"))
    return Groups(items, groups, weights, record["groups"], n_ignored=0)


def _examples_of(folder: Path, arrays: Arrays) -> ExampleUsers | None:
    if not (folder / _USERS).is_file():
        return None
    history, liked = (_rows(name, arrays) for name in ("history", "liked"))
    return ExampleUsers(read_ids(folder / _USERS, "user_id"), history, liked)


def _ragged(name: str, rows: Sequence[NDArray[np.int32]]) -> dict[str, NDArray[Any]]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    items = np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)
    return {f"{name}_lengths": lengths, f"{name}_items": items}


def _rows(name: str, arrays: Arrays) -> tuple[NDArray[np.int32], ...]:
    lengths, items = arrays[f"{name}_lengths"], arrays[f"{name}_items"]
    if lengths.dtype.kind not in "iu" or (lengths < 0).any() or lengths.sum() != len(items):
        message = f"{name} is not as long as it says"
        raise ValueError(message)
    return tuple(np.split(items, np.cumsum(lengths)[:-1])) if len(lengths) else ()


def _check(exhibit: Exhibit) -> None:
    """Refuse arrays that do not belong together, before anything is drawn of them."""
    n_items, n_points = len(exhibit.item_ids), len(exhibit.points)
    shown, examples, groups = [p.shown for p in exhibit.points], exhibit.examples, exhibit.groups
    lists = [one.lists for one in shown if one.lists is not None]
    given = (*(one.exposure for one in shown), exhibit.interactions)
    amounts: list[NDArray[Any]] = [array for array in given if array is not None]
    per_item = {len(named) for named in (*amounts, exhibit.titles) if named is not None}
    numbers: list[NDArray[Any]] = []
    n_examples = set()
    if examples is not None:
        numbers += [*examples.history, *examples.liked]
        n_examples = {len(rows) for rows in (examples.history, examples.liked) if rows}
    if groups is not None:
        numbers.append(groups.items)
    fits = (
        n_points > 0
        and 0 <= exhibit.chosen < n_points
        and 0 <= (exhibit.base or 0) < n_points
        and exhibit.k > 0
        and per_item <= {n_items}
        and (examples is None or n_examples <= {len(examples.user_ids)})
        and all(array.ndim == 1 and _are_finite(array, least=0) for array in amounts)
        and all(_are_numbers(array, n_items, least=-1) for array in lists)
        and all(array.ndim == 1 and _are_numbers(array, n_items) for array in numbers)
        and all(one.ndim == 2 for one in lists)
        and all(map(_is_trace, (one.trace for one in shown)))
        and all(examples is not None and len(one) == len(examples.user_ids) for one in lists)
        and (groups is None or _are_members(groups))
    )
    if not fits:
        message = "its arrays do not belong together"
        raise ValueError(message)


def _are_members(groups: Groups) -> bool:
    shapes = {array.shape for array in (groups.items, groups.groups, groups.weights)}
    known = _are_numbers(groups.groups, len(groups.group_ids))
    return len(shapes) == 1 and known and _are_finite(groups.weights, least=0)


def _are_numbers(array: NDArray[Any], bound: int, *, least: int = 0) -> bool:
    """Tell whether an array holds numbers of items or groups; -1 fills lists up."""
    if array.dtype.kind not in "iu":
        return array.size == 0
    return array.size == 0 or bool(array.min() >= least and array.max() < bound)


def _are_finite(array: NDArray[Any], *, least: float) -> bool:
    """Tell whether numbers, and their sum, are finite and not too small."""
    with np.errstate(over="ignore"):
        return bool(np.isfinite(array.sum()) and (array >= least).all())


def _is_trace(trace: Mapping[str, Sequence[float]]) -> bool:
    """Tell whether columns of a trace are numbers, of equal length."""
    shapes = {np.shape(column) for column in trace.values()}
    return len(shapes | {(0,)}) <= 2 and all(len(shape) == 1 for shape in shapes)


def _check_words(record: Mapping[str, Any]) -> None:
    """Refuse words and figures of other kinds than those that are written."""
    number, words = (int, float, NoneType), (str,)
    for name, kinds in (("kind", words), ("title", words), ("k", int), ("chosen", int)):
        _require(name, record[name], kinds)
    _require("base", record["base"], (int, NoneType))
    for name in ("data", "made"):
        _require(name, record[name], dict)
        for key, value in dict(record[name]).items():
            _require(f"{name} {key}", value, words)
    for note in record["notes"]:
        _require("notes", note, words)
    for point in record["points"]:
        for name in ("method", "label"):
            _require(name, point[name], words)
        _require("settings", point["settings"], dict)
        for name, value in (*dict(point["figures"]).items(), ("strength", point["strength"])):
            _require(name, value, number)
            float(value or 0)  # an integer of hundreds of digits is no figure
        if not math.isfinite(point["strength"] or 0):
            message = f"strength is {point['strength']}"
            raise ValueError(message)


def _require(name: str, value: object, kinds: type | tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        message = f"{short(name)} is {short(value)}"
        raise TypeError(message)


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it does: NumPy numbers, mappings, and the rest."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, str | int) else str(value)
