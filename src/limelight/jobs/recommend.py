"""Lists of all users of a model, made in pieces: one Parquet part for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from limelight._base.signals import Terminated
from limelight.data.ids import positions
from limelight.jobs.service import PER_PIECE, Service, known_pieces, unseen_pieces
from limelight.metrics.accumulate import ListAccumulator
from limelight.store.checkpoint import digest, digest_ids
from limelight.store.lists import ListWriter, gather_parts, part_name

if TYPE_CHECKING:
    from pathlib import Path

    from limelight._base.arrays import Int32
    from limelight._base.executor import Pieces
    from limelight.data.interactions import Ids
    from limelight.jobs.service import UserPiece
    from limelight.metrics.accuracy import Sparse
    from limelight.store.checkpoint import Checkpoint


@dataclass(frozen=True)
class Recommend:
    """Writes the lists of a piece of users as a part, and counts the exposure they give.

    A part that is there already was written whole: it is counted and kept.
    """

    service: Service
    n_items: int
    k: int
    parts: Path
    name = "recommend"

    def __call__(self, piece: UserPiece) -> ListAccumulator:
        """Make the lists of a piece."""
        file = self.parts / part_name(piece.number)
        found = self.service.open()
        exposure = ListAccumulator(self.n_items, self.k)
        if file.exists():
            exposure.update(_read_part(file, found.item_ids, piece.stop - piece.start, self.k))
            return exposure
        user_ids, first = self.service.user_ids(piece), 0
        with ListWriter(file) as writer:
            for lists in self.service.lists(found, piece, self.k):
                writer.write(user_ids[first : first + len(lists.ids)], found.item_ids, *lists)
                exposure.update(lists.ids)
                first += len(lists.ids)
        return exposure


def recommend(
    pieces: Pieces,
    service: Service,
    k: int,
    output: Path,
    checkpoint: Checkpoint,
    *,
    histories: Sparse | None = None,
    user_ids: Ids | None = None,
    per_piece: int = PER_PIECE,
) -> ListAccumulator:
    """Write a folder of lists, and return the exposure they give.

    Parameters
    ----------
    pieces
        Does the work.
    service
        What makes lists.
    k
        Length of the lists, at most the number of items.
    output
        The folder.
    checkpoint
        Where parts are kept until all are there, on the disk of the output. Those that are there
        are not made again.
    histories, user_ids
        Of unseen users; without them all users of the training get lists.
    per_piece
        How many users a piece has.
    """
    about = {
        "files": [
            [file.name, file.stat().st_size, file.stat().st_mtime_ns]
            for file in sorted(service.folder.iterdir())
        ],
        "k": k,
        "filter_seen": service.filter_seen,
        "per_piece": per_piece,
        "history": None if histories is None else digest(histories.indptr, histories.indices),
        "users": None if user_ids is None else digest_ids(user_ids),
    }
    if checkpoint.load(about) is None:
        checkpoint.save({}, {})
    work = Recommend(service, len(service.open().item_ids), k, checkpoint.path)
    if histories is None:
        users = known_pieces(service.n_users, per_piece)
    else:
        users = unseen_pieces(histories, user_ids, per_piece)
    total = math.ceil(service.n_users / per_piece)
    exposure = _added_up(pieces, work, users, total)
    gather_parts(output, [checkpoint.path / part_name(number) for number in range(total)])
    return exposure


def _added_up(pieces: Pieces, work: Recommend, users: Any, total: int) -> ListAccumulator:
    exposure = ListAccumulator(work.n_items, work.k)
    try:
        for found in pieces.map(work, users, total):
            exposure.merge(found)
    except (KeyboardInterrupt, Terminated) as end:
        end.add_note("the same command with --resume keeps the parts that are finished")
        raise
    return exposure


def _read_part(file: Path, item_ids: Ids, n_users: int, k: int) -> Int32:
    """Read the lists of a part as item numbers; users without a list have empty rows at the end."""
    table = pq.read_table(file, columns=["item_id", "rank"])
    ranks = table.column("rank").to_numpy()
    lists = np.full((n_users, k), -1, dtype=np.int32)
    rows = np.cumsum(ranks == 1) - 1
    lists[rows, ranks - 1] = positions(table.column("item_id").combine_chunks(), item_ids)
    return lists
