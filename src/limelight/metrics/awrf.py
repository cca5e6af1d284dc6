"""Attention-weighted rank fairness: how near the attention of groups is to what it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import scipy  # loads its packages when they are used

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import Groups, as_groups, membership, owned_by
from limelight.metrics.lists import (
    check_lists,
    given_weights,
    mean_over_users,
    position_weights,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight._base.arrays import Float64
    from limelight.metrics.lists import FloatArray, IntArray, Weight

_ROWS = 4096
"""How many lists' groups are held at once."""


@overload
def awrf(
    ids: ArrayLike,
    groups: Any,
    n_items: int,
    k: int | None = None,
    *,
    target: ArrayLike | Literal["catalogue", "equal"] = "catalogue",
    weight: Weight = "log",
    per_user: Literal[False] = False,
) -> float: ...


@overload
def awrf(
    ids: ArrayLike,
    groups: Any,
    n_items: int,
    k: int | None = None,
    *,
    target: ArrayLike | Literal["catalogue", "equal"] = "catalogue",
    weight: Weight = "log",
    per_user: Literal[True],
) -> FloatArray: ...


def awrf(
    ids: ArrayLike,
    groups: Any,
    n_items: int,
    k: int | None = None,
    *,
    target: ArrayLike | Literal["catalogue", "equal"] = "catalogue",
    weight: Weight = "log",
    per_user: bool = False,
) -> float | FloatArray:
    """Measure attention-weighted rank fairness, AWRF (Sapiezynski et al. 2019).

    The attention that group g gets in list L is a_g = sum_r w_r 1(L_r in g) / sum_r w_r, over the
    places r that show items with a group. With the shares p that groups should have,

        AWRF = 1 - JSD(a, p),   JSD(a, p) = [ KL(a | m) + KL(p | m) ] / 2,   m = (a + p) / 2

    averaged over lists. Logarithms are to base 2, so that 1 is as it should be and 0 is all
    attention to groups that should have none. Sapiezynski et al. compare a and p by a statistical
    test; this distance is that of the TREC Fair Ranking track of 2022, which has natural
    logarithms.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    groups
        What :func:`read_groups` returns, or a label per item; None, or a negative number, is for no
        group.
    n_items
        Size of the catalogue.
    k
        Count the first k places only; by default all.
    target
        What groups should have: "catalogue", their shares of the items that have a group; "equal";
        or a number for each group, in the order of ``groups.group_ids``, that of sorted labels.
    weight
        What a place at rank r is worth: "log" 1 / log2(r + 1), "uniform" 1, a patience p p^(r - 1).
    per_user
        Return one value per user, nan for a list without an item that has a group.

    Examples
    --------
    >>> awrf([[0, 1], [2, 3]], ["x", "y", "x", "x"], n_items=4, target="equal", weight="uniform",
    ...      per_user=True).round(3)
    array([1.   , 0.689])
    """
    lists = check_lists(ids, n_items, k)
    members = as_groups(groups, n_items)
    wanted = target_shares(target, members)
    values = awrf_of(lists, members, wanted, n_items, weight)
    return values if per_user else mean_over_users(values)


def target_shares(target: ArrayLike | str, members: Groups) -> Float64:
    """Return the share of attention that each group should have.

    Examples
    --------
    >>> target_shares("catalogue", as_groups(["x", "y", "x", "x"], 4))
    array([0.75, 0.25])
    """
    if isinstance(target, str) and target == "catalogue":
        wanted = owned_by(members)
    elif isinstance(target, str) and target == "equal":
        wanted = np.ones(len(members.group_ids))
    elif isinstance(target, str):
        message = f"unknown target of groups: {target!r}"
        raise ConfigError(message, hint='choose "catalogue", "equal" or a number for each group')
    else:
        wanted = np.asarray(target, dtype=np.float64)
    if wanted.shape != (len(members.group_ids),):
        message = f"target must have {len(members.group_ids):,} numbers, got {wanted.shape}"
        raise DataError(message, hint=f"one for each group: {members.group_ids[:5]}")
    if not (np.isfinite(wanted).all() and (wanted >= 0).all() and wanted.any()):
        message = "target must be finite, never negative, and above 0 somewhere"
        raise DataError(message, hint="pass the share that each group should have")
    return np.asarray(wanted / wanted.sum(), dtype=np.float64)


def awrf_of(
    lists: IntArray, members: Groups, wanted: Float64, n_items: int, weight: Weight = "log"
) -> FloatArray:
    """Give the AWRF of each list, nan for one without an item that has a group.

    Examples
    --------
    >>> members = as_groups(["x", "y"], 2)
    >>> awrf_of(np.array([[0], [-1]]), members, np.array([1.0, 0.0]), 2)
    array([ 1., nan])
    """
    belongs = membership(members, n_items)
    weights = position_weights(lists.shape[1], weight)
    values = np.full(len(lists), np.nan)
    for rows in batches(len(lists), _ROWS):
        attention = (given_weights(lists[rows], weights, n_items) @ belongs).toarray()
        total = attention.sum(axis=1)
        shown = np.flatnonzero(total > 0)
        shares = attention[shown] / total[shown, np.newaxis]
        values[rows.start + shown] = 1.0 - _divergence(shares, wanted)
    return values


def _divergence(shares: Float64, wanted: Float64) -> Float64:
    """Give the Jensen-Shannon divergence of each row and the wanted shares, to base 2."""
    middle = (shares + wanted) / 2
    entropy = scipy.special.rel_entr
    both = entropy(shares, middle).sum(axis=1) + entropy(wanted, middle).sum(axis=1)
    return np.asarray(np.clip(both / (2 * np.log(2)), 0.0, 1.0), dtype=np.float64)
