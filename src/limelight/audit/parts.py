"""The lists of an audit in parts: each is counted where it is read, and the counts are added up.

A table that this process reads is one part, whose rows are kept. For an executor that is parallel,
every file of a folder is a part, which is read for each step anew, so that nobody holds all.

Counts of items are whole numbers, so the metrics are the same however lists are cut, to the last
bit. The bounds of their intervals are sums over users, whose last digits may differ.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._base.errors import ConfigError, DataError
from limelight.audit.compare import Audited
from limelight.audit.lists import ListTable, check_ranks, list_names, read_lists
from limelight.audit.merit import merit_metrics
from limelight.data.catalogue import read_catalogue
from limelight.data.files import files_of
from limelight.data.ids import ids_from_arrow, positions
from limelight.data.sources import (
    at_path,
    describe,
    is_file_source,
    open_parts,
    require_column,
)
from limelight.metrics.accumulate import Counts, Tally, count, exposure_metrics, floor_of
from limelight.metrics.intervals import Deviations, Moments, leave_users_out, moments_without
from limelight.metrics.leave_one_out import figures_without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from limelight._base.executor import Executor
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source
    from limelight.metrics.lists import FloatArray

NO_CATALOGUE = (
    "No catalogue was given: items that no list shows are not counted, "
    "so the Gini index is too low and the coverage too high."
)


def digests(ids: Ids) -> np.ndarray:
    """Digest ids into whole numbers; 7 and "7" are the same."""
    found = (hashlib.blake2b(str(one).encode(), digest_size=8).digest() for one in ids.tolist())
    return np.frombuffer(b"".join(found), dtype="<u8")


def refuse_repeats(found: Iterable[np.ndarray]) -> None:
    """Refuse users with rows in two files, because each file is measured by itself."""
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


class ListPart:
    """Lists of some users, with all rows of each of them.

    Parameters
    ----------
    source, timestamp
        As for :func:`~limelight.audit.lists.read_lists`.
    keep
        Whether they are read once and stay in this process. Otherwise the source is a file, which
        is read whenever it is asked for, on whatever machine.
    """

    def __init__(self, source: Source, timestamp: str | None = None, *, keep: bool) -> None:
        self._source, self._keep, self._is_numbered = source, keep, False
        self._table = read_lists(source, timestamp) if keep else None

    def table(self) -> ListTable:
        """Return the rows as they were read."""
        return read_lists(self._source) if self._table is None else self._table

    def numbered(self, item_ids: pa.Array, k: int) -> ListTable:
        """Return ranks 1 to k, with items by their number in the catalogue.

        Rows that are kept are so from now on, because two copies of them would not fit.
        """
        if self._is_numbered:
            return self.table()
        rows = self.table().cut(k)
        if self._keep:
            self._table = None
        numbers = positions(rows.item_ids, item_ids).astype(np.int32)
        rows = rows._replace(items=numbers[rows.items])
        if self._keep:
            self._table, self._is_numbered = rows, True
        return rows


class PartCounts(NamedTuple):
    """What a part of the lists shows, counted over its own items."""

    counts: Counts
    item_ids: pa.Array
    n_users: int
    n_lists: int
    users: tuple[Any, Any]
    """The first and the last of its users, in the order of their ids."""
    ranks: tuple[int, int]
    """The best and the worst."""
    rows: int
    """All that were read, those beyond k too."""
    label: str


@dataclass(frozen=True)
class CountLists:
    """Counts what ranks 1 to k of a part show."""

    k: int | None
    name = "audit: exposure"

    def __call__(self, part: ListPart) -> PartCounts:
        """Count over the items of the part, because those of the others are not known yet."""
        rows = part.table()
        ends = pc.min_max(rows.user_ids).as_py()
        cut = rows if self.k is None else rows.cut(self.k)
        return PartCounts(
            count(cut.items, cut.ranks, len(rows.item_ids)),
            rows.item_ids,
            n_users=rows.n_users,
            n_lists=rows.n_lists,
            users=(ends["min"], ends["max"]),
            ranks=(int(rows.ranks.min()), int(rows.ranks.max())),
            rows=len(rows.items),
            label=rows.label,
        )


@dataclass(frozen=True)
class LeaveUsersOut:
    """Measures all lists without each user of a part in turn."""

    exposure: Tally
    metrics: dict[str, float]
    item_ids: pa.Array
    merit: FloatArray | None
    k: int
    whole: bool
    """Whether a part has all users; of others, only what they add up to is given back."""
    name = "audit: intervals"

    def __call__(self, part: ListPart) -> Deviations | Moments | None:
        """Return the figures without each of the part's users, or only their moments."""
        figures = figures_without(self.exposure, self.merit, self.k)
        rows = part.numbered(self.item_ids, self.k)
        if self.whole:
            return leave_users_out(rows, self.exposure, figures)
        if not len(rows.items):
            zeros = dict.fromkeys(figures, 0.0)
            return Moments(zeros, zeros, 0)
        return moments_without(rows, self.exposure, figures, self.metrics)


@dataclass(frozen=True)
class DigestUsers:
    """Digests the ids of a part's users."""

    name = "audit: users"

    def __call__(self, part: ListPart) -> np.ndarray:
        """Digest the users of a part, each once."""
        return digests(ids_from_arrow(part.table().user_ids))


class CountedLists(NamedTuple):
    """Lists in parts, and what each of them shows."""

    parts: Sequence[ListPart]
    counted: Sequence[PartCounts]
    n_users: int
    n_lists: int
    """More than users, where lists have times."""
    n_rows: int
    ranks: tuple[int, int]
    label: str
    """What messages call the lists."""

    def cut(self, executor: Executor, k: int) -> CountedLists:
        """Count again what ranks 1 to k show, unless there are no others."""
        if self.ranks[1] <= k:
            return self
        return self._replace(counted=list(executor.map(CountLists(k), self.parts)))

    def measure(
        self,
        executor: Executor,
        item_ids: pa.Array,
        numbers: Iterable[NDArray[np.int32]],
        merit: FloatArray | None,
        k: int,
    ) -> Audited:
        """Add up the exposure at k, name its metrics, and find out how sure they are.

        For each part, ``numbers`` are those of its items in the catalogue ``item_ids``.
        """
        check_ranks(k, *self.ranks, self.label)
        pairs = zip(self.counted, numbers, strict=True)
        wide = (part.counts.among(number, len(item_ids)) for part, number in pairs)
        exposure = functools.reduce(Counts.plus, wide).tally()
        metrics = exposure_metrics(exposure.weighted, exposure.shown, floor_of(exposure), k)
        if merit is not None:
            metrics |= merit_metrics(exposure.weighted, merit, k)
        n_parts, spread = len(self.parts), None
        work = LeaveUsersOut(exposure, metrics, item_ids, merit, k, whole=n_parts == 1)
        if self.n_users > 1:
            found: Iterable[Any] = executor.map(work, self.parts, n_parts)
            spread = functools.reduce(Moments.plus, found)
        return Audited(self.parts[0].numbered(item_ids, k), exposure, metrics, spread)


def count_lists(
    executor: Executor, source: Source, k: int | None, timestamp: str | None = None
) -> CountedLists:
    """Read lists, as one part or file by file, and count what they show.

    Files are read where the executor is parallel; all rows of a user must then be in one of them.
    """
    if executor.parallel:
        parts, label = _file_parts(source)
    else:
        parts, label = [ListPart(source, timestamp, keep=True)], ""
    counted = list(executor.map(CountLists(k), parts, len(parts)))
    if len(parts) > 1 and not are_apart([part.users for part in counted]):
        refuse_repeats(executor.map(DigestUsers(), parts, len(parts)))
    return CountedLists(
        parts,
        counted,
        n_users=sum(part.n_users for part in counted),
        n_lists=sum(part.n_lists for part in counted),
        n_rows=sum(part.rows for part in counted),
        ranks=(min(part.ranks[0] for part in counted), max(part.ranks[1] for part in counted)),
        label=label or counted[0].label,
    )


def _file_parts(source: Any) -> tuple[list[ListPart], str]:
    """Take every file as a part; refuse files of which some have ranks and some have not."""
    if not is_file_source(source):
        message = f"a parallel executor reads files, not a {type(source).__name__}"
        raise ConfigError(message, hint="write the lists to a folder, or leave executor out")
    opened = open_parts(source)
    if (rank := list_names(source, opened).rank) is not None:
        for part in opened:
            require_column(part, rank)
    files = files_of(Path(source).expanduser().resolve())
    parts = [ListPart(at_path(source, file), keep=False) for file in files]
    return parts, describe(opened)


class NumberedItems(NamedTuple):
    """The items of the catalogue, and those of parts by their number."""

    item_ids: pa.Array
    numbers: list[NDArray[np.int32]]
    """For each part, the numbers of its items."""
    repeats: int
    """Rows of the catalogue that repeat an item."""


def number_items(
    parts: Sequence[PartCounts], catalogue: Source | Sequence[Any] | None
) -> NumberedItems:
    """Number the items of all parts as the catalogue does, or as they come."""
    repeats = 0
    if catalogue is None:
        item_ids = join_ids([part.item_ids for part in parts])
    else:
        item_ids, repeats = read_catalogue(catalogue)
    numbers = [positions(part.item_ids, item_ids).astype(np.int32) for part in parts]
    for part, number in zip(parts, numbers, strict=True):
        missing = np.flatnonzero(number < 0)
        if missing.size:
            example = part.item_ids[int(missing[0])].as_py()
            count = f"{len(missing):,}, e.g. {example!r}"
            message = f"items of the lists are not in the catalogue: {count} in {part.label}"
            raise DataError(message, hint="the catalogue must hold every item that a list shows")
    return NumberedItems(item_ids, numbers, repeats)


def join_ids(ids: Sequence[pa.Array]) -> pa.Array:
    """Join the ids of all files, as strings if some are integers and some are not."""
    if len({array.type for array in ids}) > 1:
        ids = [array.cast(pa.large_string()) for array in ids]
    return pa.concat_arrays(ids).unique()
