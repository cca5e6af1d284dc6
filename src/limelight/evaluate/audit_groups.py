"""The share of exposure that each group of items holds, beside its share of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from limelight.evaluate.audit_input import Groups
    from limelight.evaluate.lists import FloatArray


@dataclass(frozen=True)
class GroupExposure:
    """One group of items: its share of the exposure, of the catalogue, and their ratio."""

    group: int | str
    exposure_share: float
    catalogue_share: float
    ratio: float
    """Above 1: more exposure than the group's share of the catalogue."""


def group_shares(members: Groups, weighted: FloatArray) -> tuple[GroupExposure, ...]:
    """Compare each group's share of the exposure with its share of the catalogue.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.evaluate.audit_input import read_groups
    >>> table = pa.table({"item_id": ["a", "b"], "group": ["x", "y"]})
    >>> members = read_groups(table, pa.array(["a", "b"]))
    >>> group_shares(members, np.array([3.0, 1.0]))[0]
    GroupExposure(group='x', exposure_share=0.75, catalogue_share=0.5, ratio=1.5)
    """
    held, owned = exposure_of(members, weighted), owned_by(members)
    shares = [
        _share(members.group_ids[g], held[g] / weighted.sum(), owned[g] / len(weighted))
        for g in np.flatnonzero(owned)
    ]
    return tuple(sorted(shares, key=lambda share: -share.ratio))


def exposure_of(members: Groups, weighted: FloatArray) -> FloatArray:
    """Add up the exposure of each group's items, weighted with their membership."""
    shares = members.weights * weighted[members.items]
    return np.asarray(np.bincount(members.groups, shares, len(members.group_ids)), np.float64)


def owned_by(members: Groups) -> FloatArray:
    """Add up the memberships of each group: how many items of the catalogue it has."""
    owned = np.bincount(members.groups, members.weights, len(members.group_ids))
    return np.asarray(owned, np.float64)


def ungrouped_share(members: Groups, weighted: FloatArray) -> GroupExposure:
    """Measure the items that belong to no group."""
    alone = np.ones(len(weighted), dtype=bool)
    alone[members.items] = False
    return _share("(no group)", weighted[alone].sum() / weighted.sum(), alone.mean())


def _share(group: int | str, exposure_share: float, catalogue_share: float) -> GroupExposure:
    ratio = float(exposure_share / catalogue_share) if catalogue_share else 0.0
    return GroupExposure(group, float(exposure_share), float(catalogue_share), ratio)
