"""``limelight recommend``: ranked lists from a model, streamed to a file."""

import math
import shutil
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight._base.errors import ConfigError, DataError
from limelight.cli.flags import (
    CheckpointEvery,
    Json,
    ModelFolder,
    Reading,
    Resume,
    Threads,
    Verb,
    takes_flags,
)
from limelight.cli.frame import Executor, announce, checkpoint_of, until_done, with_held
from limelight.cli.output import note, summarise

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from limelight.data import Interactions
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.rerank.reranker import Reranked
    from limelight.store.lists import ListParts
    from limelight.store.model_size import ModelSize

_BATCH = 8192
_FEW = 100
"""From so many users on, lists that are made together share exposure."""


@dataclass(frozen=True)
class _Question:
    """Whom to recommend to: rows of the training data, or unseen users with their histories."""

    user_ids: "NDArray[Any]"
    rows: "NDArray[np.int64] | None" = None
    histories: "Interactions | None" = None


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(cls=Verb)(recommend)


@takes_flags
def recommend(
    folder: ModelFolder,
    *,
    k: Annotated[int, typer.Option("-k", metavar="N", help="Length of the lists.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="What to write: a name that ends in .parquet, .csv or .tsv; otherwise a folder of "
            "Parquet files. Without it, CSV to standard output.",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Interactions of unseen users: recommend to them instead."
        ),
    ] = None,
    user_id: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Only for this user of the training data; may be repeated."
        ),
    ] = None,
    keep_seen: Annotated[
        bool, typer.Option("--keep-seen", help="Do not leave out what a user has seen.")
    ] = False,
    reading: Reading,
    threads: Threads = None,
    resume: Resume = False,
    checkpoint_every: CheckpointEvery = None,
    where: Executor,
    as_json: Json = False,
) -> None:
    """Rank items for known users, or for unseen ones.

    In: a model folder. Without --history, all users of its training data get a list. With it, the
    users of that table do, by what they did; it is read with the column flags. Out: a
    table user_id,item_id,rank,score, rank from 1.

    Ctrl-C, or SIGTERM, ends the work after the current batch; FILE.checkpoint then holds the lists
    so far, and the same command with --resume makes the rest.

    With --executor ray users are served in pieces, whose lists are the parts of a folder. Parts
    that are finished are kept as they come.

    \b
    Examples:
      limelight recommend model/ -k 20 -o lists.parquet
      limelight recommend model/ --history new.csv -o lists.csv
      limelight recommend model/ --user-id 17 --user-id 42 -k 5
      limelight recommend model/ --executor ray --address auto -o lists/
    """
    from limelight.store.lists import ListParts

    _check(reading, k, output, history, user_id, as_json)
    started = time.perf_counter()
    if where.check():
        from limelight.cli.recommend_pieces import PiecewiseLists

        asked = PiecewiseLists(folder, k, threads, keep_seen=keep_seen)
        parts_of = asked.check(output, user_id)
        kept = checkpoint_of(parts_of, resume=resume, every=checkpoint_every)
        with until_done(kept):
            record = asked.write(parts_of, where, kept, history, reading)
        _summarise(record | {"seconds": time.perf_counter() - started}, as_json=as_json)
        return
    _announce(folder, k, min(_BATCH, len(user_id)) if user_id else _BATCH)
    model = load_model(folder, threads)
    question = _question(model, reading, history, user_id)
    if question.histories is None and model.learned.seen is None:
        refuse_without_history(model, keep_seen=keep_seen)
    _note_control(model.serves, len(question.user_ids))
    k = min(k, len(model.item_ids))  # a file holds no padding
    if output is None:
        _print_lists(model, question, k, filter_seen=not keep_seen)
        return
    kept = checkpoint_of(output, resume=resume, every=checkpoint_every)
    parts = ListParts(kept, _about(folder, question, k, keep_seen=keep_seen))
    with until_done(kept):
        exposure = _write_lists(model, question, k, output, filter_seen=not keep_seen, parts=parts)
    record = {
        "users": len(question.user_ids),
        "k": k,
        "seconds": time.perf_counter() - started,
        "output": str(output),
        **exposure,
    }
    _summarise(record, as_json=as_json)


def _summarise(record: dict[str, Any], *, as_json: bool) -> None:
    k = record["k"]
    text = (
        f"lists of {k} for {record['users']:,} users in {record['seconds']:.1f} seconds\n"
        f"Gini of exposure {record[f'gini@{k}']:.4f}, "
        f"items shown {100 * record[f'coverage@{k}']:.1f}%"
    )
    summarise(f"{text}\nwritten to {record['output']}", record, as_json=as_json)


def _about(folder: Path, question: _Question, k: int, *, keep_seen: bool) -> dict[str, Any]:
    """Say what the lists are of."""
    import numpy as np

    from limelight.store.checkpoint import digest, digest_files

    rows, histories = question.rows, question.histories
    everybody = np.arange(len(question.user_ids))
    return {
        "model": digest_files(folder),
        "k": k,
        "keep_seen": keep_seen,
        "users": digest(everybody if rows is None else rows),
        "history": None if histories is None else histories.fingerprint(),
    }


def _check(
    reading: Reading,
    k: int,
    output: Path | None,
    history: Path | None,
    user_id: list[str] | None,
    as_json: bool,
) -> None:
    """Refuse flags that contradict each other, before anything is read."""
    if k < 1:
        message = f"k must be at least 1: {k}"
        raise ConfigError(message, hint="-k is the length of the lists")
    if output is None and as_json:
        message = "--json needs -o: lists and summary cannot both go to standard output"
        raise ConfigError(message, hint="name a file for the lists with -o lists.parquet")
    if history is not None and user_id:
        message = f"--history and --user-id exclude each other: {user_id[0]}"
        raise ConfigError(message, hint="--history is for unseen users, --user-id for known ones")
    if history is None:
        hint = "name the table of unseen users with --history FILE"
        reading.refuse("there is nothing to read without --history, so no use for", hint)
    if output is not None:
        from limelight.store.lists import ListWriter

        ListWriter(output).check()


def _announce(folder: Path, k: int, batch: int) -> None:
    """Say how much memory the lists take, so many users at once, or refuse them."""
    from bisect import bisect_right

    from limelight._base.memory import limit, resident
    from limelight.data.candidates.candidates import MEMORY
    from limelight.recommend.memory import recommend_bytes
    from limelight.rerank.memory import model_supply, rerank_bytes
    from limelight.store.model_folder import CONTROL

    held, room, fits = resident(), limit(), 0

    def look() -> int | None:
        nonlocal fits
        size = known_size(folder)
        if size is None:
            return None
        is_reranked = (folder / CONTROL).exists()

        def bytes_of(k: int) -> int:
            plain = recommend_bytes(size, k, batch)
            return max(plain, rerank_bytes(model_supply(size), k, MEMORY)) if is_reranked else plain

        lengths = range(1, min(k, size.n_items) + 1)
        fits = 0 if room is None else bisect_right(lengths, room - held, key=bytes_of)
        return bytes_of(k)

    needed = with_held(look)
    smaller = "fit a smaller model: fewer --factors, or --no-history, and --keep-seen here"
    hint = f"make shorter lists: -k {fits}" if fits else smaller
    announce("recommending", needed, hint=hint)


def known_size(folder: Path) -> "ModelSize | None":
    """Look how large a saved model is; None for a network, whose memory is not only its arrays."""
    from limelight.models.folder import MODELS
    from limelight.models.neural.model import NeuralModel
    from limelight.store.model_size import model_size

    size = model_size(folder)
    return None if issubclass(MODELS[size.model][0], NeuralModel) else size


def load_model(folder: Path, threads: int | None) -> "Model | Reranked":
    """Load a model and what re-ranks its lists, and let them use so many threads."""
    from limelight.rerank.folder import load

    found = load(folder)
    if threads is not None:
        found.use_threads(threads)
    return found


def _note_control(serves: str, n_users: int) -> None:
    """Say what a re-ranked model's lists depend on."""
    if serves == "stream":
        note("The model's stream starts where it was saved; who is served here is not remembered.")
    elif serves == "together" and n_users < _FEW:
        note(
            f"Lists of this model are made for many users together; for {n_users:,} they are "
            "nearly those of the model without control."
        )


def refuse_without_history(model: "Model | Reranked", *, keep_seen: bool) -> None:
    """Refuse what a model cannot do that was saved without the histories of its users."""
    from limelight.models.neural.model import NeuralModel

    if isinstance(model.model, NeuralModel):
        message = "the network was saved without histories, which it answers its users from"
        raise DataError(message, hint="give the histories with --history")
    if not keep_seen:
        message = "the model was saved without histories, so it cannot leave out what was seen"
        raise DataError(message, hint="use --keep-seen, or give the histories with --history")


def _question(
    model: "Model | Reranked", reading: Reading, history: Path | None, user_id: list[str] | None
) -> _Question:
    if history is not None:
        histories = reading.interactions(history)
        note_unknown(histories, model.item_ids)
        return _Question(histories.user_ids, histories=histories)
    if not user_id:
        return _Question(model.user_ids)
    rows = _find_users(model, user_id)
    return _Question(model.user_ids[rows], rows=rows)


def _find_users(model: "Model | Reranked", wanted: list[str]) -> "NDArray[np.int64]":
    """Find the rows of users by their ids, which are typed as text whatever they are."""
    import numpy as np

    from limelight.data.ids import positions

    rows = positions(np.array(wanted, dtype=object), model.user_ids)
    if (rows < 0).any():
        message = f"user id not in the training data: {wanted[int(np.argmin(rows))]!r}"
        raise DataError(message, hint="use --history FILE to recommend to unseen users")
    return rows


def note_unknown(histories: "Interactions", item_ids: "NDArray[Any]") -> None:
    """Say how much of the histories the model knows."""
    import numpy as np

    from limelight.data.ids import positions
    from limelight.data.rows import row_numbers

    is_known = positions(histories.item_ids, item_ids) >= 0
    if not is_known.any():
        message = f"the model knows no item of the history, such as {histories.item_ids.item(0)!r}"
        raise DataError(message, hint=f"its items have ids such as {item_ids.item(0)!r}")
    if unknown := int(np.sum(~is_known)):
        note(f"Items of the history that the model does not know, left out: {unknown:,}")
    reached = len(np.unique(row_numbers(histories.indptr)[is_known[histories.indices]]))
    if strangers := histories.n_users - reached:
        note(f"Users without a known item, who all get the same list: {strangers:,}")


def _write_lists(
    model: "Model | Reranked",
    question: _Question,
    k: int,
    output: Path,
    *,
    filter_seen: bool,
    parts: "ListParts | None" = None,
) -> dict[str, float]:
    """Stream the lists to a file; exposure is counted in the same pass."""
    from limelight._base.progress import progress_bar
    from limelight.metrics.accumulate import ListAccumulator
    from limelight.store.lists import ListWriter

    n_batches = math.ceil(len(question.user_ids) / _BATCH)
    exposure = ListAccumulator(len(model.item_ids), k)
    with ListWriter(output) as writer, progress_bar("recommend", n_batches) as advance:
        for rows, lists in _all_lists(model, question, k, filter_seen, parts):
            writer.write(question.user_ids[rows], model.item_ids, *lists)
            exposure.update(lists.ids)
            advance()
    return exposure.result()


def _all_lists(
    model: "Model | Reranked",
    question: _Question,
    k: int,
    filter_seen: bool,
    parts: "ListParts | None",
) -> "Iterator[tuple[slice, Lists]]":
    """Give the lists that were kept before, and make the others."""
    from limelight._base.arrays import batches
    from limelight.metrics.lists import Lists

    first = 0
    for kept in parts.stored() if parts else ():
        for rows in batches(len(kept.ids), _BATCH):
            yield (
                slice(first + rows.start, first + rows.stop),
                Lists(kept.ids[rows], kept.scores[rows]),
            )
        first += len(kept.ids)
    with parts.keeping() if parts else nullcontext():
        for batch in model.recommend_batches(
            question.histories,
            k,
            users=question.rows,
            filter_seen=filter_seen,
            batch_size=_BATCH,
            first=first,
        ):
            if parts and parts.keep(*batch.lists):
                return
            yield batch.rows, batch.lists


def _print_lists(
    model: "Model | Reranked", question: _Question, k: int, *, filter_seen: bool
) -> None:
    """Write CSV to standard output once it is complete: half a table looks like a whole one."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lists.csv"
        _write_lists(model, question, k, file, filter_seen=filter_seen)
        sys.stdout.flush()
        # Bytes, not text: ids are UTF-8 whatever the terminal thinks.
        with file.open("rb") as lists:
            shutil.copyfileobj(lists, sys.stdout.buffer)
        sys.stdout.buffer.flush()
