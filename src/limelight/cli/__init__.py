"""The command line: one module per verb, loaded when the verb is used."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from limelight._base.errors import ConfigError, LimelightError
from limelight._base.signals import Terminated, interruptible
from limelight.cli.output import choose_json, complain, complain_of_system, warnings_as_notes

FAILED, WRONG_USE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
VERBS = {
    "demo": "Show what exposure control does and costs, on made-up data.",
    "data": "Describe, split and convert interactions.",
    "tune": "Find the settings that validation users prefer.",
    "fit": "Learn a model from interactions, or meet a target.",
    "recommend": "Rank items for known users, or for unseen ones.",
    "evaluate": "Measure accuracy and exposure of a model on held-out users.",
    "audit": "Measure how any recommender's lists share exposure.",
    "rerank": "Make lists that share exposure, from anybody's candidates.",
    "frontier": "Trace what evenness of exposure costs in accuracy.",
    "serve": "Answer requests by HTTP, and hold a target over what was shown.",
    "replay": "Try a target on a log of requests.",
    "export": "Write a model's factors, prices and index for other stacks.",
    "plot": "Draw the figures of a run.",
    "report": "Make one page to look at: who gains, who loses, what it costs.",
    "card": "Write a model card: data, figures, promises and limits.",
    "reproduce": "Run the experiments of the exADMM paper.",
    "simulate": "Predict what a fit on a cluster would take.",
    "bench": "Measure speed and memory against other libraries.",
    "doctor": "Show what limelight found on this machine.",
}
"""The verbs in the order of their use: the name of the module, and the first line of its help.

The list of commands shows these lines, because loading all modules would take most of a second.
"""


_OF_DATA = ("describe", "split", "convert")
"""What stands below ``data``, and is looked for beside it."""


class LoadedVerbs(Mapping[str, Any]):
    """The commands by name; looking one up loads its module."""

    def __getitem__(self, name: str) -> Any:
        if name not in VERBS:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


@cache
def _load(name: str) -> Any:
    """Load a module and make its command: the function of the same name, or a group of several.

    Where the module has a class ``Command``, which shows defaults in the help, the command is one.
    """
    from limelight.cli.flags import Verb

    module = import_module(f"{__name__}.{name}")
    only = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    found = getattr(module, name)
    if isinstance(found, typer.Typer):
        only.add_typer(found, name=name)
    else:
        only.command(cls=getattr(module, "Command", Verb))(found)
    return typer.main.get_group(only).commands[name]


class VerbGroup(TyperGroup):
    """All verbs, of which only the one that is used is loaded."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": LoadedVerbs()})

    def list_commands(self, ctx: Any) -> list[str]:
        """List the verbs in the order of their use."""
        return list(VERBS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb; say where those of `data` are, which people look for here."""
        if args and args[0] in _OF_DATA:
            message = f"{args[0]!r} is a command of `limelight data`"
            raise ConfigError(message, hint=f"limelight data {args[0]}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one line for each verb without loading it."""
        lines: dict[str, Any] = {
            name: TyperCommand(name, help=line) for name, line in VERBS.items()
        }
        TyperGroup(commands=lines).format_commands(ctx, formatter)


app = typer.Typer(
    name="limelight",
    cls=VerbGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from limelight._base.machine import package_version

        typer.echo(f"limelight {package_version()}")
        raise typer.Exit


@app.callback()
def limelight(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Decide how evenly a catalogue shares the limelight, and see what that costs.

    Each command reads and writes files, so that they can be chained. Data go to standard output,
    progress and messages to standard error. The exit code is 0, or 1 if the command failed, or 2
    if it was used wrongly; 130 after Ctrl-C, 143 after SIGTERM.

    \b
    Start here:
      limelight demo -o run/
    Then with data of your own:
      limelight data split ratings.csv --rating rating --min-rating 4 -o split/
      limelight fit split/ --gini 0.6 -o model/
      limelight evaluate model/ split/
      limelight recommend model/ -k 20 -o lists.parquet
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end the process.

    Parameters
    ----------
    arguments
        What stands after ``limelight``; None takes it from the process.
    """
    choose_json(False)
    try:
        with interruptible(), warnings_as_notes():
            _commands()(arguments, prog_name="limelight")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            complain("interrupted", hint=_way_out(end), label=None)
        raise
    except KeyboardInterrupt as end:
        complain("interrupted", hint=_way_out(end), label=None)
        raise SystemExit(INTERRUPTED) from None
    except Terminated as end:
        complain("terminated", hint=_way_out(end), label=None)
        raise SystemExit(TERMINATED) from None
    except LimelightError as error:
        complain(error.message, hint=error.hint)
        raise SystemExit(WRONG_USE if isinstance(error, ConfigError) else FAILED) from None
    except (MemoryError, OSError) as error:
        complain_of_system(error)
        raise SystemExit(FAILED) from None
    raise SystemExit(0)


@cache
def _commands() -> Callable[..., Any]:
    """Make the group once in a process; it keeps the verbs that were loaded."""
    return typer.main.get_command(app)


def _way_out(end: BaseException | None) -> str | None:
    """Find the note about resuming, on the exception or on those that it was raised from."""
    while end is not None:
        for note in getattr(end, "__notes__", ()):
            return str(note)
        end = end.__cause__ or end.__context__
    return None


def console() -> NoReturn:
    """Run a command as a process of its own."""
    try:
        main()
    except SystemExit as end:
        if end.code in {INTERRUPTED, TERMINATED} and "jax" in sys.modules:
            # JAX may crash when Python ends in the middle of a compilation. All files are whole.
            sys.stdout.flush()
            os._exit(int(end.code))
        raise
