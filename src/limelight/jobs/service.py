"""What serves lists: a saved model, the users who get them, and the pieces these are cut into.

An executor that is parallel gets pieces of users: each worker reads its own users of the model
folder, and all items. Otherwise all users are one piece, for a model that is loaded whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError, DataError
from limelight.data.ids import positions
from limelight.models.ease import EASE
from limelight.models.exadmm import ExADMM
from limelight.models.neural.model import NeuralModel
from limelight.models.popularity import Random
from limelight.models.recommender import Batch
from limelight.recommend.candidates import usual_width
from limelight.recommend.request import items_left, numbers_of
from limelight.rerank.folder import load, open_light
from limelight.rerank.methods import rerankers
from limelight.solve.problem import sparse_rows
from limelight.store.arrays import read_some_ids
from limelight.store.model_folder import SEEN, USERS, load_control, read_histories

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from limelight._base.arrays import Int64
    from limelight._base.executor import Executor
    from limelight.data.interactions import Ids, Interactions
    from limelight.metrics.accuracy import Sparse
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.reranker import Reranked

BATCH = 8192
PER_PIECE = 8 * BATCH
"""How many users a piece has: some minutes of work for a large catalogue."""
_FEWEST_TOGETHER = 100
"""From so many users on, lists that are made together share exposure."""


class UserPiece(NamedTuple):
    """Some of the users who are to get lists."""

    number: int
    start: int
    stop: int
    """Rows of the training data; of unseen users and of chosen ones, of all who ask."""
    histories: Sparse | Interactions | None = None
    user_ids: Ids | None = None
    """Both of unseen users; chosen users of the training have ids as well."""
    rows: Int64 | None = None
    """Of the training data, if users were chosen."""
    targets: Sparse | None = None
    """What lists of unseen users should find, if they are measured."""


@dataclass(frozen=True)
class Service:
    """What makes lists for pieces of users, each user alone unless there is one piece."""

    folder: Path
    """The model folder."""
    n_users: int
    """How many users are served in all pieces together."""
    filter_seen: bool = True
    """Whether to leave out the items of a user's history."""
    threads: int = 1
    """How many threads a piece may use."""
    exclude: Sequence[Any] | None = None
    allow: Sequence[Any] | None = None
    """Ids of items that no list shows, and of the only ones that lists may show."""
    model: Model | Reranked | None = None
    """The model with its users, where all pieces are done in this process."""

    def open(self) -> Model | Reranked:
        """Return the model, or read it without its users."""
        if self.model is not None:
            return self.model
        found = open_light(self.folder)
        found.use_threads(self.threads)
        if found.reranker is not None:
            config: Any = found.reranker.config
            # Each user has as many candidates as if all users were served at once, so that her
            # list does not depend on the pieces.
            width = config.candidates or usual_width(self.n_users)
            found.reranker.config = replace(config, candidates=width)
        return found

    def user_ids(self, piece: UserPiece) -> Ids:
        """Return the ids of the users of a piece."""
        if piece.user_ids is not None:
            return piece.user_ids
        if piece.histories is not None:
            return np.arange(piece.start, piece.stop)
        if self.model is not None:
            return self.model.user_ids
        return read_some_ids(self.folder / USERS, "user_id", piece.start, piece.stop)

    def lists(
        self, found: Model | Reranked, piece: UserPiece, k: int, first: int = 0
    ) -> Iterator[Batch]:
        """Make the lists of a piece, a batch at a time; batches before row ``first`` are left out.

        Lists that a re-ranker makes are made for all users of the piece together.
        """
        if self.model is not None:
            known = self.user_ids(piece) if found.by_user else None
            yield from found.recommend_batches(
                piece.histories,
                k,
                users=piece.rows,
                filter_seen=self.filter_seen,
                user_ids=known,
                exclude=self.exclude,
                allow=self.allow,
                batch_size=BATCH,
                first=first,
            )
            return
        made, ranking = None, self.ranking(found.model, piece)
        items = items_left(found.item_ids, self.exclude, self.allow)
        if items is not None:
            ranking = ranking.among(items)
        keeps = items is None and found.keeps_lists(k, filter_seen=self.filter_seen)
        if piece.histories is None and keeps:
            made = cast("Lists", found.lists).take(slice(piece.start, piece.stop))
        elif found.reranker is not None:
            more = {"user_ids": self.user_ids(piece)} if found.by_user else {}
            made = found.reranker.rerank(ranking, k, **more)
        for rows in batches(piece.stop - piece.start, BATCH):
            if rows.start < first:
                continue
            if made is not None:
                yield Batch(rows, made.take(rows))
            else:
                yield Batch(rows, ranking.top(np.arange(rows.start, rows.stop), k))

    def ranking(self, model: Model, piece: UserPiece) -> Ranking:
        """Return what ranks the catalogue for the users of a piece."""
        if piece.histories is not None:
            return model.ranking(piece.histories, filter_seen=self.filter_seen)
        kept = read_histories(self.folder, piece.start, piece.stop)
        seen = None
        if kept is not None:
            indptr, indices, weights = kept
            seen = sparse_rows(indptr, indices, len(model.item_ids), weights)
        rows = np.arange(piece.start, piece.stop)
        return model.ranking_of(rows, seen, filter_seen=self.filter_seen)


def open_served(
    folder: str | os.PathLike[str],
    executor: Executor,
    threads: int | None,
    *,
    unseen: bool,
    decided: Callable[[Model | Reranked], bool] = lambda _: False,
) -> Model | Reranked:
    """Read a model, with its users if they are served by this process.

    For an executor that is parallel, models are refused whose lists cannot be made in pieces, for
    users of the training or for unseen ones; ``decided`` tells whether a model keeps the lists that
    are asked for. None threads are as many as the model was fitted with.
    """
    if not executor.parallel:
        whole = load(Path(folder))
        if threads is not None:
            whole.use_threads(threads)
        return whole
    found = open_light(Path(folder))
    refuse_together(found, unseen=unseen, decided=decided(found))
    return found


@dataclass(frozen=True)
class ServedUsers:
    """The users who are to get lists."""

    ids: Ids | None
    """Who they are; None for all users of the training, whose ids are in the model folder."""
    n_users: int
    rows: Int64 | None = None
    """Rows of the training data, where some were chosen."""
    histories: Sparse | Interactions | None = None

    @classmethod
    def unseen(cls, histories: Sparse | Interactions, ids: Ids) -> Self:
        """Take unseen users by their histories."""
        return cls(ids, len(ids), histories=histories)

    @classmethod
    def known(cls, found: Model | Reranked, wanted: Sequence[Any] | None = None) -> Self:
        """Take users of the training data by their ids, as numbers or as text; all unless given."""
        if wanted is None:
            return cls(None, len(found.user_ids))
        hint = "use --history FILE to recommend to unseen users"
        rows = numbers_of(list(map(str, wanted)), found.user_ids, "user", hint)
        return cls(found.user_ids[rows], len(rows), rows)

    def pieces(self, per_piece: int) -> Iterator[UserPiece]:
        """Cut the users into pieces, those of unseen ones with their histories.

        Examples
        --------
        >>> [(piece.start, piece.stop) for piece in ServedUsers(None, 5).pieces(2)]
        [(0, 2), (2, 4), (4, 5)]
        """
        if per_piece >= self.n_users:
            yield UserPiece(0, 0, self.n_users, self.histories, self.ids, self.rows)
            return
        histories: Any = self.histories
        for number, some in enumerate(batches(self.n_users, per_piece)):
            yield UserPiece(
                number,
                some.start,
                some.stop,
                None if histories is None else histories[some],
                None if self.ids is None else self.ids[some],
            )


def refuse_without_history(found: Model | Reranked, folder: Path, *, filter_seen: bool) -> None:
    """Refuse what a model cannot do that was saved without the histories of its users."""
    if (folder / SEEN).exists():
        return
    if isinstance(found.model, NeuralModel | EASE):
        what = "network" if isinstance(found.model, NeuralModel) else "model"
        message = f"the {what} was saved without histories, which it needs to serve its own users"
        raise DataError(message, hint="give the histories with --history")
    if filter_seen:
        message = "the model was saved without histories, so it cannot leave out what was seen"
        raise DataError(message, hint="use --keep-seen, or give the histories with --history")


def note_unknown(histories: Interactions, item_ids: Ids, note: Callable[[str], None]) -> None:
    """Say how much of the histories the model knows; refuse them if that is nothing."""
    is_known = positions(histories.item_ids, item_ids) >= 0
    if not is_known.any():
        message = f"the model knows no item of the history, such as {histories.item_ids.item(0)!r}"
        raise DataError(message, hint=f"its items have ids such as {item_ids.item(0)!r}")
    if unknown := int(np.sum(~is_known)):
        note(f"Items of the history that the model does not know, left out: {unknown:,}")


def note_control(
    found: Model | Reranked, n_users: int, k: int, note: Callable[[str], None]
) -> None:
    """Say what the lists of a re-ranked model depend on."""
    knows_others = found.serves == "alone" or getattr(found.reranker, "is_settled", False)
    if found.reranker is not None and not knows_others:
        note(
            "The model was saved without the population that its target is for. "
            "Lists are made as if there were no other users than these; fit it to its target again."
        )
        if n_users < _FEWEST_TOGETHER:
            note(f"For {n_users:,} users together they are nearly those of the model alone.")
    if found.serves == "stream" and found.lists is None:
        note("The model does not keep the lists that it makes: a user who asks twice counts twice.")
    asked = (found.promise or {}).get("target", {})
    if asked and asked.get("at") != k:
        note(f"The target is for lists of {asked['at']}; these are lists of {k}.")


def serves_stream(folder: Path) -> bool:
    """Tell whether serving changes the state of a model folder."""
    control = load_control(folder)
    name = None if control is None else control.record.get("reranker")
    kind = rerankers().get(name) if isinstance(name, str) else None
    return kind is not None and kind[0].serves == "stream"


def refuse_together(found: Model | Reranked, *, unseen: bool, decided: bool = False) -> None:
    """Refuse a model whose lists depend on who else asks: they cannot be made in pieces.

    Lists of training users may be ``decided`` already.
    """
    if found.reranker is not None:
        is_decided = found.serves == "together" and decided and not unseen
        if found.serves != "alone" and not is_decided:
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
