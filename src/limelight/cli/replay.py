"""``limelight replay``: a log of requests under a target, before it goes live."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import parse_share
from limelight.cli.flags import (
    Json,
    ModelFolder,
    Threads,
    argument,
    given_flags,
    length,
    option,
    takes_flags,
)
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.output import remark, report, to_json
from limelight.cli.targets import Gini, GroupCap, GroupFloor, Groups, MinCoverage, target_option

if TYPE_CHECKING:
    from limelight.serve.replay import ReplayResult

_FIGURES = (".png", ".svg", ".pdf")
_TABLES = (".parquet", ".csv", ".tsv", ".json")


@takes_flags
def replay(
    folder: ModelFolder,
    log: Annotated[
        Path,
        argument(
            "LOG",
            "Requests: a table with a column of users and one of times, as .parquet, .csv or .tsv "
            "(also .gz, .bz2, .zst, .zip), or a folder of parts.",
        ),
    ],
    *,
    window: Annotated[
        str | None, option("TIME", "Over how long the target is held: 7d, 12h, 30m, 90s.")
    ] = None,
    half_life: Annotated[
        str | None, option("TIME", "Instead: after how long a list counts half, such as 3d.")
    ] = None,
    gini: Gini = None,
    min_coverage: MinCoverage = None,
    max_relevance_loss: Annotated[
        str | None, target_option("SHARE", "Target: the relevance that may be lost, such as 2%.")
    ] = None,
    groups: Groups = None,
    group_cap: GroupCap = None,
    group_floor: GroupFloor = None,
    k: Annotated[int, length("Length of the lists.")] = 20,
    output: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "What to write; may be repeated. A figure: .png, .svg or .pdf. What was measured over "
            "time: .parquet, .csv or .tsv. Everything: .json.",
            "-o",
            "--output",
        ),
    ] = None,
    columns: Annotated[
        TableColumns,
        ColumnFlags("user", "timestamp", times=True, groups=("item", "group")),
    ],
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Try a target on a log of requests.

    In: a model folder, and who asked when. Out: what would have happened, had the requests been
    answered live under the target: strength, Gini index and loss of relevance over time. It is the
    code that `limelight serve` runs. The model folder is not written to.

    The first window is needed to fill the ledger, so a log should be several windows long. Rows may
    be in any order. Users that the model does not know are answered as unseen ones.

    \b
    Examples:
      limelight replay model/ log.parquet --gini 0.6 --window 7d -o replay.png
      limelight replay model/ log.csv --max-relevance-loss 2% --window 12h -o replay.json
      limelight replay model/ log.csv --gini 0.6 --groups studios.csv --group-cap 3% --window 1d
    """
    from limelight.data.times import duration
    from limelight.rerank.folder import load
    from limelight.serve.replay import read_requests
    from limelight.serve.replay import replay as run
    from limelight.serve.targets.goal import ServedGoal

    files = output or []
    _check_files(files, folder, log)
    if (window is None) == (half_life is None):
        message = f"give one of --window and --half-life, not {0 if window is None else 2}"
        raise ConfigError(message, hint="a target is held over a time, such as --window 7d")
    wishes = given_flags(
        gini=gini,
        min_coverage=parse_share("--min-coverage", min_coverage),
        max_relevance_loss=parse_share("--max-relevance-loss", max_relevance_loss),
        group_cap=parse_share("--group-cap", group_cap),
        group_floor=parse_share("--group-floor", group_floor),
    )
    goal = ServedGoal(**wishes)
    if goal.has_groups and groups is None:
        message = f"--group-cap and --group-floor need groups: {goal}"
        raise ConfigError(message, hint="name a table item_id,group[,weight] with --groups")
    grouped = columns.tables(groups=groups)["groups"]
    asked = read_requests(columns.main(log))
    model = load(folder)
    found = run(
        model,
        asked,
        goal,
        window=None if window is None else duration(window, "--window"),
        half_life=None if half_life is None else duration(half_life, "--half-life"),
        k=k,
        groups=_members(grouped, model),
        threads=1 if threads is None else threads,
    )
    for file in files:
        _write(found, file)
        remark(f"written to {file}")
    report(found.text(), found.to_dict(), as_json=as_json)


def _members(groups: Any, model: Any) -> Any:
    if groups is None:
        return None
    from limelight.data.groups import read_groups
    from limelight.data.ids import ids_to_arrow

    return read_groups(groups, ids_to_arrow(model.item_ids))


def _check_files(files: list[Path], folder: Path, log: Path) -> None:
    """Refuse names that cannot be written, before the work begins."""
    for file in files:
        if file.suffix.lower() not in (*_FIGURES, *_TABLES):
            message = f"unknown kind of output: {str(file)!r}"
            raise ConfigError(message, hint=f"the name must end in {', '.join(_FIGURES + _TABLES)}")
        if file.resolve() == log.resolve():
            message = f"the output is also an input: {str(file)!r}"
            raise ConfigError(message, hint="choose another name with -o")
        if folder.resolve() in file.resolve().parents:
            message = f"a replay does not write to the model folder: {str(file)!r}"
            raise ConfigError(message, hint="choose another folder with -o")
        if file.suffix.lower() in _FIGURES:
            from limelight.report.figures.style import load_matplotlib

            load_matplotlib()
    if not folder.exists():
        message = f"no such folder: {folder}"
        raise DataError(message, hint=f"relative paths start from {Path.cwd()}")


def _write(found: "ReplayResult", file: Path) -> None:
    from limelight._base.files import atomic_file

    ending = file.suffix.lower()
    if ending in _FIGURES:
        from limelight.report.figures.style import save
        from limelight.serve.replay_figure import replay_figure

        save(replay_figure(found), file)
        return
    with atomic_file(file) as temporary:
        if ending == ".json":
            temporary.write_text(to_json(found.to_dict(), indent=1) + "\n", encoding="utf-8")
        elif ending == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(found.table(), temporary)
        else:
            import pyarrow.csv as pc

            options = pc.WriteOptions(delimiter="," if ending == ".csv" else "\t")
            pc.write_csv(found.table(), temporary, options)
