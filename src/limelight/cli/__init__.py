"""The command line: one file per verb.

Heavy modules are imported where a command needs them, so that ``limelight --help`` answers at once.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from limelight._base.errors import ConfigError, LimelightError
from limelight._base.signals import Terminated, terminate
from limelight.cli import (
    audit,
    bench,
    data,
    demo,
    doctor,
    evaluate,
    fit,
    frontier,
    plot,
    recommend,
    report,
    reproduce,
    rerank,
    simulate,
)
from limelight.cli.output import complain, complain_of_system

FAILED, WRONG_USE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
_ORDER = (
    "demo",
    "data",
    "fit",
    "recommend",
    "evaluate",
    "audit",
    "rerank",
    "frontier",
    "plot",
    "report",
    "reproduce",
    "simulate",
    "bench",
    "doctor",
)


class InOrder(TyperGroup):
    """Commands listed in the order in which they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Put `data` where it belongs; groups would come last otherwise."""
        names = TyperGroup.list_commands(self, ctx)
        return sorted(names, key=_ORDER.index)


app = typer.Typer(
    name="limelight",
    cls=InOrder,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
demo.register(app)
data.register(app)
fit.register(app)
recommend.register(app)
evaluate.register(app)
audit.register(app)
rerank.register(app)
frontier.register(app)
plot.register(app)
report.register(app)
reproduce.register(app)
simulate.register(app)
bench.register(app)
doctor.register(app)


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
    try:
        with _terminable():
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
    """Make all commands with their flags once in a process, because that takes some time."""
    return typer.main.get_command(app)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a command in good order, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _way_out(end: BaseException | None) -> str | None:
    """Find what was said about going on, where the end was passed from hand to hand."""
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
