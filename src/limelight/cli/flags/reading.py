"""How a command reads interactions: a flag for each option of ``limelight.read``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from limelight._base.errors import ConfigError
from limelight.cli.flags import given_flags, option
from limelight.cli.flags.columns import TIME_FORMAT_HELP
from limelight.cli.frame import Estimate, announce_look
from limelight.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Interactions
    from limelight.data.read import OpenTable
    from limelight.data.split import Split

SPLIT_FILE = "train.csv"
_RATINGS, _WEIGHTS = ("rating", "ratings", "stars", "bookrating"), ("weight", "plays", "playcount")
"""Columns that are mentioned where they are not named, in the letters of `plain_name`."""


@dataclass(frozen=True)
class Reading:
    """A flag for each of `ReadOptions`; what was not given is left to those."""

    panel: ClassVar[str] = "Data"
    user: Annotated[
        str | None, option("COLUMN", "Column of users; found under the usual names.")
    ] = None
    item: Annotated[
        str | None, option("COLUMN", "Column of items; found under the usual names.")
    ] = None
    rating: Annotated[str | None, option("COLUMN", "Column of ratings; not read unless named.")] = (
        None
    )
    timestamp: Annotated[
        str | None,
        option("COLUMN", "Column of times, to order the rows by; not read unless named."),
    ] = None
    min_rating: Annotated[
        float | None, option("NUMBER", "Keep rows rated at least this (needs --rating).")
    ] = None
    min_user: Annotated[int | None, option("N", "Keep users with at least so many items.")] = None
    min_item: Annotated[int | None, option("N", "Keep items with at least so many users.")] = None
    filter_order: Annotated[
        str | None,
        option(
            "together|items-first|users-first",
            "When the two are counted: both before either filter, or one after the other.",
        ),
    ] = None
    core: Annotated[
        int | None, option("N", "Keep the k-core instead: so many for every user and item.")
    ] = None
    weight: Annotated[
        str | None, option("COLUMN", "Column of how much a row counts; without it all count 1.")
    ] = None
    half_life: Annotated[
        str | None,
        option("TIME", "Time after which a row counts half: 90d, 36h, 2w (needs --timestamp)."),
    ] = None
    rating_missing: Annotated[
        str | None,
        option(
            "refuse|drop",
            "Rows whose rating is missing or negative: an error, or left out and counted.",
        ),
    ] = None
    time_format: Annotated[
        str | None,
        option("FORMAT", TIME_FORMAT_HELP),
    ] = None
    separator: Annotated[
        str | None, option("TEXT", "Separator of text files; found by the first line.")
    ] = None
    columns: Annotated[
        str | None,
        option("NAMES", "All columns of a text file without a header: user,item,rating."),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the flags that were given, by their names in Python."""
        return given_flags(**vars(self))

    def refuse(self, reason: str, hint: str) -> None:
        """Refuse flags that would have no effect."""
        if self.given():
            flag = "--" + next(iter(self.given())).replace("_", "-")
            message = f"{reason}: {flag}"
            raise ConfigError(message, hint=hint)

    def refuse_for_split(self) -> None:
        """Refuse all flags, because a split folder was read with those that hold for it."""
        hint = "give this flag to `limelight data split`"
        if self.user is not None or self.item is not None:
            hint += "; that of another table has its name before it, as in --groups-item"
        self.refuse("a split folder is already filtered, it does not take", hint)

    def interactions(self, path: Path) -> Interactions:
        """Read a table, or the training part of a split folder."""
        return self.interactions_and_validation(path)[0]

    def interactions_and_validation(self, path: Path) -> tuple[Interactions, HeldOut | None]:
        """Read a table, or the training and the validation part of a split folder."""
        from limelight.data import Split

        data = self.interactions_or_split(path)
        return (data.train, data.validation) if isinstance(data, Split) else (data, None)

    def interactions_or_split(self, path: Path) -> Interactions | Split:
        """Read a table, or a split folder."""
        from limelight.data import Split

        if not (path / SPLIT_FILE).is_file():
            return self.table(path)
        self.refuse_for_split()
        return Split.load(path)

    def table(self, path: Path) -> Interactions:
        """Read a table, unless that would take more memory than there is."""
        from limelight.data.estimate import reading_bytes

        opened = self.open(path)
        hint = "read less: a part of the rows, or those from a higher --min-rating on"
        announce_look("reading", lambda _: Estimate(reading_bytes(opened), hint))
        data = opened.read()
        self._mention_unused(opened.parts[0].columns)
        return data

    def _mention_unused(self, columns: Sequence[str]) -> None:
        """Say which columns of ratings and weights were not named: they may be meant."""
        from limelight.data.names import plain_name

        for name in columns:
            shown = shlex.quote(name)
            if name in (self.user, self.item, self.rating, self.timestamp, self.weight):
                continue
            if plain_name(name) in _RATINGS and self.rating is None:
                note(
                    f"The column {name!r} is not used: every row counts as a like. To keep only "
                    f"high ratings, such as 4 of 5 stars: --rating {shown} --min-rating 4"
                )
            elif plain_name(name) in _WEIGHTS and self.weight is None:
                note(
                    f"The column {name!r} is not used: every row counts 1. To weigh rows by "
                    f"it: --weight {shown}"
                )

    def open(self, path: Path) -> OpenTable:
        """Open a table and choose its columns."""
        from limelight.data.read import ReadOptions

        return ReadOptions(**self.given()).open(path)
