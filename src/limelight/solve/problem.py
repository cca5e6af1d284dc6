"""What is minimised: the data by user and by item, and the weights of every term.

The exposure term is lex / 2 sum_g c_g ((W V s)_g - tau_g)^2, with s the mean user: (V s)_j is the
mean score of item j, and a row of W adds up those of a group. With W = I, c = 1 and tau = 0 it is
the paper's lex / 2 |V s|^2, which :attr:`Problem.term` leaves as None.

Sums over the rows of a factor matrix run over fixed blocks of rows, whose parts are added in
float64 in their order: a sum does not depend on the number of threads, and blocks may live on
different machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import scipy

from limelight._base.errors import SolveError
from limelight._native import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.solve.population import Population


_BLOCK = 4096
LARGEST = float(np.finfo(np.float32).max)
"""The largest number that factors and their weights can be."""


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


_GROUP_BLOCK = 4096  # groups whose sums are held in float64 at a time
_DENSE = 0.02  # the share of entries from which a dense solve of overlapping groups is faster


class MeanTerm(NamedTuple):
    """The exposure term as a function of the mean user, the items fixed and lex left out."""

    Q: Float64
    """(W V)^T C (W V)"""
    q: Float64
    """(W V)^T C tau"""
    rest: float = 0.0
    """tau^T C tau"""

    def padded(self, width: int) -> MeanTerm:
        """Fill up with zeros to the width that the kernels work in."""
        more = (0, width - len(self.q))
        return MeanTerm(np.pad(self.Q, more), np.pad(self.q, more), self.rest)

    def value(self, s: Float64) -> float:
        """Return half of sum_g c_g ((W V s)_g - tau_g)^2."""
        return 0.5 * (float(s @ self.Q @ s) - 2 * float(self.q @ s) + self.rest)


@dataclass(frozen=True, eq=False)
class ExposureTerm:
    """Rows of W and their targets, each times the root of its weight: |W V s - tau|^2 is left.

    Examples
    --------
    >>> W = scipy.sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> term = ExposureTerm.weighted(W, np.array([4.0, 1.0]), np.array([0.5, 0.0]))
    >>> term.at_items(np.eye(3, dtype=np.float32)).value(np.array([0.5, 0.25, 1.0]))
    0.625
    """

    W: scipy.sparse.csr_array
    tau: Float64

    @classmethod
    def weighted(cls, W: scipy.sparse.csr_array, c: Float64, tau: Float64) -> ExposureTerm:
        """Take the weights into the rows and the targets."""
        scaled = scipy.sparse.csr_array(scipy.sparse.diags_array(np.sqrt(c)) @ W)
        scaled.eliminate_zeros()
        return cls(scaled, np.sqrt(c) * tau)

    def at_items(self, V: Float32) -> MeanTerm:
        """Put the items into the term: what is left depends on the mean user alone."""
        width = V.shape[1]
        Q, q = np.zeros((width, width)), np.zeros(width)
        for first in range(0, len(self.tau), _GROUP_BLOCK):
            W, tau = self.W[first : first + _GROUP_BLOCK], self.tau[first : first + _GROUP_BLOCK]
            members, places = np.unique(W.indices, return_inverse=True)
            among = scipy.sparse.csr_array((W.data, places, W.indptr), (len(tau), len(members)))
            sums = among @ V[members].astype(np.float64)
            Q += sums.T @ sums
            q += sums.T @ tau
        return MeanTerm(Q, q, float(self.tau @ self.tau))

    def pulls(self, exposure: float, free: Float64, response: Float64) -> Float64:
        """Tell how far each item has to give way along its response.

        Without the term items would be x_j, and y_j is how they respond to a pull along s. The best
        items are x_j - pull_j y_j, pull = lex W^T e, with e what then is left of W V s - tau:

            (I + lex W diag(s.y) W^T) e = W (s.x) - tau.

        ``exposure`` is lex, ``free`` is s.x_j and ``response`` is s.y_j of every item.
        """
        right = self.W @ free - self.tau
        scaled = self.W @ scipy.sparse.diags_array(exposure * response)
        if self._disjoint:
            left = right / (1 + scaled.multiply(self.W).sum(axis=1))
        else:
            left = _solve(scipy.sparse.csc_array(scaled @ self.W.T), right)
        return np.asarray(exposure * (self.W.T @ left), np.float64)

    @cached_property
    def _disjoint(self) -> bool:
        """Whether no item is in two groups, so that groups do not mix."""
        return bool((np.bincount(self.W.indices, minlength=1) <= 1).all())


def _solve(overlap: scipy.sparse.csc_array, right: Float64) -> Float64:
    """Solve (I + overlap) x = right; the matrix is symmetric and positive definite."""
    n = len(right)
    if overlap.nnz > _DENSE * n**2:
        return np.asarray(scipy.linalg.solve(np.eye(n) + overlap.toarray(), right, assume_a="pos"))
    system = scipy.sparse.csc_array(overlap + scipy.sparse.eye_array(n))
    return np.asarray(scipy.sparse.linalg.spsolve(system, right, permc_spec="MMD_AT_PLUS_A"))


@dataclass(frozen=True)
class RegularizedRows:
    """The histories of users, or of items, and the regularisation of each of them."""

    rows: Csr
    regularization: Float32


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The objective, with ``a0`` the weight of unobserved pairs and ``lex`` that of exposure.

    .. math::
        \tfrac12 \sum_S w_{ij} (1 - u_i \cdot v_j)^2 + \tfrac{a_0}{2} \|U V^T\|_F^2
        + \tfrac12 \sum_i \lambda_i \|u_i\|^2 + \tfrac12 \sum_j \lambda_j \|v_j\|^2
        + \tfrac{\lambda_{ex}}{2} \|V s\|^2, \qquad s = \bar u

    The regularisation of a row grows with the data behind it: l2 (n_i + a0 N)^exponent, with n_i
    the sum of the weights of its history, which is its length where all are 1, and N the number of
    rows on the other side. Another ``term`` may stand in place of |V s|^2.
    """

    population: Population
    """The users with their histories, wherever they are."""
    factors: int
    unobserved_weight: float
    regularization: float
    regularization_exponent: float
    exposure: float
    """lex, already multiplied by the squared number of users."""
    threads: int
    row_solver: Literal["cholesky", "cg"] = "cholesky"
    term: ExposureTerm | None = None
    """What lex multiplies, if not |V s|^2."""
    advice: str = "raise regularization"
    """What to change where the numbers run away, as the settings are called."""

    @property
    def n_users(self) -> int:
        """The number of users, wherever they are."""
        return self.population.n_users

    @property
    def rows(self) -> Csr:
        """The histories of the users of this process."""
        return self.population.rows

    def user_gramian(self, U: Float32) -> Float64:
        """Return U^T U of all users."""
        [found] = self.population.total(lambda cell: [gramian(U[cell.users], self.threads)])
        return found

    def mean_user(self, U: Float32) -> Float64:
        """Return the mean of all users."""
        [found] = self.population.total(lambda cell: [column_sums(U[cell.users], self.threads)])
        return found / max(1, self.n_users)

    def item_gramian(self, V: Float32) -> Float64:
        """Return V^T V."""
        return self.population.item_gramian(V, self.threads)

    @property
    def has_targets(self) -> bool:
        """Whether the exposure term asks for mean scores other than 0."""
        return self.term is not None and bool(self.term.tau.any())

    @property
    def at_zeros(self) -> float:
        """The objective of zero factors, which predict nothing."""
        missed = 0.0 if self.term is None else float(self.term.tau @ self.term.tau)
        return 0.5 * self.population.total_weight + 0.5 * self.exposure * missed

    def mean_term(self, V: Float32, G_V: Float64) -> MeanTerm:
        """Return what lex multiplies as a function of the mean user, with these items."""
        if self.term is None:
            return MeanTerm(G_V, np.zeros(len(G_V)))
        return self.term.at_items(V)

    @cached_property
    def users(self) -> RegularizedRows:
        """The users of this process."""
        weights = row_weights(self.rows)
        return RegularizedRows(self.rows, self._regularization(weights, self.rows.n_columns))

    @cached_property
    def item_regularization(self) -> Float32:
        """The regularisation of each item."""
        return self._regularization(self.population.item_weights, self.n_users)

    def _regularization(self, observed: Float64 | Int64, n_others: int) -> Float32:
        weights = observed + self.unobserved_weight * n_others
        with np.errstate(over="ignore"):
            scaled = self.regularization * weights**self.regularization_exponent
        if not (scaled <= LARGEST).all():
            message = (
                f"the regularization of a row is too large for 32-bit numbers: {scaled.max():g}"
            )
            raise SolveError(message, hint=self.advice)
        return scaled.astype(np.float32)


def padded_width(factors: int) -> int:
    """Round a number of factors up to the multiple of 16 that the kernels work in.

    Examples
    --------
    >>> padded_width(32), padded_width(33)
    (32, 48)
    """
    return -(-factors // 16) * 16


def sparse_rows(
    indptr: np.ndarray, indices: np.ndarray, n_columns: int, weights: np.ndarray | None = None
) -> Csr:
    """Hand a matrix to the kernels, with the types they take; without weights all of it are 1."""
    return kernels.Csr(
        np.ascontiguousarray(indptr, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int32),
        n_columns,
        None if weights is None else np.ascontiguousarray(weights, dtype=np.float32),
    )


def as_matrix(rows: Csr) -> scipy.sparse.csr_array:
    """Hand rows to SciPy; the arrays are shared.

    Examples
    --------
    >>> as_matrix(sparse_rows(np.array([0, 2, 2]), np.array([0, 2]), 3)).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    values = np.ones(rows.n_entries, np.float32) if rows.weights is None else rows.weights
    shape = rows.n_rows, rows.n_columns
    return scipy.sparse.csr_array((values, rows.indices, rows.indptr), shape)


def row_weights(rows: Csr) -> Float64 | Int64:
    """Add up the weights of every row; without weights, count its entries.

    Examples
    --------
    >>> weights = np.array([0.5, 2.0], np.float32)
    >>> row_weights(sparse_rows(np.array([0, 2, 2]), np.array([0, 3]), 4, weights))
    array([2.5, 0. ])
    """
    if rows.weights is None:
        return np.diff(rows.indptr)
    sums, has_entries = np.zeros(rows.n_rows), np.diff(rows.indptr) > 0
    starts = rows.indptr[:-1][has_entries]
    sums[has_entries] = np.add.reduceat(rows.weights, starts, dtype=np.float64)
    return sums


def some_rows(rows: Csr, run: slice) -> Csr:
    """Return a run of rows, which shares their memory."""
    indptr = rows.indptr[run.start : run.stop + 1]
    entries = slice(indptr[0], indptr[-1])
    weights = None if rows.weights is None else rows.weights[entries]
    return sparse_rows(indptr - indptr[0], rows.indices[entries], rows.n_columns, weights)


def stacked(blocks: Sequence[Csr]) -> Csr:
    """Put blocks of rows one below the other.

    Examples
    --------
    >>> one = sparse_rows(np.array([0, 2]), np.array([0, 3]), 4)
    >>> both = stacked([one, one])
    >>> both.indptr, both.indices
    (array([0, 2, 4]), array([0, 3, 0, 3], dtype=int32))
    """
    ends = np.cumsum([0, *(block.n_entries for block in blocks)])
    pieces = [block.indptr[1:] + end for block, end in zip(blocks, ends, strict=False)]
    indices = np.concatenate([block.indices for block in blocks])
    return sparse_rows(np.concatenate([[0], *pieces]), indices, blocks[0].n_columns)


def unsolvable(failed: int, n_rows: int, advice: str) -> SolveError:
    """Say that some rows have no unique solution."""
    message = f"rows without a unique solution: {failed:,} of {n_rows:,}"
    hint = f"raise regularization or unobserved_weight; or else {advice}"
    return SolveError(message, hint=hint)
