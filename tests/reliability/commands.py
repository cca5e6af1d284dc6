"""What fault points are tried on: every verb that writes, in every format, and the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import limelight as ll

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

METHODS = ("best-response", "prices", "online", "allocate", "fairrec", "auto")
FORMATS = ("parquet", "csv", "tsv")


@dataclass(frozen=True)
class Command:
    """A command that writes below the folder that it runs in."""

    arguments: list[Any]
    before: list[Any] | None = None
    """The command whose output stands there before; None where there is none."""
    given: dict[str, str] = field(default_factory=dict)
    """What is copied there before, by the name that it gets: a model that remembers."""
    leaves: tuple[str, ...] = ()
    """Names of what only unfinished work needs."""
    resume: tuple[Any, ...] = ()
    """Flags by which it goes on after a kill."""


def make_inputs(place: Path) -> None:
    """Write the data, models, lists and runs that commands read."""
    market = ll.marketplace(240, 60, 4000, seed=5)
    split = ll.split_users(market.interactions, validation=60, test=60)
    split.save(place / "split")
    table = market.interactions.to_arrow() if hasattr(market.interactions, "to_arrow") else None
    pairs = table or _pairs(market.interactions)
    pc.write_csv(pairs, place / "likes.csv")
    pq.write_table(pairs, place / "likes.parquet")
    model = ll.IALS(factors=4, epochs=2, num_threads=1).fit(split.train)
    model.save(place / "model")
    ll.fit_to(
        split, gini=0.4, at=5, model=ll.IALS(factors=4, epochs=2, num_threads=1), serve="stream",
        show_progress=False,
    ).model.save(place / "stream")  # fmt: skip
    lists = ll.rerank(model, k=30, max_relevance_loss=0.0, method="best-response")
    lists.write(place / "candidates.parquet")
    ll.frontier(split, model=ll.ExADMM(factors=4, epochs=2), points=3, folder=place / "run")
    pc.write_csv(market.groups, place / "groups.csv")
    generator = np.random.default_rng(0)
    times = np.sort(generator.uniform(0, 14_400, 300)) + 1e9
    pc.write_csv(
        pa.table({"user": generator.integers(0, 200, 300), "time": times}), place / "log.csv"
    )


def _pairs(data: Any) -> pa.Table:
    rows = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    return pa.table({"user_id": rows, "item_id": np.asarray(data.indices, dtype=np.int64)})


def commands(place: Path) -> dict[str, Command]:
    """Name all commands, which write in place of what another call of the same verb has written."""
    quick = ["--factors", 4, "--epochs", 2, "--threads", 1, "--no-measure"]
    fit, often = ["fit", place / "split"], ["--checkpoint-every", 0]
    candidates, k = place / "candidates.parquet", ["-k", 5, "--threads", 1]
    run, tiny = place / "run", ["--factors", 4, "--epochs", 2, "--threads", 1]
    found = {
        "fit": _seeded([*fit, *quick, *often, "-o", "out"], resume=("--resume",)),
        "fit --gini": _seeded(
            [*fit, *quick[:-1], *often, "--gini", 0.4, "--report", "page.html", "-o", "out"],
            resume=("--resume",),
        ),
        "fit --tune": _seeded([*fit, *quick, "--tune", "--trials", 4, "-o", "out"]),
        "tune": Command(
            ["tune", place / "split", *tiny, "--trials", 4, "-o", "out"], leaves=("state",)
        ),
        "frontier": Command(
            ["frontier", place / "split", *tiny, "--points", 3, "-o", "out"], leaves=("state",)
        ),
        "recommend a stream": Command(
            ["recommend", "stream", *k, "-o", "lists.parquet"], given={"stream": "stream"}
        ),
        "audit": _other(
            ["audit", candidates, "--report", "page.html", "--items", "items.csv",
             "--groups", place / "groups.csv", "--group-table", "groups.parquet"],
            "-k", 4, "-k", 6,
        ),
        "report": _other(
            ["report", run, "-o", "page.html"], "--groups", place / "groups.csv"
        ),
        "demo": _seeded(
            ["demo", "-o", "out", "--users", 200, "--items", 40, "--interactions", 3000,
             "--factors", 4, "--threads", 1, "--gini", 0.3]
        ),
        "data split": _seeded(
            ["data", "split", place / "likes.csv", "--validation", 40, "--test", 40, "-o", "out"]
        ),
    }  # fmt: skip
    for kind in FORMATS:
        out = ["-o", f"lists.{kind}"]
        found[f"recommend {kind}"] = _other(
            ["recommend", place / "model", "--threads", 1, *often, *out], "-k", 3, "-k", 5
        )
        found[f"data convert {kind}"] = _other(
            ["data", "convert", place / "likes.parquet", "-o", f"likes.{kind}"], "--min-user", 12
        )
        found[f"replay {kind}"] = _other(
            ["replay", place / "model", place / "log.csv", "--gini", 0.5, "-k", 5, *out],
            "--window", "20m", "--window", "30m",
        )  # fmt: skip
    found["recommend folder"] = _other(
        ["recommend", place / "model", "--threads", 1, *often, "-o", "lists"], "-k", 3, "-k", 5
    )
    for kind in ("json", "png"):
        found[f"replay {kind}"] = _other(
            ["replay", place / "model", place / "log.csv", "--gini", 0.5, "-k", 5,
             "-o", f"found.{kind}"],
            "--window", "20m", "--window", "30m",
        )  # fmt: skip
    for method in METHODS:
        found[f"rerank {method}"] = _other(
            ["rerank", candidates, "--method", method, *k, "-o", "lists"],
            "--gini", 0.35, "--gini", 0.3,
        )  # fmt: skip
    found["rerank csv"] = _other(
        ["rerank", candidates, *k, "--report", "page.html", "-o", "lists.csv"],
        "--gini", 0.35, "--gini", 0.3,
    )  # fmt: skip
    for kind in ("png", "svg", "pdf"):
        found[f"plot {kind}"] = Command(["plot", run, "--as", kind, "-o", "figures"])
    for kind in ("parquet", "npy", "voyager"):
        found[f"export {kind}"] = _other(
            ["export", place / "model", "--to", kind, "--queries", 20, "-o", "out"],
            "-k", 4, "-k", 5,
        )  # fmt: skip
    return found


def _seeded(arguments: list[Any], **more: Any) -> Command:
    """Return a command in place of what another seed has written."""
    return Command([*arguments, "--seed", 1], [*arguments, "--seed", 2], **more)


def _other(arguments: list[Any], *flags: Any) -> Command:
    """Return a command with the last two of the flags, in place of what the first have written."""
    half = len(flags) // 2 if len(flags) > 2 else 0
    return Command([*arguments, *flags[half:]], [*arguments, *flags[:half]])


def serve_journal(folder: Path, told: Callable[[int], None]) -> None:
    """Count lists as a service does; tell how many were safe after each."""
    from limelight.serve.ledger.journal import Journal
    from limelight.serve.ledger.ledger import Ledger

    ledger = Ledger(4, window=86_400.0)
    with Journal(
        folder, ledger, item_ids=["a", "b", "c", "d"], flush_every=1e6, durable=True, most_bytes=600
    ) as journal:
        for number in range(N_LISTS):
            count_list(ledger, number)
            journal.flush(ledger.time)
            # A service goes on where it cannot write, and says so until it can again.
            if journal.error is None:
                told(number + 1)


N_LISTS = 24


def count_list(ledger: Any, number: int) -> None:
    """Count one list."""
    ledger.advance(1e9 + number)
    items = np.array([number % 4, (number + 1) % 4], dtype=np.int32)
    ledger.count(items, time=1e9 + number, plain=0.1, shown=0.2, event=str(number))
