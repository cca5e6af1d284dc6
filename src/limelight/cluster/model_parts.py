"""A model that many ranks write: each leaves its rows, and one process puts them together.

The folder is, byte for byte, what ``model.save`` writes on one machine. Nobody holds all rows: they
go from file to file in stretches.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.files import atomic_folder
from limelight.cluster.ingest import shards
from limelight.store.arrays import Stretches, read_rows, save_arrays, save_stretches, shape_of
from limelight.store.model_folder import (
    CONFIG,
    FACTORS,
    ITEMS,
    SEEN,
    USERS,
    config_text,
    is_model_folder,
    require_finite,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32


def leave_rows(folder: str | os.PathLike[str], name: str, shard: int, rows: Float32) -> None:
    """Leave the rows that a shard has of an array such as ``user_factors``, whole or not at all."""
    save_arrays(_file(folder, name, shard), {name: rows.astype(np.float32, copy=False)})


def left_rows(folder: str | os.PathLike[str], name: str, n_shards: int) -> Stretches:
    """Put the rows that all ranks left one below the other, without reading them yet.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for shard in range(3):
    ...     leave_rows(folder, "user_factors", shard, np.ones((shard, 2), np.float32))
    >>> left_rows(folder, "user_factors", 3).shape
    (3, 2)
    """
    files = [_file(folder, name, shard) for shard in range(n_shards)]
    shapes = [shape_of(file, name) for file in files]

    def read() -> Iterator[NDArray[Any]]:
        for file in files:
            yield from read_rows(file, name)

    n_rows = sum(rows for rows, _ in shapes)
    return Stretches((n_rows, shapes[0][1]), np.dtype(np.float32), read)


def write_model(
    path: str | os.PathLike[str],
    config: dict[str, Any],
    arrays: Mapping[str, NDArray[Any] | Stretches],
    data: shards.ShardedData,
    *,
    history: bool = True,
) -> None:
    """Write a model folder, whole or not at all; one process does this, once all rows are left.

    Parameters
    ----------
    path
        The folder; one that holds a model is replaced, any other is left alone.
    config
        As :func:`limelight.models.folder.config_of` makes it.
    arrays
        What the fit learnt; long ones as :func:`left_rows` finds them.
    data
        What it learnt from; the shards of any rank, or of none.
    history
        Whether to keep the training histories.
    """
    text = config_text(config)
    with atomic_folder(path, replace_if=is_model_folder) as temporary:
        (temporary / CONFIG).write_text(text, encoding="utf-8")
        finite = {name: _finite(name, array) for name, array in arrays.items()}
        save_stretches(temporary / FACTORS, finite)
        shutil.copyfile(data.folder / shards.USERS, temporary / USERS)
        shutil.copyfile(data.folder / shards.ITEMS, temporary / ITEMS)
        if history:
            save_stretches(temporary / SEEN, _histories(data))


def _finite(name: str, array: NDArray[Any] | Stretches) -> Stretches:
    """Look at an array while it is written: the folder is not there before all of it is seen."""

    def read() -> Iterator[NDArray[Any]]:
        for stretch in array.read() if isinstance(array, Stretches) else [array]:
            require_finite(stretch, f"the model: {name!r}")
            yield stretch

    return Stretches(array.shape, array.dtype, read)


def _histories(data: shards.ShardedData) -> dict[str, Stretches]:
    folder, n_shards = data.folder, data.n_shards
    return {
        "indptr": Stretches(
            (data.n_users + 1,),
            np.dtype(np.int64),
            lambda: shards.stream_indptr(folder, n_shards),
        ),
        "indices": Stretches(
            (data.nnz,), np.dtype(np.int32), lambda: shards.stream_indices(folder, n_shards)
        ),
    }


def _file(folder: str | os.PathLike[str], name: str, shard: int) -> Path:
    return Path(folder) / f"{name}-{shard:05d}.safetensors"
