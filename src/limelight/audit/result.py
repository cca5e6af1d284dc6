"""What an audit found, as a value: to read, as tables, as JSON, and as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.audit.exhibit import ExampleLists, exhibit_of
from limelight.audit.record.record import AuditRecord, make_record
from limelight.audit.show import KeyedFigures, document_of, report
from limelight.audit.tables import groups_table, items_table, record
from limelight.audit.verdict import headline
from limelight.metrics.lists import FloatArray, ListCount
from limelight.report.exhibit import Compared
from limelight.report.page import write_page
from limelight.report.titles import with_titles_and_groups

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from limelight._base.documents import Document
    from limelight.audit.compare import Comparison
    from limelight.audit.groups import GroupFigures
    from limelight.audit.merit import MeritAudit
    from limelight.audit.over_time import Period
    from limelight.audit.record.checks import AuditChecks
    from limelight.audit.record.inputs import AuditInput
    from limelight.audit.tables import ItemExposure
    from limelight.audit.targets import TargetFound
    from limelight.data.groups import GroupExposure, Groups
    from limelight.data.sources import Source
    from limelight.metrics.rarefaction import GiniEstimate
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

    errors: dict[str, float] = field(default_factory=dict, compare=False)
    """Standard errors of the metrics, which their intervals are made of."""

    groups_found: GroupFigures | None = field(default=None, compare=False)
    """What every group gets, as arrays, where groups were given."""

    dropped: dict[str, int] = field(default_factory=dict, compare=False)
    """How many rows were read and not counted, and why."""

    small_groups: float = field(default=0.0, compare=False)
    """Groups with a smaller share of the catalogue are left out of impact ratios."""

    inputs: tuple[AuditInput, ...] = field(default=(), compare=False)
    """The tables that it was made from, and their columns."""

    checks: AuditChecks | None = field(default=None, compare=False)
    """What became of the rules of a record."""

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
        `exposure_share`, `catalogue_share`, `ratio`, `impact_ratio`, `selection_rate`,
        `selection_ratio` and `reach`, with the intervals that there are; with bounds `floor`,
        `cap` and `missed_by`; with other lists `share_before` and `change`.
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

    def record(
        self,
        *,
        plan: str | os.PathLike[str] | None = None,
        fail_if: str | Sequence[str] = (),
        four_fifths: bool = False,
    ) -> AuditRecord:
        """Hold the audit against rules, and make a record that others can check.

        Parameters
        ----------
        plan
            A TOML file with the criteria, which were fixed beforehand.
        fail_if
            Further rules: `"gini@20 > 0.9"`, `"group:acme > 3%"`, `"reach:* < 1%"`. The figures of
            groups are `group`, `ratio`, `impact_ratio` and `reach`; `*` is every group.
        four_fifths
            Also the rule `impact_ratio:* < 80%`.

        Returns
        -------
        AuditRecord
            `record.verdict` is "met", "broken" or "undecided", `record.save("audit.json")` writes
            it, and `record.audit` shows what became of the rules.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from limelight.audit.audit import audit
        >>> lists = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 1]})
        >>> audit(lists).record(fail_if="gini@1 > 0.9").verdict
        'met'
        """
        return make_record(
            self, plan, [fail_if] if isinstance(fail_if, str) else fail_if, four_fifths=four_fifths
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays, with the metrics under flat keys, ready for JSON.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from limelight.audit.audit import audit
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
            **(self.checks.to_dict() if self.checks else {}),
            "conventions": self.conventions,
            **(self.comparison.to_dict() if self.comparison else {}),
            "notes": list(self.notes),
        }
