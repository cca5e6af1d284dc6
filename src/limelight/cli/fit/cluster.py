"""``limelight fit --executor ray``: the same fit, on the machines of a cluster."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Required, TypedDict

import typer

from limelight._base.documents import Table
from limelight._base.errors import ConfigError
from limelight._base.progress import progress_bar
from limelight.cli.flags import option
from limelight.cli.flags.reading import SPLIT_FILE, Reading
from limelight.cli.frame import ExecutorFlags, say_nothing_to_resume
from limelight.cli.output import ending, note, report
from limelight.cluster.forecast.forecast import simulate, this_machine
from limelight.store.checkpoint import EVERY

if TYPE_CHECKING:
    from limelight._base.arrays import Int64
    from limelight.models.base import Model
    from limelight.models.factor_model import FactorModel

SHARDS = 16
MANY = 50_000_000
"""More rows than these are not counted for a dry run."""


@dataclass(frozen=True)
class ClusterFit(ExecutorFlags):
    """Where a fit is done, and how it is dealt out."""

    workers: Annotated[
        int | None,
        option(
            "N", "How many workers share the fit: one for each machine is best. 1 if not given."
        ),
    ] = None
    shards: Annotated[
        int | None,
        option(
            "N",
            "How many runs of users, and of items, are dealt to the workers: at least one for "
            f"each. A fit keeps its shards, its workers may change. {SHARDS} if not given.",
        ),
    ] = None
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Make the same bits with any number of workers; rows then wait for each other.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what the fit would hold, send and take, on so many machines like this.",
        ),
    ] = False


class Keeping(NamedTuple):
    """Whether to go on from a checkpoint, and the seconds between two of them."""

    resume: bool
    every: float | None


def fit_cluster(
    model: "Model",
    source: Path,
    reading: Reading,
    output: Path,
    cluster: ClusterFit,
    *,
    keeping: Keeping,
    history: bool,
    as_json: bool,
) -> dict[str, Any] | None:
    """Fit on a cluster and write the model; a dry run only says what that would take.

    Returns
    -------
    dict
        What is known at the end. None after a dry run.
    """
    from limelight._base.settings import check_integer, check_number
    from limelight._base.signals import finishing
    from limelight.cluster.fit import CheckpointOptions, fit_shards, is_begun, refuse_descent
    from limelight.cluster.forecast.workload import Cluster, Workload
    from limelight.cluster.ingest.routing import MOST_SHARDS
    from limelight.cluster.ray.connect import require_ray
    from limelight.cluster.ray.run import run_on_ray

    factors = require_factors(model)
    refuse_descent(factors)
    if not cluster.dry_run:
        require_ray()
    workers = 1 if cluster.workers is None else cluster.workers
    check_integer("--workers", workers, least=1)
    n_shards = max(SHARDS, workers) if cluster.shards is None else cluster.shards
    check_integer("--shards", n_shards, least=workers, most=MOST_SHARDS)
    sizes = (counted if cluster.dry_run else estimated)(source, reading)
    speeds = this_machine() if cluster.dry_run else {}
    forecast = simulate(
        Workload.of(factors.config, **sizes),
        Cluster(
            machines=workers,
            shards=n_shards,
            deterministic=cluster.deterministic,
            **speeds,  # type: ignore[arg-type]
        ),
    )
    if cluster.dry_run:
        report(str(forecast), forecast.as_dict(), as_json=as_json)
        return None
    note(forecast.brief())
    runtime = partial(
        run_on_ray,
        workers=workers,
        n_shards=n_shards,
        deterministic=cluster.deterministic,
        address=cluster.address,
        threads=factors.config.num_threads,
    )
    every = EVERY if keeping.every is None else keeping.every
    check_number("--checkpoint-every", every)
    if keeping.resume and not is_begun(output):
        say_nothing_to_resume()
    started = time.perf_counter()
    with finishing() as is_asked, Watch(factors, workers) as watch:
        fitted = fit_shards(
            factors,
            source,
            output,
            partial(runtime, should_stop=is_asked),
            n_shards=n_shards,
            checkpoints=CheckpointOptions(every, keeping.resume),
            history=history,
            on_news=watch,
            **reading.given(),
        )
        if not fitted.is_complete:
            note("the same command with --resume goes on from here")
    note(watch.table())
    shape = dict(zip(("users", "items", "interactions"), fitted.shape, strict=True))
    seconds = time.perf_counter() - started
    return {**shape, "seconds": seconds, **watch.record(), **ending(fitted.trace, fitted.status)}


def require_factors(model: "Model") -> "FactorModel":
    """Refuse models that are fitted on one machine only."""
    from limelight.models.factor_model import FactorModel

    if not isinstance(model, FactorModel):
        message = f"only ials and exadmm are fitted on a cluster: {type(model).__name__}"
        raise ConfigError(message, hint="leave --executor out, or use --model exadmm")
    return model


class DataSize(TypedDict, total=False):
    """How large data are and, where they were counted, how long the histories."""

    n_users: Required[int]
    n_items: Required[int]
    n_interactions: Required[int]
    user_lengths: "Int64"
    item_lengths: "Int64"


def counted(source: Path, reading: Reading) -> DataSize:
    """Read the data and count users, items and interactions; very many are only estimated."""
    import numpy as np

    if not is_split(source):
        about = estimated(source, reading)
        if about["n_interactions"] > MANY:
            return about
    data = reading.interactions(source)
    return {
        "n_users": data.n_users,
        "n_items": data.n_items,
        "n_interactions": data.nnz,
        "user_lengths": np.diff(data.indptr),
        "item_lengths": np.bincount(data.indices, minlength=data.n_items),
    }


def estimated(source: Path, reading: Reading) -> DataSize:
    """Estimate the same from a few rows, because the machine that starts a fit may be small."""
    from limelight.data.estimate import sample_of

    if is_split(source):
        reading.refuse_for_split()
        source /= SPLIT_FILE
    table = reading.open(source)
    found = sample_of(table)
    n_users, n_items = (max(1, round(found.distinct(name))) for name in table.names[:2])
    n_pairs = max(1, round(found.rated(reading.rating, reading.min_rating)))
    n_pairs = min(n_pairs, n_users * n_items)
    return {"n_users": n_users, "n_items": n_items, "n_interactions": n_pairs}


def is_split(source: Path) -> bool:
    """Tell whether a folder is a split, whose training part is one table."""
    return (source / SPLIT_FILE).is_file()


class Watch:
    """Shows how a fit goes: a bar while it runs, and what each worker did."""

    def __init__(self, model: "FactorModel", workers: int) -> None:
        config = model.config
        what = f"{type(model).__name__} on {workers} workers"
        self._bar = progress_bar(what, config.epochs)
        self._epoch = 0
        self._news: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> "Watch":
        """Show the bar."""
        self._advance = self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop the bar."""
        self._bar.__exit__(*error)

    def __call__(self, rank: int, epoch: int, news: dict[str, Any]) -> None:
        """Print that a worker was lost; keep what others report, and move the bar on."""
        if "lost" in news:
            note(f"worker {rank} was lost ({news['lost']}): going on from epoch {epoch}")
            return
        self._news[rank] = news
        while self._epoch < epoch:
            self._epoch += 1
            self._advance()

    def record(self) -> dict[str, Any]:
        """Return what each worker's time and bytes went into, for JSON."""
        return {"workers": [{"worker": rank, **news} for rank, news in sorted(self._news.items())]}

    def table(self) -> str:
        """Show what each worker's time and bytes went into."""
        if not self._news:
            return ""
        parts = sorted({part for news in self._news.values() for part in news["phases"]})
        verbs = sorted({verb for news in self._news.values() for verb in news["traffic"]})
        header = ["worker", *(f"{part} s" for part in parts), *(f"{verb} MB" for verb in verbs)]
        rows = [
            [
                str(rank),
                *(f"{news['phases'].get(part, 0.0):.2f}" for part in parts),
                *(f"{news['traffic'].get(verb, 0) / 1e6:.1f}" for verb in verbs),
            ]
            for rank, news in sorted(self._news.items())
        ]
        return Table(header, rows).text()
