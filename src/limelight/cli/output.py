"""What commands print: data to standard output, everything else to standard error."""

import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limelight._base.errors import ConfigError, LimelightWarning
from limelight._base.files import hint_of
from limelight._base.printable import printable, printable_lines

if TYPE_CHECKING:
    from limelight.solve.loop import Status

_reads_json = ContextVar("_reads_json", default=False)
# Arguments of functions; the hyper-parameters of models are looked up where they are declared.
_ARGUMENTS = """
    at at_users catalogue columns core core_speed cores efficiency every filter_order gini group
    group_cap group_floor group_shares groups held_out history intersect item item_features
    machines max_ndcg_loss max_relevance_loss memory_speed min_coverage min_item min_mmf
    min_rating min_user network rank rating rating_missing relevance score separator serve
    shards small_groups spread test time_format timestamp title user validation wire_bytes
"""
_RENAMED = {
    "k": "-k",
    "n_interactions": "--interactions",
    "n_items": "--items",
    "n_users": "--users",
}
_SPOKEN = {
    "`model.save`": "`limelight fit`",
    "the same call goes on": "the same command with --resume goes on",
    "the same call, or delete the checkpoint": "the same command, or leave --resume out",
    "choose another output, or delete the checkpoint": "choose another -o, or leave --resume out",
}
"""Advice of the library, and what a command says instead."""


def in_flags(text: str) -> str:
    """Say a message of the library in the words of the command line.

    The library speaks of ``min_rating=4``; who typed a command knows it as ``--min-rating 4``.

    Examples
    --------
    >>> in_flags("min_rating needs a rating column: min_rating=4")
    '--min-rating needs a rating column: --min-rating 4'
    >>> in_flags("name them with user='...' and item='...'")
    "name them with --user '...' and --item '...'"
    >>> in_flags("name it with ll.TableSource(..., held_out_item='...')")
    "name it with --held-out-item '...'"
    >>> in_flags("dropout must be at least 0 and below 1: 1.5")
    '--dropout must be at least 0 and below 1: 1.5'
    >>> in_flags("at must be a time: '01/01/2002'")
    "--at must be a time: '01/01/2002'"
    """
    from limelight._base.settings import flag_of
    from limelight.models.folder import MODELS

    settings = {
        setting.name: flag_of(config, setting.name)
        for _, config in MODELS.values()
        for setting in fields(config)
    }
    flags = {name: f"--{name.replace('_', '-')}" for name in _ARGUMENTS.split()}
    flags |= settings | _RENAMED
    for python, spoken in _SPOKEN.items():
        text = text.replace(python, spoken)
    text = re.sub(r"ll\.TableSource\(\.\.\., ([^()]*)\)", r"\1", text)
    text = re.sub(rf"{_ALONE}({_any(flags)})=", lambda found: f"{flags[found[1]]} ", text)
    text = re.sub(_TABLE_COLUMN, lambda found: f"--{found[1].replace('_', '-')} ", text)
    # A name of one word may be an ordinary word, but not where a check begins with it.
    text = re.sub(
        rf"^({_any(flags)})(?= must | is not a known choice)",
        lambda found: flags[found[1]],
        text,
    )
    of_two_words = (name for name in flags if "_" in name)
    return re.sub(
        rf"{_ALONE}({_any(of_two_words)})(?![\w'\"])", lambda found: flags[found[1]], text
    )


_ALONE = r"(?<![-\w'\"])"
"""Not the end of a longer name, and not quoted."""
_TABLE_COLUMN = rf"{_ALONE}([a-z]+(?:_[a-z]+)*_(?:columns|group|item|title|user))="
"""A column of one of several tables."""


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(names))


def complain(message: str, *, hint: str | None = None, label: str | None = "error") -> None:
    """Print an error to standard error, and below it a way out."""
    from rich.console import Console
    from rich.text import Text

    # A message may quote names of files and columns, which a stranger may have chosen.
    message, hint = printable(message), hint and printable(hint)
    lines = [Text.assemble((f"{label}: ", "bold red") if label else "", in_flags(message))]
    if hint:
        lines += [Text(""), Text.assemble(("hint: ", "bold"), in_flags(hint))]
    # soft_wrap: a message is one line for whoever searches a log.
    Console(stderr=True, highlight=False, soft_wrap=True).print(*lines, sep="\n")


def complain_of_system(error: MemoryError | OSError) -> None:
    """Print what the system refused in one sentence."""
    if isinstance(error, MemoryError):
        hint = "use fewer --factors, or drop rare users and items"
        complain("there is not enough memory", hint=hint)
        return
    reason = os.strerror(error.errno) if error.errno else str(error)
    message = f"{reason}: {error.filename!r}" if error.filename else reason
    complain(message, hint=hint_of(error))


def note(text: str) -> None:
    """Print a line to standard error."""
    _show(text, err=True)


def remark(text: str) -> None:
    """Print what goes well to standard error, unless a program reads the result as JSON.

    What may be wrong is a `note`, which is printed always.
    """
    if not _reads_json.get():
        note(text)


def choose_json(value: bool) -> bool:
    """Take the flag ``--json``, so that remarks know of it."""
    _reads_json.set(value)
    return value


def show(text: str) -> None:
    """Print a text to standard output."""
    _show(text)


def _show(text: str, *, err: bool = False) -> None:
    """Print lines as text: ids, titles and names of files may hold what a terminal would obey."""
    typer.echo(printable_lines(text), err=err)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print what limelight warns of as a remark, the same words once."""
    told: set[str] = set()

    def show(message: Any, kind: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(kind, LimelightWarning):
            usual(message, kind, *place, **more)
        elif (text := str(message)) not in told:
            told.add(text)
            note(text)

    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.simplefilter("always", LimelightWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def report(text: str, record: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a result to standard output: as text to read, or as JSON."""
    _show(to_json(record) if as_json else text)


def summarise(text: str, record: Mapping[str, Any], *, written: Path, as_json: bool) -> None:
    """Print a result to standard output, and to standard error where it was written.

    With JSON standard error stays empty, because the record says where.
    """
    report(text, record, as_json=as_json)
    remark(f"written to {written}")


def to_json(record: Mapping[str, Any], indent: int | None = None) -> str:
    """Write a record as JSON, unrounded; a number that is not finite becomes null.

    Examples
    --------
    >>> to_json({"ndcg@20": 0.1, "gini@20": float("nan")})
    '{"ndcg@20": 0.1, "gini@20": null}'
    """
    text = json.dumps(_plain(record), allow_nan=False, ensure_ascii=False, indent=indent)
    # Escapes of JSON's own: programs read the same, and a terminal obeys nothing.
    return printable_lines(text, lambda character: json.dumps(character)[1:-1])


def _plain(value: Any) -> Any:
    """Turn NumPy numbers, paths and tuples into what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int) or value is None:
        return value
    return str(value)


def ending(trace: Sequence[Any], status: "Status | None") -> dict[str, Any]:
    """Say how a fit went, for people and for JSON."""
    record: dict[str, Any] = {}
    if trace:
        record |= {"epochs": trace[-1].epoch, "objective": trace[-1].objective}
    if status:
        record |= {"status": status.name.lower(), "meaning": status.value}
    return record


def check_page(path: Path | None) -> None:
    """Refuse a name that no browser would open as a page, before the work begins."""
    if path is not None and path.suffix.lower() not in {".html", ".htm"}:
        message = f"a report is an HTML page: {str(path)!r}"
        raise ConfigError(
            message, hint="choose a name that ends in .html; `limelight plot` makes PDF"
        )


def note_page(path: Path) -> None:
    """Say where a page was written."""
    remark(f"report written to {path}")
