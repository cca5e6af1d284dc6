"""Groups of items, checked and numbered, and their shares of exposure and of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # loads its packages when they are used
from numpy.typing import NDArray

from limelight._base.errors import DataError
from limelight.data.columns import NumberColumn, join, scan
from limelight.data.ids import IdColumn, OptionalIdColumn, positions
from limelight.data.names import find_column, need_column
from limelight.data.rows import repeated_pair, row_starts
from limelight.data.sources import describe, open_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from limelight._base.arrays import Float64
    from limelight.data.sources import Part, Source

IndexArray = NDArray[np.int64]


def _weight(name: str) -> NumberColumn:
    rule = "a weight must be a finite number above 0"
    return NumberColumn(name, rule, lambda weights: (weights > 0) & np.isfinite(weights))


class Groups(NamedTuple):
    """One entry per item and group it belongs to; an item's weights add up to 1."""

    items: IndexArray
    groups: IndexArray
    weights: Float64
    group_ids: list[Any]
    n_ignored: int


def read_groups(source: Source, item_ids: pa.Array) -> Groups:
    """Read `item_id, group[, weight]` for the items of the catalogue; ignore other items.

    A row without a group says that its item has none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"item_id": ["a", "a", "z"], "group": ["x", "y", "x"]})
    >>> read_groups(table, pa.array(["a", "b"])).weights
    array([0.5, 0.5])
    """
    parts = open_parts(source)
    items, groups, weights, grouped_ids, group_ids = _scan_groups(source, parts)
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


def intersect_groups(one: Groups, other: Groups) -> Groups:
    """Group items by two tables at once: what is in x of one and in y of the other is in "x + y".

    The weight of an item in both is the product of its weights. Items that one of the tables does
    not name are in no group.

    Examples
    --------
    >>> import pyarrow as pa
    >>> items = pa.array(["a", "b"])
    >>> sellers = read_groups(pa.table({"item_id": ["a", "b"], "group": ["x", "y"]}), items)
    >>> regions = read_groups(pa.table({"item_id": ["a", "a"], "group": ["n", "s"]}), items)
    >>> found = intersect_groups(sellers, regions)
    >>> found.group_ids, found.weights
    (['x + n', 'x + s'], array([0.5, 0.5]))
    """
    order = np.argsort(other.items, kind="stable")
    n_items = 1 + int(max(one.items.max(), other.items.max()))
    lengths = np.bincount(other.items, minlength=n_items)
    starts = row_starts(lengths)
    mine = np.repeat(np.arange(len(one.items)), lengths[one.items])
    within = np.arange(len(mine)) - np.repeat(
        row_starts(lengths[one.items])[:-1], lengths[one.items]
    )
    theirs = order[starts[one.items[mine]] + within]
    pairs = one.groups[mine] * len(other.group_ids) + other.groups[theirs]
    kept, groups = np.unique(pairs, return_inverse=True)
    if not kept.size:
        message = "no item is in a group of both tables: groups and intersect"
        raise DataError(message, hint="use the same item ids in both")
    left, right = np.divmod(kept, len(other.group_ids))
    names = [f"{one.group_ids[a]} + {other.group_ids[b]}" for a, b in zip(left, right, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"two pairs of groups have the same name together: {twice!r}"
        raise DataError(message, hint="leave ' + ' out of the names of groups")
    return Groups(
        one.items[mine],
        groups.astype(np.int64),
        one.weights[mine] * other.weights[theirs],
        names,
        one.n_ignored + other.n_ignored,
    )


def as_groups(groups: Any, n_items: int) -> Groups:
    """Take groups as they were read, or one label an item; leave out groups without items.

    Examples
    --------
    >>> as_groups(["x", "y", None, "x"], 4).group_ids
    ['x', 'y']
    >>> as_groups([2, -1, 2], 3).items
    array([0, 2])
    """
    found = groups if isinstance(groups, Groups) else _by_label(groups, n_items)
    if len(found.items) == 0:
        message = "no item has a group"
        raise DataError(message, hint="give labels; None, or a negative number, is for no group")
    if found.items.max() >= n_items:
        last = int(found.items.max(initial=-1))
        message = f"groups are not of a catalogue of {n_items:,} items: {last} is the last"
        raise DataError(message, hint="read them with the ids of the catalogue, in its order")
    present, numbers = np.unique(found.groups, return_inverse=True)
    names = [found.group_ids[group] for group in present.tolist()]
    return found._replace(groups=numbers.astype(np.int64), group_ids=names)


def _by_label(labels: Any, n_items: int) -> Groups:
    values = np.asarray(labels)
    if values.shape != (n_items,):
        message = f"groups must have a label for each of {n_items:,} items: {values.shape}"
        raise DataError(message, hint="or be what read_groups returns; None is for no group")
    if values.dtype.kind in "iu":
        has_group = values >= 0
    else:
        # Frames mark a missing group by NaN, which is not equal to itself.
        has_group = np.array([v is not None and v == v for v in values.tolist()])  # noqa: PLR0124
    items = np.flatnonzero(has_group)
    names, numbers = np.unique(values[items], return_inverse=True)
    return Groups(items, numbers.astype(np.int64), np.ones(len(items)), names.tolist(), 0)


def check_groups(source: Source) -> None:
    """Refuse a table that :func:`read_groups` could not read, before there are items.

    Examples
    --------
    >>> import pyarrow as pa
    >>> check_groups(pa.table({"item_id": ["a", "b"], "group": ["x", "y"]}))
    """
    _scan_groups(source, open_parts(source))


def _scan_groups(
    source: Source, parts: list[Part]
) -> tuple[NDArray[np.int32], NDArray[np.int32], Float64, pa.Array, pa.Array]:
    """Return the item, the group and the weight of every row, and the ids of items and groups."""
    item = IdColumn(need_column(source, parts, "item", of="group"))
    group = OptionalIdColumn(need_column(source, parts, "group"))
    weight = find_column(source, parts, "weight")
    weighted = [] if weight is None else [_weight(weight)]
    items, groups, *given = join(scan(parts, [item, group, *weighted]))
    has_group = groups >= 0
    if not has_group.any():
        message = f"no row of {describe(parts)} names a group: column {group.name!r} is empty"
        raise DataError(message, hint="name another column with group='...'")
    grouped_ids, group_ids = item.ids(), group.ids()
    items, groups = items[has_group], groups[has_group]
    _refuse_repeated_groups(items, groups, grouped_ids, group_ids)
    weights = given[0][has_group] if given else np.ones(len(items))
    weights = weights / np.bincount(items, weights=weights)[items]
    return items, groups, weights, grouped_ids, group_ids


def _refuse_repeated_groups(
    items: NDArray[np.int32], groups: NDArray[np.int32], item_ids: pa.Array, group_ids: pa.Array
) -> None:
    if repeat := repeated_pair(items, groups):
        item, group, count = repeat
        pair = f"item {item_ids[item].as_py()!r} is in group {group_ids[group].as_py()!r}"
        message = f"{pair} twice ({count:,} such rows)"
        raise DataError(message, hint="keep one row per item and group")


@dataclass(frozen=True)
class GroupExposure:
    """One group of items: its share of the exposure, of the catalogue, and their ratio."""

    group: int | str
    exposure_share: float
    catalogue_share: float
    ratio: float
    """Above 1: more exposure than the group's share of the catalogue."""

    floor: float | None = None
    """The share of the exposure that it should have, where one was asked for."""

    cap: float | None = None
    """The share that it should not exceed."""

    share_low: float | None = None
    """The 95 % interval of its share of the exposure; None for one user."""

    share_high: float | None = None
    reach: float | None = None
    """The share of the users who saw at least one of its items."""

    reach_low: float | None = None
    reach_high: float | None = None
    impact_ratio: float | None = None
    """Its exposure for each item, over that of the most favoured group; None for small groups."""

    selection_rate: float | None = None
    """The share of its items that at least one list shows."""

    selection_ratio: float | None = None
    """That share over the highest of all groups; None for small groups."""


def group_shares(members: Groups, weighted: Float64) -> tuple[GroupExposure, ...]:
    """Compare each group's share of the exposure with its share of the catalogue.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.groups import read_groups
    >>> table = pa.table({"item_id": ["a", "b"], "group": ["x", "y"]})
    >>> members = read_groups(table, pa.array(["a", "b"]))
    >>> group_shares(members, np.array([3.0, 1.0]))[0]
    GroupExposure(group='x', exposure_share=0.75, catalogue_share=0.5, ratio=1.5, ...)
    """
    held, owned = exposure_of(members, weighted), owned_by(members)
    shares = [
        _share(members.group_ids[g], held[g] / weighted.sum(), owned[g] / len(weighted))
        for g in np.flatnonzero(owned)
    ]
    return tuple(sorted(shares, key=lambda share: -share.ratio))


def exposure_of(members: Groups, weighted: Float64) -> Float64:
    """Add up the exposure of each group's items, weighted with their membership."""
    shares = members.weights * weighted[members.items]
    return np.asarray(np.bincount(members.groups, shares, len(members.group_ids)), np.float64)


def owned_by(members: Groups) -> Float64:
    """Add up the memberships of each group: how many items of the catalogue it has."""
    owned = np.bincount(members.groups, members.weights, len(members.group_ids))
    return np.asarray(owned, np.float64)


def membership(members: Groups, n_items: int) -> Any:
    """Return items x groups, a sparse matrix with how much of an item belongs to a group.

    Examples
    --------
    >>> membership(as_groups(["x", None, "y"], 3), 3).toarray()
    array([[1., 0.],
           [0., 0.],
           [0., 1.]])
    """
    entries: Any = members.weights, (members.items, members.groups)
    return scipy.sparse.csr_array(entries, shape=(n_items, len(members.group_ids)))


def ungrouped_share(members: Groups, weighted: Float64) -> GroupExposure:
    """Measure the items that belong to no group."""
    alone = np.ones(len(weighted), dtype=bool)
    alone[members.items] = False
    return _share("(no group)", weighted[alone].sum() / weighted.sum(), alone.mean())


def _share(group: int | str, exposure_share: float, catalogue_share: float) -> GroupExposure:
    ratio = float(exposure_share / catalogue_share) if catalogue_share else 0.0
    return GroupExposure(group, float(exposure_share), float(catalogue_share), ratio)
