"""What share of the exposure groups may have: caps, floors and targets, checked and in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_choice, check_number
from limelight.data.columns import NumberColumn, join, scan
from limelight.data.groups import Groups, exposure_of, owned_by
from limelight.data.ids import IdColumn
from limelight.data.names import need_column
from limelight.data.sources import open_parts

if TYPE_CHECKING:
    from typing import TypeAlias

    from limelight._base.arrays import Float64
    from limelight.data.sources import Source

    Share: TypeAlias = float | Mapping[Any, float]

TARGETS = ("equal", "catalogue", "interactions")
_SHARE = NumberColumn(
    "share",
    "a share must be a finite number from 0 up",
    lambda shares: (shares >= 0) & np.isfinite(shares),
)
_SLACK = 1e-9  # what rounding may add to a sum of shares


class Wishes(NamedTuple):
    """Bounds of every group's share; a target is both bounds at once."""

    low: Float64
    high: Float64
    is_target: bool
    """Whether shares are of the exposure of items with a group, instead of all exposure."""
    notes: tuple[str, ...] = ()
    """What the reader should know of the wishes, such as that they were scaled."""

    def shares(self, members: Groups, exposure: Float64) -> Float64:
        """Return the share of every group, from the exposure of items."""
        held = exposure_of(members, exposure)
        whole = held.sum() if self.is_target else exposure.sum()
        return np.asarray(held / whole if whole else held)

    def violations(self, shares: Float64) -> Float64:
        """Return how far shares are outside their bounds; below 0, how far inside.

        Examples
        --------
        >>> wishes = Wishes(np.array([0.0, 0.2]), np.array([0.5, 1.0]), is_target=False)
        >>> wishes.violations(np.array([0.75, 0.125])).round(3)
        array([0.25 , 0.075])
        """
        return np.maximum(shares - self.high, self.low - shares)


def check_wishes(at_most: object, at_least: object, target: object) -> None:
    """Refuse shares that are impossible whatever the groups are.

    Examples
    --------
    >>> check_wishes(0.03, None, None)
    """
    if target is not None and (at_most is not None or at_least is not None):
        message = f"a target leaves no room for bounds: {target!r}"
        raise ConfigError(message, hint="give target, or at_most and at_least")
    if target is None and at_most is None and at_least is None:
        message = "no wish was given: at_most, at_least and target are None"
        raise ConfigError(message, hint="at_most=0.03 lets no group have more than 3 %")
    for name, share in (("at_most", at_most), ("at_least", at_least)):
        for value in share.values() if isinstance(share, Mapping) else [share]:
            if value is not None:
                check_share(name, value)
    if isinstance(target, Mapping):
        for value in target.values():
            check_number("target", value)
        if not sum(target.values()) > 0:
            message = f"target shares must add up to more than 0: {dict(target)!r}"
            raise ConfigError(message, hint="give every group its share, such as 0.25")
    elif target is not None:
        check_choice("target", target, TARGETS)


def check_share(name: str, value: object) -> None:
    """Refuse anything but a number from 0 to 1.

    Examples
    --------
    >>> check_share("at_most", 0.03)
    """
    check_number(name, value)
    if float(value) > 1:  # type: ignore[arg-type]
        message = f"{name} must be from 0 to 1: {value!r}"
        raise ConfigError(message, hint="0.03 is a share of 3 %")


def as_bounds(
    at_most: Share | None, at_least: Share | None, members: Groups, n_items: int
) -> Wishes:
    """Give every group its cap and its floor.

    Examples
    --------
    >>> from limelight.data.groups import as_groups
    >>> members = as_groups(["x", "y", None], 3)
    >>> as_bounds(0.3, {"y": 0.1}, members, 3).low
    array([0. , 0.1])
    """
    names = members.group_ids
    high = _by_group("at_most", at_most, 1.0, names)
    low = _by_group("at_least", at_least, 0.0, names)
    crossed = np.flatnonzero(low > high)
    if len(crossed):
        group = crossed[0]
        message = f"group {names[group]!r} must have {low[group]:g}, and at most {high[group]:g}"
        raise ConfigError(message, hint="a floor must not be above the cap")
    if low.sum() > 1 + _SLACK:
        message = f"floors of {len(names):,} groups add up to more than 1: {low.sum():g}"
        raise ConfigError(message, hint=f"use at most {1 / len(names):.4g} for each group")
    if len(np.unique(members.items)) == n_items and high.sum() < 1 - _SLACK:
        message = f"caps of {len(names):,} groups add up to less than 1: {high.sum():g}"
        raise ConfigError(message, hint=f"use at least {1 / len(names):.4g} for each group")
    return Wishes(low, high, is_target=False)


def as_target(
    target: str | Mapping[Any, float], members: Groups, n_items: int, counts: Any = None
) -> Wishes:
    """Give every group its share of the exposure of items that have a group.

    Examples
    --------
    >>> from limelight.data.groups import as_groups
    >>> as_target("catalogue", as_groups(["x", "y", "x", "x"], 4), 4).low
    array([0.75, 0.25])
    """
    names = members.group_ids
    notes: tuple[str, ...] = ()
    if isinstance(target, Mapping):
        named = set(map(str, target))
        missing = [name for name in names if str(name) not in named]
        if missing:
            message = f"no target for {len(missing):,} groups of {len(names):,}: {missing[0]!r}"
            hint = "name every group, or bind some of them with at_least and at_most"
            raise ConfigError(message, hint=hint)
        shares = _by_group("target", target, 0.0, names)
        if abs(shares.sum() - 1) > 1e-6:
            notes = (f"Target shares add up to {shares.sum():.4g} and were scaled to 1.",)
    elif target == "equal":
        shares = np.ones(len(names))
    elif target == "catalogue":
        shares = owned_by(members)
    else:
        shares = exposure_of(members, _checked_counts(counts, n_items))
    if not shares.sum() > 0:
        message = f"no group has a share above 0: target={target!r}"
        raise DataError(message, hint="some items with a group need interactions")
    shares = shares / shares.sum()
    return Wishes(shares, shares, is_target=True, notes=notes)


def _by_group(name: str, share: Share | None, default: float, groups: list[Any]) -> Float64:
    """Return a share for each group; names of groups are compared as text."""
    if share is None:
        return np.full(len(groups), default)
    if not isinstance(share, Mapping):
        return np.full(len(groups), float(share))
    numbers = {str(group): number for number, group in enumerate(groups)}
    values = np.full(len(groups), default)
    for group, value in share.items():
        if str(group) not in numbers:
            message = f"{name} names a group without an item in the catalogue: {group!r}"
            raise ConfigError(message, hint=f"groups are: {', '.join(list(numbers)[:5])}, ...")
        values[numbers[str(group)]] = value
    return values


def _checked_counts(counts: Any, n_items: int) -> Float64:
    if counts is None:
        message = "target='interactions' needs the counts of items"
        raise ConfigError(message, hint="pass counts=split.train.matrix.sum(axis=0)")
    found = np.asarray(counts, dtype=np.float64).ravel()
    if found.shape != (n_items,) or not (np.isfinite(found) & (found >= 0)).all():
        message = f"counts must be numbers from 0 up, one for each of {n_items:,} items"
        raise DataError(message, hint=f"they have shape {np.shape(counts)}")
    return found


def read_shares(source: Source) -> dict[Any, float]:
    """Read ``group, share``, one row a group.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read_shares(pa.table({"group": ["x", "y"], "share": [0.75, 0.25]}))
    {'x': 0.75, 'y': 0.25}
    """
    parts = open_parts(source)
    group = IdColumn(need_column(source, parts, "group"))
    groups, shares = join(scan(parts, [group, _SHARE]))
    names = group.ids().to_pylist()
    if len(names) < len(groups):
        repeated = names[int(np.bincount(groups).argmax())]
        message = f"a group has two shares: {repeated!r}"
        raise DataError(message, hint="keep one row a group")
    return dict(zip(names, shares.tolist(), strict=True))
