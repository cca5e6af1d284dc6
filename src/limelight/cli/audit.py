"""``limelight audit``: how any recommender's lists share exposure."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

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

if TYPE_CHECKING:
    from limelight.audit.record.plan import AuditPlan

_BROKEN = 1


@dataclass(frozen=True)
class RecordFlags:
    """What the lists should not have, and where the record of it is written."""

    panel: ClassVar[str] = "Record"
    fail_if: Annotated[
        list[str] | None,
        option(
            "RULE",
            "What the lists should not have, such as 'gini@20 > 0.9', 'group:acme > 3%', "
            "'impact_ratio:acme < 0.8' or 'reach:* < 1%' (every group); may be repeated.",
        ),
    ] = None
    four_fifths: Annotated[
        bool,
        typer.Option("--four-fifths", help="The same as --fail-if 'impact_ratio:* < 80%'."),
    ] = False
    plan: Annotated[
        Path | None, option("FILE.toml", "The criteria, fixed beforehand: rules, k, groups, ...")
    ] = None
    record: Annotated[
        Path | None,
        option("FILE.json", "Write what was found, from what, and what became of the rules."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a rule is undecided, too.")
    ] = False

    def check(self) -> "AuditPlan":
        """Read the plan; refuse rules that say nothing, before the work begins."""
        from limelight.audit.record.plan import NO_PLAN, read_plan
        from limelight.audit.record.rules import parse_rule

        if self.record is not None and self.record.suffix.lower() != ".json":
            message = f"a record is a JSON file: {str(self.record)!r}"
            raise ConfigError(message, hint="choose a name that ends in .json")
        plan = NO_PLAN if self.plan is None else read_plan(self.plan)
        for text in self.fail_if or ():
            parse_rule(text)
        if self.strict and not (self.fail_if or self.four_fifths or plan.parsed()):
            message = "--strict speaks of rules, and none was given"
            raise ConfigError(message, hint="add one such as --fail-if 'gini@20 > 0.9'")
        return plan

    def given(self) -> bool:
        """Tell whether there is anything to check or to write."""
        return bool(self.fail_if or self.four_fifths or self.plan or self.record)

    def fails(self, verdict: str | None) -> bool:
        """Tell whether the command ends as if it had failed."""
        return verdict == "broken" or (self.strict and verdict == "undecided")


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
    wanted: RecordFlags,
    where: ExecutorFlags,
    as_json: Json = False,
) -> None:
    """Measure how any recommender's lists share exposure.

    In: a table of lists; better with the catalogue, because without it items that no list shows
    go unnoticed. Out: Gini, coverage, entropy with 95 % intervals, the most and least exposed
    items and groups; what changed against other lists, exposure against merit, and over time.
    Targets change nothing: the audit says which of them the lists miss. Rules (--fail-if) decide
    the exit code: 0 if all are met, 1 if one is broken; one whose interval holds the threshold is
    undecided. With --executor ray every file of a folder is a piece of work.

    \b
    Examples:
      limelight audit lists.parquet --catalogue model/items.parquet
      limelight audit lists.csv --rank position --catalogue items.csv --catalogue-item sku
      limelight audit lists.csv -k 10 --catalogue items.csv --groups studios.csv --json
      limelight audit after.parquet --against before.parquet --catalogue items.parquet
      limelight audit lists.parquet --merit held_out.parquet --timestamp shown_at --every week
      limelight audit lists.csv --groups studios.csv --group-cap 10% --items items.csv
      limelight audit lists.csv --groups sellers.csv --intersect regions.csv --small-groups 2%
      limelight audit lists.csv -k 10 --fail-if 'gini@10 > 0.9' --record audit.json
      limelight audit lists.csv --plan plan.toml --record audit.json --strict
      limelight audit lists/ --catalogue model/items.parquet --executor ray --address auto
    """
    from limelight.audit.audit import audit as measure

    check_page(page)
    plan = wanted.check()
    columns = columns.planned(plan.columns)
    named = {"catalogue": catalogue, "groups": groups, "intersect": intersect}
    named = {name: path or _planned(plan, name) for name, path in named.items()}
    _check_tables(items, group_table, has_groups=named["groups"] is not None)
    sources = columns.tables(**named, merit=merit, against=against)
    shown = columns.main(lists)
    settings: dict[str, Any] = {
        "k": plan.k if k is None else k,
        "timestamp": timestamp,
        "every": every,
        "at_users": at_users,
        "top": top,
    }
    settings |= {
        "gini": gini,
        "small_groups": plan.small_groups
        if small_groups is None
        else parse_share("--small-groups", small_groups),
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
    verdict = None
    if wanted.given():
        record = found.record(
            plan=wanted.plan, fail_if=wanted.fail_if or (), four_fifths=wanted.four_fifths
        )
        found, verdict = record.audit, record.verdict
        if wanted.record is not None:
            record.save(wanted.record)
            remark(f"record written to {wanted.record}")
    _write_tables(found, items, group_table)
    if page is not None:
        found.report(page)
        note_page(page)
    report(str(found), found.to_dict(), as_json=as_json)
    if wanted.fails(verdict):
        raise typer.Exit(_BROKEN)


def _planned(plan: "AuditPlan", name: str) -> Path | None:
    """Take a table from the plan, if it names one."""
    path = plan.table(name)
    return None if path is None else Path(path)


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
