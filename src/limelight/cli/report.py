"""``limelight report``: a page that a manager can open and an engineer can trust."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from limelight._base.errors import DataError
from limelight.cli.flags import argument, option, takes_flags
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.output import check_page, note

Run = Annotated[
    Path, argument("RUN", "A folder that `limelight demo`, `frontier` or `reproduce` wrote.")
]
ReportGroups = Annotated[
    Path | None, option("FILE", "Groups of items, such as providers: item_id,group[,weight].")
]
ReportTitles = Annotated[
    Path | None, option("FILE", "item_id and title, to call items by their titles.")
]


@takes_flags
def report(
    run: Run,
    output: Annotated[
        Path | None,
        option("FILE.html", "The page to write.  [default: RUN/report.html]", "-o", "--output"),
    ] = None,
    groups: ReportGroups = None,
    catalogue: ReportTitles = None,
    *,
    columns: Annotated[
        TableColumns, ColumnFlags(groups=("item", "group"), catalogue=("item", "title"))
    ],
) -> None:
    """Make one page to look at: who gains, who loses, what it costs.

    In: the folder of a run. Out: one HTML file that needs neither a network nor any other file, so
    that it can be sent by mail. It shows the trade-off, how exposure is shared, gains and losses
    of items and groups, users' lists before and after, and how it was made. A slider moves
    all of it from no control to the strongest.

    Other commands write the page of what they did with --report FILE.html.

    \b
    Examples:
      limelight report run/ -o report.html
      limelight report front/ --groups studios.parquet --catalogue films.parquet
    """
    from limelight.report.exhibit_folder import load_exhibit
    from limelight.report.page import write_page
    from limelight.report.titles import require_titles, with_titles_and_groups

    target = output or run / "report.html"
    check_page(target)
    if not run.is_dir():
        message = f"no such folder: {str(run)!r}"
        raise DataError(message, hint="name a folder that `limelight demo` or `frontier` wrote")
    tables = columns.tables(groups=groups, catalogue=catalogue)
    if catalogue is not None:
        require_titles(tables["catalogue"])
    exhibit = with_titles_and_groups(load_exhibit(run), **tables)
    added = {"Groups": groups, "Titles": catalogue}
    told = {name: str(path) for name, path in added.items() if path is not None}
    write_page(replace(exhibit, made={**exhibit.made, **told}), target)
    note(f"written to {target}")
