"""From features of items to their vectors: a ridge regression, learnt beside the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int64

_RIDGES = 10.0 ** np.arange(-2, 5)


def feature_map(F: scipy.sparse.csr_array, V: Float32, counts: Int64) -> Float32:
    """Learn a map from features to vectors: W = argmin sum_j c_j |v_j - f_j W|^2 + ridge |W|^2.

    c_j grows with the interactions of an item and saturates at their median: vectors of items with
    few of them are short and mostly noise. The ridge is that of the least generalised
    cross-validation error among seven decades.

    Features explain a part of a vector, so what they predict is too short to compete with items
    that have interactions. The map is stretched until what it predicts has, over all items, the
    length of the vectors, in the mean of their squares weighted by c_j.

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
        predicted = float(squares @ (values / damped**2))
        W = np.sqrt(total / predicted) * (Q @ (b / damped[:, None]))
    return np.asarray(W, np.float32)
