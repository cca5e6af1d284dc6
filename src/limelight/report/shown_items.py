"""Which items and groups the tables of a page hold, and what they are called.

A page holds at most `MOST_ITEMS` items and `MOST_GROUPS` groups, so that it stays small. What is
left out is said on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.data.groups import exposure_of, owned_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight._base.arrays import Float64, Int64
    from limelight.report.exhibit import Exhibit

MOST_ITEMS = 20_000
MOST_GROUPS = 2_000
HISTORY = 50
"""How many items of a user's history are shown."""
_LONGEST = 300
"""Characters of a title; a longer one is cut."""


@dataclass(frozen=True)
class ShownItems:
    """The items and groups of an exhibit that a page shows."""

    exhibit: Exhibit
    most_items: int = MOST_ITEMS

    @cached_property
    def items(self) -> Int64:
        """Their numbers: of too many, those of the examples, the most exposed, and some others."""
        n_items = len(self.exhibit.item_ids)
        if n_items <= self.most_items:
            return np.arange(n_items)
        largest = np.zeros(n_items)
        for shares in self._shares():
            np.maximum(largest, shares, out=largest)
        needed = self._in_examples()
        largest[needed] = np.inf
        # Half are the most exposed; the others are every so many-th of the rest.
        order = np.argsort(-largest, kind="stable")
        head, tail = np.split(order, [max(self.most_items // 2, len(needed))])
        room = min(max(self.most_items - len(head), 0), len(tail))
        some = np.linspace(0, len(tail) - 1, room).astype(np.int64)
        return np.sort(np.concatenate([head, tail[some]]))

    @cached_property
    def place(self) -> Int64:
        """The place of every item among those that are shown; -1 for others."""
        place = np.full(len(self.exhibit.item_ids), -1, dtype=np.int64)
        place[self.items] = np.arange(len(self.items))
        return place

    @cached_property
    def groups(self) -> Int64:
        """The numbers of the groups, those that hold most first."""
        members = self.exhibit.groups
        if members is None:
            return np.empty(0, dtype=np.int64)
        largest = np.zeros(len(members.group_ids))
        for shares in self._shares():
            np.maximum(largest, exposure_of(members, shares), out=largest)
        # Groups with bounds of their own must not be among those that are left out.
        bound = {*self.exhibit.floors, *self.exhibit.caps}
        if 0 < len(bound) < min(len(members.group_ids), MOST_GROUPS):
            largest += [name in bound for name in members.group_ids]
        order = np.argsort(-largest, kind="stable")
        return np.asarray(order[:MOST_GROUPS], dtype=np.int64)

    def item_table(self) -> dict[str, Any]:
        """Name the items."""
        exhibit, items = self.exhibit, self.items
        ids = [cut(item) for item in np.asarray(exhibit.item_ids)[items].tolist()]
        labels, titles, counts = ids, exhibit.titles, exhibit.interactions
        if titles is not None:
            labels = [cut(titles[item]) or ids[row] for row, item in enumerate(items)]
        return {
            "id": ids,
            "label": labels,
            "group": self._groups_of_items(),
            "interactions": None if counts is None else counts[items].tolist(),
        }

    def group_table(self) -> dict[str, Any] | None:
        """Name the groups; say how many items each has, and what share it should have."""
        members = self.exhibit.groups
        if members is None:
            return None
        owned = owned_by(members)[self.groups]
        names = [members.group_ids[group] for group in self.groups]
        table: dict[str, Any] = {
            "label": [cut(name) for name in names],
            "items": owned.round(2).tolist(),
            "catalogue": (owned / len(self.exhibit.item_ids)).tolist(),
        }
        for bound, given in (("floor", self.exhibit.floors), ("cap", self.exhibit.caps)):
            if given:
                table[bound] = [given.get(name) for name in names]
        return table

    def notes(self) -> dict[str, str]:
        """Say what is left out."""
        members = self.exhibit.groups
        n_groups = 0 if members is None else len(members.group_ids)
        which = "of the example lists, the most exposed, and an even sample of the others"
        return {
            "items_note": _left_out("items", len(self.items), len(self.exhibit.item_ids), which),
            "groups_note": _left_out("groups", len(self.groups), n_groups, "that hold most"),
        }

    def _shares(self) -> Iterator[Float64]:
        for point in self.exhibit.points:
            exposure = point.shown.exposure
            if exposure is not None and exposure.sum() > 0:
                yield exposure / exposure.sum()

    def _in_examples(self) -> Int64:
        exhibit = self.exhibit
        lists = [p.shown.lists.ravel() for p in exhibit.points if p.shown.lists is not None]
        if exhibit.examples is not None:
            lists += [row[:HISTORY] for row in exhibit.examples.history]
        found = np.unique(np.concatenate(lists)) if lists else np.empty(0, dtype=np.int64)
        return np.asarray(found[found >= 0], dtype=np.int64)

    def _groups_of_items(self) -> list[str] | None:
        """Name the groups of each item, in one line."""
        members = self.exhibit.groups
        if members is None:
            return None
        names: dict[int, list[str]] = {}
        for item, group in zip(members.items.tolist(), members.groups.tolist(), strict=True):
            names.setdefault(item, []).append(str(members.group_ids[group]))
        return [cut(", ".join(names.get(item, ()))) for item in self.items.tolist()]


def cut(text: object) -> str:
    """Write something in at most so many characters.

    Examples
    --------
    >>> cut(7), len(cut("x" * 10_000))
    ('7', 300)
    """
    words = str(text)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def _left_out(what: str, shown: int, total: int, which: str) -> str:
    if shown == total:
        return ""
    held = f"The table holds {shown:,} of {total:,} {what}: those {which}."
    return f"{held} All other figures count every one."
