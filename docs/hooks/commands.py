"""The page of the command line: what every command says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from mkdocs.structure.files import File

from limelight.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PAGE = "api/commands.md"
WIDTH = 80  # of a code block of the site


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    command = typer.main.get_command(app)
    sections = "\n\n".join(_sections(command, "limelight", 1))
    files.append(File.generated(config, PAGE, content=sections))
    return files


def _sections(command: Any, name: str, level: int) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=WIDTH)
    title = "Command line" if level == 1 else name
    yield f"{'#' * min(level, 3)} {title}\n\n```text\n{command.get_help(context)}\n```"
    for child in getattr(command, "commands", ()) and command.list_commands(context):
        yield from _sections(command.get_command(context, child), f"{name} {child}", level + 1)
