"""Lists for pieces of users: each worker reads its own users of a model folder, and all items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError
from limelight.models.exadmm import ExADMM
from limelight.models.popularity import Random
from limelight.recommend.candidates import usual_width
from limelight.rerank.folder import open_light
from limelight.solve.problem import sparse_rows
from limelight.store.ids import read_some_ids
from limelight.store.model_folder import USERS, read_histories

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from limelight.data.interactions import Ids
    from limelight.metrics.accuracy import Sparse
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.reranker import Reranked

BATCH = 8192
PER_PIECE = 8 * BATCH
"""How many users a piece has: some minutes of work for a large catalogue."""


class UserPiece(NamedTuple):
    """Some of the users who are to get lists."""

    number: int
    start: int
    stop: int
    """Rows of the training data; of unseen users, of all who ask."""
    histories: Sparse | None = None
    user_ids: Ids | None = None
    """Both of unseen users only."""


def known_pieces(n_users: int, per_piece: int = PER_PIECE) -> Iterator[UserPiece]:
    """Cut the users of the training into pieces.

    Examples
    --------
    >>> [(piece.start, piece.stop) for piece in known_pieces(5, per_piece=2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    for number, rows in enumerate(batches(n_users, per_piece)):
        yield UserPiece(number, rows.start, rows.stop)


def unseen_pieces(
    histories: Sparse, user_ids: Ids | None, per_piece: int = PER_PIECE
) -> Iterator[UserPiece]:
    """Cut unseen users into pieces, each with its histories."""
    for number, rows in enumerate(batches(histories.shape[0], per_piece)):
        ids = None if user_ids is None else user_ids[rows]
        yield UserPiece(number, rows.start, rows.stop, histories[rows], ids)


@dataclass(frozen=True)
class Service:
    """What makes lists for pieces of users, each user alone.

    Parameters
    ----------
    folder
        The model folder.
    n_users
        How many users are served in all pieces together.
    filter_seen
        Whether to leave out the items of a user's history.
    threads
        How many threads a piece may use.
    """

    folder: Path
    n_users: int
    filter_seen: bool = True
    threads: int = 1

    def open(self) -> Model | Reranked:
        """Read the model without its users."""
        found = open_light(self.folder)
        found.use_threads(self.threads)
        if found.reranker is not None:
            config: Any = found.reranker.config
            # As many candidates as everybody would have if all were served at once.
            width = config.candidates or usual_width(self.n_users)
            found.reranker.config = replace(config, candidates=width)
        return found

    def user_ids(self, piece: UserPiece) -> Ids:
        """Tell who the users of a piece are."""
        if piece.histories is None:
            file = self.folder / USERS
            return read_some_ids(file, "user_id", piece.start, piece.stop)
        rows = np.arange(piece.start, piece.stop)
        return rows if piece.user_ids is None else piece.user_ids

    def lists(self, found: Model | Reranked, piece: UserPiece, k: int) -> Iterator[Lists]:
        """Make the lists of a piece, batch by batch."""
        ranking = self.ranking(found.model, piece)
        if found.reranker is not None:
            more = {"user_ids": self.user_ids(piece)} if found.by_user else {}
            yield found.reranker.rerank(ranking, k, **more)
            return
        for rows in batches(ranking.n_users, BATCH):
            yield ranking.top(np.arange(rows.start, rows.stop), k)

    def ranking(self, model: Model, piece: UserPiece) -> Ranking:
        """Return what ranks the catalogue for the users of a piece."""
        if piece.histories is not None:
            return model.ranking(piece.histories, filter_seen=self.filter_seen)
        kept = read_histories(self.folder, piece.start, piece.stop)
        seen = None if kept is None else sparse_rows(*kept, len(model.item_ids))
        rows = np.arange(piece.start, piece.stop)
        return model.ranking_of(rows, seen, filter_seen=self.filter_seen)


def refuse_together(found: Model | Reranked, *, unseen: bool) -> None:
    """Refuse a model whose lists depend on who else asks: they cannot be made in pieces.

    Parameters
    ----------
    found
        The model.
    unseen
        Whether users are to be folded in.
    """
    if found.reranker is not None:
        if found.serves != "alone":
            message = (
                "lists of this model are made for all users together, so not in pieces: "
                f"{type(found.reranker).__name__}"
            )
            hint = (
                "fit with --serve stateless, re-rank plain lists with `limelight rerank "
                "--executor ray`, or leave --executor out"
            )
            raise ConfigError(message, hint=hint)
        found = found.model
    if unseen and isinstance(found, Random):
        message = "Random serves unseen users by row number, which differs from piece to piece"
        raise ConfigError(message, hint="leave --executor out")
    if unseen and isinstance(found, ExADMM) and found.config.fold_in == "joint":
        message = "unseen users of this model are folded in together, so not in pieces: joint"
        raise ConfigError(message, hint="fit with fold_in='price', or leave --executor out")
