"""An audit as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.evaluate.audit import Audit, GroupExposure, ItemExposure

_MEANING = {
    "gini": "0: every item has the same exposure; 1: one item has all (log weight)",
    "gini_uniform": "the same, every rank counting alike",
    "gini_floor": "about the lowest Gini that these lists could have",
    "coverage": "share of the items that at least one list shows",
    "entropy": "1: every item has the same exposure; 0: one item has all",
    "top_share": "share of the exposure held by the top 1 % of the items",
}
_MOST_GROUPS = 20


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
    sections = [[_headline(audit)], _metrics(audit), _items("Most", audit.most_exposed)]
    hidden = f" ({audit.unexposed:,} of {audit.items:,} in no list)"
    sections += [_items("Least", audit.least_exposed, hidden), _groups(audit)]
    sections += [[f"Note: {note}"] for note in audit.notes]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _headline(audit: Audit) -> str:
    users = "user" if audit.users == 1 else "users"
    items = "item" if audit.items == 1 else "items"
    counts = f"{audit.users:,} {users}, {audit.items:,} {items}"
    return f"Exposure audit: {counts}, ranks 1 to {audit.k}"


def _metrics(audit: Audit) -> list[str]:
    width = max(map(len, audit.metrics))
    return [
        f"{key:<{width}}  {value:.4f}  {_MEANING[key.split('@')[0]]}"
        for key, value in audit.metrics.items()
    ]


def _items(which: str, items: Sequence[ItemExposure], remark: str = "") -> list[str]:
    if not items:
        return []
    rows = [(str(item.item_id), f"{item.share:.2%}", f"{item.lists:,}") for item in items]
    return [f"{which} exposed items{remark}", *_table(("item", "share", "lists"), rows)]


def _groups(audit: Audit) -> list[str]:
    if not audit.groups:
        return []
    shown, gap = list(audit.groups), []
    if len(shown) > _MOST_GROUPS:
        half = _MOST_GROUPS // 2
        shown = [*shown[:half], *shown[-half:]]
        gap = [f"  ({len(audit.groups) - _MOST_GROUPS:,} groups in between are left out)"]
    if audit.ungrouped and audit.ungrouped.catalogue_share:
        shown.append(audit.ungrouped)
    table = _table(("group", "exposure", "catalogue", "ratio"), [_group_row(g) for g in shown])
    return ["Groups, from over- to under-exposed", *table, *gap]


def _group_row(group: GroupExposure) -> tuple[str, ...]:
    shares = f"{group.exposure_share:.2%}", f"{group.catalogue_share:.2%}"
    return (str(group.group), *shares, f"{group.ratio:.2f}")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align a table, the first column to the left and numbers to the right."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for first, *others in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]))
    return lines
