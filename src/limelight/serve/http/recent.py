"""The last answers by the ids of their requests, for clients that report what they showed."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Int32
    from limelight.serve.requests import Answer

KEPT = 50_000
"""How many answers are remembered: some minutes of a busy service, about 20 MB."""


class RecentList(NamedTuple):
    """What was answered."""

    numbers: Int32
    """Of the items."""
    plain: float
    shown: float
    """The relevance of the list without control, and of this one."""

    def part(self, n_places: int) -> tuple[float, float]:
        """Give both for as many of the places as were shown, as if each lost the same share."""
        k = len(self.numbers)
        share = 1.0 if n_places >= k else _worth(n_places) / _worth(k)
        return share * self.plain, share * self.shown


class RecentLists:
    """A bounded memory of answers; the oldest is forgotten first.

    Examples
    --------
    >>> RecentLists(2).find("a") is None
    True
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lists: OrderedDict[str, RecentList] = OrderedDict()
        self._before: tuple[Mapping[str, RecentList], Int32] = ({}, np.empty(0, np.int32))
        """Lists of the catalogue before this one, and the numbers that its items have here."""

    def __len__(self) -> int:
        return len(self._lists)

    def add(self, id_: str, answer: Answer) -> None:
        """Remember an answer; another one to the same id takes its place."""
        self._lists[id_] = RecentList(answer.numbers, answer.plain, answer.shown)
        self._lists.move_to_end(id_)
        if len(self._lists) > self._kept:
            self._lists.popitem(last=False)

    def find(self, id_: str) -> RecentList | None:
        """Return what was answered, unless it was forgotten."""
        found = self._lists.get(id_)
        if found is not None:
            return found
        lists, numbers = self._before
        before = lists.get(id_)
        if before is None:
            return None
        # What the catalogue did not have, it has not got now.
        return before._replace(numbers=np.where(before.numbers < 0, -1, numbers[before.numbers]))

    def renumber(self, numbers: Int32) -> None:
        """Give items their numbers in another catalogue, -1 for those that it does not have.

        Lists are looked at when they are asked for, because nobody should wait for all of them;
        those of a catalogue before the last are forgotten.
        """
        if not np.array_equal(numbers, np.arange(len(numbers))):
            self._before, self._lists = (self._lists, numbers), OrderedDict()


def _worth(n_places: int) -> float:
    return math.fsum(1 / math.log2(place + 2) for place in range(n_places))
