"""Accuracy and exposure on held-out users, measured in pieces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from limelight._base.arrays import batches
from limelight.jobs.service import PER_PIECE, Service, UserPiece, unseen_pieces
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.evaluate import Evaluation
from limelight.metrics.lists import check_cutoffs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.executor import Pieces
    from limelight.data.held_out import HeldOut
    from limelight.metrics.accuracy import Sparse


class _HeldOutPiece(NamedTuple):
    users: UserPiece
    targets: Sparse


@dataclass(frozen=True)
class Evaluate:
    """Makes the lists of some held-out users and measures them."""

    service: Service
    k: tuple[int, ...]
    name = "evaluate"

    def __call__(self, piece: _HeldOutPiece) -> ListAccumulator:
        """Measure a piece."""
        found, first = self.service.open(), 0
        accumulator = ListAccumulator(len(found.item_ids), self.k)
        for lists in self.service.lists(found, piece.users, self.k[-1]):
            accumulator.update(lists.ids, piece.targets[first : first + len(lists.ids)])
            first += len(lists.ids)
        return accumulator


def evaluate(
    pieces: Pieces,
    service: Service,
    held_out: HeldOut,
    k: int | Sequence[int] = (5, 20),
    *,
    per_piece: int = PER_PIECE,
) -> Evaluation:
    """Measure as :func:`limelight.evaluate` does, to the same bits.

    Parameters
    ----------
    pieces
        Does the work.
    service
        What makes lists.
    held_out
        Users with `history` and `targets`, numbered as the model numbers items.
    k
        One or several cutoffs.
    per_piece
        How many users a piece has.
    """
    cutoffs = check_cutoffs(k)
    n_users, n_items = held_out.targets.shape
    parts = zip(
        unseen_pieces(held_out.history, held_out.user_ids, per_piece),
        (held_out.targets[rows] for rows in batches(n_users, per_piece)),
        strict=True,
    )
    total = ListAccumulator(n_items, cutoffs)
    work, n_pieces = Evaluate(service, cutoffs), math.ceil(n_users / per_piece)
    for found in pieces.map(work, (_HeldOutPiece(*part) for part in parts), n_pieces):
        total.merge(found)
    return Evaluation(total.result())
