"""How evenly groups of items, such as providers, share exposure, and the items within each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight._base.text import percent
from limelight.data.groups import as_groups, exposure_of
from limelight.metrics.exposure import coverage, gini, mmf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups


def group_exposure(exposure: ArrayLike, groups: Any) -> Float64:
    """Add up the exposure of the items of each group, such as a provider.

    Provider Gini and max-min fairness are ``gini`` and ``mmf`` of the result, with a number o_g for
    each of n providers in ascending order:

        Gini = sum_g (2 g - n - 1) o_(g) / (n sum_g o_g),   MMF = sum_{g <= n/2} o_(g) / sum_g o_g

    Parameters
    ----------
    exposure
        What `exposure` returns: one number per item of the catalogue.
    groups
        What :func:`read_groups` returns, or a label per item; None, or a negative number, is for no
        group. An item of several groups is divided among them.

    Returns
    -------
    float64 array with one number for each group that has an item, also those never shown.

    Examples
    --------
    >>> held = group_exposure([4.0, 2.0, 3.0], ["x", "y", "x"])
    >>> held, gini(held)
    (array([7., 2.]), 0.2777777777777778)
    """
    given = np.asarray(exposure, dtype=np.float64)
    if given.ndim != 1:
        message = f"exposure must hold one number per item, got shape {given.shape}"
        raise DataError(message, hint="pass the array that `exposure` returns")
    return exposure_of(as_groups(groups, len(given)), given)


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
