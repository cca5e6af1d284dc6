"""``limelight demo``: the trade-off between accuracy and exposure on a made-up marketplace."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from limelight._base.errors import ConfigError, DataError
from limelight.cli.data import split_record
from limelight.cli.flags import Json, Report, option
from limelight.cli.output import check_page, note, remark, report, to_json

if TYPE_CHECKING:
    from limelight.cli.demo.runs import DemoRun
    from limelight.data import Marketplace, Split


def demo(
    output: Annotated[
        Path, option("FOLDER", "The folder to write to; it is made if need be.", "-o", "--output")
    ] = Path("run"),
    users: Annotated[int, option("N", "Users of the marketplace.")] = 20_000,
    items: Annotated[int, option("N", "Items of the marketplace.")] = 2_000,
    interactions: Annotated[int, option("N", "Interactions between them.")] = 1_000_000,
    gini: Annotated[float, option("NUMBER", "The Gini index of exposure to ask for.")] = 0.6,
    seed: Annotated[int, option("N", "Seed of the data, the split and the models.")] = 0,
    factors: Annotated[int, option("N", "Length of the vectors.")] = 64,
    threads: Annotated[
        int, option("N", "How many threads to use; 0: all that the process may use.")
    ] = 0,
    page: Report = None,
    as_json: Json = False,
) -> None:
    """Show what exposure control does and costs, on made-up data.

    In: nothing. Out, in about a minute: a table of accuracy against exposure without control, with
    exADMM and with best response; a model that was asked for a Gini index over all users, and what
    it was measured to give them. The folder has report.html (a page to look at; --report puts it
    elsewhere), results.json, tradeoff.png, lorenz.png, the split, the model, and who provides
    which item (providers.parquet).

    \b
    Examples:
      limelight demo
      limelight demo -o run/ --users 5000 --items 1000 --interactions 200000 --gini 0.5
    """
    from limelight.cli.demo.runs import run_all
    from limelight.cli.demo.story import answer, tell
    from limelight.data import marketplace, split_users
    from limelight.report.exhibit_folder import save_exhibit
    from limelight.report.page import write_page
    from limelight.rerank.folder import load

    check_page(page)
    target = page or output / "report.html"
    market = marketplace(users, items, interactions, seed=seed)
    split = split_users(market.interactions, validation=0.1, test=0.1, seed=seed)
    _make_folder(output)
    _introduce(market, split)
    run = run_all(market, split, gini, factors=factors, random_state=seed, num_threads=threads)
    run.result.model.save(output / "model")
    # What is measured is what the saved model serves, as whoever reads the folder would get it.
    served, plain = run.serve(load(output / "model")), run.serve(run.result.plain)
    record = {
        "users": market.interactions.n_users,
        "items": market.interactions.n_items,
        "interactions": market.interactions.nnz,
        **split_record(split),
        "answer": " ".join(answer(run, served).split()),
        "asked": {"gini": gini, "users": market.interactions.n_users},
        "served": served,
        "plain": plain,
        "target": run.result.to_dict(),
        "frontier": run.front.to_dict(),
    }
    exhibit = run.exhibit(seed)
    _write(output, record, market, split)
    save_exhibit(output, exhibit)
    write_page(exhibit, target)
    figures = _draw(output, run)
    report(tell(output, run, served, plain, page=target, figures=figures), record, as_json=as_json)


def _make_folder(output: Path) -> None:
    """Make the folder before the work begins: a place that cannot be written to is found here."""
    if output.exists() and not output.is_dir():
        message = f"not a folder: {str(output)!r}"
        raise DataError(message, hint="name a folder with -o")
    output.mkdir(parents=True, exist_ok=True)


def _introduce(market: "Marketplace", split: "Split") -> None:
    data, n_providers = market.interactions, int(market.providers.max()) + 1
    remark(
        f"A made-up marketplace (limelight.marketplace): {data.n_users:,} users,\n"
        f"{data.n_items:,} items, {data.nnz:,} interactions, providers: {n_providers:,}.\n"
        f"Training on {split.train.n_users:,} users, testing on {split.test.n_users:,} others.\n"
    )


def _write(output: Path, record: dict[str, Any], market: "Marketplace", split: "Split") -> None:
    """Write tables and numbers, each file whole or not at all."""
    import pyarrow.parquet as pq

    from limelight._base.files import atomic_file, write_text

    split.save(output / "split")
    with atomic_file(output / "providers.parquet") as temporary:
        pq.write_table(market.groups, temporary)
    write_text(output / "results.json", to_json(record, indent=2) + "\n")


def _draw(output: Path, run: "DemoRun") -> bool:
    """Draw the figures if matplotlib is there, else say how to get it."""
    from limelight.cli.demo.story import draw
    from limelight.report.figures.style import load_matplotlib

    try:
        load_matplotlib()
    except ConfigError as error:
        note(f"No figures: {error.message}.\n\nhint: {error.hint}\n")
        return False
    draw(output, run)
    return True
