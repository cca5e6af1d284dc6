"""Sums over the rows of a factor matrix, and the basis in which a Gramian is diagonal.

Every sum runs over fixed blocks of rows whose parts are added in float64 in their order: it does
not depend on the number of threads, and blocks may live on different machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.errors import SolveError
from limelight._native import kernels

_BLOCK = 4096
LARGEST = float(np.finfo(np.float32).max)
"""The largest number that factors and their weights can be."""

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64


def gramian(X: Float32, threads: int) -> Float64:
    """Return X^T X."""
    return kernels.gramian(X, threads)


def column_sums(X: Float32, threads: int) -> Float64:
    """Return the sum of X's rows."""
    return kernels.column_sums(X, threads)


def row_products(X: Float32, s: Float64) -> Float64:
    """Return X s in float64, without a copy of X.

    Examples
    --------
    >>> row_products(np.ones((3, 16), np.float32), np.full(16, 0.5))
    array([8., 8., 8.])
    """
    out = np.empty(len(X))
    for first in range(0, len(X), _BLOCK):
        out[first : first + _BLOCK] = X[first : first + _BLOCK] @ s
    return out


def largest_entry(X: Float32) -> float:
    """Return the largest absolute value, without a copy of X; not a number if one is none.

    Examples
    --------
    >>> largest_entry(np.array([[1.0, -3.0]], np.float32))
    3.0
    """
    if not X.size:
        return 0.0
    return max(float(X.max()), -float(X.min()))


class Eigenbasis(NamedTuple):
    """A symmetric matrix as Q diag(values) Q^T."""

    values: Float32
    Q: Float32


def eigenbasis(matrix: Float64, factors: int, advice: str) -> Eigenbasis:
    """Diagonalise a positive semidefinite matrix whose rows beyond ``factors`` are zero.

    Rounding can leave tiny negative eigenvalues, which would stand below the regularisation of a
    row: they become 0.

    Raises
    ------
    SolveError
        If the matrix is not finite, or its eigenvalues are beyond 32 bits; with the advice.
    """
    if not np.isfinite(matrix).all():
        message = "the fit diverged: a Gramian is not finite"
        raise SolveError(message, hint=advice)
    width = len(matrix)
    # The padding gets eigenvalue 1: any will do for rows of zeros, as long as it can be divided by.
    values, Q = np.ones(width), np.eye(width)
    values[:factors], Q[:factors, :factors] = np.linalg.eigh(matrix[:factors, :factors])
    if values.max() > LARGEST:
        message = f"the weights of a row are too large for 32-bit numbers: {values.max():.3g}"
        raise SolveError(message, hint=advice)
    return Eigenbasis(np.maximum(values, 0).astype(np.float32), Q.astype(np.float32))
