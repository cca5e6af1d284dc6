"""The groups that an audit reads beside the lists, checked and numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limelight._errors import DataError
from limelight.data.columns import NumberColumn
from limelight.data.ids import IdColumn, positions
from limelight.data.scan import join, scan
from limelight.data.sources import describe, open_parts
from limelight.evaluate.audit_lists import has
from limelight.evaluate.pairs import repeated_pair

if TYPE_CHECKING:
    import pyarrow as pa

    from limelight.data.sources import Source
    from limelight.evaluate.lists import FloatArray

IndexArray = NDArray[np.int64]

WEIGHT = NumberColumn(
    "weight",
    "a weight must be a finite number above 0",
    lambda weights: (weights > 0) & np.isfinite(weights),
)


class Groups(NamedTuple):
    """One entry per item and group it belongs to; an item's weights add up to 1."""

    items: IndexArray
    groups: IndexArray
    weights: FloatArray
    group_ids: list[Any]
    n_ignored: int


def read_groups(source: Source, item_ids: pa.Array) -> Groups:
    """Read `item_id, group[, weight]` for the items of the catalogue; ignore other items.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"item_id": ["a", "a", "z"], "group": ["x", "y", "x"]})
    >>> read_groups(table, pa.array(["a", "b"])).weights
    array([0.5, 0.5])
    """
    parts = open_parts(source)
    item, group = IdColumn("item_id"), IdColumn("group")
    weighted = [WEIGHT] if has(parts, WEIGHT) else []
    items, groups, *given = join(scan(parts, [item, group, *weighted]))
    grouped_ids, group_ids = item.ids(), group.ids()
    _refuse_repeated_groups(items, groups, grouped_ids, group_ids)
    weights = given[0] if given else np.ones(len(items))
    weights = weights / np.bincount(items, weights=weights)[items]
    numbers = positions(grouped_ids, item_ids)[items]
    known = numbers >= 0
    if not known.any():
        example = grouped_ids[0].as_py()
        message = f"no item of {describe(parts)} is in the catalogue, e.g. {example!r}"
        raise DataError(message, hint="use the same item ids in groups and lists")
    return Groups(
        numbers[known],
        groups[known].astype(np.int64),
        weights[known],
        group_ids.to_pylist(),
        int((~known).sum()),
    )


def _refuse_repeated_groups(
    items: NDArray[np.int32], groups: NDArray[np.int32], item_ids: pa.Array, group_ids: pa.Array
) -> None:
    if repeat := repeated_pair(items, groups):
        item, group, count = repeat
        pair = f"item {item_ids[item].as_py()!r} is in group {group_ids[group].as_py()!r}"
        message = f"{pair} twice ({count:,} such rows)"
        raise DataError(message, hint="keep one row per item and group")
