"""The closed form of EASE: one inverse of the items' Gramian, from which every strength follows.

X has the weights of the interactions as its values, or ones.
With A = X^T X + l I, P = A^-1, m the mean row of X and z = P m, the item weights B that minimise

    |X - X B|^2 + l |B|^2 + kappa sum_g c_g ((W B^T m)_g - tau_g)^2,    diag(B) = 0

have the columns  b_j = e_j - P e_j (1 - pull_j z_j) / P_jj - pull_j z.  Without the last term all
pulls are 0. A pull moves a column along y_j = z - P e_j z_j / P_jj, and the mean score of an item
from s_j = m_j - z_j / P_jj by m.y_j = m.z - z_j^2 / P_jj for each unit. So the pulls follow from
vectors alone (:meth:`~limelight.solve.problem.ExposureTerm.pulls`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from limelight._base.arrays import factor_matrix
from limelight._base.errors import SolveError
from limelight._base.progress import progress_bar
from limelight._native import kernels
from limelight.solve.problem import as_matrix, padded_width
from limelight.solve.steps import positive_inverse

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight._native._kernels import Csr
    from limelight.solve.problem import ExposureTerm

_LOADED = 48 << 20
"""Bytes of SciPy's linear algebra."""
_CHECKED = 8
"""Columns of the inverse that are checked in float64."""
_ERROR = 1e-3
"""How far a checked column may be off, as a share of its length."""
_LARGE = 1000
"""How many times the median a weight is that may be wrong."""
_REFINED = 3
"""Steps that take the rounding of the inverse out of z."""


class ItemInverse(NamedTuple):
    """What all strengths share."""

    inverse: Float32
    """P, a row for each item, filled up with zeros to a multiple of 16 columns."""
    means: Float64
    """m"""
    response: Float64
    """z = P m"""

    @property
    def diagonal(self) -> Float64:
        """The diagonal of P."""
        return self.inverse.diagonal().astype(np.float64)


def inverse_bytes(n_items: int, n_entries: int, threads: int) -> int:
    """Estimate the bytes that an inversion takes beside the interactions.

    Examples
    --------
    >>> inverse_bytes(20_000, 10**6, threads=2) / 2**30
    1.5...
    """
    size = padded_width(n_items)
    panels = 2 * min(size, kernels.SWEEP_ROWS)
    return _LOADED + 4 * (size * (size + panels + 2 * threads) + 3 * n_entries)


def invert_gramian(
    rows: Csr, regularization: float, threads: int, *, show_progress: bool | None = None
) -> ItemInverse:
    """Invert X^T X + l I in float32, and check the inverse in float64.

    The matrix is scaled to a diagonal of ones first, so that items of any popularity are rounded
    alike. Ctrl-C ends it after the current block.

    Raises
    ------
    SolveError
        If the inverse is too far off: the regularization is too small for 32-bit numbers.

    Examples
    --------
    >>> from limelight.solve.problem import sparse_rows
    >>> rows = sparse_rows(np.array([0, 2, 3]), np.array([0, 1, 1]), 2)
    >>> found = invert_gramian(rows, 1.0, threads=1)
    >>> found.inverse[:, :2] * 5
    array([[ 3., -1.],
           [-1.,  2.]], dtype=float32)
    """
    n_items = rows.n_columns
    squares = _item_sums(rows, power=2)
    scale = 1 / np.sqrt(squares + regularization)
    matrix = factor_matrix(*[padded_width(n_items)] * 2)
    kernels.co_occurrences(rows, scale=scale, out=matrix, threads=threads)
    # SciPy loads its linear algebra at first use, and only what is loaded can be limited.
    _ = scipy.linalg.lapack
    with threadpool_limits(1, user_api="blas"):
        _invert(matrix, threads, _advice(rows), show_progress=show_progress)
        padding = np.zeros(len(matrix) - n_items)
        kernels.unscale_and_mirror(matrix, np.append(scale, padding), threads)
        return _checked(matrix[:n_items], rows, squares, regularization)


def _advice(rows: Csr) -> str:
    """Say what to change; a weight far above the others is the likelier cause."""
    if rows.weights is None or not rows.weights.max() > _LARGE * np.median(rows.weights):
        return "raise regularization"
    return f"raise regularization, or correct the largest weight: {rows.weights.max():g}"


def _item_sums(rows: Csr, power: int) -> np.ndarray:
    """Return the sum of each column of X, its values raised to a power."""
    values = None if rows.weights is None else np.power(rows.weights, power, dtype=np.float64)
    return np.bincount(rows.indices, values, minlength=rows.n_columns)


def _invert(matrix: Float32, threads: int, hint: str, *, show_progress: bool | None) -> None:
    """Replace a symmetric matrix, of which the lower triangle is given, by -1 times its inverse."""
    size, depth = len(matrix), kernels.SWEEP_ROWS
    columns, products = (factor_matrix(size, min(depth, size)) for _ in range(2))
    steps = range(0, size, depth)
    with progress_bar(f"inverse of {size:,} items", len(steps), show=show_progress) as advance:
        for first in steps:
            own = slice(first, first + depth)
            lower = np.tril(matrix[own, own])
            try:
                inverse = positive_inverse(lower + np.tril(lower, -1).T)
            except np.linalg.LinAlgError as error:
                message = "the Gramian of the items has no inverse in 32-bit numbers"
                raise SolveError(message, hint=hint) from error
            kernels.sweep(
                matrix,
                first=first,
                inverse=np.ascontiguousarray(inverse, np.float32),
                columns=columns,
                products=products,
                threads=threads,
            )
            advance()


def _checked(
    inverse: Float32, rows: Csr, squares: np.ndarray, regularization: float
) -> ItemInverse:
    """Refuse an inverse that is too far off; refine z with the histories themselves."""
    n_items = rows.n_columns
    X = as_matrix(rows)

    def missed(found: Float64, right: Float64) -> Float64:
        """Tell by how much P r corrects what should solve A x = r."""
        residual = right - (X.T @ (X @ found) + regularization * found)
        return np.asarray(inverse[:, :n_items] @ residual.astype(np.float32), np.float64)

    # From the most popular item to the least, because their rows are of different sizes.
    order = np.argsort(-squares, kind="stable")
    chosen = order[np.linspace(0, n_items - 1, min(_CHECKED, n_items)).astype(int)]
    right, found = np.zeros((n_items, len(chosen))), inverse[chosen, :n_items].T.astype(np.float64)
    right[chosen, np.arange(len(chosen))] = 1
    with np.errstate(all="ignore"):  # what is no number is refused
        off = np.linalg.norm(missed(found, right), axis=0) / np.linalg.norm(found, axis=0)
    if not inverse.diagonal().min() > 0:
        message = "the inverse of the items' Gramian is too small for 32-bit numbers"
        raise SolveError(message, hint=_advice(rows))
    if not off.max() <= _ERROR:
        message = f"the inverse of the items' Gramian is off by {off.max():.1g} of its size"
        raise SolveError(message, hint=_advice(rows))
    means = _item_sums(rows, power=1) / max(1, rows.n_rows)
    response = np.zeros(n_items)
    for _ in range(_REFINED):
        response += missed(response, means)
    return ItemInverse(inverse, means, response)


def exposure_pulls(solved: ItemInverse, kappa: float, term: ExposureTerm | None) -> Float64:
    """Tell how far each column gives way; without a term, for |B^T m|^2."""
    _, m, z = solved
    own = z / solved.diagonal
    free, along = m - own, m @ z - own * z
    if term is not None:
        return term.pulls(kappa, free, along)
    return np.asarray(kappa * free / (1 + kappa * along), np.float64)
