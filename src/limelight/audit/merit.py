"""The merit part of an audit: what items earn by interactions, beside what the lists give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import DataError
from limelight.audit.tables import NO_TITLES, ItemTitles, record
from limelight.data.ids import positions
from limelight.data.read import read
from limelight.data.sources import describe, open_parts
from limelight.metrics.merit import merit_correlation, merit_distance, merit_gini, merit_ratio

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from limelight.data.sources import Source
    from limelight.metrics.lists import FloatArray


@dataclass(frozen=True)
class ItemMerit:
    """One item: its shares of exposure and of merit, and how they compare."""

    item_id: int | str
    exposure_share: float
    merit_share: float
    ratio: float | None
    """Exposure per unit of merit; None for an item without merit."""

    title: str | None = None
    """What the catalogue calls it."""


class Merit(NamedTuple):
    """The merit of every item of the catalogue."""

    merit: FloatArray
    n_ignored: int
    """Interactions with items outside the catalogue."""


@dataclass(frozen=True)
class MeritAudit:
    """How exposure compares with merit."""

    over_exposed: tuple[ItemMerit, ...]
    """The items whose share of the exposure exceeds their share of the merit most."""

    under_exposed: tuple[ItemMerit, ...]
    without_merit: int
    """Number of items without merit."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything under flat keys, ready for JSON.

        Examples
        --------
        >>> MeritAudit((), (), 3).to_dict()
        {'over_exposed': [], 'under_exposed': [], 'without_merit': 3}
        """
        return {
            "over_exposed": [record(item) for item in self.over_exposed],
            "under_exposed": [record(item) for item in self.under_exposed],
            "without_merit": self.without_merit,
        }


def read_merit(source: Source, item_ids: pa.Array) -> Merit:
    """Count the users who chose each item of the catalogue, by a table of users and items.

    Repeated pairs count once. Items outside the catalogue are ignored and counted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user_id": [1, 2, 2, 2], "item_id": ["a", "a", "a", "z"]})
    >>> read_merit(table, pa.array(["a", "b"]))
    Merit(merit=array([2., 0.]), n_ignored=1)
    """
    parts = open_parts(source)
    found = read(source)
    counts = np.bincount(found.matrix.indices, minlength=found.n_items)
    numbers = positions(found.item_ids, item_ids)
    known = numbers >= 0
    if not known.any():
        example = found.item_ids[0]
        message = f"no item of {describe(parts)} is in the catalogue, e.g. {example!r}"
        raise DataError(message, hint="use the same item ids in merit and lists")
    merit = np.zeros(len(item_ids))
    merit[numbers[known]] = counts[known]
    return Merit(merit, int(counts[~known].sum()))


def merit_metrics(weighted: FloatArray, merit: FloatArray, k: int) -> dict[str, float]:
    """Name the measures of exposure against merit.

    Examples
    --------
    >>> merit_metrics(np.array([3.0, 1.0, 0.0]), np.array([2.0, 2.0, 0.0]), k=5)
    {'merit_gini@5': 0.25, 'merit_distance@5': 0.25, 'merit_spearman@5': 0.8660...,
     'merit_none_share@5': 0.0}
    """
    return {
        f"merit_gini@{k}": merit_gini(weighted, merit),
        f"merit_distance@{k}": merit_distance(weighted, merit),
        f"merit_spearman@{k}": merit_correlation(weighted, merit),
        f"merit_none_share@{k}": float(weighted[merit == 0].sum() / weighted.sum()),
    }


def audit_merit(
    weighted: FloatArray,
    merit: FloatArray,
    item_ids: pa.Array,
    top: int,
    titles: ItemTitles = NO_TITLES,
) -> MeritAudit:
    """Find the items that get most above and most below what they earn."""
    exposure_share, merit_share = weighted / weighted.sum(), merit / merit.sum()
    ratio = merit_ratio(weighted, merit)

    def name(chosen: NDArray[np.int64]) -> tuple[ItemMerit, ...]:
        return tuple(
            ItemMerit(
                item_ids[int(item)].as_py(),
                float(exposure_share[item]),
                float(merit_share[item]),
                _finite(ratio[item]),
                titles.of(int(item)),
            )
            for item in chosen
        )

    gap = exposure_share - merit_share
    over, under = np.argsort(-gap, kind="stable")[:top], np.argsort(gap, kind="stable")[:top]
    return MeritAudit(
        name(over[gap[over] > 0]), name(under[gap[under] < 0]), int(np.sum(merit == 0))
    )


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
