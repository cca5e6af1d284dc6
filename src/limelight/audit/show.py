"""The comparison of two audits as plain text.

An audit as plain text.

An audit as small tables for notebooks.

What an audit has to show: the lists, and those that they were compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.documents import Document, Table, cut_middle
from limelight.data.ids import ids_from_arrow, positions
from limelight.report.exhibit import (
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
    from limelight.audit.audit import Audit, ItemExposure
    from limelight.audit.compare import Change, Comparison, Side
    from limelight.audit.lists import Lists
    from limelight.audit.merit import ItemMerit
    from limelight.data.groups import GroupExposure
    from limelight.data.interactions import Ids


def comparison_lines(audit: Audit) -> list[list[str]]:
    r"""Write the sections that say what changed; none without a comparison.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.audit.audit import audit
    >>> after = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 1]})
    >>> before = pa.table({"user_id": [1, 2], "item_id": ["a", "a"], "rank": [1, 1]})
    >>> sections = comparison_lines(audit(after, against=before, catalogue=["a", "b"]))
    >>> print(*sections[1], sep="\n")
    Users in both: 2; of the items they are shown, 50.00% stayed [0.00%, 100.00%]
    Items that entered the lists: 1; that left them: 0
    """
    if audit.comparison is None:
        return []
    changed = audit.comparison
    return [
        _compared_metrics(audit, changed),
        [_users(changed, audit.k), _compared_items(changed)],
        _changes("Items that gained most", changed.gained, "item"),
        _changes("Items that lost most", changed.lost, "item"),
        _changes("Groups, from the most gained to the most lost", changed.groups, "group"),
    ]


def metric_changes(audit: Audit, changed: Comparison) -> Table:
    """Tabulate every metric before and after, and its change with an interval."""
    rows = []
    for key, after in audit.metrics.items():
        interval = ""
        if f"{key}_change_low" in changed.metrics:
            low, high = (changed.metrics[f"{key}_change_{bound}"] for bound in ("low", "high"))
            interval = f"[{_signed(low)}, {_signed(high)}]"
        before, change = (changed.metrics[f"{key}_{what}"] for what in ("before", "change"))
        rows.append((key, f"{before:.4f}", f"{after:.4f}", _signed(change), interval))
    return Table(("", "before", "after", "change", "95 % interval"), rows)


def _compared_metrics(audit: Audit, changed: Comparison) -> list[str]:
    users = f"{changed.users:,} {'user' if changed.users == 1 else 'users'}"
    title = f"Against {users} with {changed.lists:,} lists before"
    return [title, *metric_changes(audit, changed).lines("  ")]


def _signed(change: float) -> str:
    """Write a change with its sign; one that rounds to nothing is not below 0."""
    return f"{round(change, 4) + 0.0:+.4f}"


def _users(changed: Comparison, k: int) -> str:
    line = f"Users in both: {changed.users_in_both:,}"
    key = f"overlap@{k}"
    if key not in changed.metrics:
        return line
    line += f"; of the items they are shown, {changed.metrics[key]:.2%} stayed"
    if f"{key}_low" in changed.metrics:
        low, high = changed.metrics[f"{key}_low"], changed.metrics[f"{key}_high"]
        line += f" [{low:.2%}, {high:.2%}]"
    return line


def _compared_items(changed: Comparison) -> str:
    entered, left = changed.items_entered, changed.items_left
    return f"Items that entered the lists: {entered:,}; that left them: {left:,}"


def _changes(title: str, changes: Sequence[Change], what: str) -> list[str]:
    if not changes:
        return []
    shown, gap = cut_middle(changes, f"{what}s")
    rows = [
        (str(change.name), f"{change.before:.2%}", f"{change.after:.2%}", f"{change.change:+.2%}")
        for change in shown
    ]
    return [title, *Table((what, "before", "after", "change"), rows).lines("  "), *gap]


_MEANING = {
    "gini": "0: every item has the same exposure; 1: one item has all (log weight)",
    "gini_uniform": "the same, every rank counting alike",
    "gini_floor": "about the lowest Gini that these lists could have",
    "coverage": "share of the items that at least one list shows",
    "entropy": "1: every item has the same exposure; 0: one item has all",
    "top_share": "share of the exposure held by the top 1 % of the items",
    "merit_gini": "0: exposure is proportional to merit",
    "merit_distance": "share of the exposure that would have to move to match merit",
    "merit_spearman": "rank correlation of exposure and merit",
    "merit_none_share": "share of the exposure held by items without merit",
}


def report(audit: Audit) -> str:
    """Write the report of an audit.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.audit.audit import audit
    >>> lists = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
    >>> print(report(audit(lists, catalogue=["a", "b", "c"], top=1)))
    Exposure audit: 1 user, 3 items, ranks 1 to 2
    <BLANKLINE>
    gini@2          0.4088  0: every item has the same exposure; 1: one item has all (log weight)
    gini_uniform@2  0.3333  the same, every rank counting alike
    gini_floor@2    0.4088  about the lowest Gini that these lists could have
    coverage@2      0.6667  share of the items that at least one list shows
    entropy@2       0.6074  1: every item has the same exposure; 0: one item has all
    top_share@2     0.6131  share of the exposure held by the top 1 % of the items
    <BLANKLINE>
    Most exposed items
      item   share  lists
      a     61.31%      1
    <BLANKLINE>
    Least exposed items (1 of 3 in no list)
      item  share  lists
      c     0.00%      0
    """
    hidden = f" ({audit.unexposed:,} of {audit.items:,} in no list)"
    sections = [
        [headline(audit)],
        _metrics(audit),
        *comparison_lines(audit),
        _items("Most", audit.most_exposed),
        _items("Least", audit.least_exposed, hidden),
        _groups(audit),
        *_merit(audit),
        _periods(audit),
        *([f"Note: {note}"] for note in audit.notes),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def headline(audit: Audit) -> str:
    """Say what was audited."""
    users = "user" if audit.users == 1 else "users"
    items = "item" if audit.items == 1 else "items"
    lists = f", {audit.lists:,} lists" if audit.lists != audit.users else ""
    counts = f"{audit.users:,} {users}{lists}, {audit.items:,} {items}"
    return f"Exposure audit: {counts}, ranks 1 to {audit.k}"


def _metrics(audit: Audit) -> list[str]:
    width = max(map(len, audit.metrics))
    intervals = {key: _interval(audit, key) for key in audit.metrics}
    room = max(map(len, intervals.values()))
    return [
        f"{key:<{width}}  {value:.4f}{intervals[key]:<{room}}  {_MEANING[key.split('@')[0]]}"
        for key, value in audit.metrics.items()
    ]


def _interval(audit: Audit, key: str) -> str:
    if f"{key}_low" not in audit.bounds:
        return ""
    return f" [{audit.bounds[f'{key}_low']:.4f}, {audit.bounds[f'{key}_high']:.4f}]"


def _items(which: str, items: Sequence[ItemExposure], remark: str = "") -> list[str]:
    if not items:
        return []
    rows = [item_row(item) for item in items]
    return [f"{which} exposed items{remark}", *Table(("item", "share", "lists"), rows).lines("  ")]


def item_row(item: ItemExposure) -> tuple[str, ...]:
    """Write an item, its share of the exposure, and how many lists show it."""
    return str(item.item_id), f"{item.share:.2%}", f"{item.lists:,}"


def _groups(audit: Audit) -> list[str]:
    if not audit.groups:
        return []
    shown, gap = cut_middle(audit.groups, "groups")
    if audit.ungrouped and audit.ungrouped.catalogue_share:
        shown.append(audit.ungrouped)
    rows = [group_row(group) for group in shown]
    head = ("group", "exposure", "catalogue", "ratio")
    return ["Groups, from over- to under-exposed", *Table(head, rows).lines("  "), *gap]


def group_row(group: GroupExposure) -> tuple[str, ...]:
    """Write a group, its shares of exposure and catalogue, and their ratio."""
    shares = f"{group.exposure_share:.2%}", f"{group.catalogue_share:.2%}"
    return (str(group.group), *shares, f"{group.ratio:.2f}")


def _merit(audit: Audit) -> list[list[str]]:
    if audit.merit is None:
        return []
    hidden = f" ({audit.merit.without_merit:,} of {audit.items:,} items have no merit)"
    return [
        _merit_items("Items with the most exposure above their merit", audit.merit.over_exposed),
        _merit_items(f"Items furthest below it{hidden}", audit.merit.under_exposed),
    ]


def _merit_items(title: str, items: Sequence[ItemMerit]) -> list[str]:
    if not items:
        return []
    rows = [
        (
            str(item.item_id),
            f"{item.exposure_share:.2%}",
            f"{item.merit_share:.2%}",
            "-" if item.ratio is None else f"{item.ratio:.2f}",
        )
        for item in items
    ]
    return [title, *Table(("item", "exposure", "merit", "ratio"), rows).lines("  ")]


def _periods(audit: Audit) -> list[str]:
    if not audit.periods:
        return []
    shown, gap = cut_middle(audit.periods, "periods")
    rows = [
        (
            period.start,
            f"{period.lists:,}",
            f"{period.gini:.4f}",
            f"{period.gini_floor:.4f}",
            f"{period.coverage:.4f}",
            f"{period.top_share:.4f}",
            f"{period.cumulative_gini:.4f}",
            f"{period.cumulative_coverage:.4f}",
        )
        for period in shown
    ]
    head = (
        "from",
        "lists",
        "gini",
        "floor",
        "coverage",
        "top share",
        "gini so far",
        "coverage so far",
    )
    return ["Over time (each period, then all lists so far)", *Table(head, rows).lines("  "), *gap]


_ITEMS, _GROUPS = 5, 12
"""How many are shown; the report has more."""


def document_of(audit: Audit) -> Document:
    """Show the metrics, who is most exposed, and the groups."""
    items = [item_row(item) for item in audit.most_exposed[:_ITEMS]]
    largest = sorted(audit.groups, key=lambda group: -group.exposure_share)[:_GROUPS]
    tables = [
        _metrics_html(audit),
        Table(("most exposed items", "share", "lists"), items),
        Table(("group", "exposure", "catalogue", "ratio"), [group_row(one) for one in largest]),
    ]
    return Document(headline(audit), tables, audit.notes)


def _metrics_html(audit: Audit) -> Table:
    if audit.comparison is None:
        rows = [
            (key, f"{value:.4f}", _interval_html(audit, key))
            for key, value in audit.metrics.items()
        ]
        return Table(("", "value", "95 % interval"), rows)
    return metric_changes(audit, audit.comparison)


def _interval_html(audit: Audit, key: str) -> str:
    low, high = (audit.bounds.get(f"{key}_{side}") for side in ("low", "high"))
    return "" if low is None or high is None else f"{low:.4f} to {high:.4f}"


class Seen(NamedTuple):
    """The users who serve as examples, and the sight of each file of lists, the audited first."""

    user_ids: Ids
    sights: tuple[ShownLists, ...]


def see(sides: Sequence[Side], k: int) -> Seen:
    """Keep what can be shown of the lists that were audited.

    Parameters
    ----------
    sides
        The lists that were audited, and those that they were compared with.
    k
        Length of the lists.
    """
    after = sides[0].rows
    lengths = np.bincount(after.users, minlength=after.n_users)
    if len(sides) > 1:
        # Who has lists in both files shows what changed.
        in_both = positions(after.user_ids, sides[1].rows.user_ids) >= 0
        lengths = np.where(in_both, lengths, 0) if in_both.any() else lengths
    chosen = example_rows(lengths)
    ids = after.user_ids.take(chosen)
    sights = tuple(
        ShownLists(side.exposure.weighted, _lists(side.rows, positions(ids, side.rows.user_ids), k))
        for side in sides
    )
    return Seen(ids_from_arrow(ids), sights)


def _lists(rows: Lists, users: Int64, k: int) -> Int32:
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
    """Put together what a page shows of an audit.

    Parameters
    ----------
    found
        The audit.
    """
    now, *then = found.seen.sights
    after = ExhibitPoint("These lists", "these lists", found.metrics | found.bounds, shown=now)
    points: tuple[ExhibitPoint, ...] = (after,)
    if then and found.comparison is not None:
        before = {
            name.removesuffix("_before"): value
            for name, value in found.comparison.metrics.items()
            if name.endswith("_before")
        }
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
        examples=ExampleUsers(found.seen.user_ids),
        data={
            "Users": f"{found.users:,}",
            "Lists": f"{found.lists:,}",
            "Items": f"{found.items:,}",
            "Items that no list shows": f"{found.unexposed:,}",
        },
        made=how_made(),
        notes=found.notes,
    )
