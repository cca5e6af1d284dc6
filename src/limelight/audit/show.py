"""What an audit shows: a report in plain text, small tables for notebooks, and a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from limelight._base.documents import Document, Table, cut_middle
from limelight._base.text import count, percent, points
from limelight.audit.record.words import at_once, broken_rules, rule_rows
from limelight.audit.targets import missed_by
from limelight.audit.verdict import TARGETS, headline, missed_targets, summary, verdict
from limelight.metrics.evaluate import figure, is_share
from limelight.metrics.lists import ListCount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, KeysView, Sequence

    from limelight.audit.compare import Comparison, ShareChange
    from limelight.audit.merit import ItemMerit, MeritAudit
    from limelight.audit.over_time import Period
    from limelight.audit.result import Audit
    from limelight.audit.tables import ItemExposure
    from limelight.data.groups import GroupExposure

T = TypeVar("T")
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
_MOST_GROUPS, _SOME_GROUPS, _SMALL = 20, 5, 0.01
"""So many groups are shown at most, and so many of those that are smaller than this share."""
_OVER_TIME = 6
"""Groups whose shares are shown for each period."""
_LONGEST_TITLE, _LONGEST_HEAD = 40, 16


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
    Half of the exposure goes to 1 item, 33.33 % of all; 1 item (33.33 %) is in no list.
    <BLANKLINE>
    gini@2          0.4088  0: every item has the same exposure; 1: one item has all (log weight)
    gini_uniform@2  0.3333  the same, every rank counting alike
    gini_floor@2    0.4088  about the lowest Gini that these lists could have
    coverage@2      66.67 %  share of the items that at least one list shows
    entropy@2       0.6074  1: every item has the same exposure; 0: one item has all
    top_share@2     61.31 %  share of the exposure held by the top 1 % of the items
    <BLANKLINE>
    Most exposed items
      item   share  lists
      a     61.31 %      1
    <BLANKLINE>
    Least exposed items (1 of 3 in no list)
      item  share  lists
      c     0.00 %      0
    """
    hidden = f"({audit.unexposed:,} of {audit.items:,} in no list)"
    sections = [
        broken_rules(audit),
        missed_targets(audit),
        verdict(audit, audit.comparison) if audit.comparison else [],
        summary(audit),
        _metrics(audit),
        _rules(audit),
        _targets(audit),
        *(_comparison(audit, audit.comparison) if audit.comparison else ()),
        _items("Most exposed items", audit.most_exposed, _EXPOSED, _item_row),
        _items(f"Least exposed items {hidden}", audit.least_exposed, _EXPOSED, _item_row),
        _groups(audit),
        *(_merit(audit, audit.merit) if audit.merit else ()),
        _periods(audit),
        _groups_over_time(audit),
        *([f"Note: {note}"] for note in audit.notes),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _section(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    gap: Sequence[str] = (),
    left: int = 1,
) -> list[str]:
    """Write a table below a title; nothing if it has no rows."""
    table = Table(head, list(rows), left)
    return [title, *table.lines("  "), *gap] if table.rows else []


def _items(
    title: str, items: Sequence[T], head: Sequence[str], row: Callable[[T], Sequence[str]]
) -> list[str]:
    """Write a table of items, with their titles where the catalogue has some."""
    names: list[str | None] = [getattr(item, "title", None) for item in items]
    if not any(names):
        return _section(title, ("item", *head), map(row, items))
    rows = [
        (own[0], _cut(name or "", _LONGEST_TITLE), *own[1:])
        for name, own in zip(names, map(row, items), strict=True)
    ]
    return _section(title, ("item", "title", *head), rows, left=2)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _targets(audit: Audit) -> list[str]:
    """Write what was asked for, and whether the lists have it."""
    rows = []
    for one in audit.targets:
        key = "gini" if one.target == "gini" else "coverage"
        asked = "its own" if one.asked is None else figure(key, one.asked)
        result = "met" if one.met else "missed"
        if one.missed:
            result += f" by {count(len(one.missed), 'group')}"
        rows.append((TARGETS[one.target], asked, figure(key, one.found), result))
    return _section("Targets", ("", "asked", "found", ""), rows)


def _rules(audit: Audit) -> list[str]:
    """Write what became of each rule."""
    if audit.checks is None:
        return []
    rows = [(one["rule"], one["found"], one["interval"], one["result"]) for one in rule_rows(audit)]
    gap = [f"  ({together})"] if (together := at_once(audit.checks)) else []
    return _section("Rules", ("fail if", "found", "interval", ""), rows, gap)


def _metrics(audit: Audit) -> list[str]:
    width = max(map(len, audit.metrics))
    bounds = {key: _bounds(audit, key) for key in audit.metrics}
    intervals = {key: f" [{', '.join(ends)}]" if ends else "" for key, ends in bounds.items()}
    figures = {key: figure(key, value) for key, value in audit.metrics.items()}
    room, wide = max(map(len, intervals.values())), max(map(len, figures.values()))
    return [
        f"{key:<{width}}  {figures[key]:>{wide}}{intervals[key]:<{room}}"
        f"  {_MEANING[key.split('@')[0]]}"
        for key in audit.metrics
    ]


def _bounds(audit: Audit, key: str) -> list[str]:
    """Write the ends of a metric's interval; none if it has none."""
    ends = (f"{key}_low", f"{key}_high")
    return [figure(key, audit.bounds[end]) for end in ends if end in audit.bounds]


def _comparison(audit: Audit, changed: Comparison) -> list[list[str]]:
    """Write the sections that say what changed."""
    title = f"Against {ListCount(changed.users, lists=changed.lists)} before"
    kept, key = f"Users in both: {changed.users_in_both:,}", f"overlap@{audit.k}"
    if key in changed.metrics:
        kept += f"; of the items they are shown, {percent(changed.metrics[key], 2)} stayed"
    if f"{key}_low" in changed.metrics:
        low, high = changed.metrics[f"{key}_low"], changed.metrics[f"{key}_high"]
        kept += f" [{percent(low, 2)}, {percent(high, 2)}]"
    entered, left = changed.items_entered, changed.items_left
    return [
        [title, *_metric_changes(audit, changed).lines("  ")],
        [kept, f"Items that entered the lists: {entered:,}; that left them: {left:,}"],
        _items("Items that gained most", changed.gained, _CHANGED, _change_row),
        _items("Items that lost most", changed.lost, _CHANGED, _change_row),
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
        figures = figure(key, before), figure(key, after), _signed(key, change)
        rows.append((key, *figures, interval))
    return Table(("", "before", "after", "change", "95 % interval"), rows)


def _signed(key: str, change: float) -> str:
    """Write a change with its sign; one that rounds to nothing is not below 0.

    A share changes by points: 30 % of a share is something else than 30 % of the items.
    """
    if is_share(key):
        return points(change)
    written = figure(key, round(change, 4) + 0.0)
    return written if written.startswith("-") else f"+{written}"


_CHANGED, _EXPOSED = ("before", "after", "change"), ("share", "lists")


def _change_row(one: ShareChange) -> tuple[str, ...]:
    return (
        str(one.name),
        percent(one.before, 2),
        percent(one.after, 2),
        points(one.change),
    )


def _item_row(item: ItemExposure) -> tuple[str, ...]:
    """Write an item, its share of the exposure, and how many lists show it."""
    return str(item.item_id), percent(item.share, 2), f"{item.lists:,}"


def listed_groups(groups: Sequence[GroupExposure]) -> list[GroupExposure]:
    """Take the first groups, but few of those that are small.

    Of a thousand sellers with one item each, twenty say no more than five.
    """
    first = groups[:_MOST_GROUPS]
    return [
        one
        for number, one in enumerate(first)
        if number < _SOME_GROUPS
        or missed_by(one)
        or max(one.exposure_share, one.catalogue_share) >= _SMALL
    ]


def _groups(audit: Audit) -> list[str]:
    """Write the groups that matter, with what changed for them and what they should have."""
    shown = listed_groups(audit.groups)
    left = len(audit.groups) - len(shown)
    bound = any(one.target.startswith("group_") for one in audit.targets)
    others = count(left, "other group" if bound else "smaller group")
    gap = [f"  ({others} left out)"] if left else []
    if audit.groups and audit.ungrouped and audit.ungrouped.catalogue_share:
        shown.append(audit.ungrouped)
    table = _group_table(audit, shown)
    first = "those with bounds first, then the largest" if bound else "the largest first"
    return _section(f"Groups, {first}", table.head, table.rows, gap)


def _group_table(audit: Audit, groups: Sequence[GroupExposure]) -> Table:
    """Tabulate groups: exposure, before and now, share of the catalogue, ratio, bounds."""
    columns: dict[str, list[str]] = {"group": [str(one.group) for one in groups]}
    if audit.comparison is not None:
        changes = {one.name: one for one in audit.comparison.groups}
        known = [changes.get(one.group) for one in groups]
        columns["before"] = [percent(one.before, 2) if one else "" for one in known]
    columns["exposure"] = [percent(one.exposure_share, 2) for one in groups]
    if audit.comparison is not None:
        columns["change"] = [points(one.change) if one else "" for one in known]
    columns["catalogue"] = [percent(one.catalogue_share, 2) for one in groups]
    columns["ratio"] = [f"{one.ratio:.2f}" for one in groups]
    columns["impact"] = [
        "" if one.impact_ratio is None else f"{one.impact_ratio:.2f}" for one in groups
    ]
    columns["reach"] = ["" if one.reach is None else percent(one.reach, 2) for one in groups]
    bounds = {"floor": [one.floor for one in groups], "cap": [one.cap for one in groups]}
    for name, values in bounds.items():
        if any(value is not None for value in values):
            columns[name] = ["" if value is None else percent(value, 2) for value in values]
    if "floor" in columns or "cap" in columns:
        columns["missed by"] = [
            points(far, signed=False) if (far := missed_by(one)) else "" for one in groups
        ]
    return Table(tuple(columns), list(zip(*columns.values(), strict=True)))


def _merit(audit: Audit, merit: MeritAudit) -> list[list[str]]:
    head = ("exposure", "merit", "ratio")
    hidden = f"({merit.without_merit:,} of {audit.items:,} items have no merit)"
    above = "Items with the most exposure above their merit"
    return [
        _items(above, merit.over_exposed, head, _merit_row),
        _items(f"Items furthest below it {hidden}", merit.under_exposed, head, _merit_row),
    ]


def _merit_row(item: ItemMerit) -> tuple[str, ...]:
    shares = percent(item.exposure_share, 2), percent(item.merit_share, 2)
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
    return [figure(name.removeprefix("cumulative_"), getattr(period, name)) for name in names]


def _groups_over_time(audit: Audit) -> list[str]:
    """Write the shares of the first groups in each period."""
    groups = [one.group for one in audit.groups[:_OVER_TIME]]
    shown, gap = cut_middle(audit.periods, "periods")
    rows = [(one.start, *(percent(one.groups[name], 2) for name in groups)) for one in shown]
    if not groups or not rows:
        return []
    left = len(audit.groups) - len(groups)
    title = "Groups over time (share of each period's exposure)"
    gap = [*gap, f"  ({count(left, 'other group')} left out)"] if left else gap
    head = ("from", *(_cut(str(name), _LONGEST_HEAD) for name in groups))
    return _section(title, head, rows, gap)


def document_of(audit: Audit) -> Document:
    """Show the metrics, the five most exposed items, and the twelve largest groups."""
    if audit.comparison is None:
        rows = [
            (key, figure(key, value), " to ".join(_bounds(audit, key)))
            for key, value in audit.metrics.items()
        ]
        metrics = Table(("", "value", "95 % interval"), rows)
    else:
        metrics = _metric_changes(audit, audit.comparison)
    items = [_item_row(item) for item in audit.most_exposed[:5]]
    tables = [
        metrics,
        Table(("most exposed items", "share", "lists"), items),
        _group_table(audit, listed_groups(audit.groups)[:12]),
    ]
    said = verdict(audit, audit.comparison) if audit.comparison else summary(audit)[1:]
    first = (*broken_rules(audit), *missed_targets(audit))
    return Document(headline(audit), tables, (*first, *said, *audit.notes))
