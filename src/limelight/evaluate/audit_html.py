"""An audit as small tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._base.documents import Document, Table
from limelight.evaluate.audit_text import group_row, headline, item_row
from limelight.evaluate.compare_text import metric_changes

if TYPE_CHECKING:
    from limelight.evaluate.audit import Audit

_ITEMS, _GROUPS = 5, 12
"""How many are shown; the report has more."""


def document_of(audit: Audit) -> Document:
    """Show the metrics, who is most exposed, and the groups."""
    items = [item_row(item) for item in audit.most_exposed[:_ITEMS]]
    largest = sorted(audit.groups, key=lambda group: -group.exposure_share)[:_GROUPS]
    tables = [
        _metrics(audit),
        Table(("most exposed items", "share", "lists"), items),
        Table(("group", "exposure", "catalogue", "ratio"), [group_row(one) for one in largest]),
    ]
    return Document(headline(audit), tables, audit.notes)


def _metrics(audit: Audit) -> Table:
    if audit.comparison is None:
        rows = [
            (key, f"{value:.4f}", _interval(audit, key)) for key, value in audit.metrics.items()
        ]
        return Table(("", "value", "95 % interval"), rows)
    return metric_changes(audit, audit.comparison)


def _interval(audit: Audit, key: str) -> str:
    low, high = (audit.bounds.get(f"{key}_{side}") for side in ("low", "high"))
    return "" if low is None or high is None else f"{low:.4f} to {high:.4f}"
