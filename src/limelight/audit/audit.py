"""An exposure audit of any recommender's lists: who is in the limelight, and who is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError
from limelight._base.executor import as_executor
from limelight.audit.compare import Comparison, compare
from limelight.audit.exhibit import ExampleLists, example_lists, exhibit_of
from limelight.audit.merit import Merit, MeritAudit, audit_merit, read_merit
from limelight.audit.over_time import Every, Period, by_period, check_every
from limelight.audit.parts import count_lists, number_items
from limelight.audit.show import KeyedFigures, document_of, report
from limelight.audit.tables import (
    ShareLookup,
    groups_table,
    items_table,
    name_items,
    record,
    titles_of,
)
from limelight.audit.targets import AuditTargets, what_matters_first
from limelight.audit.verdict import headline
from limelight.data.groups import GroupExposure, Groups, group_shares, read_groups, ungrouped_share
from limelight.data.ids import ids_from_arrow
from limelight.metrics.conventions import conventions
from limelight.metrics.lists import FloatArray, ListCount, check_positive, sizes_note
from limelight.metrics.rarefaction import GiniEstimate, gini_at
from limelight.report.exhibit import Compared
from limelight.report.page import write_page
from limelight.report.titles import with_titles_and_groups

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from limelight._base.documents import Document
    from limelight._base.executor import Executor
    from limelight.audit.tables import ItemExposure
    from limelight.audit.targets import Bound, TargetFound
    from limelight.data.sources import Source
    from limelight.report.exhibit import Exhibit


@dataclass(frozen=True, repr=False)
class Audit(KeyedFigures):
    """What an audit found: `audit["gini@20"]`, `str(audit)` to read, `to_dict` for JSON."""

    users: int
    lists: int
    """As many as users, or more where the lists have times."""

    items: int
    k: int
    catalogue_given: bool
    metrics: dict[str, float]
    """`gini@k` (log weight), `gini_uniform@k`, `gini_floor@k`, `coverage@k`, `entropy@k` and
    `top_share@k`, what the top 1 % of the items hold. With merit, `merit_gini@k`,
    `merit_distance@k`, `merit_spearman@k` and `merit_none_share@k`."""

    bounds: dict[str, float]
    """95 % intervals over users, such as `gini@k_low` and `gini@k_high`; none for one user."""

    most_exposed: tuple[ItemExposure, ...]
    least_exposed: tuple[ItemExposure, ...]
    unexposed: int
    """Number of items that no list shows."""

    groups: tuple[GroupExposure, ...] = ()
    """Those outside their bounds first, then others with bounds, then by size: the share of
    exposure or catalogue."""

    ungrouped: GroupExposure | None = None
    """The items without a group, where groups were given."""

    merit: MeritAudit | None = None
    """Which items get more or less than they earn, where merit was given."""

    periods: tuple[Period, ...] = ()
    """Exposure over time, where a column of times was named."""

    comparison: Comparison | None = None
    """What changed, where other lists were given to compare against."""

    targets: tuple[TargetFound, ...] = ()
    """What was asked of the lists, and whether they have it."""

    at_users: GiniEstimate | None = None
    """The Gini of another number of users' lists, where asked for."""

    conventions: dict[str, float] = field(default_factory=dict)
    """What other libraries would report as the Gini of the same lists."""

    notes: tuple[str, ...] = ()
    """What the reader should know about these numbers."""

    item_ids: NDArray[Any] = field(default_factory=lambda: np.empty(0), compare=False)
    exposure: FloatArray = field(default_factory=lambda: np.empty(0), compare=False)
    """Log-weighted exposure of every item, in the order of `item_ids`."""

    shown: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), compare=False)
    """The number of lists that show each item."""

    merits: FloatArray | None = field(default=None, compare=False)
    titles: pa.Array | None = field(default=None, compare=False)
    members: Groups | None = field(default=None, compare=False)
    seen: ExampleLists = field(default_factory=lambda: ExampleLists(np.empty(0), ()), compare=False)
    """Some lists and the exposure of every item, for a report."""

    def __str__(self) -> str:
        return report(self)

    def __repr__(self) -> str:
        """Show what was audited, and the metrics."""
        found = ", ".join(f"{key} {value:.4f}" for key, value in self.metrics.items())
        return f"{headline(self)}\n{found}"

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        return document_of(self)

    def _repr_html_(self) -> str:
        return self.document().html()

    def counted(self) -> ListCount:
        """Return of how many lists, and over how many items, its figures are."""
        return ListCount(self.users, self.items, self.lists)

    @property
    def exposure_before(self) -> FloatArray | None:
        """The exposure of every item by the lists compared against, where there are any."""
        return self.seen.shown_lists[1].exposure if self.comparison else None

    def items_table(self) -> pa.Table:
        """Return every item, the most exposed first, as an Arrow table.

        The columns are `item_id`, `title` if the catalogue has titles, `exposure`, `share` and
        `lists`; with merit `merit` and `merit_share`; with other lists `share_before` and
        `change`.
        """
        return items_table(self)

    def groups_table(self) -> pa.Table:
        """Return every group as an Arrow table, in the order of `groups`.

        The columns are `group` (none in the last row, if items have no group), `items`,
        `exposure_share`, `catalogue_share` and `ratio`; with bounds `floor`, `cap` and `missed_by`;
        with other lists `share_before` and `change`.
        """
        return groups_table(self)

    def exposures(self) -> dict[str, FloatArray]:
        """Return the exposure of every item, for figures."""
        return {"": self.exposure}

    def group_shares(self) -> Compared:
        """Return the shares of groups before and after, or of the items and of the exposure."""
        if self.comparison is not None:
            return self.comparison.group_shares()
        return Compared(
            {one.group: (one.catalogue_share, one.exposure_share) for one in self.groups},
            "share of the items",
            "share of the exposure",
            "{} has {} of the items, {} of the exposure",
        )

    def report(self, path: str | os.PathLike[str], *, catalogue: Source | None = None) -> None:
        """Write one HTML page to look at: who is in the limelight, and who is not.

        Parameters
        ----------
        path
            Where to write the page.
        catalogue
            A table with `item_id` and `title`, to call items by their titles; if not given,
            the titles are those of the catalogue of the audit.
        """
        write_page(with_titles_and_groups(self.exhibit(), catalogue=catalogue), path)

    def exhibit(self) -> Exhibit:
        """Put together what a page shows of the lists, and of those they are compared with."""
        return exhibit_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays, with the metrics under flat keys, ready for JSON.

        Examples
        --------
        >>> import pyarrow as pa
        >>> lists = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
        >>> audit(lists, catalogue=["a", "b", "c", "d"]).to_dict()["coverage@2"]
        0.5
        """
        return {
            "users": self.users,
            "lists": self.lists,
            "items": self.items,
            "k": self.k,
            "catalogue_given": self.catalogue_given,
            **self.metrics,
            **self.bounds,
            "unexposed": self.unexposed,
            "most_exposed": [record(item) for item in self.most_exposed],
            "least_exposed": [record(item) for item in self.least_exposed],
            "groups": [record(group) for group in self.groups],
            "ungrouped": record(self.ungrouped) if self.ungrouped else None,
            "targets": [asdict(target) for target in self.targets],
            **(self.merit.to_dict() if self.merit else {}),
            "periods": [asdict(period) for period in self.periods],
            **({"at_users": self.at_users.to_dict()} if self.at_users else {}),
            "conventions": self.conventions,
            **(self.comparison.to_dict() if self.comparison else {}),
            "notes": list(self.notes),
        }


def audit(  # noqa: PLR0913
    lists: Source,
    *,
    k: int | None = None,
    catalogue: Source | Sequence[Any] | None = None,
    groups: Source | None = None,
    merit: Source | None = None,
    against: Source | None = None,
    timestamp: str | None = None,
    every: Every | None = None,
    at_users: int | None = None,
    gini: float | None = None,
    min_coverage: float | None = None,
    group_cap: Bound = None,
    group_floor: Bound = None,
    top: int = 10,
    executor: Executor | None = None,
) -> Audit:
    """Measure how any recommender's lists share exposure among items and groups.

    Parameters
    ----------
    lists
        `user_id, item_id, rank[, score]`, rank from 1, as a Parquet, CSV or TSV file, a folder
        of them, or a pandas, polars or pyarrow table. Without `rank` the scores rank the items
        of a user, highest first, ties in the order of the rows.
    k
        Look at ranks 1 to k only; by default at all ranks.
    catalogue
        All items that could be shown: a file or table with `item_id`, or a sequence of ids.
        Without it only items that occur in the lists count, and the result says so.
    groups
        `item_id, group[, weight]`, one row for each group of an item. The weights of an item
        are scaled to add up to 1; without weights its groups share it equally.
    merit
        `user_id, item_id`: an item's merit is the number of users who have it. Past
        interactions make merit popularity; held-out ones make it relevance that the
        recommender has not seen.
    against
        Other lists, such as last week's, to compare with: the change of every metric with its
        interval, who gained and who lost, how much of the lists stayed. Everything is measured
        over the same catalogue and ranks.
    timestamp
        A column of times. A user then has one list for each time, and the result has one row
        for each period. Numbers are seconds since 1970.
    every
        The periods: "day", "week" (from Monday) or "month", in UTC. By default days for up to
        a month, weeks for up to half a year, months beyond.
    at_users
        Also estimate the Gini of so many users' lists, as :func:`~limelight.gini_at` does.
    gini, min_coverage
        What was asked of the lists, for the result to say whether they have it: the Gini at most,
        the coverage at least.
    group_cap, group_floor
        The same for groups: the share of the exposure that no group should exceed, and that every
        group should have; or a mapping from groups to shares. Such groups come first.
    top
        How many of the most and of the least exposed items to report.
    executor
        Where the work is done: in this process, unless given. One that is parallel, such as
        ``RayExecutor``, takes every file of a folder as a piece of work; all rows of a user must
        then be in one file, and ``against``, ``timestamp`` and ``at_users`` are refused.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import pyarrow as pa
    >>> lists = pa.table({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> result = audit(lists, catalogue=["a", "b", "c"])
    >>> result.users, result.items, result.unexposed
    (2, 3, 1)
    >>> round(result.metrics["gini_uniform@2"], 4)
    0.4444
    """
    _check_settings(k, at_users, top)
    targets = AuditTargets(gini, min_coverage, group_cap, group_floor)
    targets.check(has_groups=groups is not None)
    check_every(every, timestamp)
    executor = as_executor(executor)
    if executor.parallel and any(one is not None for one in (against, timestamp, at_users)):
        message = "a parallel executor audits one list for each user"
        raise ConfigError(message, hint="leave against, timestamp and at_users out, or executor")
    if at_users is not None and timestamp is not None:
        message = "at_users is for lists of one time, one for each user"
        raise ConfigError(message, hint="leave at_users out, or timestamp")
    sources = [lists] if against is None else [lists, against]
    counted = [count_lists(executor, source, k, timestamp) for source in sources]
    item_ids, numbers, notes = number_items([p for one in counted for p in one.counted], catalogue)
    if k is None:
        k = min(one.ranks[1] for one in counted)
        counted = [one.cut(executor, k) for one in counted]
    earned = None if merit is None else read_merit(merit, item_ids)
    members = None if groups is None else read_groups(groups, item_ids)
    notes += _notes_of([one.n_lists for one in counted], members, earned)
    value, of_part = earned.merit if earned else None, iter(numbers)
    sides = [
        one.measure(executor, item_ids, islice(of_part, len(one.parts)), value, k)
        for one in counted
    ]
    after, found = counted[0], sides[0]
    estimate = gini_at(found.rows.array(k), at_users, n_items=len(item_ids)) if at_users else None
    weighted = found.exposure.weighted
    n_exposed = int(np.count_nonzero(weighted))
    most = np.argsort(-weighted, kind="stable")[: min(top, n_exposed)]
    least = np.argsort(weighted, kind="stable")[:top]  # ties in the order of the catalogue
    titles = titles_of(catalogue, item_ids)
    of_groups = what_matters_first(targets.bind(group_shares(members, weighted))) if members else ()
    shares = ShareLookup(members, [one.group for one in of_groups]) if members else None
    return Audit(
        users=after.n_users,
        lists=after.n_lists,
        items=len(item_ids),
        k=k,
        catalogue_given=catalogue is not None,
        metrics=found.metrics,
        bounds=found.spread.bounds(found.metrics) if found.spread else {},
        most_exposed=name_items(most, item_ids, found.exposure, titles),
        least_exposed=name_items(least, item_ids, found.exposure, titles),
        unexposed=len(item_ids) - n_exposed,
        groups=of_groups,
        ungrouped=ungrouped_share(members, weighted) if members else None,
        merit=audit_merit(weighted, earned.merit, item_ids, top, titles) if earned else None,
        periods=tuple(by_period(found.rows, len(item_ids), every, shares)),
        comparison=(
            None
            if against is None
            else compare(sides[1], found, item_ids, members, k=k, top=top, titles=titles)
        ),
        targets=targets.found(found.metrics, k, of_groups),
        at_users=estimate,
        conventions=conventions(found.exposure),
        notes=(*notes, f"{estimate}.") if estimate else tuple(notes),
        item_ids=ids_from_arrow(item_ids),
        exposure=weighted,
        shown=found.exposure.shown,
        merits=value,
        titles=titles.titles,
        members=members,
        seen=example_lists(sides, k),
    )


def _check_settings(k: int | None, at_users: int | None, top: int) -> None:
    """Refuse a k or a number of users below 1, and a top below 0."""
    for value, name in ((k, "k"), (at_users, "at_users")):
        if value is not None:
            check_positive(value, name)
    if top < 0:
        message = f"top must be 0 or more, got {top}"
        raise ConfigError(message, hint="it is the number of items to report, such as 10")


def _notes_of(counts: Sequence[int], members: Groups | None, earned: Merit | None) -> list[str]:
    """Say what was ignored, and what makes figures hard to compare."""
    notes = []
    if members and members.n_ignored:
        notes.append(f"Group rows of items outside the catalogue, ignored: {members.n_ignored:,}.")
    if earned and earned.n_ignored:
        notes.append(f"Merit of items outside the catalogue, ignored: {earned.n_ignored:,} rows.")
    sides = zip(("before", "after"), counts[::-1], strict=False)
    differ = sizes_note({name: ListCount(lists=n_lists) for name, n_lists in sides})
    return [*notes, differ] if differ else notes
