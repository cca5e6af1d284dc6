"""What is asked of exposure, beyond that all of it be small: weights, targets, groups of items.

The term is lex / 2 sum_g c_g ((W V s)_g - tau_g)^2, with s the mean user: (V s)_j is the mean score
of item j, and a row of W adds up those of a group. With W = I, c = 1 and tau = 0 it is the paper's
lex / 2 |V s|^2, which :attr:`Problem.term` leaves as None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64

_BLOCK = 4096  # groups whose sums are held in float64 at a time
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
        for first in range(0, len(self.tau), _BLOCK):
            W, tau = self.W[first : first + _BLOCK], self.tau[first : first + _BLOCK]
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

        Parameters
        ----------
        exposure
            lex.
        free
            s.x_j of every item.
        response
            s.y_j of every item.
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
