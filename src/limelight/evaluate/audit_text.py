"""An audit as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._base.documents import Table, cut_middle
from limelight.evaluate.compare_text import comparison_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.evaluate.audit import Audit, ItemExposure
    from limelight.evaluate.audit_groups import GroupExposure
    from limelight.evaluate.audit_merit import ItemMerit

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
    >>> from limelight.evaluate.audit import audit
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
