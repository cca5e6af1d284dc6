"""``limelight data``: describe, split and convert interactions."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight._base.documents import Table
from limelight._base.errors import ConfigError, DataError
from limelight._base.text import percent
from limelight.cli.flags import (
    DataFile,
    Json,
    Seed,
    Verb,
    argument,
    option,
    showing,
    takes_flags,
)
from limelight.cli.flags.reading import Reading
from limelight.cli.output import report, summarise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from limelight.data import HeldOut, Interactions, Split

SplitBy = StrEnum("SplitBy", ["users", "time"])
FEW = 5
_PERCENTILES = {"min": 0, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p99": 99, "max": 100}


@takes_flags
def describe(source: DataFile, reading: Reading, as_json: Json = False) -> None:
    """Describe interactions: how many, how dense, how unequal.

    In: a table with a row for each interaction. Out: a report on standard output.

    \b
    Examples:
      limelight data describe ratings.csv
      limelight data describe ratings.parquet --rating stars --min-rating 4 --json
    """
    record = _describe(reading.interactions(source))
    report(_description(record), record, as_json=as_json)


def _describe(data: "Interactions") -> dict[str, Any]:
    import numpy as np

    from limelight.metrics.exposure import gini, top_share

    per_user = np.diff(data.indptr)
    per_item = np.bincount(data.indices, minlength=data.n_items)
    return {
        "users": data.n_users,
        "items": data.n_items,
        "interactions": data.nnz,
        "density": data.nnz / (data.n_users * data.n_items),
        "duplicates": data.duplicates,
        **_spread("per_user", per_user),
        **_spread("per_item", per_item),
        f"users_below_{FEW}": int(np.sum(per_user < FEW)),
        f"items_below_{FEW}": int(np.sum(per_item < FEW)),
        "popularity_gini": gini(per_item),
        "popularity_top_share": top_share(per_item),
    }


def _spread(name: str, counts: "NDArray[np.integer[Any]]") -> dict[str, float]:
    import numpy as np

    found = np.percentile(counts, list(_PERCENTILES.values()))
    spread = {f"{name}_{key}": float(value) for key, value in zip(_PERCENTILES, found, strict=True)}
    return {**spread, f"{name}_mean": float(counts.mean())}


def _description(record: dict[str, Any]) -> str:
    facts = [
        ("users", f"{record['users']:,}"),
        ("items", f"{record['items']:,}"),
        ("interactions", f"{record['interactions']:,}"),
        ("density", percent(record["density"], 4)),
        ("duplicates merged", f"{record['duplicates']:,}"),
        (f"users with fewer than {FEW} items", f"{record[f'users_below_{FEW}']:,}"),
        (f"items with fewer than {FEW} users", f"{record[f'items_below_{FEW}']:,}"),
        ("Gini of popularity (0: all items equally popular)", f"{record['popularity_gini']:.4f}"),
        ("share of the top 1 % of the items", percent(record["popularity_top_share"], 2)),
    ]
    heads = [*_PERCENTILES, "mean"]
    spreads = [("interactions", *heads)] + [
        (label, *(_short(record[f"{name}_{head}"]) for head in heads))
        for label, name in (("of a user", "per_user"), ("of an item", "per_item"))
    ]
    return f"{Table((), facts).text()}\n\n{Table((), spreads).text()}"


def _short(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


@takes_flags
def split(
    source: Annotated[
        Path,
        argument(
            "DATA",
            "A .parquet, .csv, .tsv or .dat file (also .gz, .bz2, .zst, .zip), or a folder of "
            "parts.",
        ),
    ],
    output: Annotated[
        Path,
        option(
            "FOLDER", "The split folder to write; an older split is replaced.", "-o", "--output"
        ),
    ],
    *,
    by: Annotated[
        SplitBy,
        option("users|time", "Hold out whole users, or what was done last (needs --timestamp)."),
    ] = SplitBy.users,
    validation: Annotated[
        str, option("N", "Validation users: a count, or a share such as 0.1; by time, a share.")
    ] = "0.1",
    test: Annotated[
        str, option("N", "Test users: a count, or a share such as 0.1; by time, a share.")
    ] = "0.1",
    at: Annotated[
        str | None, option("TIME", "When the test begins, such as 2021-01-01, in place of --test.")
    ] = None,
    seed: Seed = None,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Hold out users, or what was done last, for validation and for testing.

    In: a table of interactions. Out: a folder with train.csv, validation_tr.csv,
    validation_te.csv, test_tr.csv, test_te.csv (columns uid,sid) and the ids. Of a held-out user,
    80 % of the items are history to show to a model (tr), 20 % are targets to guess (te); by time,
    history is what was done before. Items that no training user has are dropped.

    \b
    Examples:
      limelight data split ratings.csv -o split/
      limelight data split ratings.parquet --rating rating --min-rating 4 \\
        --validation 500 --test 500 --seed 98765 -o split/
      limelight data split ratings.csv --by time --timestamp time --at 2021-01-01 -o split/
    """
    from limelight.data import split_time, split_users

    sizes: dict[str, Any] = {
        "validation": _amount("--validation", validation),
        "test": _amount("--test", test),
    }
    has_no_use = [("--at", at)] if by is SplitBy.users else [("--seed", seed)]
    for flag, value in has_no_use:
        if value is not None:
            message = f"a split by {by.value} does not take: {flag}"
            raise ConfigError(message, hint="leave it out, or choose another --by")
    if by is SplitBy.users:
        found = split_users(reading.table(source), **sizes, random_state=seed)
    else:
        # Ages count from where each part begins, so the weights are made by the split.
        table = replace(reading, half_life=None).table(source)
        found = split_time(table, **sizes, at=at, half_life=reading.half_life)
    found.save(output)
    record = split_record(found) | {"output": str(output)}
    summarise(_split_table(found), record, written=output, as_json=as_json)


def _split_defaults() -> dict[str, str]:
    from limelight.data.split import SPLIT_SEED

    return {"seed": str(SPLIT_SEED)}


def _amount(flag: str, text: str) -> float:
    """Read a count as an integer and a share as a float, which is how split_users tells them."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        message = f"not a number: {text!r}"
        raise typer.BadParameter(message, param_hint=f"'{flag}'") from None


def split_record(found: "Split") -> dict[str, int]:
    """Count what is in a split."""
    counts = {
        "train_users": found.train.n_users,
        "train_items": found.train.n_items,
        "train_interactions": found.train.nnz,
    }
    for name, part in _held_out(found):
        counts[f"{name}_users"] = part.n_users
        counts[f"{name}_history"] = int(part.history.nnz)
        counts[f"{name}_targets"] = int(part.targets.nnz)
    counts["dropped_items"] = found.dropped_items
    counts["dropped_interactions"] = found.dropped_interactions
    if found.users_without_history:
        counts["users_without_history"] = found.users_without_history
    return counts


def _held_out(found: "Split") -> "list[tuple[str, HeldOut]]":
    return [("validation", found.validation), ("test", found.test)]


def _split_table(found: "Split") -> str:
    train = found.train
    rows = [("", "users", "items", "interactions", "targets")]
    rows.append(("train", f"{train.n_users:,}", f"{train.n_items:,}", f"{train.nnz:,}", ""))
    rows += [
        (name, f"{part.n_users:,}", "", f"{part.history.nnz:,}", f"{part.targets.nnz:,}")
        for name, part in _held_out(found)
    ]
    dropped = f"{found.dropped_items:,} (interactions: {found.dropped_interactions:,})"
    text = f"{Table((), rows).text()}\nitems dropped because no training user has them: {dropped}"
    if found.users_without_history:
        without = f"{found.users_without_history:,}"
        text += f"\nusers left out because they have no earlier interactions: {without}"
    return text


@takes_flags
def convert(
    source: DataFile,
    output: Annotated[
        Path, option("FILE", "The file to write: .parquet, .csv or .tsv.", "-o", "--output")
    ],
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Write interactions, filtered and merged, as user_id,item_id.

    In: a table of interactions. Out: a table, user by user, each user's items in the order of the
    file (of time, if --timestamp is named). With --weight or --half-life, it has a column weight.

    \b
    Examples:
      limelight data convert ratings.csv -o interactions.parquet
      limelight data convert ratings.parquet --rating rating --min-rating 4 -o likes.csv
    """
    refuse_unknown_kind(output)
    data = reading.interactions(source)
    _write_pairs(data, output)
    record = {
        "users": data.n_users,
        "items": data.n_items,
        "interactions": data.nnz,
        "duplicates": data.duplicates,
        "output": str(output),
    }
    merged = f"; duplicates merged: {data.duplicates:,}" if data.duplicates else ""
    text = f"{data.nnz:,} interactions of {data.n_users:,} users with {data.n_items:,} items"
    summarise(f"{text}{merged}", record, written=output, as_json=as_json)


def refuse_unknown_kind(output: Path) -> None:
    """Refuse a file whose ending does not say what it is, before the work begins."""
    if output.suffix.lower() not in {".parquet", ".csv", ".tsv"}:
        message = f"unknown kind of file: {str(output)!r}"
        raise DataError(message, hint="the name must end in .parquet, .csv or .tsv")


def _write_pairs(data: "Interactions", output: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from limelight._base.files import atomic_file
    from limelight.data.files import DELIMITERS
    from limelight.data.ids import ids_to_arrow
    from limelight.data.rows import row_numbers, walk

    starts, items = walk(data.indptr, data.indices, data.order, np.arange(data.n_users))
    table = pa.table(
        {
            "user_id": ids_to_arrow(data.user_ids).take(pa.array(row_numbers(starts))),
            "item_id": ids_to_arrow(data.item_ids).take(pa.array(items)),
        }
    )
    if data.weights is not None:
        _, weights = walk(data.indptr, data.weights, data.order, np.arange(data.n_users))
        table = table.append_column("weight", pa.array(weights))
    with atomic_file(output) as temporary:
        if delimiter := DELIMITERS.get(output.suffix.lower()):
            options = pa.csv.WriteOptions(delimiter=delimiter)
            pa.csv.write_csv(table, temporary, options)
        else:
            pa.parquet.write_table(table, temporary)


data = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Describe, split and convert interactions."
)
data.command(cls=Verb)(describe)
data.command(cls=showing(_split_defaults))(split)
data.command(cls=Verb)(convert)
