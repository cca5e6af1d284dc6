"""``limelight reproduce``: the paper's experiments in one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from limelight._base.errors import ConfigError, DataError
from limelight.cli.flags import Json, Report, Resume, Seed, argument, option
from limelight.cli.output import check_page, note_page, remark, summarise

if TYPE_CHECKING:
    from limelight.data import Split
    from limelight.lab.paper.experiments import Experiment
    from limelight.lab.paper.run import Findings

_NAMES = "epinions|ml-20m|msd|letterboxd|gowalla"


def reproduce(
    name: Annotated[str | None, argument(_NAMES, "Which data set.")] = None,
    data: Annotated[
        Path | None, option("FILE", "The data as they are published, as a table.")
    ] = None,
    like: Annotated[
        str | None, option(_NAMES, "Made-up data of that size instead of published ones.")
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "FOLDER",
            "The folder to write to, and to go on from.  [default: the data set's name]",
            "-o",
            "--output",
        ),
    ] = None,
    *,
    methods: Annotated[
        list[str] | None,
        option(
            "NAME",
            "A method to run; may be repeated. Without it, all: Random, Popularity, iALS, "
            "iALS-settings, Mult-VAE, iALS+FairRec, Multi-FR, exADMM, exADMM-exact, "
            "iALS+BestResponse, EASE.",
            "--method",
        ),
    ] = None,
    budget: Annotated[
        float,
        option(
            "MINUTES",
            "About how long it may take. What does not fit is shortened with a mark, or left out "
            "by name; 0 tries only the published settings, however long they take.",
        ),
    ] = 60.0,
    trials: Annotated[
        int | None,
        option(
            "N",
            "How many settings each method tries, whatever the clock says: two runs with the same "
            "seed then give the same results. The budget bounds only what is timed.",
        ),
    ] = None,
    seed: Seed = None,
    factors: Annotated[
        int | None, option("N", "Length of the vectors of all methods, instead of the paper's.")
    ] = None,
    latent: Annotated[
        int | None, option("N", "Width of the networks' layers, if not that of the vectors.")
    ] = None,
    epochs: Annotated[
        int | None, option("N", "Train for at most so many epochs; times are then extrapolated.")
    ] = None,
    threads: Annotated[
        int, option("N", "How many threads to use; 0: all that the process may use.")
    ] = 0,
    user: Annotated[
        str | None, option("COLUMN", "Column of users, if it has another name.")
    ] = None,
    item: Annotated[
        str | None, option("COLUMN", "Column of items, if it has another name.")
    ] = None,
    resume: Resume = False,
    page: Report = None,
    as_json: Json = False,
) -> None:
    """Run the experiments of the exADMM paper.

    In: a data set as it is published, or nothing with --like. Out: a folder with
    report.md, the paper's tables as CSV, its figures as PNG and SVG, all trials in trials.csv, and
    what `limelight report` shows. First it says what each method will take. Settings are searched
    on validation users; the test users are looked at once, at the end, and exposure is that of
    their lists alone, as in the paper. What was found out is kept in
    FOLDER/state, so that the same command goes on where it was interrupted, with or without
    --resume.

    \b
    The data are published by others:
      epinions    Massa and Avesani, trustlet.org: ratings_data.txt.bz2
      ml-20m      MovieLens 20M, grouplens.org: ratings.csv
      msd         Taste Profile of the Million Song Dataset: train_triplets.txt
      letterboxd  not in the paper; ratings of films from 1 to 10
      gowalla     not in the paper; LightGCN's check-ins

    \b
    Examples:
      limelight reproduce epinions --data ratings_data.txt.bz2 --budget 60
      limelight reproduce epinions --data epinions.parquet --trials 40 --seed 1
      limelight reproduce --like msd --method iALS --method exADMM --factors 128 --budget 0
    """
    from limelight._base.settings import check_integer, check_number
    from limelight.lab.paper.plan import METHODS, ReproductionPlan
    from limelight.lab.paper.report import PROTOCOL, exhibit_of, measured_over, write_report
    from limelight.lab.paper.run import Run
    from limelight.report.exhibit_folder import save_exhibit
    from limelight.report.page import write_page

    check_page(page)
    del resume  # the folder says how far it has come
    experiment, key = _experiment(name, data, like)
    check_number("--budget", budget)
    check_integer("--threads", threads, least=0, most=2**12)
    sizes = {"--factors": factors, "--latent": latent, "--epochs": epochs, "--trials": trials}
    for flag, value in sizes.items():
        if value is not None:
            check_integer(flag, value, least=1, most=2**15)
    check_integer("--seed", seed or 0, least=0, most=2**32 - 1)
    plan = ReproductionPlan(
        experiment=experiment,
        made_up=like is not None,
        methods=tuple(methods) if methods else METHODS,
        budget=budget,
        trials=trials,
        seed=seed or 0,
        factors=factors,
        latent=latent,
        epochs=epochs,
        threads=threads,
    )
    folder = output or Path(f"{key}-like" if like else key)
    if folder.exists() and not folder.is_dir():
        message = f"the output is not a folder: {str(folder)!r}"
        raise DataError(message, hint="choose another with -o")
    columns = {side: column for side, column in (("user", user), ("item", item)) if column}
    if columns and like:
        message = f"made-up data have no columns to name: --{next(iter(columns))}"
        raise ConfigError(message, hint="leave it out, or give --data")
    split = _split(experiment, data, columns)
    run = Run(plan, split, folder / "state", remark)
    found = run.findings()
    report = write_report(plan, found, folder, run.searches())
    exhibit = exhibit_of(plan, found, split, run.shown_at)
    save_exhibit(folder, exhibit)
    if page is not None:
        write_page(exhibit, page)
        note_page(page)
    text = f"{_summary(found)}\nGini {measured_over(found)}"
    record = _record(found) | {"protocol": PROTOCOL, "output": str(folder)}
    summarise(text, record, written=report, as_json=as_json)


def _experiment(name: str | None, data: Path | None, like: str | None) -> "tuple[Experiment, str]":
    from limelight.lab.paper.experiments import EXPERIMENTS, find

    if like is not None:
        if name is not None or data is not None:
            message = "--like makes the data up, so it takes neither a name nor --data"
            raise ConfigError(message, hint=f"limelight reproduce --like {like}")
        return find(like), like
    if name is None:
        message = "no data set was named"
        raise ConfigError(message, hint=f"name one of: {', '.join(EXPERIMENTS)}")
    experiment = find(name)
    if data is None:
        message = f"--data is missing: {experiment.title} is published by others"
        hint = f"get {experiment.origin}, or make up data of its size with --like {name}"
        raise ConfigError(message, hint=hint)
    return experiment, name


def _split(experiment: "Experiment", data: Path | None, columns: dict[str, str]) -> "Split":
    from limelight.lab.paper.experiments import make_up, prepare

    if data is not None:
        return prepare(experiment, data, columns)
    remark(f"Making up data of the size of {experiment.title} ...")
    return make_up(experiment.size, experiment.held_out)


def _record(found: "Findings") -> dict[str, Any]:
    points = {str(k): methods for k, methods in found.points.items()}
    known = {"size": found.size._asdict(), "points": points, "times": found.times}
    return known | {"trials": found.trials, "left_out": found.left_out}


def _summary(found: "Findings") -> str:
    k = max(found.points)
    lines = []
    for name, points in found.points[k].items():
        best = max(points, key=lambda point: point[f"ndcg@{k}"])
        evenest = min(points, key=lambda point: point[f"gini@{k}"])
        text = f"{name:17} nDCG@{k} {best[f'ndcg@{k}']:.4f} at Gini@{k} {best[f'gini@{k}']:.4f}"
        if evenest is not best:
            text += f", {evenest[f'ndcg@{k}']:.4f} at {evenest[f'gini@{k}']:.4f}"
        lines.append(text)
    return "\n".join(lines)
