"""The comparison of two audits as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._base.documents import Table, cut_middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.evaluate.audit import Audit
    from limelight.evaluate.compare import Change, Comparison


def comparison_lines(audit: Audit) -> list[list[str]]:
    r"""Write the sections that say what changed; none without a comparison.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.evaluate.audit import audit
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
        _metrics(audit, changed),
        [_users(changed, audit.k), _items(changed)],
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


def _metrics(audit: Audit, changed: Comparison) -> list[str]:
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


def _items(changed: Comparison) -> str:
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
