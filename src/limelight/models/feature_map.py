"""From features of items to their vectors: a ridge regression, learnt beside the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr

_RIDGES = 10.0 ** np.arange(-2, 5)
_MOST = 500, 2000
"""Users and items, at most, that the length of predictions is found with."""
_PLACES = 20


def feature_map(
    F: scipy.sparse.csr_array, V: Float32, counts: Int64, lists: Lists | None = None
) -> Float32:
    """Learn a map from features to vectors: W = argmin sum_j c_j |v_j - f_j W|^2 + ridge |W|^2.

    c_j grows with the interactions of an item and saturates at their median: vectors of items with
    few of them are short and mostly noise. The ridge is that of the least generalised
    cross-validation error among seven decades.

    How long predictions should be, no regression says: too short, and new items are never shown;
    too long, and they flood the lists. So ``lists`` of some users are looked at. Known items are
    predicted without themselves, and W is scaled so that these predictions take the places of an
    average item, times the share of the vectors' variance that they explain. Where features
    explain nothing, hardly any place is taken.

    Examples
    --------
    >>> F = scipy.sparse.csr_array(np.repeat(np.eye(2), 50, axis=0))
    >>> V = np.repeat(np.array([[1.0, 0.0], [0.0, 2.0]], np.float32), 50, axis=0)
    >>> feature_map(F, V, np.full(100, 9)).round(2)
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    c = counts / (counts + np.median(counts))
    c /= c.mean()
    X: Float64 = V.astype(np.float64)
    weighted = scipy.sparse.csr_array(scipy.sparse.diags_array(c) @ F)
    # Everything below needs F^T C F and F^T C V alone, in the eigenbasis of the former.
    with threadpool_limits(1, user_api="blas"):
        values, Q = np.linalg.eigh((F.T @ weighted).toarray())
        values = np.maximum(values, 0)
        b = Q.T @ (weighted.T @ X)
        squares, total = (b**2).sum(axis=1), float(c @ (X**2).sum(axis=1))
        errors = []
        for ridge in _RIDGES:
            left = total - float(squares @ ((values + 2 * ridge) / (values + ridge) ** 2))
            errors.append(left / (len(V) - float((values / (values + ridge)).sum())) ** 2)
        damped = values + _RIDGES[int(np.argmin(errors))]
        W = Q @ (b / damped[:, None])
        if lists is not None:
            chosen = _spread(len(V), _MOST[1])
            own = c[chosen] * ((F[chosen] @ Q) ** 2 / damped).sum(axis=1)
            predicted = F[chosen] @ W - own[:, None] * X[chosen]  # each without itself
            predicted /= np.maximum(1 - own, 1e-6)[:, None]
            W *= lists.scale(predicted, chosen, _explained(X, c, predicted, chosen))
    return np.asarray(W, np.float32)


def _explained(X: Float64, c: Float64, predicted: Float64, chosen: Int64) -> float:
    """Return the share of the variance of some rows that predictions explain, from 0 to 1."""
    mean = (c @ X - c[chosen, None] * X[chosen]) / (c.sum() - c[chosen])[:, None]
    errors = [float(c[chosen] @ ((X[chosen] - p) ** 2).sum(axis=1)) for p in (predicted, mean)]
    return float(np.clip(1 - errors[0] / (errors[1] or 1.0), 0, 1))


def _spread(n: int, most: int) -> Int64:
    """Choose some of n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


class Lists(NamedTuple):
    """What some training users would be shown: what it takes to get into their lists."""

    users: Float32
    """Their vectors."""
    histories: list[NDArray[np.int32]]
    least: Float32
    """The least score of each user's list."""
    items: Int64
    """Which items have features and interactions."""
    n_items: int
    """How many items have interactions."""

    @classmethod
    def of(cls, U: Float32, V: Float32, seen: Csr, items: Int64) -> Lists:
        """Rank items with interactions for some users."""
        users, n_items = _spread(len(U), _MOST[0]), len(np.unique(seen.indices))
        histories = [seen.indices[seen.indptr[one] : seen.indptr[one + 1]] for one in users]
        place, least = min(_PLACES, n_items), []
        with threadpool_limits(1, user_api="blas"):
            for user, history in zip(users, histories, strict=True):
                scores = V @ U[user]
                scores[history] = -np.inf
                least.append(np.partition(scores, -place)[-place])
        return cls(U[users], histories, np.array(least), items, n_items)

    def scale(self, predicted: Float64, items: Int64, explained: float) -> float:
        """Return what to multiply predictions of items by, given how much they explain."""
        competes = self.least > 0
        scores = (self.users @ predicted.T)[competes]
        seen = [np.isin(self.items[items], one) for one in self.histories]
        fits = (scores > 0) & ~np.array(seen)[competes]
        needed = np.where(fits, self.least[competes, None] / np.where(fits, scores, 1), np.inf)
        if not fits.any():
            return 1.0
        wanted = explained * min(1.0, _PLACES / self.n_items)
        at = min(int(wanted * needed.size), int(np.count_nonzero(fits)) - 1)
        return float(np.partition(needed.ravel(), at)[at])
