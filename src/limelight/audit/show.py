"""What an audit shows: a report in plain text, small tables for notebooks, and a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.documents import Document, Table, cut_middle
from limelight._base.text import count
from limelight.audit.verdict import headline, summary, verdict
from limelight.data.ids import ids_from_arrow, positions
from limelight.metrics.lists import ListCount
from limelight.report.exhibit import (
    ExampleUsers,
    Exhibit,
    ExhibitPoint,
    ShownLists,
    example_rows,
    how_made,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, KeysView, Sequence

    from limelight._base.arrays import Int32, Int64
    from limelight.audit.audit import Audit, ItemExposure
    from limelight.audit.compare import Audited, Comparison, ShareChange
    from limelight.audit.lists import ListTable
    from limelight.audit.merit import ItemMerit, MeritAudit
    from limelight.audit.over_time import Period
    from limelight.data.groups import GroupExposure
    from limelight.data.interactions import Ids


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
_MOST_GROUPS = 20
_GROUPS = ("group", "exposure", "catalogue", "ratio")


class KeyedFigures:
    """Reads like a mapping, under the keys of an ``Evaluation``: ``audit["gini@20"]``.

    Examples
    --------
    >>> found = KeyedFigures()
    >>> found.users, found.items, found.metrics, found.bounds = 3, 9, {"gini@5": 0.5}, {}
    >>> found["gini@5"], "coverage@5" in found, list(found)
    (0.5, False, ['users', 'items', 'gini@5'])
    """

    users: int
    items: int
    metrics: dict[str, float]
    bounds: dict[str, float]

    def _figures(self) -> dict[str, float]:
        return {"users": self.users, "items": self.items, **self.metrics, **self.bounds}

    def __getitem__(self, key: str) -> float:
        return self._figures()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._figures()

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures())

    def __len__(self) -> int:
        return len(self._figures())

    def keys(self) -> KeysView[str]:
        """Return the names of all figures, so that ``dict(audit)`` has them."""
        return self._figures().keys()


def report(audit: Audit) -> str:
    """Write the report of an audit.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.audit.audit import audit
    >>> lists = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
    >>> print(report(audit(lists, catalogue=["a", "b", "c"], top=1)))
    Exposure audit over 1 user's list and 3 items, ranks 1 to 2: the Gini is 0.4088, where 0 is ...
    Half of the exposure goes to 1 item, 33.33% of all; 1 item (33.33%) is in no list.
    <BLANKLINE>
    gini@2          0.4088  0: every item has the same exposure; 1: one item has all (log weight)
    gini_uniform@2  0.3333  the same, every rank counting alike
    gini_floor@2    0.4088  about the lowest Gini that these lists could have
    coverage@2      66.67%  share of the items that at least one list shows
    entropy@2       0.6074  1: every item has the same exposure; 0: one item has all
    top_share@2     61.31%  share of the exposure held by the top 1 % of the items
    <BLANKLINE>
    Most exposed items
      item   share  lists
      a     61.31%      1
    <BLANKLINE>
    Least exposed items (1 of 3 in no list)
      item  share  lists
      c     0.00%      0
    """
    items, hidden = (
        ("item", "share", "lists"),
        f"({audit.unexposed:,} of {audit.items:,} in no list)",
    )
    sections = [
        verdict(audit, audit.comparison) if audit.comparison else [],
        summary(audit),
        _metrics(audit),
        *(_comparison(audit, audit.comparison) if audit.comparison else ()),
        _section("Most exposed items", items, map(_item_row, audit.most_exposed)),
        _section(f"Least exposed items {hidden}", items, map(_item_row, audit.least_exposed)),
        _groups(audit),
        *(_merit(audit, audit.merit) if audit.merit else ()),
        _periods(audit),
        *([f"Note: {note}"] for note in audit.notes),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _section(
    title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]], gap: Sequence[str] = ()
) -> list[str]:
    """Write a table below a title; nothing if it has no rows."""
    table = Table(head, list(rows))
    return [title, *table.lines("  "), *gap] if table.rows else []


def _metrics(audit: Audit) -> list[str]:
    width = max(map(len, audit.metrics))
    bounds = {key: _bounds(audit, key) for key in audit.metrics}
    intervals = {key: f" [{', '.join(ends)}]" if ends else "" for key, ends in bounds.items()}
    room = max(map(len, intervals.values()))
    return [
        f"{key:<{width}}  {_figure(key, value)}{intervals[key]:<{room}}"
        f"  {_MEANING[key.split('@')[0]]}"
        for key, value in audit.metrics.items()
    ]


def _bounds(audit: Audit, key: str) -> list[str]:
    """Write the ends of a metric's interval; none if it has none."""
    ends = (f"{key}_low", f"{key}_high")
    return [_figure(key, audit.bounds[end]) for end in ends if end in audit.bounds]


def _comparison(audit: Audit, changed: Comparison) -> list[list[str]]:
    """Write the sections that say what changed."""
    title = f"Against {ListCount(changed.users, lists=changed.lists)} before"
    kept, key = f"Users in both: {changed.users_in_both:,}", f"overlap@{audit.k}"
    if key in changed.metrics:
        kept += f"; of the items they are shown, {changed.metrics[key]:.2%} stayed"
    if f"{key}_low" in changed.metrics:
        low, high = changed.metrics[f"{key}_low"], changed.metrics[f"{key}_high"]
        kept += f" [{low:.2%}, {high:.2%}]"
    entered, left = changed.items_entered, changed.items_left
    return [
        [title, *_metric_changes(audit, changed).lines("  ")],
        [kept, f"Items that entered the lists: {entered:,}; that left them: {left:,}"],
        _changes("Items that gained most", changed.gained, "item"),
        _changes("Items that lost most", changed.lost, "item"),
        _changes("Groups, from the most gained to the most lost", changed.groups, "group"),
    ]


def _metric_changes(audit: Audit, changed: Comparison) -> Table:
    """Tabulate every metric before and after, and its change with an interval."""
    rows = []
    for key, after in audit.metrics.items():
        interval = ""
        if f"{key}_change_low" in changed.metrics:
            low, high = (changed.metrics[f"{key}_change_{bound}"] for bound in ("low", "high"))
            interval = f"[{_signed(key, low)}, {_signed(key, high)}]"
        before, change = (changed.metrics[f"{key}_{what}"] for what in ("before", "change"))
        figures = _figure(key, before), _figure(key, after), _signed(key, change)
        rows.append((key, *figures, interval))
    return Table(("", "before", "after", "change", "95 % interval"), rows)


_SHARES = {"coverage", "top_share", "merit_distance", "merit_none_share"}
"""What people read in percent; the others are plain numbers."""


def _figure(key: str, value: float) -> str:
    """Write a metric for people: shares in percent."""
    return f"{value:.2%}" if key.split("@", maxsplit=1)[0] in _SHARES else f"{value:.4f}"


def _signed(key: str, change: float) -> str:
    """Write a change with its sign; one that rounds to nothing is not below 0."""
    written = _figure(key, round(change, 4) + 0.0)
    return written if written.startswith("-") else f"+{written}"


def _changes(title: str, changes: Sequence[ShareChange], what: str) -> list[str]:
    shown, gap = cut_middle(changes, f"{what}s")
    rows = (
        (str(one.name), f"{one.before:.2%}", f"{one.after:.2%}", f"{one.change:+.2%}")
        for one in shown
    )
    return _section(title, (what, "before", "after", "change"), rows, gap)


def _item_row(item: ItemExposure) -> tuple[str, ...]:
    """Write an item, its share of the exposure, and how many lists show it."""
    return str(item.item_id), f"{item.share:.2%}", f"{item.lists:,}"


def largest_first(groups: Iterable[GroupExposure]) -> tuple[GroupExposure, ...]:
    """Sort groups by their share of exposure or catalogue: by ratio, the tiniest would lead."""
    return tuple(sorted(groups, key=lambda one: -max(one.exposure_share, one.catalogue_share)))


def _groups(audit: Audit) -> list[str]:
    shown = list(audit.groups[:_MOST_GROUPS])
    left = len(audit.groups) - len(shown)
    gap = [f"  ({count(left, 'smaller group')} left out)"] if left else []
    if audit.groups and audit.ungrouped and audit.ungrouped.catalogue_share:
        shown.append(audit.ungrouped)
    return _section("Groups, the largest first", _GROUPS, map(_group_row, shown), gap)


def _group_row(group: GroupExposure) -> tuple[str, ...]:
    """Write a group, its shares of exposure and catalogue, and their ratio."""
    shares = f"{group.exposure_share:.2%}", f"{group.catalogue_share:.2%}"
    return (str(group.group), *shares, f"{group.ratio:.2f}")


def _merit(audit: Audit, merit: MeritAudit) -> list[list[str]]:
    head = ("item", "exposure", "merit", "ratio")
    hidden = f"({merit.without_merit:,} of {audit.items:,} items have no merit)"
    above = "Items with the most exposure above their merit"
    return [
        _section(above, head, map(_merit_row, merit.over_exposed)),
        _section(f"Items furthest below it {hidden}", head, map(_merit_row, merit.under_exposed)),
    ]


def _merit_row(item: ItemMerit) -> tuple[str, ...]:
    shares = f"{item.exposure_share:.2%}", f"{item.merit_share:.2%}"
    return (str(item.item_id), *shares, "-" if item.ratio is None else f"{item.ratio:.2f}")


def _periods(audit: Audit) -> list[str]:
    shown, gap = cut_middle(audit.periods, "periods")
    columns = {
        "gini": "gini",
        "floor": "gini_floor",
        "coverage": "coverage",
        "top share": "top_share",
        "gini so far": "cumulative_gini",
        "coverage so far": "cumulative_coverage",
    }
    rows = (
        (one.start, f"{one.lists:,}", *(_period_figures(one, columns.values()))) for one in shown
    )
    title = "Over time (each period, then all lists so far)"
    return _section(title, ("from", "lists", *columns), rows, gap)


def _period_figures(period: Period, names: Iterable[str]) -> list[str]:
    return [_figure(name.removeprefix("cumulative_"), getattr(period, name)) for name in names]


def document_of(audit: Audit) -> Document:
    """Show the metrics, the five most exposed items, and the twelve largest groups."""
    if audit.comparison is None:
        rows = [
            (key, _figure(key, value), " to ".join(_bounds(audit, key)))
            for key, value in audit.metrics.items()
        ]
        metrics = Table(("", "value", "95 % interval"), rows)
    else:
        metrics = _metric_changes(audit, audit.comparison)
    items = [_item_row(item) for item in audit.most_exposed[:5]]
    tables = [
        metrics,
        Table(("most exposed items", "share", "lists"), items),
        Table(_GROUPS, [_group_row(one) for one in audit.groups[:12]]),
    ]
    said = verdict(audit, audit.comparison) if audit.comparison else summary(audit)[1:]
    return Document(headline(audit), tables, (*said, *audit.notes))


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
