"""The flags that several commands share, each written once."""

from __future__ import annotations

import abc
import copy
import functools
import inspect
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from limelight._base.settings import declared_settings, flag_of, kind_of
from limelight.cli.output import choose_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.settings import Settings, SettingType


class FlagGroup(abc.ABC):
    """Several flags that a command takes as one argument, named in its annotation."""

    parameters: dict[str, inspect.Parameter]

    @abc.abstractmethod
    def read(self, given: dict[str, Any]) -> Any:
        """Take the values of the flags out of what was given on the command line."""


def given_flags(**flags: Any) -> dict[str, Any]:
    """Leave out the flags that were not given, so that the library's own defaults hold.

    Examples
    --------
    >>> given_flags(k=20, catalogue=None)
    {'k': 20}
    """
    return {name: value for name, value in flags.items() if value is not None}


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """Make a flag that takes a value, with its help; named after its argument unless given."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def length(text: str, **more: Any) -> Any:
    """Make the flag of the length of lists, which all verbs call by the same two names."""
    return option("N", text, "-k", "--at", **more)


def argument(metavar: str, text: str) -> Any:
    """Make an argument that is given by its place, with its help."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


DataFile = Annotated[
    Path,
    argument(
        "DATA",
        "A .parquet, .csv, .tsv or .dat file (also .gz, .bz2, .zst, .zip), a folder of parts, "
        "or a split folder, of which the training part is taken.",
    ),
]

ModelFolder = Annotated[Path, argument("MODEL", "A folder that `limelight fit` wrote.")]

Seed = Annotated[int | None, option("N", "The same seed gives the same result.", "--seed")]

Threads = Annotated[
    int | None,
    option(
        "N",
        "How many threads to use; 0: all that the process may use; "
        "if not given, what the model was fitted with.",
        "--threads",
    ),
]

Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object to standard output instead of text.",
        callback=choose_json,
    ),
]

Report = Annotated[
    Path | None,
    option(
        "FILE.html",
        "Also write a page to look at: one file that needs nothing else.",
        "--report",
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
    option(
        "SECONDS",
        "How often to write down how far the work has come; 0: as often as possible.  [60]",
        show_default=False,
    ),
]


class SettingFlags(FlagGroup):
    """A flag for each setting of some models; what was not given is left to their configs.

    A command takes ``settings: Annotated[dict[str, Any], SettingFlags(configs)]``.

    Parameters
    ----------
    configs
        Whose settings they are. A setting of several has one flag.
    only
        Which settings; all unless given.
    """

    def __init__(self, configs: Sequence[type[Settings]], *only: str) -> None:
        self.parameters: dict[str, inspect.Parameter] = {}
        self._kinds: dict[str, SettingType] = {}
        for config in configs:
            for own in fields(config):
                if own.name not in self.parameters and (not only or own.name in only):
                    kind = kind_of(own)
                    assert kind is not None
                    self.parameters[own.name] = _flag_of_setting(config, own.name, kind)
                    self._kinds[own.name] = kind

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take the settings out of what was given on the command line, numbers as numbers."""
        found = {name: given.pop(name) for name in self.parameters}
        return {
            name: _as_number(value, self._kinds[name])
            for name, value in found.items()
            if value is not None
        }


def _flag_of_setting(config: type[Settings], name: str, kind: SettingType) -> inspect.Parameter:
    declared = declared_settings(config)[name]
    words = "|".join(kind.choices)
    number = {None: "", int: "N", float: "NUMBER", bool: ""}[kind.number]
    option = typer.Option(
        flag_of(config, name),
        metavar=declared.metavar or "|".join(filter(None, (number, words))),
        help=declared.help,
        rich_help_panel="Model",
    )
    value: Any = kind.number if kind.number and not words else str
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[value | None, option],
    )


def _as_number(value: Any, kind: SettingType) -> Any:
    """Read a number where a setting also takes words; its config refuses other words."""
    try:
        return kind.number(value) if kind.number and isinstance(value, str) else value
    except ValueError:
        return value


def takes_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of flags: the fields of dataclasses, and settings of models."""
    signature = inspect.signature(command)
    groups = {
        name: group
        for name, parameter in signature.parameters.items()
        if (group := _group_of(parameter.annotation))
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        read = {name: group.read(given) for name, group in groups.items()}
        command(**given, **read)

    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in groups:
            parameters += groups[parameter.name].parameters.values()
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


class FieldFlags(FlagGroup):
    """A flag for each field of a dataclass."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        hints = get_type_hints(kind, include_extras=True)
        for hint in hints.values():
            for mark in getattr(hint, "__metadata__", ()):
                mark.rich_help_panel = getattr(kind, "panel", None)
        self.parameters = {
            own.name: inspect.Parameter(
                own.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if own.default is MISSING else own.default,
                annotation=hints[own.name],
            )
            for own in fields(kind)
        }

    def read(self, given: dict[str, Any]) -> Any:
        """Make the dataclass of what was given on the command line."""
        return self._kind(**{name: given.pop(name) for name in self.parameters})


def _group_of(annotation: Any) -> FlagGroup | None:
    """Tell whether an argument of a command stands for several flags."""
    if is_dataclass(annotation):
        return FieldFlags(annotation)
    marks = getattr(annotation, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, FlagGroup)), None)


class Verb(TyperCommand):
    """A command whose help has a part for each kind of flags, its own ones first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the flags."""
        parts: dict[str, list[Any]] = {"Arguments": [], "Options": [], **{p: [] for p in _PANELS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and parameter.param_type_name == "argument":
                parts["Arguments"].append(record)
            elif record:
                parts[_panel_of(parameter)].append(record)
        for title, records in parts.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


_PANELS = ("Data", "Model", "Target", "Record", "Ledger", "Service", "Cluster", "Output")
_OUTPUT = {"output", "page", "as_json", "no_history", "resume", "checkpoint_every"}
"""Arguments that say in every verb where results go and how."""


def _panel_of(parameter: Any) -> str:
    if parameter.name in _OUTPUT:
        return "Output"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def showing(
    defaults: Callable[[], dict[str, str]], choices: Callable[[], dict[str, str]] = dict
) -> type[TyperCommand]:
    """Make a kind of command whose help shows defaults and choices that the library knows.

    They are looked up when the help is printed and not before, because that imports the library.
    """

    class Command(Verb):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            known = defaults()
            shown = copy.copy(self)
            shown.params = [copy.copy(option) for option in self.params]
            options: list[Any] = [option for option in shown.params if option.name in known]
            for option in options:
                option.help = f"{option.help}  [default: {known[option.name]}]"
            for name, metavar in choices().items():
                next(option for option in shown.params if option.name == name).metavar = metavar
            Verb.format_help(shown, ctx, formatter)

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
