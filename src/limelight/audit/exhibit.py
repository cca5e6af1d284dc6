"""The page of an audit: some lists to look at, and what its sections show."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight.audit.record.words import broken_rules, rule_rows
from limelight.audit.tables import record
from limelight.audit.verdict import ONE_MISSED, TARGETS, missed_targets, summary, verdict
from limelight.data.ids import ids_from_arrow, positions
from limelight.report.exhibit import (
    AuditFindings,
    ExampleUsers,
    Exhibit,
    ExhibitPoint,
    ShownLists,
    example_rows,
    how_made,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Int32, Int64
    from limelight.audit.compare import Audited
    from limelight.audit.lists import ListTable
    from limelight.audit.result import Audit
    from limelight.audit.targets import TargetFound
    from limelight.data.interactions import Ids

_OVER_TIME = 6
"""Groups that are drawn over time: as many as there are colours."""
_MOST_MISSED = 20
"""Groups that are named for each target."""


class ExampleLists(NamedTuple):
    """Example users, and what is shown of each file of lists, the audited one first."""

    user_ids: Ids
    shown_lists: tuple[ShownLists, ...]


def example_lists(sides: Sequence[Audited], k: int) -> ExampleLists:
    """Keep some of the lists that were audited, and of those that they were compared with."""
    after = sides[0].rows
    lengths = np.bincount(after.users, minlength=after.n_users)
    if len(sides) > 1:
        # Only users with lists in both files can show what changed.
        in_both = positions(after.user_ids, sides[1].rows.user_ids) >= 0
        lengths = np.where(in_both, lengths, 0) if in_both.any() else lengths
    chosen = example_rows(lengths)
    ids = after.user_ids.take(chosen)
    shown_lists = tuple(
        ShownLists(side.exposure.weighted, _lists(side.rows, positions(ids, side.rows.user_ids), k))
        for side in sides
    )
    return ExampleLists(ids_from_arrow(ids), shown_lists)


def _lists(rows: ListTable, users: Int64, k: int) -> Int32:
    """Take the first list of some users; -1 stands for nobody."""
    found = np.full((len(users), k), -1, dtype=np.int32)
    place = np.full(rows.n_users, -1)
    place[users[users >= 0]] = np.flatnonzero(users >= 0)
    at = np.flatnonzero(place[rows.users] >= 0)
    first = np.full(rows.n_users, rows.n_lists)
    np.minimum.at(first, rows.users[at], rows.lists[at])
    at = at[rows.lists[at] == first[rows.users[at]]]
    found[place[rows.users[at]], rows.ranks[at] - 1] = rows.items[at]
    return found


def exhibit_of(found: Audit) -> Exhibit:
    """Put together what a page shows of an audit."""
    now, *then = found.seen.shown_lists
    figures = found.metrics | found.bounds | {"users": found.users, "lists": found.lists}
    after = ExhibitPoint("These lists", "these lists", figures, shown=now)
    points: tuple[ExhibitPoint, ...] = (after,)
    if then and found.comparison is not None:
        before = {
            name.removesuffix("_before"): value
            for name, value in found.comparison.metrics.items()
            if name.endswith("_before")
        } | {"users": found.comparison.users, "lists": found.comparison.lists}
        points = ExhibitPoint("Before", "the lists before", before, shown=then[0]), after
    return Exhibit(
        kind="audit",
        title=f"Audit of lists of {found.k}",
        k=found.k,
        points=points,
        item_ids=found.item_ids,
        base=0 if len(points) > 1 else None,
        chosen=len(points) - 1,
        groups=found.members,
        floors={one.group: one.floor for one in found.groups if one.floor is not None},
        caps={one.group: one.cap for one in found.groups if one.cap is not None},
        titles=None if found.titles is None else tuple(found.titles.to_pylist()),
        findings=findings_of(found),
        examples=ExampleUsers(found.seen.user_ids),
        data={
            "Users": f"{found.users:,}",
            "Lists": f"{found.lists:,}",
            "Items": f"{found.items:,}",
            "Items in no list": f"{found.unexposed:,}",
        },
        made=how_made(),
        notes=found.notes,
    )


def findings_of(found: Audit) -> AuditFindings:
    """Say what matters first, and collect what the sections of a page show."""
    said = [*broken_rules(found), *_missed(found)]
    said += verdict(found, found.comparison) if found.comparison else []
    # Half of the exposure says more to a reader than the index, whose sentence comes after it.
    said += summary(found)[::-1]
    return AuditFindings(
        headline=_for_pages(said[0]),
        summary=tuple(_for_pages(one) for one in said[1:]),
        changes=_change_intervals(found),
        rules=rule_rows(found),
        targets=[_target(one) for one in found.targets],
        periods=_periods(found),
        merit=_merit(found),
    )


def _missed(found: Audit) -> list[str]:
    """Say how many targets are missed, and the first of them: a group, if there is one."""
    missed = missed_targets(found, groups_first=True)
    if len(missed) < 2:
        return missed
    worst = missed[0].removeprefix(ONE_MISSED)
    first = worst[0].upper() + worst[1:] if worst.startswith("the ") else worst
    return [f"{len(missed)} of {len(found.targets)} targets are missed. {first}"]


def _for_pages(text: str) -> str:
    r"""Write percent as pages do: a no-break space before the sign, and no zeros that say nothing.

    Examples
    --------
    >>> _for_pages("15.00 % of 26.62 %")
    '15\xa0% of 26.62\xa0%'
    """
    return re.sub(r"(?<=[0-9])(\.00)? %", "\N{NO-BREAK SPACE}%", text)


def _change_intervals(found: Audit) -> dict[str, tuple[float, float]]:
    changes = found.comparison.metrics if found.comparison else {}
    return {
        key: (changes[f"{key}_change_low"], changes[f"{key}_change_high"])
        for key in found.metrics
        if f"{key}_change_low" in changes
    }


def _target(one: TargetFound) -> dict[str, Any]:
    missed = [asdict(group) | {"group": str(group.group)} for group in one.missed[:_MOST_MISSED]]
    return asdict(one) | {
        "says": TARGETS[one.target],
        "percent": one.target != "gini",
        "missed": missed,
        "missed_groups": len(one.missed),
    }


def _periods(found: Audit) -> list[dict[str, Any]]:
    names = [one.group for one in found.groups[:_OVER_TIME]]
    return [
        asdict(period) | {"groups": [[str(name), period.groups[name]] for name in names]}
        for period in found.periods
    ]


def _merit(found: Audit) -> dict[str, Any]:
    if found.merit is None:
        return {}
    over, under = (
        [record(item) | {"item_id": str(item.item_id)} for item in items]
        for items in (found.merit.over_exposed, found.merit.under_exposed)
    )
    return {"over": over, "under": under, "without": found.merit.without_merit}
