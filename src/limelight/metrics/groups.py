"""How evenly groups of items, such as providers, share exposure, and the items within each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.text import percent
from limelight.data.groups import exposure_of
from limelight.metrics.exposure import coverage, gini, mmf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups


def group_figures(members: Groups, before: Float64, now: Float64, k: int) -> dict[str, float]:
    """Measure groups by the exposure of items, in the plain lists and now.

    ``groups`` is how many there are. ``group_gini``, ``group_coverage`` and ``group_mmf`` are of
    their exposure. ``gini_within_groups`` says how unevenly the items of a group share what it has:
    the mean over groups of two items or more, weighted by what the groups have in the plain lists,
    so that it does not change where exposure only moves from group to group.

    Parameters
    ----------
    members
        Which items are in which groups.
    before, now
        The exposure of every item in the plain lists and now.
    k
        Length of the lists, for the names.

    Examples
    --------
    >>> from limelight.data.groups import Groups
    >>> members = Groups(np.arange(4), np.array([0, 0, 1, 1]), np.ones(4), ["x", "y"], 0)
    >>> found = group_figures(members, np.array([4.0, 2, 0, 0]), np.array([2.0, 1, 2, 1]), k=5)
    >>> found["group_gini@5_before"], found["group_gini@5"]
    (0.5, 0.0)
    >>> round(found["gini_within_groups@5"], 3)
    0.167
    """
    weights = exposure_of(members, before)
    figures: dict[str, float] = {"groups": len(members.group_ids)}
    for end, given in (("_before", before), ("", now)):
        held = exposure_of(members, given)
        figures |= {
            f"group_gini@{k}{end}": gini(held),
            f"group_coverage@{k}{end}": coverage(held),
            f"group_mmf@{k}{end}": mmf(held),
            f"gini_within_groups@{k}{end}": within_gini(members, given, weights),
        }
    return figures


def group_rows(figures: Mapping[str, float], n_groups: int, k: int) -> list[tuple[str, str, str]]:
    """Write figures of groups for people: a label, before and after; none without groups.

    Examples
    --------
    >>> names = ("group_gini", "group_coverage", "group_mmf", "gini_within_groups")
    >>> figures = {f"{name}@5{end}": 0.5 for name in names for end in ("", "_before")}
    >>> group_rows(figures, n_groups=43, k=5)[0]
    ('Gini of 43 groups', '0.500', '0.500')
    """
    plain = "{:.3f}".format
    named = {
        "group_gini": (f"Gini of {n_groups:,} groups", plain),
        "group_coverage": ("groups shown", percent),
        "group_mmf": ("MMF of groups", percent),
        "gini_within_groups": ("Gini within groups", plain),
    }
    return [
        (label, write(figures[f"{name}@{k}_before"]), write(figures[f"{name}@{k}"]))
        for name, (label, write) in named.items()
        if n_groups
    ]


def within_gini(members: Groups, exposure: Float64, weights: Float64) -> float:
    """Return the mean Gini index of the items within groups of two or more, 0 if there are none.

    ``weights`` say how much each group counts. A group without exposure has an index of 0.

    Examples
    --------
    >>> from limelight.data.groups import Groups
    >>> members = Groups(np.arange(3), np.array([0, 0, 1]), np.ones(3), ["x", "y"], 0)
    >>> within_gini(members, np.array([1.0, 3.0, 9.0]), np.ones(2))
    0.25
    """
    amounts = members.weights * exposure[members.items]
    order = np.lexsort((amounts, members.groups))
    groups, amounts = members.groups[order], amounts[order]
    sizes = np.bincount(groups, minlength=len(members.group_ids))
    ranks = np.arange(1, len(groups) + 1) - (np.cumsum(sizes) - sizes)[groups]
    totals = sizes * np.bincount(groups, amounts, len(sizes))
    spread = np.bincount(groups, (2 * ranks - sizes[groups] - 1) * amounts, len(sizes))
    each = np.divide(spread, totals, out=np.zeros(len(sizes)), where=totals > 0)
    weights = np.where(sizes > 1, weights, 0.0)
    return float(weights @ each / weights.sum()) if weights.sum() > 0 else 0.0
