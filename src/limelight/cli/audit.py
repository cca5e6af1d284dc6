"""``limelight audit``: how any recommender's lists share exposure."""

from pathlib import Path
from typing import Annotated, Any

from limelight._base.errors import ConfigError
from limelight._base.text import parse_share
from limelight.cli.flags import (
    Json,
    Report,
    argument,
    given_flags,
    length,
    option,
    showing,
    signature_defaults,
    takes_flags,
)
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.frame import Estimate, ExecutorFlags
from limelight.cli.output import check_page, note_page, remark, report
from limelight.cli.targets import Gini, GroupCap, GroupFloor, MinCoverage


@takes_flags
def audit(
    lists: Annotated[
        Path,
        argument(
            "LISTS",
            "Lists from any recommender: user_id,item_id,rank[,score], rank from 1, as "
            ".parquet, .csv or .tsv (also .gz, .bz2, .zst, .zip), or a folder of parts.",
        ),
    ],
    *,
    k: Annotated[int | None, length("Look at ranks 1 to k only; otherwise at all ranks.")] = None,
    catalogue: Annotated[
        Path | None, option("FILE", "All items that could be shown: a table with item_id.")
    ] = None,
    groups: Annotated[
        Path | None, option("FILE", "Groups of items, such as providers: item_id,group[,weight].")
    ] = None,
    intersect: Annotated[
        Path | None,
        option("FILE", "A second table of groups: groups are then the intersections of both."),
    ] = None,
    small_groups: Annotated[
        str | None,
        option(
            "SHARE",
            "Groups with a smaller share of the catalogue are counted, but left out of impact "
            "ratios, such as 2%.",
        ),
    ] = None,
    merit: Annotated[
        Path | None,
        option("FILE", "Interactions that items earned, past or held out: user_id,item_id."),
    ] = None,
    against: Annotated[
        Path | None, option("LISTS", "Other lists to compare with, such as last week's.")
    ] = None,
    timestamp: Annotated[
        str | None,
        option(
            "COLUMN",
            "Column of times: a user has one list for each, and exposure is shown over time.",
        ),
    ] = None,
    every: Annotated[
        str | None,
        option(
            "day|week|month", "One row for each; if not given, chosen by the span of the times."
        ),
    ] = None,
    at_users: Annotated[
        int | None, option("N", "Also estimate the Gini of N users' lists, more or fewer.")
    ] = None,
    gini: Gini = None,
    min_coverage: MinCoverage = None,
    group_cap: GroupCap = None,
    group_floor: GroupFloor = None,
    items: Annotated[
        Path | None,
        option("FILE", "Write every item and its exposure to a .parquet, .csv or .tsv file."),
    ] = None,
    group_table: Annotated[
        Path | None, option("FILE", "Write every group and its share to such a file, too.")
    ] = None,
    top: Annotated[
        int | None, option("N", "How many of the most and of the least exposed items to show.")
    ] = None,
    columns: Annotated[
        TableColumns,
        ColumnFlags(
            "user",
            "item",
            "rank",
            "score",
            times=True,
            catalogue=("item", "title"),
            groups=("item", "group"),
            intersect=("item", "group"),
            merit=("user", "item"),
        ),
    ],
    page: Report = None,
    where: ExecutorFlags,
    as_json: Json = False,
) -> None:
    """Measure how any recommender's lists share exposure.

    In: a table of lists; better with the catalogue, because without it items that no list shows
    go unnoticed. Out: Gini, coverage, entropy with 95 % intervals, the most and least exposed
    items and groups; what changed against other lists, exposure against merit, and over time.
    Targets change nothing: the audit says which of them the lists miss. With --executor ray every
    file of a folder is a piece of work.

    \b
    Examples:
      limelight audit lists.parquet --catalogue model/items.parquet
      limelight audit lists.csv --rank position --catalogue items.csv --catalogue-item sku
      limelight audit lists.csv -k 10 --catalogue items.csv --groups studios.csv --json
      limelight audit after.parquet --against before.parquet --catalogue items.parquet
      limelight audit lists.parquet --merit held_out.parquet --timestamp shown_at --every week
      limelight audit lists.csv --groups studios.csv --group-cap 10% --items items.csv
      limelight audit lists.csv --groups sellers.csv --intersect regions.csv --small-groups 2%
      limelight audit lists/ --catalogue model/items.parquet --executor ray --address auto
    """
    from limelight.audit.audit import audit as measure

    check_page(page)
    _check_tables(items, group_table, has_groups=groups is not None)
    sources = columns.tables(
        catalogue=catalogue, groups=groups, intersect=intersect, merit=merit, against=against
    )
    shown = columns.main(lists)
    settings: dict[str, Any] = {
        "k": k,
        "timestamp": timestamp,
        "every": every,
        "at_users": at_users,
        "top": top,
    }
    settings |= {
        "gini": gini,
        "small_groups": parse_share("--small-groups", small_groups),
        "min_coverage": parse_share("--min-coverage", min_coverage),
        "group_cap": parse_share("--group-cap", group_cap),
        "group_floor": parse_share("--group-floor", group_floor),
    }
    given = given_flags(**settings, **sources)
    if where.check():
        _refuse_flags(given)
    where.announce("the audit", lambda _: _memory(shown, sources["against"], timestamp))
    with where.open() as executor:
        found = measure(shown, **given, executor=executor)
    _write_tables(found, items, group_table)
    if page is not None:
        found.report(page)
        note_page(page)
    report(str(found), found.to_dict(), as_json=as_json)


def _check_tables(items: Path | None, groups: Path | None, *, has_groups: bool) -> None:
    """Refuse tables that could not be written, before the work begins."""
    from limelight.store.arrays import check_table_path

    for path in (items, groups):
        if path is not None:
            check_table_path(path)
    if groups is not None and not has_groups:
        message = f"there are no groups to write: --group-table {str(groups)!r}"
        raise ConfigError(message, hint="name them with --groups FILE")


def _write_tables(found: Any, items: Path | None, groups: Path | None) -> None:
    """Write every item and every group where asked for, and say so."""
    from limelight.store.arrays import write_table

    if items is not None:
        write_table(items, found.items_table())
        remark(f"items written to {items}")
    if groups is not None:
        write_table(groups, found.groups_table())
        remark(f"groups written to {groups}")


def _refuse_flags(given: dict[str, Any]) -> None:
    """Refuse what the files of a folder cannot tell one by one."""
    for name in ("against", "timestamp", "every", "at_users"):
        if name in given:
            flag = f"--{name.replace('_', '-')}"
            message = f"--executor ray audits one list for each user: {flag}"
            raise ConfigError(message, hint=f"leave {flag} out, or --executor")


def _memory(lists: Path, against: Path | None, timestamp: str | None) -> Estimate:
    from limelight.audit.memory import audit_bytes

    hint = "audit fewer users at a time, such as the parts of a folder"
    return Estimate(audit_bytes(lists, against, timestamp=timestamp), hint)


def _defaults() -> dict[str, str]:
    from limelight.audit.audit import audit as measure

    return signature_defaults(measure, "top")


Command = showing(_defaults)
