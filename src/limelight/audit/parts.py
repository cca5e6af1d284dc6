"""Whether every user is in one file alone: a piece of work must see all rows of its users.

An audit of a folder of lists, a piece for each of its files.

Counts of items are whole numbers, so the metrics are those of one machine to the last bit. The
bounds of their intervals are sums over users, whose last digits may differ.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._base.errors import DataError
from limelight.audit.audit import (
    Audit,
    Measured,
    check_settings,
    metrics_of,
    notes_of,
    number_items,
    put_together,
)
from limelight.audit.compare import Side
from limelight.audit.lists import RANK, check_ranks, read_lists
from limelight.audit.merit import read_merit
from limelight.audit.show import see
from limelight.data.groups import read_groups
from limelight.data.ids import ids_from_arrow, positions
from limelight.data.sources import describe, files_of, has, open_parts, require_column
from limelight.metrics.accumulate import Counts, Tally, count
from limelight.metrics.intervals import Moments, moments_without
from limelight.metrics.leave_one_out import figures_without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from limelight._base.executor import Pieces
    from limelight.audit.show import Seen
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source
    from limelight.metrics.lists import FloatArray


def digests(ids: Ids) -> np.ndarray:
    """Digest ids into whole numbers; 7 and "7" are the same."""
    found = (hashlib.blake2b(str(one).encode(), digest_size=8).digest() for one in ids.tolist())
    return np.frombuffer(b"".join(found), dtype="<u8")


def refuse_repeats(found: Iterable[np.ndarray]) -> None:
    """Refuse users with rows in two files: a piece would see half of them."""
    together = np.concatenate(list(found))
    if twice := len(together) - len(np.unique(together)):
        message = f"users have rows in more than one file: {twice:,} of them"
        hint = "write all rows of a user to one file, or leave --executor out"
        raise DataError(message, hint=hint)


def are_apart(ends: Sequence[tuple[Any, Any]]) -> bool:
    """Tell whether stretches of ids, by their first and last, have none in common.

    Examples
    --------
    >>> are_apart([(5, 9), (1, 4)]), are_apart([(1, 5), (4, 9)]), are_apart([(1, 5), ("6", "9")])
    (True, False, False)
    """
    if len({type(first) for first, _ in ends}) > 1:
        return False
    return all(one[1] < other[0] for one, other in pairwise(sorted(ends)))


class Part(NamedTuple):
    """What a file of lists shows, counted over its own items."""

    counts: Counts
    item_ids: pa.Array
    n_users: int
    users: tuple[Any, Any]
    """The first and the last of its users, in the order of their ids."""
    ranks: tuple[int, int]
    """The best and the worst."""
    label: str


@dataclass(frozen=True)
class CountLists:
    """Reads a file of lists, and counts what ranks 1 to k show."""

    k: int | None
    name = "audit: exposure"

    def __call__(self, file: Path) -> Part:
        """Count a file."""
        rows = read_lists(file)
        best, worst = int(rows.ranks.min()), int(rows.ranks.max())
        ends = pc.min_max(rows.user_ids).as_py()
        cut = rows if self.k is None else rows.cut(self.k)
        counts = count(cut.items, cut.ranks, len(rows.item_ids))
        users = ends["min"], ends["max"]
        return Part(counts, rows.item_ids, rows.n_users, users, (best, worst), rows.label)


@dataclass(frozen=True)
class LeaveUsersOut:
    """Reads a file of lists, and measures all lists without each of its users in turn."""

    exposure: Tally
    metrics: dict[str, float]
    item_ids: pa.Array
    merit: FloatArray | None
    k: int
    name = "audit: intervals"

    def __call__(self, file: Path) -> Moments:
        """Measure a file."""
        figures = figures_without(self.exposure, self.merit, self.k)
        rows = read_lists(file).cut(self.k)
        if not len(rows.items):
            zeros = dict.fromkeys(figures, 0.0)
            return Moments(zeros, zeros, 0)
        numbers = positions(rows.item_ids, self.item_ids).astype(np.int32)
        rows = rows._replace(items=numbers[rows.items])
        return moments_without(rows, self.exposure, figures, self.metrics)


@dataclass(frozen=True)
class DigestUsers:
    """Reads a file of lists, and digests the ids of its users."""

    name = "audit: users"

    def __call__(self, file: Path) -> np.ndarray:
        """Digest the users of a file, each once."""
        return digests(ids_from_arrow(read_lists(file).user_ids))


def audit(
    pieces: Pieces,
    lists: Path,
    *,
    k: int | None = None,
    catalogue: Source | Sequence[Any] | None = None,
    groups: Source | None = None,
    merit: Source | None = None,
    top: int = 10,
) -> Audit:
    """Measure as :func:`limelight.audit` does. Examples of lists come from the first file.

    Parameters
    ----------
    pieces
        Does the work.
    lists
        A folder of lists. All rows of a user must be in one file.
    k, catalogue, groups, merit, top
        As for :func:`limelight.audit`.
    """
    check_settings(k, top)
    files = files_of(lists.resolve())
    label = _check_parts(lists)
    parts = list(pieces.map(CountLists(k), files, len(files)))
    if not are_apart([part.users for part in parts]):
        refuse_repeats(pieces.map(DigestUsers(), files, len(files)))
    item_ids, numbers, notes = number_items(parts, catalogue)
    longest = max(part.ranks[1] for part in parts)
    k = longest if k is None else k
    check_ranks(k, min(part.ranks[0] for part in parts), longest, label)
    earned = None if merit is None else read_merit(merit, item_ids)
    members = None if groups is None else read_groups(groups, item_ids)
    n_users = sum(part.n_users for part in parts)
    notes += notes_of([n_users], members, earned)
    counts = zip(parts, numbers, strict=True)
    wide = (part.counts.among(number, len(item_ids)) for part, number in counts)
    exposure = functools.reduce(Counts.plus, wide).tally()
    metrics = metrics_of(exposure, earned.merit if earned else None, k)
    work = LeaveUsersOut(exposure, metrics, item_ids, earned.merit if earned else None, k)
    bounds: dict[str, float] = {}
    if n_users > 1:
        moments = functools.reduce(Moments.plus, pieces.map(work, files, len(files)))
        bounds = moments.bounds(metrics)
    return put_together(
        Measured(
            users=n_users,
            lists=n_users,
            exposure=exposure,
            metrics=metrics,
            bounds=bounds,
            seen=_examples(files[0], numbers[0], exposure, k),
        ),
        item_ids,
        members,
        earned,
        top=top,
        k=k,
        catalogue_given=catalogue is not None,
        notes=tuple(notes),
    )


def _check_parts(lists: Path) -> str:
    """Refuse files of which some have ranks and some have not; return what to call them."""
    parts = open_parts(lists)
    if has(parts, RANK.name):
        for part in parts:
            require_column(part, RANK.name)
    return describe(parts)


def _examples(file: Path, numbers: np.ndarray, exposure: Tally, k: int) -> Seen:
    """Take some lists of a file to show."""
    rows = read_lists(file).cut(k)
    rows = rows._replace(items=numbers[rows.items])
    return see([Side(rows, exposure, {}, None)], k)
