"""``limelight bench``: speed and memory, ours and our peers', on this machine; and re-rankers."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from limelight._base.errors import ConfigError
from limelight.cli.bench.rerankers import rerankers
from limelight.cli.flags import Json, Verb, given_flags, option, takes_flags
from limelight.cli.output import note, report

if TYPE_CHECKING:
    from limelight.lab.bench.jobs import BenchPlan
    from limelight.lab.bench.large import LargeRunSize
    from limelight.lab.bench.records import Results


_BUSY = 0.5


@dataclass(frozen=True)
class RaceFlags:
    """What to measure."""

    data: Annotated[
        list[str] | None,
        option(
            "NAME=FILE",
            "A data set; may be repeated. Settings of `read` follow after commas, such as "
            "ml-1m=ratings.parquet,rating=rating,min-rating=4. Without it, made-up data shaped "
            "like MovieLens 1M and Gowalla.",
        ),
    ] = None
    jobs: Annotated[
        list[str] | None, option("JOB", "What to measure; may be repeated. Without it, all.")
    ] = None
    rounds: Annotated[
        int | None, option("N", "Rounds to measure, the fastest counts.  [default: 3]")
    ] = None

    def plan(self, factors: list[int] | None, threads: list[int] | None) -> "BenchPlan":
        """Say what to run; sizes and jobs that make no sense are refused before any work."""
        from limelight.lab.bench.jobs import BenchPlan, choose_jobs
        from limelight.lab.bench.task import SHAPES, built_in, parse_named, read_named

        jobs = choose_jobs(self.jobs or [])
        settings = given_flags(factors=factors, threads=threads, rounds=self.rounds)
        plan = BenchPlan([], jobs=jobs, **settings)
        for text in self.data or []:
            parse_named(text)
        data = [read_named(text) for text in self.data or []]
        return replace(plan, data=data or [built_in(name) for name in SHAPES])


@dataclass(frozen=True)
class LargeRunFlags:
    """The size of the large run; what was not given is left to it."""

    users: Annotated[int | None, option("N", "Users of the large run.")] = None
    items: Annotated[int | None, option("N", "Items of the large run.")] = None
    interactions: Annotated[int | None, option("N", "Interactions of the large run.")] = None
    epochs: Annotated[int | None, option("N", "Epochs of the large run.")] = None
    lists: Annotated[int | None, option("N", "Users of the large run who get a list.")] = None

    def size(self, factors: list[int] | None, threads: list[int] | None) -> "LargeRunSize":
        """Say how large the run is."""
        from limelight.lab.bench.large import LargeRunSize

        shared = {"factors": factors, "threads": threads}
        given = {name: values[0] for name, values in shared.items() if values}
        return LargeRunSize(**given | given_flags(**vars(self)))


class Benches(TyperGroup):
    """The bench of speed, and below it others; its help is that of a verb, then those."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the flags, then the other benches."""
        Verb.format_options(self, ctx, formatter)  # type: ignore[arg-type]
        self.format_commands(ctx, formatter)


bench = typer.Typer(cls=Benches, rich_markup_mode=None)
bench.command(cls=Verb)(rerankers)


@bench.callback(invoke_without_command=True)
@takes_flags
def speed(
    context: typer.Context,
    *,
    output: Annotated[
        Path, option("FOLDER", "The folder to write to; it is made if need be.", "-o", "--output")
    ] = Path("bench"),
    races: RaceFlags,
    factors: Annotated[
        list[int] | None,
        option(
            "N",
            "Length of the vectors; may be repeated.  [default: 32, 64, 128, 256; large: 64]",
            "-d",
            "--factors",
        ),
    ] = None,
    threads: Annotated[
        list[int] | None,
        option(
            "N",
            "How many threads to use; 0: all that the process may use; may be repeated.  "
            "[default: 1; large: 0]",
        ),
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Keep what earlier runs left in the folder.")
    ] = False,
    large: Annotated[
        bool,
        typer.Option("--large", help="Instead of jobs, run once from made-up data to an audit."),
    ] = False,
    sizes: LargeRunFlags,
    as_json: Json = False,
) -> None:
    """Measure speed and memory against other libraries.

    In: tables, or nothing. Out: a folder with benchmarks.md (tables, the machine, how it was
    measured), figures/ and benchmarks.json, written anew after every step, so that an interrupted
    run is not lost. Peers take part if they are installed: pip install 'limelight[bench]', and
    LensKit by itself.

    Jobs: exact, cg, exadmm, user-step, agreement, dense, topk, growth, threads, memory, reading,
    reading-memory. The large run is a marketplace of 1,000,000 users and items and 100,000,000
    interactions, unless told otherwise.

    \b
    Examples:
      limelight bench -o bench/
      limelight bench --data ml-1m=ratings.parquet,rating=rating,min-rating=4 --jobs exact -d 64
      limelight bench --large --add -o bench/
    """
    if context.invoked_subcommand is not None:
        return
    _refuse_unused(large, sizes if not large else races)
    from limelight.lab.bench.large import run_large
    from limelight.lab.bench.records import Results
    from limelight.lab.bench.report import describe_machine, load, page, write

    _warn_of_load()
    machine = describe_machine()
    results = load(output, machine) if add else Results(machine)
    if large:
        results = replace(results, large=run_large(sizes.size(factors, threads), note))
        write(results, output)
    else:
        results = _run_jobs(results, output, races.plan(factors, threads))
    note(f"written to {output}")
    report(page(results), results.to_dict(), as_json=as_json)


def _refuse_unused(large: bool, unused: RaceFlags | LargeRunFlags) -> None:
    """Refuse flags that would have no effect."""
    for name, value in vars(unused).items():
        if value is not None:
            reason = "the large run does not take" if large else "only the large run takes"
            message = f"{reason}: --{name}"
            raise ConfigError(message, hint="leave --large out" if large else "add --large")


def _warn_of_load() -> None:
    """Say so if others use the machine: their work lengthens times on the wall."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > _BUSY:
        note(f"Other processes are at work: the load of this machine is {load:.1f}.")


def _run_jobs(results: "Results", output: Path, plan: "BenchPlan") -> "Results":
    from limelight.lab.bench.jobs import run
    from limelight.lab.bench.report import write

    described = {one.name: one.describe() for one in plan.data}
    results = replace(results, data={**results.data, **described})
    for races in run(plan, note):
        for race in races:
            results = results.with_race(race)
        write(results, output)
    return results
