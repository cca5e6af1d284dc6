"""From files to shards: all ranks read, each its part, and each ends up with its own users.

Files, and row groups of Parquet files, are dealt to ranks in runs of about equal size. Every rank
reads its pieces once, and learns which ids there are.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.errors import ConfigError
from limelight.cluster.collectives import barrier, deal, raise_together
from limelight.cluster.ingest.numbering import collect_ids, number_ids
from limelight.cluster.ingest.routing import balanced_bounds, drop_rare, rebalance, route_pairs
from limelight.cluster.ingest.shards import has_shards, load_shards, save_all, save_rest, save_shard
from limelight.data.columns import convert, no_rows, require_columns
from limelight.data.files import files_of
from limelight.data.interactions import Interactions
from limelight.data.read import ReadOptions
from limelight.data.read_columns import columns_of, is_rated, none_rated
from limelight.data.sources import piece_of, piece_sizes
from limelight.data.split_folder import TABLES, read_split

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from limelight._base.arrays import Int32, Int64
    from limelight.cluster.collectives import Communicator
    from limelight.cluster.ingest.shards import ShardedData
    from limelight.data.columns import Column
    from limelight.data.ids import IdColumn
    from limelight.data.read_columns import Names
    from limelight.data.sources import Part


def my_pieces(parts: Sequence[Part], columns: Sequence[Column], comm: Communicator) -> list[Part]:
    """Look at all files together, and return the pieces that this rank is to read.

    They are a run of all pieces, in the order in which one machine would read them: those of the
    next rank come behind them. Every file must have the columns.
    """
    pieces = comm.all_gather(_inspect(parts, columns, comm))
    bounds = balanced_bounds(pieces[:, 2], comm.size)
    first, end = bounds[comm.rank], bounds[comm.rank + 1]
    return [_joined(parts, pieces, number, first, end) for number in _files(pieces[first:end])]


def _inspect(parts: Sequence[Part], columns: Sequence[Column], comm: Communicator) -> Int64:
    """List the pieces of some files: the number of the file, that of the piece, and its size."""
    ends = [len(parts) * rank // comm.size for rank in range(comm.size + 1)]
    found = [np.empty((0, 3), np.int64)]
    with raise_together(comm):
        for number in range(ends[comm.rank], ends[comm.rank + 1]):
            require_columns(parts[number], columns)
            sizes = np.array(piece_sizes(parts[number]), np.int64)
            found.append(np.stack([np.full_like(sizes, number), np.arange(len(sizes)), sizes], 1))
    return np.concatenate(found)


def _files(pieces: Int64) -> list[int]:
    return [int(number) for number in np.unique(pieces[:, 0])]


def _joined(parts: Sequence[Part], pieces: Int64, number: int, first: int, end: int) -> Part:
    """Take those pieces of a file that stand in a stretch of all pieces."""
    start, stop = np.searchsorted(pieces[:, 0], [number, number + 1])
    first, end = max(first, start), min(end, stop)
    rows_before = int(pieces[start:first, 2].sum())
    return piece_of(parts[number], range(int(first - start), int(end - start)), rows_before)


class CodedPairs(NamedTuple):
    """The pairs that a rank has read, as codes: numbers that it gave to ids when it met them."""

    user: IdColumn
    item: IdColumn
    pairs: list[tuple[Int32, Int32]]
    """Codes of users and items, batch by batch, without the rows that are rated too low."""


def read_pairs(
    parts: Sequence[Part], names: Names, options: ReadOptions, comm: Communicator
) -> CodedPairs:
    """Read this rank's pieces of all files; what is wrong with any of them is told to all ranks."""
    user, item, *others = columns_of(names, options)
    columns = [user, item, *others]
    mine = my_pieces(parts, columns, comm)
    read, highest, pairs = 0, 0.0, []
    with raise_together(comm):
        # Types must be those of the first rows, which one rank alone would meet. Their ids are
        # known to all ranks then, which does no harm.
        next(convert(parts, columns), None)
        for users, items, *values in convert(mine, columns):
            read += len(users)
            if names.rating is not None:
                highest = max(highest, float(np.nanmax(values[-1], initial=0.0)))
                keep = is_rated(values[-1], options.min_rating)
                users, items = users[keep], items[keep]  # noqa: PLW2901
            pairs.append((users, items))
    kept = sum(len(users) for users, _ in pairs)
    totals = comm.all_gather(np.array([[read, kept, highest]]))
    if not totals[:, 0].any():
        raise no_rows(parts)
    if not totals[:, 1].any():
        raise none_rated(totals[:, 2].max())
    return CodedPairs(user, item, pairs)


def prepare(
    source: str | os.PathLike[str] | Interactions,
    folder: str | os.PathLike[str],
    comm: Communicator,
    **reading: Any,
) -> ShardedData:
    """Cut interactions into shards, keep them in a folder, and return those of this rank.

    A folder that has shards already is taken as it is, and then this rank needs no other. The
    caller makes sure that they are of the same source: a fit keeps them in a folder of its own,
    whose manifest it compares first (:mod:`limelight.cluster.fit`).

    Parameters
    ----------
    source
        A file, a folder of parts or a split folder, of which the training part is taken, on a disk
        that all ranks see; or interactions.
    folder
        Where to keep the shards, on a disk that all ranks see.
    comm
        What this rank reaches the others by.
    **reading
        As for :func:`limelight.read`.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> from limelight.cluster.collectives import run_locally
    >>> data, folder = ll.marketplace(300, 100, 4000).interactions, tempfile.mkdtemp()
    >>> ranks = run_locally(lambda comm: prepare(data, folder, comm), 2, 4)
    >>> [rank.numbers for rank in ranks], ranks[0].fingerprint == data.fingerprint()
    ([range(0, 2), range(2, 4)], True)
    """
    _refuse_weights(source, reading)
    root = Path(folder)
    mine = deal(comm.n_shards, comm.size)[comm.rank]
    if has_shards(root):
        return load_shards(root, mine)
    barrier(comm)  # nobody makes shards before all have seen that there are none
    about = about_source(source, comm.n_shards, **reading) if comm.rank == 0 else {}
    if isinstance(source, Interactions) or _is_split(source):
        with raise_together(comm):
            if comm.rank == 0:
                save_all(root, _in_memory(source, reading), comm.n_shards, about)
    else:
        _read(source, ReadOptions(**reading), root, comm, about)
    return load_shards(root, mine)


def about_source(
    source: str | os.PathLike[str] | Interactions, n_shards: int, **reading: Any
) -> dict[str, Any]:
    """Say what shards are made of: files by their names, sizes and times, and how they are read.

    Examples
    --------
    >>> about_source("no/such/file", 4, rating="stars")
    {'shards': 4, 'files': '...', 'reading': {'rating': 'stars'}}
    """
    _refuse_weights(source, reading)
    if isinstance(source, Interactions):
        return {"shards": n_shards, "data": source.fingerprint()}
    digest = hashlib.blake2b(digest_size=8)
    path = Path(source).expanduser()
    for file in files_of(path) if path.exists() else []:
        stat = file.stat()
        digest.update(json.dumps([file.name, stat.st_size, stat.st_mtime_ns]).encode())
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in reading.items()}
    return {"shards": n_shards, "files": digest.hexdigest(), "reading": plain}


def _refuse_weights(
    source: str | os.PathLike[str] | Interactions, reading: Mapping[str, Any]
) -> None:
    """Refuse weighted data, because shards have no place for weights."""
    given = [name for name in ("weight", "half_life") if reading.get(name) is not None]
    if given or (isinstance(source, Interactions) and source.weights is not None):
        message = "a cluster fits models to interactions without weights only"
        raise ConfigError(message, hint="fit on one machine, or read without weight and half_life")


def _is_split(source: str | os.PathLike[str]) -> bool:
    return (Path(source).expanduser() / TABLES[0]).is_file()


def _in_memory(
    source: str | os.PathLike[str] | Interactions, reading: Mapping[str, Any]
) -> Interactions:
    """Take interactions, or the training part of a split, which was made by one machine."""
    if reading:
        message = f"what is read already, or split, does not take: {next(iter(reading))}"
        raise ConfigError(message, hint="give it to `limelight.read` or `limelight data split`")
    found = source if isinstance(source, Interactions) else read_split(source)[0]
    _refuse_weights(found, {})
    return found


def _read(
    source: str | os.PathLike[str],
    options: ReadOptions,
    root: Path,
    comm: Communicator,
    about: Mapping[str, Any],
) -> None:
    """Read a table together and write its shards."""
    with raise_together(comm):
        _, _, parts, names = options.open(source)
    user, item, pairs = read_pairs(parts, names, options, comm)
    users, items = number_ids(user, comm), number_ids(item, comm)
    del user, item
    rows, duplicates = route_pairs(pairs, users, items, comm)
    kept = drop_rare(rows, items.n_ids, options, comm)
    del rows
    shards, user_bounds = rebalance(kept.shards, comm)
    with raise_together(comm):
        mine = deal(comm.n_shards, comm.size)[comm.rank]
        for number, shard in zip(mine, shards, strict=True):
            save_shard(root, number, shard)
    kept_users = comm.all_gather(kept.users)
    user_ids, item_ids = (collect_ids(side.stretch, comm) for side in (users, items))
    with raise_together(comm):
        if comm.rank == 0:
            save_rest(
                root,
                user_bounds=user_bounds,
                item_counts=kept.item_counts,
                user_ids=user_ids.filter(pa.array(kept_users)),
                item_ids=item_ids.filter(pa.array(kept.items)),
                duplicates=duplicates,
                about=about,
            )
