"""An audit of a folder of lists, a piece for each of its files.

Counts of items are whole numbers, so the metrics are those of one machine to the last bit. The
bounds of their intervals are sums over users, whose last digits may differ.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight.data.ids import ids_from_arrow, positions
from limelight.data.sources import describe, files_of, open_parts, require_column
from limelight.evaluate.audit import (
    Audit,
    Measured,
    check_settings,
    metrics_of,
    notes_of,
    number_items,
    put_together,
)
from limelight.evaluate.audit_exhibit import see
from limelight.evaluate.audit_input import read_groups
from limelight.evaluate.audit_lists import RANK, check_ranks, has, read_lists
from limelight.evaluate.audit_merit import read_merit
from limelight.evaluate.compare import Side
from limelight.evaluate.jackknife import Moments, moments_without
from limelight.evaluate.tally import Counts, Tally, count
from limelight.evaluate.without import figures_without
from limelight.scale.apart import are_apart, digests, refuse_repeats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from limelight.data.sources import Source
    from limelight.evaluate.audit_exhibit import Seen
    from limelight.evaluate.lists import FloatArray
    from limelight.scale.pieces import Pieces


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
    if has(parts, RANK):
        for part in parts:
            require_column(part, RANK.name)
    return describe(parts)


def _examples(file: Path, numbers: np.ndarray, exposure: Tally, k: int) -> Seen:
    """Take some lists of a file to show."""
    rows = read_lists(file).cut(k)
    rows = rows._replace(items=numbers[rows.items])
    return see([Side(rows, exposure, {}, None)], k)
