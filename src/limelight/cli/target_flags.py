"""The flags of targets, the same wherever something can be wished."""

from pathlib import Path
from typing import Annotated

import typer

Gini = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel="Target",
        help="Target: the Gini index of exposure, such as 0.6.",
    ),
]
MinCoverage = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel="Target",
        help="Target: the share of the catalogue shown, such as 50%.",
    ),
]
Groups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel="Target",
        help="Groups of items, to show or set what they get: item_id,group[,weight].",
    ),
]
GroupCap = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel="Target",
        help="Target: the share of all exposure that no group may exceed, such as 3% "
        "(needs --groups).",
    ),
]
GroupFloor = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        rich_help_panel="Target",
        help="Target: the share that every group should have.",
    ),
]
