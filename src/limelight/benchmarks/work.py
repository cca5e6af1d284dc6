"""How many floating-point operations a method needs, for shares of the machine's peak.

A multiplication and an addition are two. What is left out: eigendecompositions (once a half-step)
and everything that is not arithmetic. d is the number of factors, n the length of a history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.solve import work
from limelight.solve.steps import CG_STEPS

if TYPE_CHECKING:
    from limelight._arrays import Int64
    from limelight.data import Interactions


def direct_solve(lengths: Int64, d: int) -> float:
    """Count a d x d system a row: n outer products, a Cholesky factorisation, two substitutions.

    Examples
    --------
    >>> direct_solve(np.array([10]), 3)
    177.0
    """
    return float(np.sum(work.direct(lengths.astype(np.float64), d)))


def short_solve(lengths: Int64, d: int) -> float:
    """Count an n x n system a row (Woodbury): n^2 d for its matrix, 4 n d to get there and back."""
    return float(np.sum(work.short(lengths.astype(np.float64), d)))


def row_solves(lengths: Int64, d: int) -> float:
    """Count exact solves, each row by the way that our kernels take: short if n < d.

    Examples
    --------
    >>> short, long = np.array([2]), np.array([100])
    >>> row_solves(np.array([2, 100]), 8) == short_solve(short, 8) + direct_solve(long, 8)
    True
    """
    return float(np.sum(work.row_solve(lengths.astype(np.float64), d)))


class Shape(NamedTuple):
    """What the cost of an epoch depends on: how long the histories of users and items are."""

    users: Int64
    items: Int64
    factors: int

    @classmethod
    def of(cls, data: Interactions, factors: int) -> Shape:
        """Count the histories of some interactions.

        Examples
        --------
        >>> from limelight.data import Interactions
        >>> from limelight.testing.planted import checkerboard
        >>> data = Interactions.from_matrix(checkerboard(4))
        >>> Shape.of(data, 8).items
        array([1, 1, 1, 1])
        """
        by_item = np.bincount(data.indices, minlength=data.n_items)
        return cls(np.diff(data.indptr), by_item, factors)

    @property
    def squares(self) -> float:
        """d^2 for every user and every item."""
        return float(self.factors**2) * (len(self.users) + len(self.items))


def ials_epoch(shape: Shape) -> float:
    """Count an exact epoch: both sides solved, a Gramian and two rotations of each."""
    solves = row_solves(shape.users, shape.factors) + row_solves(shape.items, shape.factors)
    return solves + 4 * shape.squares + shape.squares


def cg_epoch(shape: Shape) -> float:
    """Count an epoch by descent: histories times vectors, and one more rotation a side.

    There is a product for the first residual and one for each step.
    """
    products = 2 * (1 + CG_STEPS) * 4.0 * shape.users.sum() * shape.factors
    return float(products) + 6 * shape.squares + shape.squares


def exadmm_epoch(shape: Shape) -> float:
    """Count an epoch of exADMM: the items solved, a gradient step of the users, two Gramians."""
    d = shape.factors
    gradient = 4.0 * shape.users.sum() * d + 2.0 * len(shape.users) * d**2
    return row_solves(shape.items, d) + 2 * shape.squares + float(gradient) + shape.squares


def top_k(n_queries: int, n_items: int, d: int) -> float:
    """Count the scores alone.

    Examples
    --------
    >>> top_k(10, 100, 8)
    16000.0
    """
    return 2.0 * n_queries * n_items * d
