"""``limelight recommend``: ranked lists from a model, streamed to a file."""

import shutil
import sys
import tempfile
import time
from bisect import bisect_right
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight._base.errors import ConfigError
from limelight._base.printable import printable_lines
from limelight._base.text import percent, price
from limelight.cli.flags import (
    CheckpointEvery,
    Json,
    ModelFolder,
    Resume,
    Threads,
    length,
    option,
    takes_flags,
)
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.flags.reading import Reading
from limelight.cli.frame import Estimate, ExecutorFlags, checkpoint_of, known_size
from limelight.cli.output import note, summarise
from limelight.rerank.targets.words import asked_words


@takes_flags
def recommend(
    folder: ModelFolder,
    *,
    k: Annotated[int, length("Length of the lists.")] = 20,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "What to write: a name that ends in .parquet, .csv or .tsv; otherwise a folder of "
            "Parquet files. Without it, CSV to standard output.",
            "-o",
            "--output",
        ),
    ] = None,
    history: Annotated[
        Path | None, option("FILE", "Interactions of unseen users: recommend to them instead.")
    ] = None,
    user_id: Annotated[
        list[str] | None, option("ID", "Only for this user of the training data; may be repeated.")
    ] = None,
    users: Annotated[
        Path | None, option("FILE", "Only for the users of a table user_id, of the training data.")
    ] = None,
    exclude: Annotated[
        Path | None, option("FILE", "Leave out the items of a table item_id.")
    ] = None,
    allow: Annotated[
        Path | None, option("FILE", "Choose from the items of a table item_id alone.")
    ] = None,
    no_update: Annotated[
        bool,
        typer.Option(
            "--no-update", help="Do not record these lists as served, if the model serves a stream."
        ),
    ] = False,
    keep_seen: Annotated[
        bool, typer.Option("--keep-seen", help="Do not leave out what a user has seen.")
    ] = False,
    reading: Reading,
    columns: Annotated[
        TableColumns,
        ColumnFlags(beside_reading=True, users=("user",), exclude=("item",), allow=("item",)),
    ],
    threads: Threads = None,
    resume: Resume = False,
    checkpoint_every: CheckpointEvery = None,
    where: ExecutorFlags,
    as_json: Json = False,
) -> None:
    """Rank items for known users, or for unseen ones.

    In: a model folder. Without --history, all users of its training data get a list, or those of
    --users and --user-id. With it, the users of that table do, by what they did; it is read with
    the column flags. Out: a table user_id,item_id,rank,score, rank from 1. Users without a history
    get the most popular items.

    A model that was fitted to a target serves whoever asks as a part of the population that the
    target is for, so that all parts together give what was promised. One that was fitted with
    --serve stream remembers whom it served: its folder is locked meanwhile, and written to.

    Ctrl-C, or SIGTERM, ends the work after the current batch; FILE.checkpoint then holds the lists
    so far, and the same command with --resume makes the rest.

    With --executor ray users are served in pieces, whose lists are the parts of a folder. Parts
    that are finished are kept as they come.

    \b
    Examples:
      limelight recommend model/ -k 20 -o lists.parquet
      limelight recommend model/ --history new.csv -o lists.csv
      limelight recommend model/ --user-id 17 --user-id 42 -k 5
      limelight recommend model/ --users today.csv --no-update -o lists.parquet
      limelight recommend model/ --exclude sold_out.csv -o lists.parquet
      limelight recommend model/ --executor ray --address auto -o lists/
    """
    from limelight.jobs.recommend import recommend as make
    from limelight.jobs.service import BATCH
    from limelight.store.model_folder import require_complete

    has_ids = not (users is None and exclude is None and allow is None)
    _check(reading, k, output, history, user_id, users, as_json, has_ids=has_ids)
    tables = columns.beside(reading).tables(users=users, exclude=exclude, allow=allow)
    if where.check() and (user_id or users):
        some = users or (user_id or [""])[0]
        message = f"--executor ray is for all users, not for some: {some}"
        raise ConfigError(message, hint="leave --executor out")
    where.refuse_file(output)
    started = time.perf_counter()
    chosen = user_id if users is None else _read_ids(tables["users"], "user")
    batch = min(BATCH, len(chosen)) if chosen else BATCH
    n_asked = len(chosen) if chosen else None
    where.announce("recommending", lambda room: _memory(folder, k, batch, n_asked, room))
    require_complete(folder)  # before a history is read, which may take long
    asked: dict[str, Any] = {
        "k": k,
        "users": chosen or None,
        "update": not no_update,
        "histories": None if history is None else reading.interactions(history),
        "filter_seen": not keep_seen,
        "exclude": None if exclude is None else _read_ids(tables["exclude"], "item"),
        "allow": None if allow is None else _read_ids(tables["allow"], "item"),
        "num_threads": threads,
        "note": note,
    }
    with where.open(threads) as executor:
        if output is None:
            with tempfile.TemporaryDirectory() as place:
                make(folder, Path(place) / "lists.csv", **asked, executor=executor)
                _print(Path(place) / "lists.csv")
            return
        kept = checkpoint_of(output, resume=resume, every=checkpoint_every)
        found = make(folder, output, **asked, checkpoint=kept, executor=executor)
    k, seconds = int(found["k"]), time.perf_counter() - started
    text = (
        f"Lists of {k} for {found['users']:,} users were made in {seconds:.1f} seconds. Over these "
        f"lists and {found['items']:,} items, the Gini@{k} of exposure is "
        f"{found[f'gini@{k}']:.3f}, and "
        f"{percent(found[f'coverage@{k}'])} of the items are shown."
    )
    promise = found.pop("promise", None)
    if promise is not None:
        text += f"\n{_promised(promise, found, k, unseen=history is not None)}"
        found["target"] = promise["target"] | {"population": promise["population"]}
    record = {"users": found["users"], "k": k, "seconds": seconds, "output": str(output), **found}
    summarise(text, record, written=output, as_json=as_json)


_MEASURED = {
    "gini": ("gini", "Gini", "{:.3f}".format),
    "min_coverage": ("coverage", "coverage", percent),
}


def _promised(promise: dict[str, Any], found: dict[str, Any], k: int, *, unseen: bool) -> str:
    """Put what was asked for beside what was measured, and say what it costs."""
    said = _asked(promise, found, k, unseen=unseen)
    loss = promise["test"].get(f"ndcg_loss@{promise['target']['at']}")
    if loss is None:
        return f"{said}."
    what = f"nDCG@{promise['target']['at']}"
    return f"{said}. {price(loss, what)}, measured on test users when the model was fitted."


def _asked(promise: dict[str, Any], found: dict[str, Any], k: int, *, unseen: bool) -> str:
    target, served = promise["target"], promise["served"]
    at, n_users = target["at"], int(found["users"])
    wishes = {name: wish for name, wish in target.items() if name != "at"}
    text = f"Asked for: {asked_words(wishes)}, lists of {at}, over {promise['population']}"
    if k != at:
        return f"{text}; these lists are of another length"
    if unseen or n_users < served["users"]:
        who = "further users" if unseen else f"{n_users:,} of {int(served['users']):,}"
        if "of" in target:
            return f"{text}: these are {who}"
        return (
            f"{text}: these are {who}; the lists of all {int(served['users']):,} have a "
            f"Gini@{at} of {served[f'gini@{at}']:.3f}, and the fewer lists, the higher it is"
        )
    measured = [
        f"{label} {write(found[f'{name}@{k}'])}"
        for wish, (name, label, write) in _MEASURED.items()
        # A target of groups was measured when the model was fitted; these figures are of items.
        if wish in wishes and "of" not in target
    ]
    return f"{text}; measured: {', '.join(measured)}" if measured else text


def _read_ids(file: Any, what: str) -> list[str]:
    """Read the ids of users or of items from a table."""
    from limelight.data.catalogue import read_distinct

    ids, _ = read_distinct(file, what)
    return [str(one) for one in ids.to_pylist()]


def _check(
    reading: Reading,
    k: int,
    output: Path | None,
    history: Path | None,
    user_id: list[str] | None,
    users: Path | None,
    as_json: bool,
    *,
    has_ids: bool,
) -> None:
    """Refuse flags that contradict each other, before anything is read."""
    if k < 1:
        message = f"k must be at least 1: {k}"
        raise ConfigError(message, hint="-k is the length of the lists")
    if output is None and as_json:
        message = "--json needs -o: lists and summary cannot both go to standard output"
        raise ConfigError(message, hint="name a file for the lists with -o lists.parquet")
    if users is not None and (user_id or history is not None):
        message = f"--users excludes --user-id and --history: {str(users)!r}"
        raise ConfigError(message, hint="put all ids into the table, or leave --users out")
    if history is not None and user_id:
        message = f"--history and --user-id exclude each other: {user_id[0]}"
        raise ConfigError(message, hint="--history is for unseen users, --user-id for known ones")
    if history is None:
        hint = "name the table of unseen users with --history FILE"
        about_ids = ("user", "item", "separator") if has_ids else ()
        unused = replace(reading, **dict.fromkeys(about_ids))
        unused.refuse("without --history no table is read, so nothing takes", hint)
    if output is not None:
        from limelight.store.lists import ListWriter

        ListWriter(output).check()


def _memory(
    folder: Path, k: int, batch: int, n_asked: int | None, room: int | None
) -> Estimate | None:
    """Estimate the memory of lists for who asks, in batches, and how long they may be."""
    from limelight.data.candidates.candidates import MEMORY
    from limelight.recommend.memory import recommend_bytes
    from limelight.rerank.memory import model_supply, rerank_bytes
    from limelight.store.model_folder import CONTROL

    if (size := known_size(folder)) is None:
        return None
    is_reranked = (folder / CONTROL).exists()

    def bytes_of(k: int) -> int:
        plain = recommend_bytes(size, k, batch)
        if not is_reranked:
            return plain
        # No list is longer than the catalogue, whatever was asked for.
        supply = model_supply(size, n_asked)
        return max(plain, rerank_bytes(supply, min(k, size.n_items), MEMORY))

    lengths = range(1, min(k, size.n_items) + 1)
    fits = 0 if room is None else bisect_right(lengths, room, key=bytes_of)
    smaller = "fit a smaller model: fewer --factors, or --no-history, and --keep-seen here"
    return Estimate(bytes_of(k), f"make shorter lists: -k {fits}" if fits else smaller)


def _print(file: Path) -> None:
    """Copy lists to standard output once they are complete: half a table looks like a whole one."""
    sys.stdout.flush()
    # Bytes, not text: ids are UTF-8 whatever the terminal thinks.
    with file.open("rb") as lists:
        if sys.stdout.isatty():
            # Who looks at lists sees ids as text; a file or a pipe gets them as they are.
            shown = (printable_lines(line.decode()).encode() for line in lists)
            sys.stdout.buffer.writelines(shown)
        else:
            shutil.copyfileobj(lists, sys.stdout.buffer)
    sys.stdout.buffer.flush()
