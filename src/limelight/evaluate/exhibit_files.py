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
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._atomic import atomic_folder
from limelight._errors import DataError
from limelight.evaluate.audit_input import Groups
from limelight.evaluate.exhibit import Examples, Exhibit, Point, Sight
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.id_files import read_ids, write_ids

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

FOLDER = "exhibit"
_SCHEMA = 1
_RECORD, _ARRAYS, _ITEMS, _USERS = (
    "exhibit.json",
    "arrays.safetensors",
    "items.parquet",
    "users.parquet",
)
_WORDS: dict[str, Any] = {
    "kind": str,
    "title": str,
    "k": int,
    "base": int | None,
    "chosen": int,
    "titles": list | None,
    "data": dict,
    "made": dict,
    "notes": list,
}
_OF_POINT: dict[str, Any] = {
    "method": str,
    "label": str,
    "figures": dict,
    "strength": float | int | None,
    "settings": dict,
    "on_front": bool,
}


def save_exhibit(run: str | os.PathLike[str], exhibit: Exhibit) -> None:
    """Write an exhibit into the folder of a run, whole or not at all.

    Parameters
    ----------
    run
        The folder of the run.
    exhibit
        What it has to show.
    """
    record = {"schema_version": _SCHEMA} | {name: getattr(exhibit, name) for name in _WORDS}
    record["points"] = [{name: getattr(p, name) for name in _OF_POINT} for p in exhibit.points]
    arrays: dict[str, NDArray[Any]] = {}
    for number, point in enumerate(exhibit.points):
        arrays |= {f"{number}/{name}": a for name, a in sight_arrays(point.sight).items()}
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
    """Read what a run has to show.

    Parameters
    ----------
    run
        A folder that ``limelight demo``, ``frontier`` or ``reproduce`` wrote.
    """
    folder = Path(run) / FOLDER
    if not (folder / _RECORD).is_file():
        message = f"nothing to show in {str(run)!r}"
        made = "`limelight demo`, `limelight frontier` or `limelight reproduce`"
        raise DataError(message, hint=f"name a folder that {made} wrote with -o")
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        _check_version(record)
        return _rebuild(folder, record, load_arrays(folder / _ARRAYS))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        message = f"cannot read {str(folder)!r}: {error}"
        raise DataError(message, hint="the folder is damaged; run the command again") from error


def _check_version(record: Mapping[str, Any]) -> None:
    version = record["schema_version"]
    if version > _SCHEMA:
        message = f"the run was written by a newer limelight: version {version} of an exhibit"
        raise DataError(message, hint="upgrade limelight")


def _rebuild(folder: Path, record: dict[str, Any], arrays: Arrays) -> Exhibit:
    item_ids = read_ids(folder / _ITEMS, "item_id")
    points = tuple(
        Point(**_typed(given, _OF_POINT), sight=_sight_of(arrays, f"{number}/"))
        for number, given in enumerate(record["points"])
    )
    words = _typed(record, _WORDS)
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
    _check_words(exhibit)
    _check_arrays(exhibit)
    _check(exhibit)
    return exhibit


def _typed(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Take the named values, unless one is of another kind than it should be."""
    for name, kind in kinds.items():
        if not isinstance(given[name], kind):
            message = f"{name!r} cannot be {given[name]!r}"
            raise TypeError(message)
    return {name: given[name] for name in kinds}


def sight_arrays(sight: Sight) -> dict[str, NDArray[Any]]:
    """Name the arrays of a sight."""
    arrays: dict[str, NDArray[Any]] = {}
    if sight.exposure is not None:
        arrays["exposure"] = sight.exposure
    if sight.lists is not None:
        arrays["lists"] = sight.lists
    trace = {f"trace/{name}": np.asarray(values, float) for name, values in sight.trace.items()}
    return arrays | trace


def _sight_of(arrays: Arrays, prefix: str = "") -> Sight:
    trace = f"{prefix}trace/"
    columns = {
        name.removeprefix(trace): values.tolist()
        for name, values in arrays.items()
        if name.startswith(trace)
    }
    return Sight(arrays.get(f"{prefix}exposure"), arrays.get(f"{prefix}lists"), columns)


def load_sight(path: str | os.PathLike[str]) -> Sight:
    """Read a sight that ``save_arrays(path, sight_arrays(sight))`` wrote."""
    return _sight_of(load_arrays(path))


def _groups_of(record: Mapping[str, Any], arrays: Arrays) -> Groups | None:
    if "groups" not in record:
        return None
    items, groups, weights = (arrays[f"member_{name}"] for name in ("items", "groups", "weights"))
    return Groups(items, groups, weights, record["groups"], n_ignored=0)


def _examples_of(folder: Path, arrays: Arrays) -> Examples | None:
    if not (folder / _USERS).is_file():
        return None
    history, liked = (_rows(name, arrays) for name in ("history", "liked"))
    return Examples(read_ids(folder / _USERS, "user_id"), history, liked)


def _ragged(name: str, rows: Sequence[NDArray[np.int32]]) -> dict[str, NDArray[Any]]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    items = np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)
    return {f"{name}_lengths": lengths, f"{name}_items": items}


def _rows(name: str, arrays: Arrays) -> tuple[NDArray[np.int32], ...]:
    ends = np.cumsum(arrays[f"{name}_lengths"])
    return tuple(np.split(arrays[f"{name}_items"], ends[:-1])) if len(ends) else ()


def _check_words(exhibit: Exhibit) -> None:
    """Refuse what cannot be shown as text or as a number."""
    texts = [*exhibit.data.values(), *exhibit.made.values(), *exhibit.notes]
    figures = [value for point in exhibit.points for value in point.figures.values()]
    strengths = [point.strength for point in exhibit.points if point.strength is not None]
    fits = (
        exhibit.k > 0
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(value, float | int) for value in figures)
        and all(math.isfinite(strength) for strength in strengths)
        and all(len({*map(len, point.sight.trace.values())}) <= 1 for point in exhibit.points)
    )
    if not fits:
        message = f"the words of {_RECORD} cannot be shown"
        raise ValueError(message)


def _check_arrays(exhibit: Exhibit) -> None:
    """Refuse arrays of the wrong kind: item numbers from -1 up, amounts from 0 up."""
    groups, examples = exhibit.groups, exhibit.examples
    lists = [point.sight.lists for point in exhibit.points if point.sight.lists is not None]
    amounts = [point.sight.exposure for point in exhibit.points]
    known: list[NDArray[Any]] = []
    if examples is not None:
        known += [*examples.history, *examples.liked]
    if groups is not None:
        known += [groups.items, groups.groups]
        amounts.append(groups.weights)
    fits = (
        all(one.ndim == 2 and one.dtype.kind == "i" and (one >= -1).all() for one in lists)
        and all(one.ndim == 1 and one.dtype.kind in "iu" and (one >= 0).all() for one in known)
        and all(one is None or _are_amounts(one) for one in (*amounts, exhibit.interactions))
    )
    if not fits:
        message = f"the arrays of {_ARRAYS} cannot be shown"
        raise ValueError(message)


def _are_amounts(array: NDArray[Any]) -> bool:
    """Tell numbers from 0 up whose sum is one, too."""
    plain = array.ndim == 1 and array.dtype.kind in "iuf"
    return plain and bool((array >= 0).all()) and math.isfinite(array.sum(dtype=np.float64))


def _check(exhibit: Exhibit) -> None:
    """Refuse arrays that do not belong together, before anything is drawn of them."""
    n_items, n_points = len(exhibit.item_ids), len(exhibit.points)
    shown, examples, groups = [p.sight for p in exhibit.points], exhibit.examples, exhibit.groups
    lists = [sight.lists for sight in shown if sight.lists is not None]
    given = (*(sight.exposure for sight in shown), exhibit.interactions, exhibit.titles)
    per_item = {len(array) for array in given if array is not None}
    numbers: list[NDArray[Any]] = list(lists)
    if examples is not None:
        numbers += [*examples.history, *examples.liked]
    if groups is not None:
        numbers.append(groups.items)
    fits = (
        n_points > 0
        and 0 <= exhibit.chosen < n_points
        and 0 <= (exhibit.base or 0) < n_points
        and per_item <= {n_items}
        and all(array.size == 0 or array.max() < n_items for array in numbers)
        and all(examples is not None and len(one) == len(examples.user_ids) for one in lists)
        and (groups is None or _are_members(groups))
    )
    if not fits:
        message = "its arrays do not belong together"
        raise ValueError(message)


def _are_members(groups: Groups) -> bool:
    lengths = {len(array) for array in (groups.items, groups.groups, groups.weights)}
    known = groups.groups.size == 0 or int(groups.groups.max()) < len(groups.group_ids)
    return len(lengths) == 1 and known


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it does: NumPy numbers, mappings, and the rest."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, str | int) else str(value)
