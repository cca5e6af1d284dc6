"""``limelight evaluate``: accuracy and exposure of a model on held-out users."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight._base.errors import DataError
from limelight.cli.flags import (
    SPLIT_FILE,
    Json,
    ModelFolder,
    Threads,
    showing,
    signature_defaults,
    takes_flags,
)
from limelight.cli.frame import Executor
from limelight.cli.output import note, report
from limelight.cli.recommend import load_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.data import HeldOut, Split
    from limelight.metrics.evaluate import Evaluation
    from limelight.models.base import Model
    from limelight.rerank.reranker import Reranked


class Part(StrEnum):
    """The held-out parts of a split."""

    validation = "validation"
    test = "test"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(cls=showing(_defaults))(evaluate)


@takes_flags
def evaluate(
    folder: ModelFolder,
    split: Annotated[
        Path,
        typer.Argument(
            metavar="SPLIT", help="The split folder whose training part the model was fitted to."
        ),
    ],
    *,
    k: Annotated[
        list[int] | None,
        typer.Option("-k", metavar="N", help="Length of the lists; may be repeated."),
    ] = None,
    part: Annotated[
        Part, typer.Option(metavar="validation|test", help="The held-out users.")
    ] = Part.test,
    threads: Threads = None,
    where: Executor,
    as_json: Json = False,
) -> None:
    """Measure accuracy and exposure of a model on held-out users.

    In: a model folder and the split folder it was trained on. Out: nDCG and recall with 95 %
    bootstrap bounds; Gini (0: all items have the same exposure), its floor, coverage, entropy and
    the share of the top 1 % of the items. With --executor ray the users are measured in pieces,
    and the figures are the same.

    \b
    Examples:
      limelight evaluate model/ split/
      limelight evaluate model/ split/ -k 5 -k 20 --part validation --json
      limelight evaluate model/ split/ --executor ray --address auto
    """
    from limelight.metrics.evaluate import evaluate as measure

    in_pieces = where.check()
    model = _open(folder) if in_pieces else load_model(folder, threads)
    parts = _load_split(split)
    held_out = _held_out(parts, part, model.item_ids)
    if model.learned.fingerprint != parts.train.fingerprint():
        note(
            "warning: the model was not fitted to the training part of this split. If it has seen\n"
            "the held-out users, the figures are too good."
        )
    cutoffs: dict[str, Any] = {"k": tuple(k)} if k else {}
    if in_pieces:
        found = _in_pieces(where, folder, held_out, threads, cutoffs)
    else:
        found = measure(model, held_out, **cutoffs)
    report(repr(found), {"part": part.value, **found.to_dict()}, as_json=as_json)


def _open(folder: Path) -> "Model | Reranked":
    """Read a model without its users, if others can be measured in pieces."""
    from limelight.jobs.service import refuse_together
    from limelight.rerank.folder import open_light

    found = open_light(folder)
    refuse_together(found, unseen=True)
    return found


def _in_pieces(
    where: Executor,
    folder: Path,
    held_out: "HeldOut",
    threads: int | None,
    cutoffs: dict[str, Any],
) -> "Evaluation":
    from limelight.jobs.evaluate import evaluate as measure
    from limelight.jobs.service import Service

    service = Service(folder.resolve(), held_out.n_users, threads=threads or 1)
    with where.pieces(threads) as pieces:
        return measure(pieces, service, held_out, **cutoffs)


def _defaults() -> dict[str, str]:
    from limelight.metrics.evaluate import evaluate as measure

    return signature_defaults(measure, "k")


def _load_split(path: Path) -> "Split":
    from limelight.data import Split

    if not (path / SPLIT_FILE).is_file():
        message = f"not a split folder, it has no {SPLIT_FILE}: {str(path)!r}"
        raise DataError(message, hint="write one with: limelight data split FILE -o split/")
    return Split.load(path)


def _held_out(split: "Split", part: Part, item_ids: "NDArray[Any]") -> "HeldOut":
    """Take a part of a split, its items numbered as the model numbers them."""
    import numpy as np

    from limelight.data import HeldOut
    from limelight.data.ids import positions

    held_out: HeldOut = getattr(split, part.value)
    if not held_out.n_users:
        message = f"the split has no {part.value} users"
        raise DataError(message, hint=f"split again with --{part.value} above 0")
    if not held_out.targets.nnz:
        message = f"the {held_out.n_users:,} {part.value} users have no targets to guess"
        raise DataError(message, hint="users with few items get none: hold out more users")
    if np.array_equal(split.train.item_ids, item_ids):
        return held_out
    split_ids = split.train.item_ids
    columns, back = positions(item_ids, split_ids), positions(split_ids, item_ids)
    if alone := item_ids[columns < 0].tolist() + split_ids[back < 0].tolist():
        message = f"the model and the split have different items, e.g. {alone[0]!r}"
        raise DataError(message, hint="evaluate on the split that the model was trained on")
    history, targets = held_out.history[:, columns], held_out.targets[:, columns]
    history.sort_indices()
    targets.sort_indices()
    return HeldOut(history, targets, held_out.user_ids)
