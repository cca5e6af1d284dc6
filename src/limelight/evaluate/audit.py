"""An exposure audit of any recommender's lists: who is in the limelight, and who is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import ConfigError, DataError
from limelight.data.ids import ids_from_arrow, positions
from limelight.evaluate.accumulate import exposure_metrics
from limelight.evaluate.audit_input import Groups, Lists, read_catalogue, read_groups, read_lists
from limelight.evaluate.audit_text import report
from limelight.evaluate.floor import handout_gini
from limelight.evaluate.lists import FloatArray, check_positive, rank_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from limelight.data.sources import Source

NO_CATALOGUE = (
    "No catalogue was given: items that no list shows are not counted, "
    "so the Gini index is too low and the coverage is 1."
)
_BLOCK_ROWS = 1 << 20


@dataclass(frozen=True)
class ItemExposure:
    """One item: its log-weighted exposure, its share of all exposure, the lists that show it."""

    item_id: int | str
    exposure: float
    share: float
    lists: int


@dataclass(frozen=True)
class GroupExposure:
    """One group of items: its share of the exposure, of the catalogue, and their ratio."""

    group: int | str
    exposure_share: float
    catalogue_share: float
    ratio: float
    """Above 1: more exposure than the group's share of the catalogue."""


@dataclass(frozen=True)
class Audit:
    """What an audit found. `str(audit)` is a report to read, `to_dict` is ready for JSON."""

    users: int
    items: int
    k: int
    catalogue_given: bool
    metrics: dict[str, float]
    """`gini@k` (log weight), `gini_uniform@k`, `gini_floor@k`, `coverage@k`, `entropy@k` and
    `top_share@k`, what the top 1 % of the items hold."""

    most_exposed: tuple[ItemExposure, ...]
    least_exposed: tuple[ItemExposure, ...]
    unexposed: int
    """Number of items that no list shows."""

    groups: tuple[GroupExposure, ...] = ()
    """By ratio, highest first."""

    ungrouped: GroupExposure | None = None
    """The items without a group, where groups were given."""

    notes: tuple[str, ...] = ()
    """What the reader should know about these numbers."""

    item_ids: NDArray[Any] = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    exposure: FloatArray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    """Log-weighted exposure of every item, in the order of `item_ids`."""

    def __str__(self) -> str:
        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays, with the metrics under flat keys, ready for JSON.

        Examples
        --------
        >>> import pyarrow as pa
        >>> lists = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
        >>> audit(lists, catalogue=["a", "b", "c", "d"]).to_dict()["coverage@2"]
        0.5
        """
        return {
            "users": self.users,
            "items": self.items,
            "k": self.k,
            "catalogue_given": self.catalogue_given,
            **self.metrics,
            "unexposed": self.unexposed,
            "most_exposed": [asdict(item) for item in self.most_exposed],
            "least_exposed": [asdict(item) for item in self.least_exposed],
            "groups": [asdict(group) for group in self.groups],
            "ungrouped": asdict(self.ungrouped) if self.ungrouped else None,
            "notes": list(self.notes),
        }


def audit(
    lists: Source,
    *,
    k: int | None = None,
    catalogue: Source | Sequence[Any] | None = None,
    groups: Source | None = None,
    top: int = 10,
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
    top
        How many of the most and of the least exposed items to report.

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
    if k is not None:
        check_positive(k, "k")
    if top < 0:
        message = f"top must be 0 or more, got {top}"
        raise ConfigError(message, hint="it is the number of items to report, such as 10")
    rows = read_lists(lists)
    item_ids, items, notes = _number_items(rows, catalogue)
    k = int(rows.ranks.max()) if k is None else k
    weighted, shown, metrics = _measure(items, rows.ranks, n_items=len(item_ids), k=k)
    members = None if groups is None else read_groups(groups, item_ids)
    if members and members.n_ignored:
        notes.append(f"Group rows of items outside the catalogue, ignored: {members.n_ignored:,}.")
    order = np.argsort(-weighted, kind="stable")
    exposed = order[: np.count_nonzero(weighted)]
    return Audit(
        users=rows.n_users,
        items=len(item_ids),
        k=k,
        catalogue_given=catalogue is not None,
        metrics=metrics,
        most_exposed=_name_items(exposed[:top], item_ids, weighted, shown),
        least_exposed=_name_items(_last(weighted, top), item_ids, weighted, shown),
        unexposed=len(item_ids) - len(exposed),
        groups=_group_shares(members, weighted) if members else (),
        ungrouped=_ungrouped(members, weighted) if members else None,
        notes=tuple(notes),
        item_ids=ids_from_arrow(item_ids),
        exposure=weighted,
    )


def _number_items(
    rows: Lists, catalogue: Source | Sequence[Any] | None
) -> tuple[pa.Array, NDArray[np.int32], list[str]]:
    """Give items their number in the catalogue, or in the lists where there is none."""
    if catalogue is None:
        return rows.item_ids, rows.items, [NO_CATALOGUE]
    item_ids, repeats = read_catalogue(catalogue)
    places = positions(rows.item_ids, item_ids)
    missing = np.flatnonzero(places < 0)
    if missing.size:
        example = rows.item_ids[int(missing[0])].as_py()
        message = f"items of the lists are not in the catalogue: {len(missing):,}, e.g. {example!r}"
        raise DataError(message, hint="the catalogue must hold every item that a list shows")
    notes = [f"Repeated rows of the catalogue, counted once: {repeats:,}."] if repeats else []
    return item_ids, places.astype(np.int32)[rows.items], notes


def _measure(
    items: NDArray[np.int32], ranks: NDArray[np.int32], *, n_items: int, k: int
) -> tuple[FloatArray, NDArray[np.int64], dict[str, float]]:
    """Add up exposure at k and name its metrics."""
    if ranks.min() > k:
        message = f"no item at rank {k} or better: the best rank is {ranks.min()}"
        raise DataError(message, hint="ranks start at 1; or choose a larger k")
    weighted, shown = np.zeros(n_items), np.zeros(n_items, dtype=np.int64)
    for start in range(0, len(ranks), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        within = ranks[block] <= k
        places, rank = items[block][within], ranks[block][within]
        weighted += np.bincount(places, weights=rank_weights(rank), minlength=n_items)
        shown += np.bincount(places, minlength=n_items)
    distinct, counts = np.unique(ranks[ranks <= k], return_counts=True)
    floor = handout_gini(rank_weights(distinct), counts, n_items)
    return weighted, shown, exposure_metrics(weighted, shown, floor, k)


def _last(weighted: FloatArray, top: int) -> NDArray[np.int64]:
    """Choose the least exposed items, least first, ties in the order of the catalogue."""
    return np.argsort(weighted, kind="stable")[:top]


def _name_items(
    chosen: NDArray[np.int64], item_ids: pa.Array, weighted: FloatArray, shown: NDArray[np.int64]
) -> tuple[ItemExposure, ...]:
    total = weighted.sum()
    return tuple(
        ItemExposure(
            item_id=item_ids[int(item)].as_py(),
            exposure=float(weighted[item]),
            share=float(weighted[item] / total),
            lists=int(shown[item]),
        )
        for item in chosen
    )


def _group_shares(members: Groups, weighted: FloatArray) -> tuple[GroupExposure, ...]:
    """Compare each group's share of the exposure with its share of the catalogue."""
    n_groups = len(members.group_ids)
    held = np.bincount(members.groups, members.weights * weighted[members.items], n_groups)
    owned = np.bincount(members.groups, members.weights, n_groups)
    shares = [
        _share(members.group_ids[g], held[g] / weighted.sum(), owned[g] / len(weighted))
        for g in np.flatnonzero(owned)
    ]
    return tuple(sorted(shares, key=lambda share: -share.ratio))


def _ungrouped(members: Groups, weighted: FloatArray) -> GroupExposure:
    alone = np.ones(len(weighted), dtype=bool)
    alone[members.items] = False
    return _share("(no group)", weighted[alone].sum() / weighted.sum(), alone.mean())


def _share(group: int | str, exposure_share: float, catalogue_share: float) -> GroupExposure:
    ratio = float(exposure_share / catalogue_share) if catalogue_share else 0.0
    return GroupExposure(group, float(exposure_share), float(catalogue_share), ratio)
