"""Titles of items instead of ids, and groups, for the page of an exhibit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError
from limelight.data.columns import join, scan
from limelight.data.groups import read_groups
from limelight.data.ids import IdColumn, ids_to_arrow, positions
from limelight.data.names import find_column, need_column
from limelight.data.sources import describe, listed, open_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.data.columns import Chunk
    from limelight.data.sources import Source
    from limelight.report.exhibit import Exhibit


def with_titles_and_groups(
    exhibit: Exhibit, groups: Source | None = None, catalogue: Source | None = None
) -> Exhibit:
    """Add groups (``item_id, group[, weight]``), and titles from a catalogue.

    Titles stand in a column ``title`` or ``name`` of the catalogue; without one, ids stay.
    """
    item_ids = ids_to_arrow(exhibit.item_ids)
    if groups is not None:
        exhibit = replace(exhibit, groups=read_groups(groups, item_ids))
    if catalogue is not None:
        exhibit = replace(exhibit, titles=read_titles(catalogue, item_ids) or exhibit.titles)
    return exhibit


def read_titles(source: Source, item_ids: pa.Array) -> tuple[str, ...] | None:
    """Read the titles of items; an item without one gets an empty one.

    Examples
    --------
    >>> table = pa.table({"item_id": [7, 5], "title": ["Seven", None]})
    >>> read_titles(table, pa.array([5, 6, 7]))
    ('', '', 'Seven')
    """
    parts = open_parts(source)
    name = find_column(source, parts, "title")
    if name is None:
        return None
    item, title = IdColumn(need_column(source, parts, "item")), _TextColumn(name)
    codes, texts = join(scan(parts, [item, title]))
    known = positions(item.ids(), item_ids)[codes]
    titles = np.full(len(item_ids), "", dtype=object)
    titles[known[known >= 0]] = texts[known >= 0]
    return tuple(titles.tolist())


def require_titles(source: Source) -> None:
    """Refuse a catalogue that was named for its titles and has none."""
    parts = open_parts(source)
    if find_column(source, parts, "title") is None:
        message = f"neither 'title' nor 'name' in {describe(parts)}"
        raise DataError(message, hint=f"the columns are: {listed(parts[0].columns)}")


class _TextColumn:
    """A column of words, which may be missing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, chunk: Chunk) -> NDArray[Any]:
        try:
            words = chunk.values.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            what, hint = "a title is a text", "cast the column to strings first"
            raise chunk.type_error(what, hint) from error
        return np.asarray(words.fill_null("").to_numpy(zero_copy_only=False), dtype=object)
