"""The settings of models and re-rankers in the reference, as they are declared."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING

import limelight as ll
from limelight._base.settings import declared_settings, flag_of
from limelight.models.folder import MODELS

if TYPE_CHECKING:
    from limelight._base.settings import Settings

NAME = re.compile(r"^::: limelight\.(\w+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put a table of its settings behind every class that has some."""
    return NAME.sub(lambda found: found[0] + _table_of(found[1]), markdown)


def _table_of(name: str) -> str:
    config = getattr(getattr(ll, name).__init__, "config", None)
    if config is None:
        return ""
    head = ["setting", "default", "meaning", *(["flag"] if name in MODELS else [])]
    rows = [head, ["---"] * len(head), *_rows(config, with_flags=name in MODELS)]
    return "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _rows(config: type[Settings], *, with_flags: bool) -> list[list[str]]:
    declared = declared_settings(config)
    rows = []
    for own in fields(config):
        help_text = declared[own.name].help.replace("``", "`").replace("|", r"\|")
        row = [f"`{own.name}`", f"`{own.default!r}`", help_text]
        rows.append([*row, f"`{flag_of(config, own.name)}`"] if with_flags else row)
    return rows
