"""How evenly users are served: the Gini of their utility, and whom they envy for her list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # loads its packages when they are used

from limelight._base.arrays import batches
from limelight._base.errors import DataError
from limelight.metrics.exposure import gini
from limelight.metrics.lists import check_lists, given_weights, mean_over_users

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight._base.arrays import Float64

_CELLS = 1 << 22
"""How many numbers of users' relevance are held at once."""


def user_gini(utility: ArrayLike) -> float:
    """Measure how unequal the utility of users is: their Gini index (Do and Usunier 2022).

        Gini = sum_u (2 u - n - 1) x_(u) / (n sum_u x_u),   x ascending, over n users

    0 if all users have the same. Users without a value (nan) are left out.

    Parameters
    ----------
    utility
        One non-negative number per user, such as ``ll.ndcg(ids, targets, per_user=True)``.

    Examples
    --------
    >>> user_gini([0.0, 1.0, float("nan")])
    0.5
    """
    values = np.asarray(utility, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).all():
        message = f"utility must be one number per user, got shape {values.shape}"
        raise DataError(message, hint="pass for example ll.ndcg(ids, targets, per_user=True)")
    known = values[~np.isnan(values)]
    if not (np.isfinite(known).all() and (known >= 0).all()):
        wrong = known[~(np.isfinite(known) & (known >= 0))][0]
        message = f"utility must be finite and never negative: {wrong}"
        raise DataError(message, hint="pass for example ll.ndcg(ids, targets, per_user=True)")
    return gini(known) if known.any() else 0.0


class Envy(NamedTuple):
    """How much users would rather have somebody else's list, in units of their own best list."""

    mean: float
    """Over all ordered pairs of users: the Y of Patro et al."""
    largest: float
    """The mean over users of what they envy most."""
    envious: float
    """The share of users who envy anybody; 0 is an envy-free set of lists."""


def envy(ids: ArrayLike, relevance: Any, k: int | None = None) -> Envy:
    """Measure envy between users for their lists, as in FairRec (Patro et al. 2020).

    V_u(i) is the relevance of item i to user u, R_u her list and R*_u the k items that she finds
    most relevant:

        phi_u(R) = sum_{i in R} V_u(i) / sum_{i in R*_u} V_u(i)
        envy(u, w) = max(phi_u(R_w) - phi_u(R_u), 0)
        mean = 1/|U| sum_u 1/(|U| - 1) sum_{w != u} envy(u, w)

    Every user is compared with every other, which takes time of users^2 x k: give a sample of a few
    thousand. Lists of parts of the users cannot be measured apart and merged.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    relevance
        Users x items, dense or sparse, finite and never negative. Give 0 to items that a user may
        not be shown, or others' lists seem better than they can be for her.
    k
        Look at the first k places only; by default at all.

    Examples
    --------
    The first user has what she likes best; the second would rather have the first one's list.

    >>> envy([[0], [1]], [[1.0, 0.5], [1.0, 0.5]])
    Envy(mean=0.25, largest=0.25, envious=0.5)
    """
    values, is_sparse = _checked_relevance(relevance)
    lists = check_lists(ids, values.shape[1], k)
    if len(lists) != values.shape[0] or len(lists) < 2:
        message = f"lists of {len(lists):,} users, but relevance of {values.shape[0]:,}"
        raise DataError(message, hint="pass one row of each for the same users, of at least two")
    shown = given_weights(lists, np.ones(lists.shape[1]), values.shape[1])
    users = np.arange(len(lists))
    total, largest = (np.full(len(lists), np.nan) for _ in range(2))
    size = max(1, _CELLS // max(len(lists), values.shape[1]))
    for rows in batches(len(lists), size):
        own = values[rows]
        own = own.toarray() if is_sparse else own
        best = _best(own, lists.shape[1])
        worth = np.asarray((shown @ own.T).T)  # these users x everybody's list
        worth -= worth[np.arange(len(own)), users[rows]][:, np.newaxis]
        worth = np.maximum(worth, 0.0) / np.where(best > 0, best, np.nan)[:, np.newaxis]
        total[rows], largest[rows] = worth.sum(axis=1), worth.max(axis=1)
    envious = np.where(np.isnan(largest), np.nan, largest > 0)
    means = (total / (len(lists) - 1), largest, envious)
    return Envy(*map(mean_over_users, means))


def _checked_relevance(relevance: Any) -> tuple[Any, bool]:
    """Return it as it is used, and whether it is sparse."""
    is_sparse = scipy.sparse.issparse(relevance)
    values: Any = scipy.sparse.csr_array(relevance) if is_sparse else np.asarray(relevance)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        message = f"relevance must be users x items, got {values.dtype}{values.shape}"
        raise DataError(message, hint="pass scores from 0 up, dense or sparse")
    values = values.astype(np.float64)
    stored = values.data if is_sparse else values
    if not (np.isfinite(stored).all() and (stored >= 0).all()):
        message = "relevance must be finite and never negative"
        raise DataError(message, hint="give 0 to what a user may not be shown")
    return values, is_sparse


def _best(relevance: Float64, k: int) -> Float64:
    """Add up the k largest of each row."""
    k = min(k, relevance.shape[1])
    largest = np.partition(relevance, relevance.shape[1] - k, axis=1)[:, relevance.shape[1] - k :]
    return np.asarray(largest.sum(axis=1), dtype=np.float64)
