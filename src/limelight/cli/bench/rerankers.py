"""``limelight bench rerankers``: accuracy against exposure, our methods and those of others."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight._base.errors import ConfigError
from limelight.cli.flags import Json, given_flags, option, takes_flags
from limelight.cli.output import note, report

if TYPE_CHECKING:
    from limelight.lab.bench.arenas import Protocol
    from limelight.lab.bench.reranked import BenchRecord
    from limelight.lab.bench.rerankers import Arena

Kind = StrEnum("Kind", ["paper", "served"])
Part = StrEnum("Part", ["validation", "test"])


@dataclass(frozen=True)
class FitFlags:
    """How iALS is fitted to a data set; what was not given is that of the documented figures."""

    validation: Annotated[int, option("N", "Users who calibrate and warm up.")] = 1000
    test: Annotated[int, option("N", "Users who are served.")] = 1000
    factors: Annotated[str, option("N|auto", "As for `limelight fit`.", "-d", "--factors")] = "64"
    unobserved_weight: Annotated[str, option("NUMBER|auto", "As for `limelight fit`.")] = "0.1"
    regularization: Annotated[str, option("NUMBER|auto", "As for `limelight fit`.")] = "0.003"
    epochs: Annotated[int, option("N", "As for `limelight fit`.")] = 16

    def settings(self) -> dict[str, Any]:
        """Return the settings of iALS."""
        return {
            "factors": _number(self.factors, int),
            "unobserved_weight": _number(self.unobserved_weight, float),
            "regularization": _number(self.regularization, float),
            "epochs": self.epochs,
            "tolerance": 0.0,
        }


@dataclass(frozen=True)
class TableFlags:
    """Candidates of anybody's recommender, instead of a data set."""

    candidates: Annotated[
        Path | None, option("FILE", "Candidates: user_id, item_id, score. Instead of DATA.")
    ] = None
    groups: Annotated[
        Path | None,
        option("FILE", "Providers of these items: item_id, group. They then share exposure."),
    ] = None
    held_out: Annotated[
        Path | None,
        option("FILE", "What users of the candidates took: one half calibrates, one is measured."),
    ] = None


@takes_flags
def rerankers(
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=FILE", help="Data sets, as for `limelight bench --data`."),
    ] = None,
    *,
    tables: TableFlags,
    methods: Annotated[
        list[str] | None, option("NAME", "A method; may be repeated. Without it, all.", "--methods")
    ] = None,
    seeds: Annotated[int, option("N", "How many fits, or draws.")] = 3,
    protocol: Annotated[
        Kind,
        option("paper|served", "Held-out users alone are served, or among all users."),
    ] = Kind.paper,
    part: Annotated[
        Part, option("validation|test", "Whose lists are measured; settings: on validation users.")
    ] = Part.test,
    k: Annotated[int, option("N", "Length of the lists.", "-k")] = 20,
    at: Annotated[
        float, option("SHARE", "At what share of the plain lists' nDCG figures are shown.")
    ] = 0.95,
    fits: FitFlags,
    earlier: Annotated[
        list[Path] | None,
        option("FILE", "Show what -o wrote, instead of measuring; may be repeated.", "--from"),
    ] = None,
    output: Annotated[
        Path | None, option("FILE", "A JSON file of all points.", "-o", "--output")
    ] = None,
    figure: Annotated[Path | None, option("FILE", "Draw the fronts: .png, .svg or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Compare re-rankers: how far each evens out exposure at the same accuracy.

    In: data sets, to which iALS is fitted, or a table of candidates. Out: a table for each, and
    with -o all points, written anew after every method, so that an interrupted run is not lost.
    Methods: ours, FairRec with whole and with fractional guarantees, and P-MMF, CP-Fair,
    min-regularizer, OFFR, ElasticRank and ManifoldRank, rebuilt from their papers.

    The score of a front is the mean of 1 - Gini over an nDCG from 85 to 100 % of the plain lists'.
    The second table shows the nDCG of each method, relative to the plain lists', at the Gini
    indices of FairRec. With --groups, exposure is that of providers, measured as FairDiverse does:
    the sum of the scores of a provider's shown items, where items without a group count for the
    first provider. minmax is the least over the largest, mmf the share of the poorer half, ef the
    elastic fairness. ManifoldRank then takes the place of FairRec.

    \b
    Examples:
      limelight bench rerankers epinions=ratings.parquet --validation 500 --test 500 -o e.json
      limelight bench rerankers --candidates scores.parquet --groups publishers.parquet --at 0.994
      limelight bench rerankers --from e.json --figure fronts.png
    """
    from limelight.lab.bench.reranked import draw, front_table, read_records, score_table
    from limelight.lab.bench.rerankers import choose_methods

    _refuse_contradictions(data, tables, earlier)
    if not 0 < at <= 1:
        message = f"--at must be above 0 and at most 1: {at}"
        raise ConfigError(message, hint="0.95 shows the figures at 95 % of the plain lists' nDCG")
    chosen = choose_methods(methods or [], of_providers=tables.groups is not None)
    if earlier:
        records = [record for path in earlier for record in read_records(path)]
    else:
        run = _BenchRun(chosen, seeds, output)
        rules = _rules(protocol, part, k)
        records = run.table(tables, rules) if tables.candidates else run.sets(data, fits, rules)
    if figure is not None:
        draw(records, figure)
        note(f"written to {figure}")
    texts = []
    for record in records:
        shown = [score_table(record, at), front_table(record)]
        over = f"{record.name}: {record.users:,} users, {record.items:,} items"
        texts += [over, *(table.text() for table in shown if table is not None)]
    found = {"rerankers": [record.to_dict() for record in records]}
    report("\n\n".join(texts), found, as_json=as_json)


class _BenchRun:
    """Measures arena after arena, and writes down what there is after every method."""

    def __init__(self, methods: list[str], seeds: int, output: Path | None) -> None:
        if seeds < 1:
            message = f"--seeds must be at least 1: {seeds}"
            raise ConfigError(message, hint="three fits show how far single ones scatter")
        self.methods, self.seeds, self.output = methods, seeds, output
        self.records: list[BenchRecord] = []

    def sets(
        self, data: list[str] | None, fits: FitFlags, rules: "Protocol"
    ) -> list["BenchRecord"]:
        """Fit iALS to data sets, so many times each."""
        from limelight.lab.bench.arenas import bench_split, fitted_arena
        from limelight.lab.bench.reranked import BenchRecord
        from limelight.lab.bench.task import parse_named, read_named

        settings = fits.settings()
        for text in data or []:
            parse_named(text)
        for text in data or []:
            found = read_named(text)
            split = bench_split(found.interactions, fits.validation, fits.test, rules)
            about = {**vars(rules), "settings": settings}
            record = BenchRecord(found.name, split.test.n_users, split.train.n_items, about)
            self.records.append(record)
            for seed in range(self.seeds):
                with fitted_arena(split, settings, seed, rules) as arena:
                    self._measure(arena, record, seed)
        return self.records

    def table(self, tables: TableFlags, rules: "Protocol") -> list["BenchRecord"]:
        """Take a table of candidates."""
        from limelight.lab.bench.arenas import table_arena
        from limelight.lab.bench.reranked import BenchRecord
        from limelight.lab.bench.rerankers import with_seed

        path = tables.candidates
        assert path is not None
        with table_arena(path, tables.groups, tables.held_out, rules) as arena:
            name, about = path.name.partition(".")[0], {**vars(rules)}
            record = BenchRecord(name, arena.served.n_users, arena.served.n_items, about)
            self.records.append(record)
            for seed in range(self.seeds):
                self._measure(with_seed(arena, seed), record, seed)
        return self.records

    def _measure(self, arena: "Arena", record: "BenchRecord", seed: int) -> None:
        from limelight.lab.bench.reranked import write_records
        from limelight.lab.bench.rerankers import measure_fronts

        best = 0.0

        def tell(text: str) -> None:
            note(f"{record.name}, seed {seed}: {text}")

        for name, fronts in measure_fronts(arena, self.methods, tell):
            if len(record.runs) == seed:
                record.runs.append(fronts)
            score = fronts.score(name)
            best = max(best, score)
            tell(f"{name} scores {score:.4f}; the best so far is {best:.4f}")
            if self.output is not None:
                write_records(self.records, self.output)


def _rules(protocol: Kind, part: Part, k: int) -> "Protocol":
    from limelight.lab.bench.arenas import Protocol

    if k < 1:
        message = f"-k must be at least 1: {k}"
        raise ConfigError(message, hint="20 is usual")
    return Protocol(protocol.value, part.value, k)  # type: ignore[arg-type]


def _number(text: str, kind: type[int] | type[float]) -> float | str:
    """Read a number; the model refuses other words than auto."""
    try:
        return kind(text)
    except ValueError:
        return text


def _refuse_contradictions(
    data: list[str] | None, tables: TableFlags, earlier: list[Path] | None
) -> None:
    """Refuse what would have no effect, and nothing at all."""
    given = [
        *(["data sets"] if data else []),
        *(["--candidates"] if tables.candidates else []),
        *(["--from"] if earlier else []),
    ]
    if len(given) != 1:
        message = f"give data sets, --candidates or --from: {' and '.join(given) or 'none'} given"
        raise ConfigError(message, hint="for example epinions=ratings.parquet")
    lost = given_flags(**{"--groups": tables.groups, "--held-out": tables.held_out})
    if lost and tables.candidates is None:
        message = f"only candidates take: {next(iter(lost))}"
        raise ConfigError(message, hint="give --candidates")
