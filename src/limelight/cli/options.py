"""The flags that several commands share, each written once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from limelight._errors import ConfigError
from limelight.cli.memory import announce, with_held

if TYPE_CHECKING:
    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Interactions
    from limelight.data.split import Split

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A .parquet, .csv or .tsv file (also .gz), a folder of parts, or a split folder, "
        "of which the training part is taken.",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A folder that `limelight fit` wrote.")
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="The same seed gives the same result."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="How many threads to use; 0: all that the process may use; "
        "if not given, what the model was fitted with.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to standard output instead of text.")
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Also write a page to look at: one file that needs nothing else.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on from where an interrupted run of the same command stopped; from the beginning "
        "if there is nothing to go on from.",
    ),
]
CheckpointEvery = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How often to write down how far the work has come; 0: as often as possible.  [60]",
        show_default=False,
    ),
]
SPLIT_FILE = "train.csv"


@dataclass(frozen=True)
class Reading:
    """How a table of interactions is read; what was not given is left to `limelight.read`."""

    user: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of users; found under the usual names."),
    ] = None
    item: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of items; found under the usual names."),
    ] = None
    rating: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of ratings; not read unless named."),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of times, to order the rows by; not read unless named."
        ),
    ] = None
    min_rating: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Keep rows rated at least this (needs --rating)."),
    ] = None
    min_user: Annotated[
        int | None, typer.Option(metavar="N", help="Keep users with at least so many items.")
    ] = None
    min_item: Annotated[
        int | None, typer.Option(metavar="N", help="Keep items with at least so many users.")
    ] = None
    filter_order: Annotated[
        str | None,
        typer.Option(
            metavar="together|items-first|users-first",
            help="When the two are counted: both before either filter, or one after the other.",
        ),
    ] = None
    core: Annotated[
        int | None,
        typer.Option(metavar="N", help="Keep the k-core instead: so many for every user and item."),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the flags that were given, by their names in Python."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def refuse(self, reason: str, hint: str) -> None:
        """Refuse flags that would have no effect."""
        if self.given():
            flag = "--" + next(iter(self.given())).replace("_", "-")
            message = f"{reason}: {flag}"
            raise ConfigError(message, hint=hint)

    def interactions(self, path: Path) -> "Interactions":
        """Read a table, or the training part of a split folder."""
        return self.interactions_and_validation(path)[0]

    def interactions_and_validation(self, path: Path) -> "tuple[Interactions, HeldOut | None]":
        """Read a table, or the training and the validation part of a split folder."""
        from limelight.data import Split

        data = self.interactions_or_split(path)
        return (data.train, data.validation) if isinstance(data, Split) else (data, None)

    def interactions_or_split(self, path: Path) -> "Interactions | Split":
        """Read a table, or a split folder."""
        from limelight.data import Split, read

        if not (path / SPLIT_FILE).is_file():
            self.announce(path)
            return read(path, **self.given())
        hint = "give this flag to `limelight data split`"
        self.refuse("a split folder is already filtered, it does not take", hint)
        return Split.load(path)

    def announce(self, path: Path) -> None:
        """Say how much memory reading a table takes, or refuse it."""
        from limelight.data.memory import reading_bytes

        columns = ("user", "item", "rating", "timestamp", "min_rating")
        given = {name: value for name, value in self.given().items() if name in columns}
        hint = "read less: a part of the rows, or those from a higher --min-rating on"
        announce("reading", with_held(lambda: reading_bytes(path, **given)), hint=hint)


def takes_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of flags: every field becomes a flag of its own."""
    signature = inspect.signature(command)
    kinds: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        groups = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in kinds.items()
        }
        command(**given, **groups)

    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name in kinds:
            parameters += _flags_of(kinds[parameter.name])
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _flags_of(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


def showing(defaults: Callable[[], dict[str, str]]) -> type[TyperCommand]:
    """Make a kind of command whose help shows defaults that stand elsewhere in the library.

    They are looked up when the help is printed and not before, because that imports the library.
    """

    class Command(TyperCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            known = defaults()
            options: list[Any] = [option for option in self.params if option.name in known]
            for option in options:
                option.help = f"{option.help}  [default: {known[option.name]}]"
            TyperCommand.format_help(self, ctx, formatter)

    return Command


def signature_defaults(function: Callable[..., Any], *names: str) -> dict[str, str]:
    """Look up the defaults of a function's arguments, as text for the help.

    Examples
    --------
    >>> signature_defaults(lambda k=(5, 20): k, "k")
    {'k': '5, 20'}
    """
    parameters = inspect.signature(function).parameters
    return {name: str(parameters[name].default).strip("()") for name in names}
