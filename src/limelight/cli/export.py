"""``limelight export``: a model's factors, prices and index, for other stacks."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.cli.flags import Json, ModelFolder, Threads, length, option, takes_flags
from limelight.cli.frame import Estimate, announce_look, known_size
from limelight.cli.output import summarise


class Format(StrEnum):
    """What can be written."""

    parquet = "parquet"
    npy = "npy"
    voyager = "voyager"
    faiss = "faiss"


@takes_flags
def export(
    folder: ModelFolder,
    *,
    output: Annotated[Path, option("FOLDER", "Where the files go.", "-o", "--output")],
    to: Annotated[
        Format,
        option(
            "parquet|npy|voyager|faiss",
            "Factors as columns of tables, or as arrays; the last two add an index.",
        ),
    ] = Format.parquet,
    k: Annotated[int, length("Length of the lists that an index is measured by.")] = 20,
    recall: Annotated[
        float, option("SHARE", "How much of the exact lists an index must find.")
    ] = 0.99,
    queries: Annotated[int, option("N", "For how many users that is measured, at most.")] = 1000,
    plain: Annotated[
        bool, typer.Option("--plain", help="Leave the control of the model out.")
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write a model's factors, prices and index for other stacks.

    In: a folder of IALS or ExADMM, also with prices, as `limelight fit --serve stateless` finds
    them. Out: a folder with items.parquet, users.parquet, prices.parquet (item_id,price: what is
    added to relevance), factors, export.json and README.md, which has an example. An older export
    is replaced. The model is only read.

    An index finds the nearest points, so products are turned into distances first, without error.
    Its recall is measured against an exact search; more links and deeper searches are tried until
    it reaches --recall. export.json says what was tried, and what it takes. At 100,000 items the
    exact search of `limelight recommend` takes no longer; an index is for stacks that use one.

    \b
    Examples:
      limelight export model/ -o export/
      limelight export model/ --to voyager -o index/
      limelight export model/ --to faiss --recall 0.95 --queries 200 -o index/
    """
    from limelight.rerank.folder import load
    from limelight.serve.export.export import IndexOptions, export_model, refuse_within_model
    from limelight.store.model_folder import require_complete

    asked = IndexOptions(k=k, recall=recall, queries=queries)
    refuse_within_model(output, folder)
    require_complete(folder)
    announce_look("exporting", lambda _: _memory(folder, to))
    started = time.perf_counter()
    model = load(folder)
    if threads is not None:
        model.use_threads(threads)
    record = export_model(model, output, to=to.value, index=asked, plain=plain)
    record["seconds"] = time.perf_counter() - started
    record["output"] = str(output)
    summarise(_told(record), record, written=output, as_json=as_json)


def _memory(folder: Path, to: Format) -> Estimate | None:
    """Estimate the memory: the model, what is written of it, and twice its items in an index."""
    size = known_size(folder)
    if size is None:
        return None
    items = 4 * size.n_items * (size.width + 2 + 2 * 48)
    needed = 2 * size.arrays + size.seen + 3 * size.ids
    if to in {Format.voyager, Format.faiss}:
        needed += 4 * items
    return Estimate(needed, hint="export --to npy, which makes no index")


def _told(record: dict[str, Any]) -> str:
    model, index, control = record["model"], record["index"], record["control"]
    text = (
        f"{model['name']} with {model['factors']} factors: {model['users']:,} users, "
        f"{model['items']:,} items"
    )
    if control is not None:
        sets = control["sets"]
        text += f", prices of {control['reranker']}" + (f" in {sets} sets" if sets > 1 else "")
    elif record["control_left_out"]:
        text += ", without its control"
    if index is None:
        return text
    return (
        f"{text}\nrecall@{index['k']} {index['recall']:.4f} over {index['queries']:,} users "
        f"(M {index['M']}, ef {index['ef']}, {index['fetch']} fetched), "
        f"{1e3 * index['seconds_per_query']:.2f} ms a search; exact, many at once: "
        f"{1e3 * index['exact_seconds_per_query']:.2f} ms"
    )
