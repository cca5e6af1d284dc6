"""An exposure audit of any recommender's lists: who is in the limelight, and who is not."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError
from limelight._base.executor import as_executor
from limelight._base.settings import check_number
from limelight.audit.compare import compare
from limelight.audit.exhibit import example_lists
from limelight.audit.groups import measure_groups, small_groups_note
from limelight.audit.merit import Merit, audit_merit, read_merit
from limelight.audit.over_time import Every, by_period, check_every
from limelight.audit.parts import NO_CATALOGUE, CountedLists, count_lists, number_items
from limelight.audit.record.inputs import inputs_of
from limelight.audit.result import Audit
from limelight.audit.tables import ShareLookup, name_items, titles_of
from limelight.audit.targets import AuditTargets, what_matters_first
from limelight.data.groups import (
    Groups,
    group_shares,
    intersect_groups,
    read_groups,
    ungrouped_share,
)
from limelight.data.ids import ids_from_arrow
from limelight.data.sources import is_file_source
from limelight.metrics.conventions import conventions
from limelight.metrics.lists import ListCount, check_positive, sizes_note
from limelight.metrics.rarefaction import gini_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from limelight._base.executor import Executor
    from limelight.audit.groups import GroupFigures
    from limelight.audit.parts import NumberedItems
    from limelight.audit.targets import Bound
    from limelight.data.groups import GroupExposure
    from limelight.data.sources import Source


def audit(  # noqa: PLR0913
    lists: Source,
    *,
    k: int | None = None,
    catalogue: Source | Sequence[Any] | None = None,
    groups: Source | None = None,
    intersect: Source | None = None,
    small_groups: float = 0.0,
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
    intersect
        A second such table: groups are then the intersections of both, such as "acme + north".
    small_groups
        Groups with a smaller share of the catalogue are counted, but left out of impact ratios.
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
    _check_settings(k, at_users, top, small_groups)
    if intersect is not None and groups is None:
        given = str(intersect) if is_file_source(intersect) else type(intersect).__name__
        message = f"an intersection needs groups: intersect={given!r}"
        raise ConfigError(message, hint="name the first table with groups='...'")
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
    items = number_items([part for one in counted for part in one.counted], catalogue)
    item_ids = items.item_ids
    if k is None:
        k = min(one.ranks[1] for one in counted)
        counted = [one.cut(executor, k) for one in counted]
    earned = None if merit is None else read_merit(merit, item_ids)
    members = _members(groups, intersect, item_ids)
    value, of_part = earned.merit if earned else None, iter(items.numbers)
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
    of_groups: tuple[GroupExposure, ...] = ()
    figures = None
    if members is not None:
        figures = measure_groups(
            executor,
            after.parts,
            members,
            found.exposure,
            item_ids,
            k=k,
            users=after.n_users,
            small=small_groups,
        )
        listed = figures.describe(group_shares(members, weighted))
        of_groups = what_matters_first(targets.bind(listed))
    dropped = _dropped(counted, items, members, earned)
    notes = _notes_of([one.n_lists for one in counted], dropped, figures, small_groups)
    if catalogue is None:
        notes.insert(0, NO_CATALOGUE)
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
        errors=found.spread.errors() if found.spread else {},
        groups_found=figures,
        dropped=dropped,
        small_groups=small_groups,
        inputs=inputs_of(
            [one.n_rows for one in counted],
            timestamp,
            lists=lists,
            against=against,
            catalogue=catalogue,
            groups=groups,
            intersect=intersect,
            merit=merit,
        ),
        merits=value,
        titles=titles.titles,
        members=members,
        seen=example_lists(sides, k),
    )


def _check_settings(k: int | None, at_users: int | None, top: int, small: float) -> None:
    """Refuse a k or a number of users below 1, a top below 0, and what is no share."""
    for value, name in ((k, "k"), (at_users, "at_users")):
        if value is not None:
            check_positive(value, name)
    if top < 0:
        message = f"top must be 0 or more, got {top}"
        raise ConfigError(message, hint="it is the number of items to report, such as 10")
    check_number("small_groups", small)
    if small > 1:
        message = f"small_groups must be from 0 to 1: {small!r}"
        raise ConfigError(message, hint="0.02 is a share of 2 %")


def _members(groups: Source | None, other: Source | None, item_ids: pa.Array) -> Groups | None:
    """Read the groups of items, and intersect them with others where there are any."""
    if groups is None:
        return None
    members = read_groups(groups, item_ids)
    return members if other is None else intersect_groups(members, read_groups(other, item_ids))


def _dropped(
    counted: Sequence[CountedLists],
    items: NumberedItems,
    members: Groups | None,
    earned: Merit | None,
) -> dict[str, int]:
    """Count what was read and has no part in the figures."""
    kept = [int(sum(part.counts.places.sum() for part in one.counted)) for one in counted]
    beyond = [one.n_rows - rows for one, rows in zip(counted, kept, strict=True)]
    found = {"list_rows_beyond_k": beyond[0]}
    if len(beyond) > 1:
        found["against_rows_beyond_k"] = beyond[1]
    found["repeated_catalogue_rows"] = items.repeats
    if members is not None:
        found["group_rows_outside_catalogue"] = members.n_ignored
    if earned is not None:
        found["merit_rows_outside_catalogue"] = earned.n_ignored
    return found


def _notes_of(
    counts: Sequence[int], dropped: dict[str, int], figures: GroupFigures | None, small: float
) -> list[str]:
    """Say what was ignored, and what makes figures hard to compare."""
    told = {
        "repeated_catalogue_rows": "Repeated rows of the catalogue, counted once: {:,}.",
        "group_rows_outside_catalogue": "Group rows of items outside the catalogue, ignored: {:,}.",
        "merit_rows_outside_catalogue": "Merit of items outside the catalogue, ignored: {:,} rows.",
    }
    notes = [text.format(dropped[name]) for name, text in told.items() if dropped.get(name)]
    if figures is not None:
        notes.append(small_groups_note(figures, small))
    sides = zip(("before", "after"), counts[::-1], strict=False)
    notes.append(sizes_note({name: ListCount(lists=n_lists) for name, n_lists in sides}) or "")
    return [note for note in notes if note]
