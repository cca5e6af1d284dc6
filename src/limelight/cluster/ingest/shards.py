"""Interactions in shards on a disk that all ranks see.

shards.json              how much there is, of what it was made, the fingerprint; written last
bounds.safetensors       where users and items are cut, and how many pairs each item has
shard-00000.safetensors  indptr and indices of the users of a shard; one file for each
users.parquet            user_id by row number, as in a model folder
items.parquet            item_id by column number

The first of these is written last, so where it exists all others do, and any rank can read them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight._base.files import atomic_file
from limelight._base.machine import package_version
from limelight.cluster.ingest.routing import shard_bounds
from limelight.cluster.partition import Cut
from limelight.data.interactions import fingerprint
from limelight.store.arrays import load_arrays, read_rows, save_arrays, write_ids
from limelight.store.json import read_json

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from limelight._base.arrays import Int32, Int64
    from limelight.cluster.ingest.routing import Shard
    from limelight.data.interactions import Interactions

MANIFEST, BOUNDS, USERS, ITEMS = (
    "shards.json",
    "bounds.safetensors",
    "users.parquet",
    "items.parquet",
)
_SHARD = "shard-{:05d}.safetensors"
_AGAIN = "delete the folder, and the data are read again"


@dataclass(frozen=True, eq=False)
class ShardedData:
    """What a rank has of the interactions, and what it knows of the rest.

    Made by :func:`limelight.cluster.ingest.prepare.prepare` or :func:`load_shards`.
    """

    folder: Path
    """Where all of it is kept."""
    numbers: range
    """Which shards this rank has."""
    shards: list[Shard]
    """Their rows: `indptr` (int64, from 0) and `indices` (int32, numbers of all items)."""
    cut: Cut
    """Where users and items are cut into all shards."""
    duplicates: int
    """How many repeated pairs were merged."""
    fingerprint: str
    """Of all interactions, as :meth:`limelight.data.Interactions.fingerprint` has it."""


def has_shards(folder: str | os.PathLike[str]) -> bool:
    """Tell whether a folder holds all the shards of some data.

    Examples
    --------
    >>> has_shards("no/such/folder")
    False
    """
    return (Path(folder) / MANIFEST).is_file()


def load_shards(folder: str | os.PathLike[str], numbers: range) -> ShardedData:
    """Load the shards with some numbers, such as ``deal(n_shards, size)[rank]``."""
    root = Path(folder)
    manifest, bounds = _manifest(root), load_arrays(root / BOUNDS)
    return ShardedData(
        folder=root,
        numbers=numbers,
        shards=[_load_shard(root, number, bounds["user_bounds"]) for number in numbers],
        cut=Cut(**bounds),
        duplicates=manifest["duplicates"],
        fingerprint=manifest["fingerprint"],
    )


def save_shard(folder: Path, number: int, shard: Shard) -> None:
    """Write the rows of a shard, whole or not at all."""
    indptr, indices = shard
    save_arrays(folder / _SHARD.format(number), {"indptr": indptr, "indices": indices})


def save_rest(
    folder: Path,
    *,
    user_bounds: Int64,
    item_counts: Int64,
    user_ids: Any,
    item_ids: Any,
    duplicates: int,
    about: Mapping[str, Any],
) -> None:
    """Write what belongs to no shard, once all shards are written; the manifest comes last.

    Ids are NumPy or Arrow arrays; ``about`` says what the shards were made of.
    """
    n_shards = len(user_bounds) - 1
    bounds = {
        "user_bounds": user_bounds,
        "item_bounds": shard_bounds(item_counts, n_shards),
        "item_counts": item_counts,
    }
    save_arrays(folder / BOUNDS, bounds)
    write_ids(folder / USERS, "user_id", user_ids)
    write_ids(folder / ITEMS, "item_id", item_ids)
    indptr, indices = stream_indptr(folder, n_shards), stream_indices(folder, n_shards)
    manifest = {
        "limelight": package_version(),
        "about": about,
        "duplicates": duplicates,
        "fingerprint": fingerprint(indptr, indices, user_ids, item_ids),
    }
    with atomic_file(folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def save_all(folder: Path, data: Interactions, n_shards: int, about: Mapping[str, Any]) -> None:
    """Cut interactions that lie in memory, and write all shards."""
    bounds = shard_bounds(np.diff(data.indptr), n_shards)
    for number, (start, end) in enumerate(pairwise(bounds)):
        indptr = data.indptr[start : end + 1]
        rows = indptr - indptr[0], data.indices[indptr[0] : indptr[-1]]
        save_shard(folder, number, rows)
    save_rest(
        folder,
        user_bounds=bounds,
        item_counts=np.bincount(data.indices, minlength=data.n_items),
        user_ids=data.user_ids,
        item_ids=data.item_ids,
        duplicates=data.duplicates,
        about=about,
    )


def stream_indptr(folder: Path, n_shards: int) -> Iterator[Int64]:
    """Read the row pointers of all users, in stretches."""
    yield np.zeros(1, np.int64)
    before = 0
    for number in range(n_shards):
        last = 0
        for stretch in read_rows(folder / _SHARD.format(number), "indptr", first=1):
            yield stretch + before
            last = int(stretch[-1])
        before += last


def stream_indices(folder: Path, n_shards: int) -> Iterator[Int32]:
    """Read the items of all users, in stretches."""
    for number in range(n_shards):
        yield from read_rows(folder / _SHARD.format(number), "indices")


def _manifest(root: Path) -> dict[str, Any]:
    try:
        manifest = read_json(root / MANIFEST)
        return {
            "about": manifest["about"],
            "duplicates": int(manifest["duplicates"]),
            "fingerprint": str(manifest["fingerprint"]),
        }
    except FileNotFoundError as error:
        message = f"no prepared shards in {str(root)!r}"
        raise DataError(message, hint="is it on a disk that all machines see?") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"cannot read {MANIFEST} of {str(root)!r}: {error}"
        raise DataError(message, hint=_AGAIN) from error


def _load_shard(root: Path, number: int, user_bounds: Int64) -> Shard:
    arrays = load_arrays(root / _SHARD.format(number))
    indptr, indices = arrays["indptr"], arrays["indices"]
    n_users = user_bounds[number + 1] - user_bounds[number]
    if len(indptr) != n_users + 1 or indptr[-1] != len(indices):
        message = f"shard {number} of {str(root)!r} does not have the {n_users:,} users it should"
        raise DataError(message, hint=_AGAIN)
    return indptr, indices
