"""What is minimised: the data by user and by item, and the weights of every term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from limelight._base.errors import SolveError
from limelight._native import kernels
from limelight.solve.exposure_term import MeanTerm
from limelight.solve.gramian import LARGEST, column_sums, gramian

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.solve.exposure_term import ExposureTerm
    from limelight.solve.population import Population


@dataclass(frozen=True)
class RegularizedRows:
    """The histories of users, or of items, and the regularisation of each of them."""

    rows: Csr
    regularization: Float32


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The objective, with ``a0`` the weight of unobserved pairs and ``lex`` that of exposure.

    .. math::
        \tfrac12 \sum_S (1 - u_i \cdot v_j)^2 + \tfrac{a_0}{2} \|U V^T\|_F^2
        + \tfrac12 \sum_i \lambda_i \|u_i\|^2 + \tfrac12 \sum_j \lambda_j \|v_j\|^2
        + \tfrac{\lambda_{ex}}{2} \|V s\|^2, \qquad s = \bar u

    The regularisation of a row grows with the data behind it: l2 (n_i + a0 N)^exponent, with n_i
    the length of its history and N the number of rows on the other side. Another ``term`` may stand
    in place of |V s|^2.
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
        return 0.5 * self.population.n_entries + 0.5 * self.exposure * missed

    def mean_term(self, V: Float32, G_V: Float64) -> MeanTerm:
        """Return what lex multiplies as a function of the mean user, with these items."""
        if self.term is None:
            return MeanTerm(G_V, np.zeros(len(G_V)))
        return self.term.at_items(V)

    @cached_property
    def users(self) -> RegularizedRows:
        """The users of this process."""
        lengths = np.diff(self.rows.indptr)
        return RegularizedRows(self.rows, self._regularization(lengths, self.rows.n_columns))

    @cached_property
    def item_regularization(self) -> Float32:
        """The regularisation of each item."""
        return self._regularization(self.population.item_counts, self.n_users)

    def _regularization(self, lengths: Int64, n_others: int) -> Float32:
        weights = lengths + self.unobserved_weight * n_others
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


def sparse_rows(indptr: np.ndarray, indices: np.ndarray, n_columns: int) -> Csr:
    """Hand a binary matrix to the kernels, with the index types they take."""
    return kernels.Csr(
        np.ascontiguousarray(indptr, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int32),
        n_columns,
    )


def some_rows(rows: Csr, run: slice) -> Csr:
    """Return a run of rows, which shares their memory."""
    indptr = rows.indptr[run.start : run.stop + 1]
    return sparse_rows(indptr - indptr[0], rows.indices[indptr[0] : indptr[-1]], rows.n_columns)


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
    hint = f"raise regularization or unobserved_weight; if they are as usual, {advice}"
    return SolveError(message, hint=hint)
