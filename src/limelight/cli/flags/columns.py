"""Flags that name the columns of a command's tables."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

from limelight._base.errors import ConfigError
from limelight.cli.flags import FlagGroup, given_flags, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight.cli.flags.reading import Reading

_COLUMN_HELP = {
    "user": "Column of users",
    "item": "Column of items",
    "rank": "Column of ranks, from 1",
    "score": "Column of scores",
    "timestamp": "Column of times",
    "group": "Column of groups, such as sellers",
    "title": "Column of titles",
}
TIME_FORMAT_HELP = "How times are written, such as %d/%m/%Y; ISO 8601 needs none."
_TEXT = ("separator", "columns", "time_format")
"""Flags about how the main table is written."""


class TableColumns:
    """How the columns of a command's tables are named.

    Examples
    --------
    >>> tables = {"groups": ("item", "group")}
    >>> names = TableColumns({"item": "sku", "group": "shop"}, main=("item",), tables=tables)
    >>> names.tables(groups="sellers.csv")["groups"].group
    'shop'
    >>> names.tables(groups="sellers.csv")["groups"].preferred
    {'item': 'sku'}
    """

    def __init__(
        self, given: dict[str, str], main: Sequence[str], tables: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._given = given
        self._main = main
        self._tables = tables

    def tables(self, **sources: Any) -> dict[str, Any]:
        """Name the columns of all tables beside the main one; those that were not given stay None.

        What the main table has, too, is taken under that name where a table has it. Other names
        are for such tables alone, so they must be there.
        """
        for flag, tables in self._meant().items():
            if flag in self._given and all(sources[table] is None for table in tables):
                names = " or ".join(map(_flag, tables))
                message = f"{_flag(flag)} is about a table that was not given: {names}"
                raise ConfigError(message, hint=f"add {names} FILE, or leave {_flag(flag)} out")
        return {table: self._table(table, source) for table, source in sources.items()}

    def _meant(self) -> dict[str, list[str]]:
        """Say which tables each flag is about, of those that are not about the main one."""
        found: dict[str, list[str]] = {}
        for table, columns in self._tables.items():
            for column in (*columns, "columns"):
                found[f"{table}_{column}"] = [table]
                if column not in (*self._main, "columns"):
                    found.setdefault(column, []).append(table)
        return found

    def _table(self, table: str, source: Any) -> Any:
        if source is None:
            return None
        from limelight.data.sources import TableSource

        named = self._tables.get(table, ())
        columns: dict[str, Any] = {
            name: self._given.get(f"{table}_{name}")
            or (None if name in self._main else self._given.get(name))
            for name in named
        }
        columns["columns"] = self._given.get(f"{table}_columns")
        if not named:  # a table like the main one
            columns |= {name: self._given.get(name) for name in ("columns", "time_format")}
        general = (*self._main, "separator")
        preferred = {name: self._given[name] for name in general if name in self._given}
        return TableSource(source, **columns, preferred=preferred, argument=table if named else "")

    def planned(self, names: Mapping[str, str]) -> TableColumns:
        """Add names that were fixed elsewhere; flags that were given hold."""
        known = (*self._main, *self._meant())
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            message = f"unknown column in the plan: {unknown!r}"
            raise ConfigError(message, hint=f"known: {', '.join(known)}")
        return TableColumns({**names, **self._given}, self._main, self._tables)

    def refuse(self, reason: str) -> None:
        """Refuse names of columns that would have no effect."""
        if self._given:
            message = f"{reason}: {_flag(next(iter(self._given)))}"
            raise ConfigError(message, hint="rename the columns, or work on one machine")

    def main(self, source: Any) -> Any:
        """Name the columns of the table that a command is about; it must have them."""
        columns: dict[str, Any] = {
            name: self._given[name] for name in (*self._main, *_TEXT) if name in self._given
        }
        if not columns:
            return source
        from limelight.data.sources import TableSource

        return TableSource(source, **columns)

    def beside(self, reading: Reading) -> TableColumns:
        """Add the names that interactions are read with, for the tables that have them, too."""
        read = {name: getattr(reading, name) for name in ("user", "item", "separator")}
        return TableColumns(given_flags(**read) | self._given, self._main, self._tables)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class ColumnFlags(FlagGroup):
    """Flags that name the columns of a command's tables: ``--item``, ``--catalogue-item``.

    A command takes ``columns: Annotated[TableColumns, ColumnFlags("user", ..., groups=(...))]``.

    Parameters
    ----------
    main
        The columns of the table that the command is about. Their names hold for its other tables
        too, where those have such a column.
    beside_reading
        Whether the command reads interactions, whose flags name users and items.
    times
        Whether the main table may have times.
    tables
        The columns of the others, by the names of their flags.
    """

    def __init__(
        self,
        *main: str,
        beside_reading: bool = False,
        times: bool = False,
        **tables: tuple[str, ...],
    ) -> None:
        self._main = ("user", "item") if beside_reading else main
        self._tables = tables
        self.parameters: dict[str, inspect.Parameter] = {}
        shared = dict.fromkeys((*main, *(name for names in tables.values() for name in names)))
        for column in shared:
            if not (beside_reading and column in self._main):
                self._add(column, f"{_COLUMN_HELP[column]}; found under the usual names.")
        for table, names in tables.items():
            flag = _flag(table)
            for column in names:
                about = _COLUMN_HELP[column].partition(",")[0]
                self._add(f"{table}_{column}", f"{about} of {flag}, if it differs.")
            self._add(f"{table}_columns", f"All columns of {flag}, if it has no header.", "NAMES")
        if not beside_reading:
            self._add("separator", "Separator of text files; found by the first line.", "TEXT")
        if main:
            example = ",".join(main[:3])
            text = f"All columns of a text file without a header: {example}."
            self._add("columns", text, "NAMES")
        if times:
            self._add("time_format", TIME_FORMAT_HELP, "FORMAT")

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
        return TableColumns(found, self._main, self._tables)
