"""What is minimised: the data by user and by item, and the weights of every term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from limelight._base.errors import SolveError
from limelight._native import kernels
from limelight.solve.exposure_term import MeanTerm
from limelight.solve.gramian import LARGEST, column_sums, gramian, largest_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.cluster.partition import Share
    from limelight.solve.exposure_term import ExposureTerm


@dataclass(frozen=True)
class Side:
    """One side of the factorisation: the histories of its rows, and what holds each row back."""

    rows: Csr
    regularization: Float32


class Cell(NamedTuple):
    """Some of the users: sums over users are added up cell by cell."""

    users: slice
    rows: Csr


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

    rows: Csr
    """The histories of the users."""
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
    share: Share | None = None
    """This process's part of a fit that others take part in; then ``rows`` are its own users."""

    @property
    def n_users(self) -> int:
        """The number of users, wherever they are."""
        return self.rows.n_rows if self.share is None else self.share.cut.n_users

    @property
    def n_entries(self) -> int:
        """The number of observed pairs."""
        return self.rows.n_entries if self.share is None else self.share.cut.n_entries

    @cached_property
    def cells(self) -> list[Cell]:
        """The users of this process, cut into what sums are made of."""
        if self.share is None:
            return [Cell(slice(None), self.rows)]
        return [Cell(*cell) for cell in zip(self.share.cells, self.share.shards, strict=True)]

    def total(self, part: Callable[[Cell], Sequence[Float64 | float]]) -> list[Float64]:
        """Add up what every cell of users contributes to some sums, wherever they are."""
        parts = [part(cell) for cell in self.cells]
        if self.share is None:
            return [np.asarray(one, np.float64) for one in parts[0]]
        return self.share.total(parts)

    def user_gramian(self, U: Float32) -> Float64:
        """Return U^T U of all users."""
        [found] = self.total(lambda cell: [gramian(U[cell.users], self.threads)])
        return found

    def mean_user(self, U: Float32) -> Float64:
        """Return the mean of all users."""
        [found] = self.total(lambda cell: [column_sums(U[cell.users], self.threads)])
        return found / max(1, self.n_users)

    def largest_user(self, U: Float32) -> float:
        """Return the largest absolute value among all users' factors."""
        return largest_entry(U) if self.share is None else self.share.largest(U)

    def item_gramian(self, V: Float32) -> Float64:
        """Return V^T V."""
        if self.share is None:
            return gramian(V, self.threads)
        return self.share.item_gramian(V, self.threads)

    @property
    def has_targets(self) -> bool:
        """Whether the exposure term asks for mean scores other than 0."""
        return self.term is not None and bool(self.term.tau.any())

    @property
    def at_zeros(self) -> float:
        """The objective of zero factors, which predict nothing."""
        missed = 0.0 if self.term is None else float(self.term.tau @ self.term.tau)
        return 0.5 * self.n_entries + 0.5 * self.exposure * missed

    def mean_term(self, V: Float32, G_V: Float64) -> MeanTerm:
        """Return what lex multiplies as a function of the mean user, with these items."""
        if self.term is None:
            return MeanTerm(G_V, np.zeros(len(G_V)))
        return self.term.at_items(V)

    @cached_property
    def users(self) -> Side:
        """The side of the users."""
        return self._side(self.rows)

    @cached_property
    def items(self) -> Side:
        """The side of the items: the same pairs by item, made when a step first asks for it."""
        return self._side(self.rows.transpose())

    @cached_property
    def item_regularization(self) -> Float32:
        """What holds each item back."""
        if self.share is None:
            return self.items.regularization
        return self._regularization(self.share.cut.item_counts, self.n_users)

    def _side(self, rows: Csr) -> Side:
        return Side(rows, self._regularization(np.diff(rows.indptr), rows.n_columns))

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


def unsolvable(failed: int, n_rows: int, advice: str) -> SolveError:
    """Say that some rows have no unique solution."""
    message = f"rows without a unique solution: {failed:,} of {n_rows:,}"
    hint = f"raise regularization or unobserved_weight; if they are as usual, {advice}"
    return SolveError(message, hint=hint)
