"""What is minimised: the data by user and by item, and the weights of every term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from limelight._errors import SolveError
from limelight._native import kernels
from limelight.solve.exposure_term import MeanTerm
from limelight.solve.gramian import LARGEST

if TYPE_CHECKING:
    from limelight._arrays import Float32, Float64
    from limelight._native._kernels import Csr
    from limelight.solve.exposure_term import ExposureTerm


@dataclass(frozen=True)
class Side:
    """One side of the factorisation: the histories of its rows, and what holds each row back."""

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

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.rows.n_rows

    @property
    def n_entries(self) -> int:
        """The number of observed pairs."""
        return self.rows.n_entries

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

    def _side(self, rows: Csr) -> Side:
        weights = np.diff(rows.indptr) + self.unobserved_weight * rows.n_columns
        with np.errstate(over="ignore"):
            scaled = self.regularization * weights**self.regularization_exponent
        if not (scaled <= LARGEST).all():
            message = (
                f"the regularization of a row is too large for 32-bit numbers: {scaled.max():g}"
            )
            raise SolveError(message, hint=self.advice)
        return Side(rows, scaled.astype(np.float32))


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
