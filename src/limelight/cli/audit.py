"""``limelight audit``: how any recommender's lists share exposure."""

from pathlib import Path
from typing import Annotated

import typer

from limelight.cli.options import Json, showing, signature_defaults
from limelight.cli.output import report


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(cls=showing(_defaults))(audit)


def audit(
    lists: Annotated[
        Path,
        typer.Argument(
            metavar="LISTS",
            help="Lists from any recommender: user_id,item_id,rank[,score], rank from 1, as "
            ".parquet, .csv or .tsv (also .gz), or a folder of parts.",
            show_default=False,
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option("-k", metavar="N", help="Look at ranks 1 to k only; otherwise at all ranks."),
    ] = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="All items that could be shown: a table with item_id."),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Groups of items, such as providers: item_id,group[,weight]."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many of the most and of the least exposed items to show."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how any recommender's lists share exposure.

    In: a table of lists; better with the catalogue, because without it items that no list shows
    go unnoticed. Out: Gini, coverage, entropy, the most and least exposed items and groups.

    \b
    Examples:
      limelight audit lists.parquet --catalogue model/items.parquet
      limelight audit lists.csv -k 10 --catalogue items.csv --groups studios.csv --json
    """
    from limelight.evaluate.audit import audit as measure

    given = {} if top is None else {"top": top}
    found = measure(lists, k=k, catalogue=catalogue, groups=groups, **given)
    report(str(found), found.to_dict(), as_json=as_json)


def _defaults() -> dict[str, str]:
    from limelight.evaluate.audit import audit as measure

    return signature_defaults(measure, "top")
