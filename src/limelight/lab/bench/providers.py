"""How evenly lists treat the providers of items, measured as FairDiverse does.

The utility of a provider is the sum of the scores of its shown items, each rounded to 4 digits. An
item without a provider belongs to the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import DataError
from limelight.metrics.exposure import mmf
from limelight.metrics.lists import position_weights

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.groups import Groups
    from limelight.metrics.lists import Lists

_DIGITS = 4
_LEAST = 1e-9  # what is added to a share before its logarithm is taken
_BOUND, _STEPS = 50, 200  # of the integral over tax rates


def providers_of(members: Groups, n_items: int) -> Int64:
    """Return the number of every item's provider; an item without one belongs to the first.

    Providers are numbered by their ids in order, so that the first is the least.

    Examples
    --------
    >>> from limelight.data.groups import Groups
    >>> members = Groups(np.array([0, 2]), np.array([0, 1]), np.ones(2), ["b", "a"], 0)
    >>> providers_of(members, 3)
    array([1, 0, 0])
    """
    if len(np.unique(members.items)) < len(members.items):
        message = "an item has several groups, but the bench knows one provider an item"
        raise DataError(message, hint="keep one row for each item")
    if len(members.group_ids) < 2:
        message = f"exposure is shared among groups, and there is one: {members.group_ids[0]!r}"
        raise DataError(message, hint="name the provider of every item in the column group")
    order = np.argsort(np.argsort(np.asarray(members.group_ids), kind="stable"), kind="stable")
    found = np.zeros(n_items, dtype=np.int64)
    found[members.items] = order[members.groups]
    return found


def utilities(lists: Lists, providers: Int64) -> Float64:
    """Add up the rounded scores of each provider's shown items.

    Examples
    --------
    >>> from limelight.metrics.lists import Lists
    >>> lists = Lists(np.array([[0, 1], [1, -1]]), np.array([[0.5, 0.25], [0.12344, -np.inf]]))
    >>> utilities(lists, np.array([0, 1]))
    array([0.5   , 0.3734])
    """
    shown = lists.ids >= 0
    scores = np.round(lists.scores[shown].astype(np.float64), _DIGITS)
    if (scores < 0).any():
        message = f"the utility of providers needs scores of 0 or more: {scores.min():g}"
        raise DataError(message, hint="leave --groups out, or give scores such as probabilities")
    n_providers = int(providers.max(initial=0)) + 1
    found = np.bincount(providers[lists.ids[shown]], scores, n_providers)
    return np.asarray(found, np.float64)


def evenness(utility: Float64) -> dict[str, float]:
    """Measure how evenly utility is shared.

    ``minmax`` is the least over the largest, ``mmf`` the share of the poorer half, ``gini`` their
    Gini index, ``entropy`` in bits, and ``ef`` the mean over tax rates t of the elastic fairness
    sign(1 - t) sum(v^(1-t))^(1/t), for shares v, over their number.

    Examples
    --------
    >>> found = evenness(np.array([1.0, 1.0, 2.0]))
    >>> {name: round(value, 3) for name, value in found.items()}
    {'minmax': 0.5, 'mmf': 0.25, 'gini': 0.167, 'entropy': 1.5, 'ef': -0.281}
    """
    values = np.sort(utility)
    n, share = len(values), values / values.sum()
    cumulative = np.cumsum(values)
    return {
        "minmax": float(values[0] / values[-1]),
        "mmf": mmf(values),
        "gini": float((n + 1 - 2 * cumulative.sum() / cumulative[-1]) / n),
        "entropy": float(-(share * np.log2(share + _LEAST)).sum()),
        "ef": _elastic_fairness(share),
    }


def _elastic_fairness(share: Float64) -> float:
    rates = np.linspace(1 - _BOUND, 1 + _BOUND, _STEPS)
    # A provider without any makes the sum infinite, as it should be.
    with np.errstate(divide="ignore", over="ignore"):
        sums = np.power(share, 1 - rates[:, None]).sum(axis=1)
        found = np.sign(1 - rates) * np.power(sums, 1 / rates)
    return float(np.trapezoid(found, rates) / (2 * _BOUND * len(share)))


def score_ndcg(lists: Lists, ideal: Lists, k: int) -> float:
    """Return the mean nDCG against the scores themselves, of lists sorted by score.

    Examples
    --------
    >>> from limelight.metrics.lists import Lists
    >>> own = Lists(np.array([[0, 1]]), np.array([[1.0, 0.5]]))
    >>> score_ndcg(Lists(np.array([[0]]), np.array([[1.0]])), own, 2).__round__(3)
    0.76
    """
    gained, possible = (_dcg(found.ids, found.scores, k) for found in (lists, ideal))
    some = possible > 0
    return float((gained[some] / possible[some]).mean()) if some.any() else 0.0


def _dcg(ids: Int32, scores: Float32, k: int) -> Float64:
    values = -np.sort(-np.where(ids >= 0, scores, 0.0).astype(np.float64), axis=1)[:, :k]
    return np.asarray(values @ position_weights(k)[: values.shape[1]])
