"""Lists for the users of a saved model, or for unseen ones, written to files and resumable."""

from __future__ import annotations

import math
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError
from limelight._base.executor import as_executor
from limelight._base.progress import progress_bar
from limelight._base.settings import check_integer
from limelight._base.signals import Terminated
from limelight.data.ids import positions
from limelight.data.interactions import as_interactions
from limelight.jobs.service import (
    BATCH,
    PER_PIECE,
    ServedUsers,
    Service,
    note_control,
    note_unknown,
    open_served,
    refuse_without_history,
    serves_stream,
)
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.lists import Lists
from limelight.models.recommender import Batch
from limelight.recommend.fold_in import history_rows
from limelight.recommend.request import items_left
from limelight.rerank.folder import control_of
from limelight.store.checkpoint import (
    Checkpoint,
    as_checkpoint,
    digest,
    digest_files,
    until_done,
)
from limelight.store.lists import ListParts, ListWriter, gather_parts, part_name
from limelight.store.model_state import is_writable, locked_state

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from limelight._base.arrays import Int32
    from limelight._base.executor import Executor
    from limelight.data.interactions import Ids, Interactions
    from limelight.jobs.service import UserPiece
    from limelight.metrics.accuracy import Sparse
    from limelight.models.base import Model
    from limelight.rerank.reranker import Reranked
    from limelight.store.checkpoint import Place


@dataclass(frozen=True)
class Recommend:
    """Writes the lists of a piece of users, and counts the exposure they give."""

    service: Service
    k: int
    """Length of the lists."""
    output: Path
    """The file or folder to write; of several pieces, the folder of their parts. A part that is
    there already was written whole, so it is only counted."""
    in_parts: bool
    """Whether there are several pieces."""
    kept: ListParts | None = None
    """Of one piece, the lists that an interrupted run has made, and a place for those to come."""
    name = "recommend"

    def __call__(self, piece: UserPiece) -> ListAccumulator:
        """Make the lists of a piece, batch by batch."""
        found = self.service.open()
        exposure = ListAccumulator(len(found.item_ids), self.k)
        file, n_users = self.output, piece.stop - piece.start
        if self.in_parts:
            file /= part_name(piece.number)
            if file.exists():
                exposure.update(_read_part(file, found.item_ids, n_users, self.k))
                return exposure
        user_ids, n_batches = self.service.user_ids(piece), math.ceil(n_users / BATCH)
        bar = progress_bar(self.name, n_batches, show=False if self.in_parts else None)
        with ListWriter(file) as writer, bar as advance:
            for rows, lists in self._lists(found, piece):
                writer.write(user_ids[rows], found.item_ids, *lists)
                exposure.update(lists.ids)
                advance()
        return exposure

    def _lists(self, found: Model | Reranked, piece: UserPiece) -> Iterator[Batch]:
        """Give the lists that were kept before, and make the others."""
        first = 0
        for kept in self.kept.stored() if self.kept else ():
            for rows in batches(len(kept.ids), BATCH):
                lists = Lists(kept.ids[rows], kept.scores[rows])
                yield Batch(slice(first + rows.start, first + rows.stop), lists)
            first += len(kept.ids)
        with self.kept.keeping() if self.kept else nullcontext():
            for batch in self.service.lists(found, piece, self.k, first):
                if self.kept and self.kept.keep(*batch.lists):
                    return
                yield batch


def recommend(  # noqa: PLR0913
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    k: int = 20,
    users: Sequence[Any] | None = None,
    histories: Interactions | Sparse | None = None,
    filter_seen: bool = True,
    exclude: Sequence[Any] | None = None,
    allow: Sequence[Any] | None = None,
    num_threads: int | None = None,
    checkpoint: Place = None,
    executor: Executor | None = None,
    per_piece: int = PER_PIECE,
    update: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Write ranked lists of a saved model, as a table ``user_id, item_id, rank, score``.

    A model that was fitted to a target knows the population that the target is for, and serves
    users as a part of it. A model that serves a stream remembers whom it served: its folder is
    locked meanwhile, and its state is written back once the lists are there.

    Parameters
    ----------
    folder
        The model folder.
    output
        A file that ends in .parquet, .csv or .tsv; otherwise a folder of Parquet files.
    k
        Length of the lists; at most the number of items.
    users
        Ids of users of the training; all of them unless given.
    histories
        Of unseen users, who get lists instead: interactions, or a sparse matrix of users x items
        in the numbering of the model, whose row numbers are the ids.
    filter_seen
        Whether to leave out the items of a user's history.
    exclude, allow
        Ids of items that no list shows, or of the only ones that lists may show. Lists that were
        kept for a target are then not used.
    num_threads
        How many threads to use; if not given, what the model was fitted with, and one for each
        piece of an executor that is parallel.
    checkpoint
        Where lists are kept until all are made, on the disk of the output. The same call goes on
        from there; it is deleted when the lists are written.
    executor
        Where the work is done: in this process, unless given. One that is parallel, such as
        ``RayExecutor``, makes pieces of users at the same time, each a part of the output, which
        is a folder. Models whose lists depend on who else asks are then refused.
    per_piece
        How many users a piece has, if there are several.
    update
        Whether a stream remembers who is served; a folder that cannot be written does not.
    note
        Told what to know about the lists, such as how many items of the histories are unknown.

    Returns
    -------
    dict
        ``users``, ``k``, the metrics of exposure, such as ``gini@20`` and ``coverage@20``, and
        ``promise``, what was asked of the exposure of whom, if something was.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> place = tempfile.mkdtemp()
    >>> ll.Popularity().fit(ll.marketplace(300, 100, 4000).interactions).save(place + "/model")
    >>> found = recommend(place + "/model", place + "/lists.parquet", k=5)
    >>> found["users"], found["k"], found["coverage@5"] < 0.5
    (300, 5, True)
    >>> ll.audit(place + "/lists.parquet").users
    300
    """
    executor = as_executor(executor)
    folder, output, in_parts = Path(folder), Path(output), executor.parallel
    if histories is not None and users is not None:
        message = "histories and users were both given"
        raise ConfigError(message, hint="pass histories for unseen users, users for known ones")
    if in_parts and (output.suffix or users is not None):
        what = f"a single file: {output}" if output.suffix else "chosen users"
        message = f"a parallel executor makes a folder of parts for all users, not {what}"
        raise ConfigError(message, hint="leave executor out")
    known = None if histories is None else as_interactions(histories)
    with _remembering(folder, note, update=update and not in_parts) as remember:
        some = exclude is not None or allow is not None
        decided = partial(_are_decided, k=k, filter_seen=filter_seen and not some)
        unseen = known is not None
        found = open_served(folder, executor, num_threads, unseen=unseen, decided=decided)
        asked = _served(found, users, known, note, in_parts=in_parts)
        if known is None:
            refuse_without_history(found, folder, filter_seen=filter_seen)
        items = items_left(found.item_ids, exclude, allow)
        k = min(k, len(found.item_ids if items is None else items))  # a file holds no padding
        check_integer("k", k, least=1)
        note_control(found, asked.n_users, k, note)
        kept = as_checkpoint(checkpoint)
        if kept is None and in_parts:
            kept = Checkpoint(output.resolve().with_name(f"{output.name}.checkpoint"))
        model = None if in_parts else found
        service = Service(
            folder.resolve(),
            asked.n_users,
            filter_seen,
            num_threads or 1,
            exclude=exclude,
            allow=allow,
            model=model,
        )
        work = Recommend(service, k, output, in_parts)
        if kept is not None:
            about = {
                "kind": "ranked lists in parts" if in_parts else "ranked lists",
                "model": digest_files(folder),
                "k": k,
                "keep_seen": not filter_seen,
                "users": digest(np.arange(asked.n_users) if asked.rows is None else asked.rows),
                "history": None if known is None else known.fingerprint(),
                "items": None if items is None else digest(items),
                "per_piece": per_piece if in_parts else None,
            }
            work = _resumable(work, kept, about)
        exposure = ListAccumulator(len(found.item_ids), k)
        per_piece = per_piece if in_parts else max(1, asked.n_users)
        total = max(1, math.ceil(asked.n_users / per_piece))
        with nullcontext() if kept is None else until_done(kept):
            try:
                for one in executor.map(work, asked.pieces(per_piece), total):
                    exposure.merge(one)
            except (KeyboardInterrupt, Terminated) as end:
                if in_parts:
                    end.add_note("the same command with --resume keeps the parts that are finished")
                raise
            if in_parts:
                gather_parts(output, [work.output / part_name(number) for number in range(total)])
            # The lists are there before the state is. Whoever is killed between the two makes the
            # same lists again, from the state before.
            remember(found)
    promise = {} if found.promise is None else {"promise": found.promise}
    return {"k": k, **exposure.result(), **promise}


def _are_decided(found: Model | Reranked, *, k: int, filter_seen: bool) -> bool:
    """Tell whether lists of a length were decided for all users."""
    length = min(k, len(found.item_ids))
    if found.lists is None or not found.keeps_lists(length, filter_seen=filter_seen):
        return False
    return bool((found.lists.ids[:, 0] >= 0).all())


@contextmanager
def _remembering(
    folder: Path, note: Callable[[str], None], *, update: bool
) -> Iterator[Callable[[Model | Reranked], None]]:
    """Give what writes the state of a stream back; for any other model, nothing to write."""
    if not serves_stream(folder):
        yield lambda _: None
    elif not (update and is_writable(folder)):
        why = "its folder cannot be written" if update else "it was told not to"
        note(f"The model does not record these lists as served, because {why}.")
        yield lambda _: None
    else:
        with locked_state(folder, note) as write:
            yield lambda found: write(control_of(found.reranker, found.lists).arrays)


def _resumable(work: Recommend, kept: Checkpoint, about: dict[str, Any]) -> Recommend:
    """Keep what is finished in a checkpoint: parts of lists, or the lists so far of one piece."""
    if not work.in_parts:
        return replace(work, kept=ListParts(kept, about))
    if kept.load(about) is None:
        kept.save({}, {})
    return replace(work, output=kept.path)


def _served(
    found: Model | Reranked,
    users: Sequence[Any] | None,
    histories: Interactions | None,
    note: Callable[[str], None],
    *,
    in_parts: bool,
) -> ServedUsers:
    if histories is None:
        return ServedUsers.known(found, users)
    if histories.has_ids:
        note_unknown(histories, found.item_ids, note)
    if not in_parts:
        return ServedUsers.unseen(histories, histories.user_ids)
    # Items get the model's numbers here, once, so that no piece has to compare ids.
    rows = history_rows(histories, found.item_ids, weighted=found.learned.weighted)
    ones = np.ones(len(rows.indices), dtype=np.float32) if rows.weights is None else rows.weights
    shape = (len(histories.user_ids), len(found.item_ids))
    matrix = csr_matrix((ones, rows.indices, rows.indptr), shape=shape)
    return ServedUsers.unseen(matrix, histories.user_ids)


def _read_part(file: Path, item_ids: Ids, n_users: int, k: int) -> Int32:
    """Read the lists of a part as item numbers; users without a list have empty rows at the end."""
    table = pq.read_table(file, columns=["item_id", "rank"])
    ranks = table.column("rank").to_numpy()
    lists = np.full((n_users, k), -1, dtype=np.int32)
    rows = np.cumsum(ranks == 1) - 1
    lists[rows, ranks - 1] = positions(table.column("item_id").combine_chunks(), item_ids)
    return lists
