"""Flags that name the columns of a command's tables."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

from limelight._base.errors import ConfigError
from limelight.cli.flags import FlagGroup, given_flags, option

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMN_HELP = {
    "user": "Column of users",
    "item": "Column of items",
    "rank": "Column of ranks, from 1",
    "score": "Column of scores",
    "group": "Column of groups, such as sellers",
    "title": "Column of titles",
}


class TableColumns:
    """How the columns of a command's tables are named.

    Examples
    --------
    >>> names = TableColumns({"item": "sku", "group": "shop"}, main=("item",))
    >>> names.table("groups", "sellers.csv").group
    'shop'
    >>> names.table("groups", "sellers.csv").preferred
    {'item': 'sku'}
    """

    def __init__(
        self, given: dict[str, str], main: Sequence[str], text: dict[str, Any] | None = None
    ) -> None:
        self._given = given
        self._main = main
        self._text = text or {}

    def table(self, table: str, source: Any) -> Any:
        """Name the columns of one table.

        What the main table has, too, is taken under that name where this table has it. Other names
        are for such tables alone, so they must be there.
        """
        if source is None or not (self._given or self._text):
            return source
        from limelight.data.sources import TableSource

        columns: dict[str, Any] = {
            name: self._given.get(f"{table}_{name}") for name in _COLUMN_HELP
        }
        general = {name: self._given[name] for name in self._main if name in self._given}
        for name in set(_COLUMN_HELP) - set(self._main):
            columns[name] = columns[name] or self._given.get(name)
        return TableSource(source, **columns, **self._text, preferred=general)

    def refuse(self, reason: str) -> None:
        """Refuse names of columns that would have no effect."""
        if self._given or self._text:
            flag = "--" + next(iter(self._given or self._text)).replace("_", "-")
            message = f"{reason}: {flag}"
            raise ConfigError(message, hint="rename the columns, or work on one machine")

    def main(self, source: Any) -> Any:
        """Name the columns of the table that a command is about; it must have them."""
        if not (self._given or self._text):
            return source
        from limelight.data.sources import TableSource

        columns: dict[str, Any] = {name: self._given.get(name) for name in self._main}
        return TableSource(source, **columns, **self._text)


class ColumnFlags(FlagGroup):
    """Flags that name the columns of a command's tables: ``--item``, ``--catalogue-item``.

    A command takes ``columns: Annotated[TableColumns, ColumnFlags("user", ..., groups=(...))]``.

    Parameters
    ----------
    main
        The columns of the table that the command is about. Their names hold for its other tables
        too, where those have such a column.
    tables
        The columns of the others, by the names of their flags.
    """

    def __init__(self, *main: str, **tables: tuple[str, ...]) -> None:
        self._main = main
        self.parameters: dict[str, inspect.Parameter] = {}
        shared = dict.fromkeys((*main, *(name for names in tables.values() for name in names)))
        for column in shared:
            self._add(column, f"{_COLUMN_HELP[column]}; found under the usual names.")
        for table, names in tables.items():
            flag = f"--{table.replace('_', '-')}"
            for column in names:
                self._add(f"{table}_{column}", f"{_COLUMN_HELP[column]} of {flag}, if it differs.")
        self._add("separator", "Separator of text files; found by the first line.", "TEXT")

    def _add(self, name: str, text: str, metavar: str = "COLUMN") -> None:
        flag = option(metavar, text, rich_help_panel="Data")
        self.parameters[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, flag],
        )

    def read(self, given: dict[str, Any]) -> TableColumns:
        """Take the names out of what was given on the command line."""
        found = given_flags(**{name: given.pop(name) for name in self.parameters})
        text = {"separator": found.pop("separator")} if "separator" in found else {}
        return TableColumns(found, self._main, text)
