"""The last answers by the ids of their requests, for clients that report what they showed."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
        return self._lists.get(id_)

    def clear(self) -> None:
        """Forget all, because items have other numbers now."""
        self._lists.clear()


def _worth(n_places: int) -> float:
    return math.fsum(1 / math.log2(place + 2) for place in range(n_places))
