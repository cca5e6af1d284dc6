"""The flags of a target: what lists should reach, and for whom."""

import functools
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from limelight._base.errors import ConfigError
from limelight._base.text import parse_share
from limelight.cli.flags import given_flags, length, option
from limelight.cli.frame import parse_shares

_WORDS = ("everyone", "held-out")
_NAMED_SHARES = ("equal", "catalogue", "interactions")
target_option = functools.partial(option, rich_help_panel="Target")

Gini = Annotated[
    float | None, target_option("NUMBER", "Target: the Gini index of exposure, such as 0.6.")
]
For = Annotated[
    str | None,
    target_option(
        "everyone|N|FILE|held-out",
        "Whose lists the exposure is of: all users of the data, so many lists a period, the users "
        "of a table user_id, or held-out users alone, as published experiments have it.  "
        "[everyone]",
        "--for",
    ),
]
MinCoverage = Annotated[
    str | None, target_option("SHARE", "Target: the share of the catalogue shown, such as 50%.")
]
Of = Annotated[
    Path | None,
    target_option(
        "FILE",
        "Providers, or any groups of items, among whom exposure is to be shared instead of among "
        "items: item_id,group[,weight]. Gini, coverage and MMF are then of groups.",
        "--of",
    ),
]
MinMmf = Annotated[
    str | None,
    target_option(
        "SHARE",
        "Target: the max-min fairness, the share of the exposure that the less exposed half of the "
        "groups has, such as 30% (needs --of).",
    ),
]
Groups = Annotated[
    Path | None,
    target_option("FILE", "Groups of items, to show or set what they get: item_id,group[,weight]."),
]
GroupCap = Annotated[
    str | None,
    target_option(
        "SHARE",
        "Target: the share of all exposure that no group may exceed, such as 3% (needs --groups).",
    ),
]
GroupFloor = Annotated[
    str | None,
    target_option("SHARE", "Target: the share that every group should have (needs --groups)."),
]


def population_of(text: str | None) -> str | int | None:
    """Read --for: a word, a number of lists, or a file."""
    if text is None or text in _WORDS:
        return text
    if not text or (text.replace(".", "", 1).replace("e", "", 1).isdigit() and not text.isdigit()):
        message = f"--for takes everyone, held-out, a whole number or a file: {text!r}"
        raise ConfigError(message, hint="for example --for 100000")
    return int(text) if text.lstrip("-").isdigit() else text


def file_unless(text: str | None, *words: str) -> Path | None:
    """Take a flag for a file, unless it was not given or is one of some words.

    Examples
    --------
    >>> file_unless("equal", "equal", "catalogue"), file_unless("shares.csv", "equal").name
    (None, 'shares.csv')
    """
    return None if text is None or text in words else Path(text)


def population_file(text: str | None) -> Path | None:
    """Return the table of users that --for names, if it names one."""
    return (
        Path(named)
        if isinstance(named := population_of(text), str) and named not in _WORDS
        else None
    )


@dataclass(frozen=True)
class Targets:
    """What the lists should reach, and for whom; one wish or several."""

    panel: ClassVar[str] = "Target"
    gini: Gini = None
    max_ndcg_loss: Annotated[
        str | None,
        option(
            "SHARE",
            "Target: the nDCG that may be lost, such as 2%: exposure becomes as even as that "
            "allows. With other targets: the most that they may cost.",
        ),
    ] = None
    min_coverage: MinCoverage = None
    min_mmf: MinMmf = None
    of: Of = None
    groups: Groups = None
    group_cap: GroupCap = None
    group_floor: GroupFloor = None
    group_shares: Annotated[
        str | None,
        option(
            "equal|catalogue|interactions|FILE",
            "Target: the same for all groups, in proportion to their items or to their "
            "interactions, or a table group,share.",
        ),
    ] = None
    at: Annotated[
        int | None, length("Length of the lists that are measured, and that a target is for.  [20]")
    ] = None
    population: For = None
    serve: Annotated[
        str | None,
        option(
            "batch|stream|stateless",
            "How users will be served: together, one after the other, or by machines that "
            "share nothing.  [batch]",
        ),
    ] = None
    keep_held_out: Annotated[
        bool | None,
        typer.Option(
            "--keep-held-out",
            help="Do not fit the model to held-out users in the end, so that they can test it.",
        ),
    ] = None
    nearest: Annotated[
        bool | None,
        typer.Option("--nearest", help="Write the nearest model where the target is out of reach."),
    ] = None

    def tables(self) -> dict[str, Path | None]:
        """Return the tables that were named, by their flags."""
        return {
            "of": self.of,
            "groups": self.groups,
            "group_shares": file_unless(self.group_shares, *_NAMED_SHARES),
            "for": population_file(self.population),
        }

    def given(self, tables: dict[str, Any]) -> dict[str, Any]:
        """Return the wishes that were given, as the library takes them; tables with their names."""
        wishes = {own.name: getattr(self, own.name) for own in fields(self)}
        wishes |= {name: tables[name] for name in ("of", "groups")}
        wishes["population"] = tables["for"] or population_of(self.population)
        for name in ("max_ndcg_loss", "min_coverage", "min_mmf", "group_cap", "group_floor"):
            wishes[name] = parse_share(f"--{name.replace('_', '-')}", wishes[name])
        wishes["group_shares"] = parse_shares(self.group_shares, tables["group_shares"])
        return given_flags(**wishes)

    @property
    def any(self) -> bool:
        """Whether there is a target."""
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        about = ("population", "serve", "keep_held_out", "nearest")
        # A length alone says what is measured, with a target or without one.
        given = [name for name in given if name != "at"]
        lone = [name for name in given if name in about]
        if lone and len(lone) == len(given):
            flag = "for" if lone[0] == "population" else lone[0].replace("_", "-")
            message = f"--{flag} speaks of a target, and none was given"
            raise ConfigError(message, hint="add a target such as --gini 0.6")
        return bool(given)
