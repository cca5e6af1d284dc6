"""What groups get, as law asks for it: rates, impact ratios and reach, with intervals.

An impact ratio is a group's rate over that of the most favoured group (New York City's Local Law
144): its exposure for each item, or the share of its items that are shown at all. Which group is
the most favoured is itself uncertain, so the interval of an impact ratio is made of intervals that
hold for all groups at once: with rates between l_g and h_g, and L the highest l of all groups and H
the highest h, group g's ratio is between l_g / H and h_g / L.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.text import count, percent
from limelight.data.groups import exposure_of, owned_by
from limelight.metrics.group_intervals import GroupSums, exact_bounds, share_bounds, sum_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from limelight._base.arrays import Float64, Int64
    from limelight._base.executor import Executor
    from limelight.audit.parts import ListPart
    from limelight.data.groups import GroupExposure, Groups
    from limelight.metrics.accumulate import Tally

FOUR_FIFTHS = 0.8
"""A group with a lower impact ratio is what the four-fifths rule points out."""


@dataclass(frozen=True)
class AddUpGroups:
    """Adds up what the users of a part give to each group."""

    members: Groups
    item_ids: pa.Array
    total: float
    k: int
    name = "audit: groups"

    def __call__(self, part: ListPart) -> GroupSums:
        """Read the part and add up."""
        return sum_groups(part.numbered(self.item_ids, self.k), self.members, self.total)


class GroupFigures(NamedTuple):
    """What groups get; an entry for each group that has an item of the catalogue."""

    names: list[Any]
    items: Float64
    """How many items each has."""
    shares: Float64
    """Of the exposure."""
    catalogue: Float64
    """Shares of the catalogue."""
    selected: Float64
    """The share of each group's items that at least one list shows."""
    compared: Any
    """Which groups impact ratios are of: those that are not small."""
    errors: Float64 | None
    """Standard errors of the shares of exposure; None for fewer than two users."""
    reached: Int64
    """How many users saw at least one item."""
    users: int

    @property
    def rates(self) -> Float64:
        """Exposure for each item, in multiples of that of a mean item."""
        return self.shares / self.catalogue

    @property
    def reach(self) -> Float64:
        """The share of the users who saw at least one item of each group."""
        return self.reached / self.users

    def share_bounds(self, level: float) -> tuple[Float64, Float64] | None:
        """Give the interval of each share of the exposure; None for one user."""
        if self.errors is None:
            return None
        return share_bounds(self.shares, self.errors, self.users, level)

    def reach_bounds(self, level: float) -> tuple[Float64, Float64] | None:
        """Give the interval of each reach; None for one user."""
        if self.users < 2:
            return None
        return exact_bounds(self.reached.astype(np.float64), self.users, level)

    def impact(self, rates: Float64) -> Float64:
        """Divide rates by the highest of the groups that are compared; nan for small groups."""
        best = rates[self.compared].max(initial=0.0)
        return np.where(self.compared & (best > 0), rates / (best or 1.0), np.nan)

    def impact_bounds(self, level: float) -> tuple[Float64, Float64] | None:
        """Give the interval of each impact ratio, from intervals of that level for all shares."""
        found = self.share_bounds(level)
        if found is None or not self.compared.any():
            return None
        low, high = (bound / self.catalogue for bound in found)
        least, most = low[self.compared].max(), high[self.compared].max()
        upper = np.minimum(high / least, 1.0) if least > 0 else np.ones(len(high))
        return low / most, upper

    def describe(self, groups: Iterable[GroupExposure]) -> tuple[GroupExposure, ...]:
        """Add to each group what it gets."""
        impact, selection = self.impact(self.rates), self.impact(self.selected)
        columns: dict[str, Any] = {
            "reach": self.reach,
            "impact_ratio": impact,
            "selection_rate": self.selected,
            "selection_ratio": selection,
        }
        for name, bounds in (
            ("share", self.share_bounds(0.95)),
            ("reach", self.reach_bounds(0.95)),
        ):
            if bounds is not None:
                columns |= {f"{name}_low": bounds[0], f"{name}_high": bounds[1]}
        place = {name: at for at, name in enumerate(self.names)}

        def figures(at: int) -> dict[str, Any]:
            values = {name: float(column[at]) for name, column in columns.items()}
            return {name: None if np.isnan(value) else value for name, value in values.items()}

        return tuple(replace(one, **figures(place[one.group])) for one in groups)


def measure_groups(
    executor: Executor,
    parts: Sequence[ListPart],
    members: Groups,
    exposure: Tally,
    item_ids: pa.Array,
    *,
    k: int,
    users: int,
    small: float,
) -> GroupFigures:
    """Measure what every group gets from lists in parts; small groups are those below a share."""
    work = AddUpGroups(members, item_ids, float(exposure.weighted.sum()), k)
    sums = functools.reduce(GroupSums.plus, executor.map(work, parts, len(parts)))
    shares = exposure_of(members, exposure.weighted) / exposure.weighted.sum()
    errors, owned = sums.errors(shares), owned_by(members)
    selected = exposure_of(members, (exposure.shown > 0).astype(np.float64))
    kept = np.flatnonzero(owned)
    catalogue = owned[kept] / len(item_ids)
    return GroupFigures(
        names=[members.group_ids[at] for at in kept],
        items=owned[kept],
        shares=shares[kept],
        catalogue=catalogue,
        selected=selected[kept] / owned[kept],
        compared=catalogue >= small,
        errors=None if errors is None else errors[kept],
        reached=sums.reached[kept],
        users=users,
    )


def small_groups_note(figures: GroupFigures, small: float) -> str:
    """Say how many groups are too small to be compared, and what they have; empty if none is.

    Examples
    --------
    >>> one = np.array([0.5, 0.5])
    >>> found = GroupFigures(["x", "y"], one, one, one, one, one > 0, None, one, 2)
    >>> small_groups_note(found, 0.02)
    ''
    """
    left = ~figures.compared
    if not left.any():
        return ""
    shares = percent(float(figures.shares[left].sum()), 2)
    what = count(int(left.sum()), "group")
    return (
        f"Groups with less than {percent(small, 2)} of the catalogue, left out of impact ratios: "
        f"{what}, with {shares} of the exposure."
    )
