"""Accuracy and exposure of a saved model on the held-out users of a split."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from limelight._base.errors import DataError
from limelight._base.executor import as_executor
from limelight._base.settings import check_choice
from limelight.jobs.service import PER_PIECE, ServedUsers, Service, open_served
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.evaluate import Evaluation
from limelight.metrics.lists import check_cutoffs

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from limelight._base.executor import Executor
    from limelight.data.held_out import HeldOut
    from limelight.data.split import Split
    from limelight.jobs.service import UserPiece
    from limelight.metrics.accuracy import Sparse


@dataclass(frozen=True)
class Evaluate:
    """Makes the lists of some held-out users and measures them."""

    service: Service
    k: tuple[int, ...]
    name = "evaluate"

    def __call__(self, piece: UserPiece) -> ListAccumulator:
        """Measure a piece, batch by batch."""
        found, targets = self.service.open(), cast("Sparse", piece.targets)
        accumulator = ListAccumulator(len(found.item_ids), self.k)
        for rows, lists in self.service.lists(found, piece, self.k[-1]):
            accumulator.update(lists.ids, targets[rows])
        return accumulator


def evaluate(
    folder: str | os.PathLike[str],
    split: Split,
    part: Literal["validation", "test"] = "test",
    k: int | Sequence[int] = (5, 20),
    *,
    num_threads: int | None = None,
    executor: Executor | None = None,
    per_piece: int = PER_PIECE,
    note: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Measure a saved model as :func:`limelight.evaluate` does, to the same bits.

    Parameters
    ----------
    folder
        The model folder.
    split
        The split whose training part the model was fitted to.
    part
        Which of its held-out users.
    k
        One or several cutoffs.
    num_threads
        How many threads to use; if not given, what the model was fitted with, and one for each
        piece of an executor that is parallel.
    executor
        Where the work is done: in this process, unless given. One that is parallel, such as
        ``RayExecutor``, measures pieces of users at the same time. Models whose lists depend on
        who else asks are then refused.
    per_piece
        How many users a piece has, if there are several.
    note
        Told if the model was fitted to something else.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> split = ll.split_users(ll.marketplace(300, 100, 4000).interactions, validation=30, test=30)
    >>> model, folder = ll.Popularity().fit(split.train), tempfile.mkdtemp() + "/model"
    >>> model.save(folder)
    >>> dict(evaluate(folder, split, k=5)) == dict(ll.evaluate(model, split.test, k=5))
    True
    """
    check_choice("part", part, ("validation", "test"))
    executor = as_executor(executor)
    found = open_served(folder, executor, num_threads, unseen=True)
    held_out = _part_of(split, part).renumbered(found.item_ids, has_ids=found.has_ids)
    if found.learned.fingerprint != split.train.fingerprint():
        note(
            "warning: the model was not fitted to the training part of this split. If it has seen\n"
            "the held-out users, the figures are too good."
        )
    cutoffs, n_users = check_cutoffs(k), held_out.n_users
    per_piece = per_piece if executor.parallel else n_users
    model = None if executor.parallel else found
    service = Service(Path(folder).resolve(), n_users, threads=num_threads or 1, model=model)
    asked = ServedUsers.unseen(held_out.history, held_out.user_ids)
    pieces = (
        piece._replace(targets=held_out.targets[piece.start : piece.stop])
        for piece in asked.pieces(per_piece)
    )
    total = ListAccumulator(len(found.item_ids), cutoffs)
    for one in executor.map(Evaluate(service, cutoffs), pieces, math.ceil(n_users / per_piece)):
        total.merge(one)
    return Evaluation(total.result())


def _part_of(split: Split, part: str) -> HeldOut:
    """Take a part of a split, or refuse one that nothing can be measured on."""
    held_out: HeldOut = getattr(split, part)
    if not held_out.n_users:
        message = f"the split has no {part} users"
        raise DataError(message, hint=f"split again with --{part} above 0")
    if not held_out.targets.nnz:
        message = f"the {held_out.n_users:,} {part} users have no targets to guess"
        raise DataError(message, hint="users with few items get none: hold out more users")
    return held_out
