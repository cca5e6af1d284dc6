"""``limelight rerank``: lists that meet a target, from anybody's candidates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import parse_share, percent
from limelight.cli.flags import (
    Json,
    Report,
    Resume,
    Seed,
    Threads,
    argument,
    given_flags,
    length,
    option,
    showing,
    signature_defaults,
    takes_flags,
)
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.frame import (
    Estimate,
    ExecutorFlags,
    checkpoint_of,
    holds_model,
    known_size,
    parse_shares,
)
from limelight.cli.output import check_page, note, note_page, summarise
from limelight.cli.targets import (
    Gini,
    GroupCap,
    GroupFloor,
    Groups,
    MinCoverage,
    MinMmf,
    Of,
    file_unless,
    target_option,
)
from limelight.store.checkpoint import until_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.data.candidates.candidates import Candidates
    from limelight.rerank.methods.group_shares import GroupShare
    from limelight.rerank.result import ExposureChange, RerankResult
    from limelight.store.checkpoint import Checkpoint

_GIB = 2**30
_SHOWN = 15
"""How many groups that gained are named, and how many that lost."""


@takes_flags
def rerank(
    candidates: Annotated[
        Path,
        argument(
            "CANDIDATES",
            "user_id,item_id,score from any recommender, as .parquet, .csv or .tsv (also "
            ".gz, .bz2, .zst, .zip), a folder of parts, or a folder that `limelight fit` wrote.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        option(
            "LISTS",
            "What to write: a name that ends in .parquet, .csv or .tsv; otherwise a folder.",
            "-o",
            "--output",
        ),
    ],
    gini: Gini = None,
    min_coverage: MinCoverage = None,
    max_relevance_loss: Annotated[
        str | None, target_option("SHARE", "Target: the relevance that may be lost, such as 2%.")
    ] = None,
    min_mmf: MinMmf = None,
    of: Of = None,
    k: Annotated[int | None, length("Length of the lists.")] = None,
    method: Annotated[
        str | None, option("METHOD", "How to make the lists; auto takes what loses least.")
    ] = None,
    held_out: Annotated[
        Path | None,
        option(
            "FILE",
            "Pairs user_id,item_id that users liked and the recommender has not seen: "
            "they tell what scores are worth. Without them, positive scores are taken to fall as "
            "those of recommenders usually do, and of other scores only the order counts.",
        ),
    ] = None,
    relevance: Annotated[
        str | None, option("auto|score", "score: take scores as relevance, such as probabilities.")
    ] = None,
    history: Annotated[
        Path | None, option("FILE", "Pairs user_id,item_id that must not be shown.")
    ] = None,
    catalogue: Annotated[
        Path | None, option("FILE", "All items that could be shown: a table with item_id.")
    ] = None,
    groups: Groups = None,
    group_cap: GroupCap = None,
    group_floor: GroupFloor = None,
    group_shares: Annotated[
        str | None,
        target_option(
            "equal|catalogue|FILE",
            "Target: the same for all groups, in proportion to their items, or a table "
            "group,share.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say which items gained and lost, and what users lost."),
    ] = False,
    memory: Annotated[float, option("GIB", "How much of the candidates to hold in memory.")] = 1.0,
    seed: Seed = None,
    threads: Threads = None,
    resume: Resume = False,
    page: Report = None,
    columns: Annotated[
        TableColumns,
        ColumnFlags(
            "user",
            "item",
            "score",
            catalogue=("item", "title"),
            groups=("item", "group"),
            of=("item", "group"),
            group_shares=("group",),
            held_out=("user", "item"),
            history=("user", "item"),
        ),
    ],
    where: ExecutorFlags,
    as_json: Json = False,
) -> None:
    """Make lists that share exposure, from anybody's candidates.

    In: candidates with scores, the more for each user the better, and one target. Out: a table
    user_id,item_id,rank,score that meets it with the least loss of relevance. Candidates beyond
    --memory go to scratch files. A target that is out of reach is an error that says what is
    possible.

    With --of, providers share the exposure, or other groups of items: the target is of groups, and
    items share what their group has about as they did before. --groups with a cap or a floor bounds
    the share of each group instead.

    Every strength that the search tries is kept in LISTS.checkpoint until the lists are written:
    after Ctrl-C, SIGTERM or a crash the same command with --resume goes on from there.

    With --executor ray users are cut into shards, those of a model by number, those of a folder by
    file. Methods: best-response and prices.

    \b
    Examples:
      limelight rerank candidates.parquet --gini 0.6 -k 20 -o lists/
      limelight rerank scores.csv --max-relevance-loss 2% --held-out liked.csv -o lists.csv
      limelight rerank model/ --min-coverage 50% --explain -o lists.parquet
      limelight rerank scores.csv --gini 0.3 --of sellers.csv -o lists/
      limelight rerank scores.csv --score points --gini 0.3 --of shops.csv --of-group shop -o lists/
      limelight rerank scores.csv --min-mmf 30% --of sellers.csv --method online -o lists/
      limelight rerank scores.csv --groups studios.csv --group-cap 3% -o lists/
      limelight rerank model/ --gini 0.6 --executor ray --address auto -o lists/
    """
    from limelight.data.groups import check_groups
    from limelight.store.lists import ListWriter

    check_page(page)
    shares = file_unless(group_shares, "equal", "catalogue")
    _refuse_own_input(output, candidates, held_out, history, catalogue, of, groups, shares)
    ListWriter(output).check()
    tables = columns.tables(
        catalogue=catalogue,
        groups=groups,
        of=of,
        group_shares=shares,
        held_out=held_out,
        history=history,
    )
    grouped, of_groups, all_items = tables["groups"], tables["of"], tables["catalogue"]
    given = given_flags(
        gini=gini,
        min_coverage=parse_share("--min-coverage", min_coverage),
        max_relevance_loss=parse_share("--max-relevance-loss", max_relevance_loss),
        min_mmf=parse_share("--min-mmf", min_mmf),
        of=of_groups,
        group_cap=parse_share("--group-cap", group_cap),
        group_floor=parse_share("--group-floor", group_floor),
        group_shares=parse_shares(group_shares, tables["group_shares"]),
        k=k,
        method=method,
        held_out=tables["held_out"],
        relevance=relevance,
        history=tables["history"],
        random_state=seed,
        num_threads=threads,
        memory=(size := _bytes(memory)),
    )
    has_group_target = any(name.startswith("group_") for name in given)
    if has_group_target and groups is not None:
        given["groups"] = grouped
    elif groups is not None:
        check_groups(grouped)  # now, because the search may take long
    if where.check():
        _refuse_flags(candidates, given)
        columns.refuse("--executor ray finds columns under the usual names, it does not take")
    where.refuse_file(output)
    is_model = holds_model(candidates)
    table = candidates if is_model else columns.main(candidates)
    where.announce("re-ranking", lambda room: _memory(table, given.get("k", 20), size, room))
    if not is_model:
        given |= {} if catalogue is None else {"catalogue": all_items}
    elif catalogue is not None and page is None:
        # A model has its own catalogue; a report may still want the titles of another.
        message = f"a model has its own catalogue: {catalogue}"
        raise ConfigError(message, hint="leave --catalogue out")
    source = table if where.is_cluster or not is_model else _open(candidates, size, threads)
    kept = checkpoint_of(output, resume=resume)
    with until_done(kept):
        found = _make(where, source, output, kept, given)
        changes: Sequence[ExposureChange | GroupShare] = found.groups
        if (shown := grouped or of_groups) is not None and not has_group_target:
            changes = found.group_changes(shown)
        if not where.is_cluster:
            found.write(output)
    if page is not None:
        found.report(page, groups=grouped or of_groups, catalogue=all_items)
        note_page(page)
    text = found.explain() if explain else str(found)
    if changes:
        text += "\n\n" + "\n".join(_group_lines(changes))
    record = found.to_dict() | {"groups": [change._asdict() for change in changes]}
    summarise(text, record | {"output": output}, written=output, as_json=as_json)


def _memory(candidates: Any, k: int, memory: int, room: int | None) -> Estimate | None:
    """Estimate the memory of re-ranking, and how much of the candidates there is room for."""
    from limelight.rerank.memory import model_supply, most_memory, rerank_bytes, table_supply

    if not holds_model(Path(candidates)):
        supply = table_supply(candidates)
    elif (model := known_size(candidates)) is not None:
        supply = model_supply(model)
    else:
        return None
    fits = 0 if room is None else most_memory(supply, k, room) / _GIB
    hint = f"hold less: --memory {fits:g}" if fits else "re-rank fewer users at a time"
    return Estimate(rerank_bytes(supply, k, memory), hint)


def _open(path: Path, memory: int, threads: int | None) -> "Candidates":
    """Score the whole catalogue of a model for the users of its training."""
    from limelight.rerank.folder import load
    from limelight.rerank.rerank import model_candidates

    model = load(path)
    if threads is not None:
        model.use_threads(threads)
    if model.reranker is not None:
        note("The model's own control is left out: its plain lists are re-ranked.")
    return model_candidates(model, memory=memory)


def _refuse_flags(candidates: Path, given: dict[str, Any]) -> None:
    """Refuse what shards cannot do."""
    shares = ("group_cap", "group_floor", "group_shares")
    for name in ("held_out", "history", "of", "min_mmf", *shares):
        if name in given:
            message = f"--executor ray does not take --{name.replace('_', '-')}: {given[name]}"
            hint = "leave --executor out, or re-rank a sample of the users"
            raise ConfigError(message, hint=hint)
    if not candidates.exists():
        message = f"no such file or folder: {candidates}"
        raise DataError(message, hint=f"relative paths start from {Path.cwd()}")


def _make(
    where: ExecutorFlags, source: Any, output: Path, kept: "Checkpoint", given: dict[str, Any]
) -> "RerankResult":
    """Make the lists: of all users at once, or of shards, which are written as they are made."""
    if not where.is_cluster:
        from limelight.rerank import rerank as make

        return make(source, checkpoint=kept, **given)
    from limelight.jobs.rerank import rerank as make_shards

    threads = given.get("num_threads")
    settings = given | {"num_threads": threads or 1}
    settings.pop("groups", None)
    with where.open(threads) as executor:
        return make_shards(source, output, executor=executor, checkpoint=kept, **settings)


def _group_lines(changes: "Sequence[ExposureChange | GroupShare]") -> list[str]:
    """Show the shares of groups before and after; of many, those that gained and lost most."""
    lines = [
        f"{str(change.id)[:30]:<32}{percent(change.before, 2):>10}{percent(change.after, 2):>10}"
        for change in changes
    ]
    if (left_out := len(lines) - 2 * _SHOWN) > 0:
        lines[_SHOWN:-_SHOWN] = [f"({left_out:,} groups in between)"]
    return [f"{'group':<28}{'share before':>14}{'after':>10}", *lines]


def _refuse_own_input(output: Path, *inputs: Path | None) -> None:
    """Refuse to write over what is read."""
    for path in inputs:
        if path is not None and path.exists() and path.resolve() == output.resolve():
            message = f"the output is also an input: {str(output)!r}"
            raise ConfigError(message, hint="choose another name with -o")


def _bytes(gib: float) -> int:
    if not 2**-10 <= gib <= 2**20:
        message = f"--memory must be from 0.001 GiB up: {gib:g}"
        raise ConfigError(message, hint="1 suits any number of candidates")
    return int(gib * _GIB)


def _defaults() -> dict[str, str]:
    from limelight.rerank import rerank as make

    return signature_defaults(make, "k", "method", "relevance")


def _choices() -> dict[str, str]:
    from limelight.rerank.rerank import method_names

    return {"method": "|".join(method_names())}


Command = showing(_defaults, _choices)
