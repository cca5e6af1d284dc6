"""From files to shards: all ranks read, each its part, and each ends up with its own users."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from limelight._errors import ConfigError
from limelight.data.interactions import Interactions
from limelight.data.read import ReadOptions
from limelight.data.sources import files_of, open_parts
from limelight.data.split_files import TABLES, read_split
from limelight.scale.filtering import drop
from limelight.scale.numbering import collect_ids, number_ids
from limelight.scale.routing import recut, route
from limelight.scale.shards import has_shards, load_shards, save_all, save_rest, save_shard
from limelight.scale.survey import survey
from limelight.scale.talk import together, wait
from limelight.solve.exchange import deal

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from limelight.scale.shards import ShardedData
    from limelight.solve.exchange import Exchange


def prepare(
    source: str | os.PathLike[str] | Interactions,
    folder: str | os.PathLike[str],
    exchange: Exchange,
    **reading: Any,
) -> ShardedData:
    """Cut interactions into shards, keep them in a folder, and return those of this rank.

    A folder that has shards already is taken as it is, and then this rank needs no other. The
    caller makes sure that they are of the same source: a fit keeps them in a folder of its own,
    whose manifest it compares first (:mod:`limelight.scale.fit`).

    Parameters
    ----------
    source
        A file, a folder of parts or a split folder, of which the training part is taken, on a disk
        that all ranks see; or interactions.
    folder
        Where to keep the shards, on a disk that all ranks see.
    exchange
        The door to the others.
    **reading
        As for :func:`limelight.read`.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> from limelight.solve.exchange import run_locally
    >>> data, folder = ll.marketplace(300, 100, 4000).interactions, tempfile.mkdtemp()
    >>> ranks = run_locally(lambda exchange: prepare(data, folder, exchange), 2, 4)
    >>> [len(rank.users) for rank in ranks], ranks[0].fingerprint == data.fingerprint()
    ([152, 148], True)
    """
    root = Path(folder)
    mine = deal(exchange.n_shards, exchange.size)[exchange.rank]
    if has_shards(root):
        return load_shards(root, mine)
    wait(exchange)  # nobody makes shards before all have seen that there are none
    about = about_source(source, exchange.n_shards, **reading) if exchange.rank == 0 else {}
    if isinstance(source, Interactions) or _is_split(source):
        with together(exchange):
            if exchange.rank == 0:
                save_all(root, _in_memory(source, reading), exchange.n_shards, about)
    else:
        _read(source, ReadOptions(**reading), root, exchange, about)
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
    if isinstance(source, Interactions):
        return {"shards": n_shards, "data": source.fingerprint()}
    digest = hashlib.blake2b(digest_size=8)
    path = Path(source).expanduser()
    for file in files_of(path) if path.exists() else []:
        stat = file.stat()
        digest.update(json.dumps([file.name, stat.st_size, stat.st_mtime_ns]).encode())
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in reading.items()}
    return {"shards": n_shards, "files": digest.hexdigest(), "reading": plain}


def _is_split(source: str | os.PathLike[str]) -> bool:
    return (Path(source).expanduser() / TABLES[0]).is_file()


def _in_memory(
    source: str | os.PathLike[str] | Interactions, reading: Mapping[str, Any]
) -> Interactions:
    """Take interactions, or the training part of a split, which was made by one machine."""
    if reading:
        message = f"what is read already, or split, does not take: {next(iter(reading))}"
        raise ConfigError(message, hint="give it to `limelight.read` or `limelight data split`")
    return source if isinstance(source, Interactions) else read_split(source).train


def _read(
    source: str | os.PathLike[str],
    options: ReadOptions,
    root: Path,
    exchange: Exchange,
    about: Mapping[str, Any],
) -> None:
    """Read a table together and write its shards."""
    with together(exchange):
        options.check()
        parts = open_parts(source)
        names = options.names(parts[0])
    user, item, pairs = survey(parts, names, options.min_rating, exchange)
    users, items = number_ids(user, exchange), number_ids(item, exchange)
    del user, item
    rows, duplicates = route(pairs, users, items, exchange)
    kept = drop(rows, items.n_ids, options, exchange)
    del rows
    shards, user_bounds = recut(kept.shards, exchange)
    with together(exchange):
        mine = deal(exchange.n_shards, exchange.size)[exchange.rank]
        for number, shard in zip(mine, shards, strict=True):
            save_shard(root, number, shard)
    kept_users = exchange.gather_items(kept.users)
    user_ids, item_ids = (collect_ids(side.stretch, exchange) for side in (users, items))
    with together(exchange):
        if exchange.rank == 0:
            save_rest(
                root,
                user_bounds=user_bounds,
                item_counts=kept.item_counts,
                user_ids=user_ids.filter(pa.array(kept_users)),
                item_ids=item_ids.filter(pa.array(kept.items)),
                duplicates=duplicates,
                about=about,
            )
