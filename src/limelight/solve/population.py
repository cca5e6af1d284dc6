"""Who holds the users of a fit: this process all of them, or each of many processes some.

A step that needs all users asks their population for it, and so does not know how many processes
there are. :class:`Whole` is the population of a fit on one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from limelight.solve.problem import RegularizedRows, gramian, largest_entry, row_weights
from limelight.solve.steps import solve_side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.solve.problem import Problem
    from limelight.solve.state import State
    from limelight.solve.steps import Probe


class Cell(NamedTuple):
    """Some of the users: sums over users are added up cell by cell."""

    users: slice
    """Their rows in this process."""
    rows: Csr
    """Their histories."""


class Population(Protocol):
    """All users of a fit; this process has the factors and the histories of some or all of them."""

    @property
    def rows(self) -> Csr:
        """The histories of the users of this process."""

    @property
    def n_users(self) -> int:
        """The number of all users."""

    @property
    def n_entries(self) -> int:
        """The number of observed pairs of all users."""

    @property
    def total_weight(self) -> float:
        """The weights of all observed pairs together; without weights, their number."""

    @property
    def first_user(self) -> int:
        """The number, among all users, of the first user of this process."""

    @property
    def item_weights(self) -> Float64 | Int64:
        """The weights of each item's pairs together; without weights, their number."""

    def total(self, part: Callable[[Cell], Sequence[Float64 | float]]) -> list[Float64]:
        """Add up what every cell of users contributes to some sums, over all users."""

    def largest(self, U: Float32) -> float:
        """Return the largest absolute value among all users' factors."""

    def item_gramian(self, V: Float32, threads: int) -> Float64:
        """Return V^T V."""

    def solve_items(
        self, problem: Problem, state: State, shared: Float64, probe: Probe | None = None
    ) -> None:
        """Solve for every item: v_j = (shared + reg_j I + sum_i w_ij u_i u_i^T)^-1 sum_i w_ij u_i.

        The sums run over all users, and every process gets all items. What the users have pending
        counts, and is used up. A probe is answered as by :func:`solve_side`.
        """


@dataclass(frozen=True, eq=False)
class Whole:
    """A population whose users are all in this process."""

    rows: Csr

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.rows.n_rows

    @property
    def n_entries(self) -> int:
        """The number of observed pairs."""
        return self.rows.n_entries

    @property
    def total_weight(self) -> float:
        """The weights of all observed pairs together."""
        return float(row_weights(self.rows).sum())

    @property
    def first_user(self) -> int:
        """The number of the first user."""
        return 0

    @cached_property
    def by_item(self) -> Csr:
        """The same pairs by item, made when a step first asks for them."""
        return self.rows.transpose()

    @cached_property
    def item_weights(self) -> Float64 | Int64:
        """The weights of each item's pairs together."""
        return row_weights(self.by_item)

    def total(self, part: Callable[[Cell], Sequence[Float64 | float]]) -> list[Float64]:
        """Return what all users, who are one cell, contribute to some sums."""
        return [np.asarray(one, np.float64) for one in part(Cell(slice(None), self.rows))]

    def largest(self, U: Float32) -> float:
        """Return the largest absolute value among all users' factors."""
        return largest_entry(U)

    def item_gramian(self, V: Float32, threads: int) -> Float64:
        """Return V^T V."""
        return gramian(V, threads)

    def solve_items(
        self, problem: Problem, state: State, shared: Float64, probe: Probe | None = None
    ) -> None:
        """Solve for every item."""
        pending, state.pending = state.pending, None
        solve_side(
            problem,
            RegularizedRows(self.by_item, problem.item_regularization),
            state.U,
            shared=shared,
            out=state.V,
            pending=pending,
            probe=probe,
        )
