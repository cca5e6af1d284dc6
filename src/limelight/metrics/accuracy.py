"""How well ranked lists find the held-out items: nDCG and recall, per user and on average."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from limelight._base.errors import DataError
from limelight.metrics.lists import FloatArray, check_cutoff, check_lists, position_weights

BoolArray: TypeAlias = NDArray[np.bool_]
Sparse: TypeAlias = "scipy.sparse.csr_matrix[Any] | scipy.sparse.csr_array[Any, tuple[int, int]]"


class Matches(NamedTuple):
    """Which places of the lists hold a target, and how many targets each user has."""

    found: BoolArray
    n_targets: NDArray[np.int64]


def match(ids: ArrayLike, targets: Sparse) -> Matches:
    """Compare ranked lists with the held-out items.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1.
    targets
        Users x items; a stored positive value is a held-out item.

    Examples
    --------
    >>> targets = scipy.sparse.csr_matrix([[0, 1, 1], [0, 0, 0]])
    >>> match([[1, 0], [0, -1]], targets).n_targets
    array([2, 0])
    """
    n_users, n_items = targets.shape
    lists = check_lists(ids, n_items)
    if len(lists) != n_users:
        message = f"lists for {len(lists):,} users, but targets for {n_users:,}"
        raise DataError(message, hint="pass one row of ids for each row of targets")
    keys = _target_keys(targets)
    n_targets = np.bincount(keys // n_items, minlength=n_users)
    # One sorted search over row * n_items + item, so that nothing of size users x items exists.
    queries = np.arange(n_users, dtype=np.int64)[:, np.newaxis] * n_items + lists
    places = np.searchsorted(keys, queries)
    found = np.append(keys, -1)[places] == queries
    return Matches(found & (lists >= 0), n_targets)


def _target_keys(targets: Sparse) -> NDArray[np.int64]:
    """Give row * n_items + item of every held-out pair, sorted, each once."""
    pairs = scipy.sparse.coo_array(targets)
    relevant = pairs.data > 0
    rows, items = (index[relevant].astype(np.int64) for index in pairs.coords)
    return np.unique(rows * pairs.shape[1] + items)


@overload
def ndcg(
    ids: ArrayLike, targets: Sparse, k: int | None = None, *, per_user: Literal[False] = False
) -> float: ...


@overload
def ndcg(
    ids: ArrayLike, targets: Sparse, k: int | None = None, *, per_user: Literal[True]
) -> FloatArray: ...


def ndcg(
    ids: ArrayLike, targets: Sparse, k: int | None = None, *, per_user: bool = False
) -> float | FloatArray:
    """Measure how early the lists show the held-out items: nDCG@k, 1 is the best.

    A hit at rank r gains 1 / log2(r + 1). The gain of a list is divided by that of the best
    list of length k, which shows min(k, number of targets) targets first.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    targets
        Sparse users x items matrix; a stored positive value is a held-out item.
    k
        Look at the first k places only; by default at all.
    per_user
        Return one value per user, nan for a user without targets.

    Returns
    -------
    The mean over the users that have targets, or one value per user.

    Examples
    --------
    >>> targets = scipy.sparse.csr_matrix([[0, 1, 1], [1, 0, 0]])
    >>> round(ndcg([[2, 0, 1], [1, 2, 0]], targets), 4)
    0.7099
    >>> ndcg([[2, 0, 1], [1, 2, 0]], targets, k=1, per_user=True)
    array([1., 0.])
    """
    matches = match(ids, targets)
    values = ndcg_of(matches, check_cutoff(k, matches.found.shape[1]))
    return values if per_user else _mean(values)


@overload
def recall(
    ids: ArrayLike, targets: Sparse, k: int | None = None, *, per_user: Literal[False] = False
) -> float: ...


@overload
def recall(
    ids: ArrayLike, targets: Sparse, k: int | None = None, *, per_user: Literal[True]
) -> FloatArray: ...


def recall(
    ids: ArrayLike, targets: Sparse, k: int | None = None, *, per_user: bool = False
) -> float | FloatArray:
    """Measure which share of the held-out items the lists show: recall@k, 1 is the best.

    The hits are divided by min(k, number of targets), so that a perfect list of length k
    scores 1 even for a user with more than k targets.

    Parameters
    ----------
    ids
        Users x k item numbers, best first, padded with -1, as `recommend` returns them.
    targets
        Sparse users x items matrix; a stored positive value is a held-out item.
    k
        Look at the first k places only; by default at all.
    per_user
        Return one value per user, nan for a user without targets.

    Returns
    -------
    The mean over the users that have targets, or one value per user.

    Examples
    --------
    >>> targets = scipy.sparse.csr_matrix([[0, 1, 1], [1, 0, 0]])
    >>> recall([[2, 0, 1], [1, 2, 0]], targets, k=2)
    0.25
    """
    matches = match(ids, targets)
    values = recall_of(matches, check_cutoff(k, matches.found.shape[1]))
    return values if per_user else _mean(values)


def ndcg_of(matches: Matches, k: int) -> FloatArray:
    """Give nDCG@k per user, nan for a user without targets."""
    weights = position_weights(k)
    # A row-wise sum rather than a matrix product: its bits do not depend on the batch.
    gain = np.where(matches.found[:, :k], weights, 0.0).sum(axis=1)
    ideal = np.append(np.nan, np.cumsum(weights))
    return np.asarray(gain / ideal[np.minimum(matches.n_targets, k)], dtype=np.float64)


def recall_of(matches: Matches, k: int) -> FloatArray:
    """Give recall@k per user, nan for a user without targets."""
    reachable = np.append(np.nan, np.arange(1.0, k + 1.0))
    found = matches.found[:, :k].sum(axis=1)
    return np.asarray(found / reachable[np.minimum(matches.n_targets, k)], dtype=np.float64)


def _mean(values: FloatArray) -> float:
    scored = values[~np.isnan(values)]
    if not scored.size:
        message = f"no user has a target: {len(values):,} users"
        raise DataError(message, hint="targets must be the held-out part, such as test.targets")
    return float(scored.mean())
