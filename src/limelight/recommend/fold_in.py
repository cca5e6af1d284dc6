"""Users whom the training has not seen: their histories as rows of the catalogue, their factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from limelight._base.arrays import factor_matrix
from limelight._base.errors import DataError
from limelight.data.ids import positions
from limelight.data.interactions import Interactions, as_interactions
from limelight.data.rows import by_pair, group, row_numbers
from limelight.solve.epochs import mean_user_epoch
from limelight.solve.exact import coupled_u_step
from limelight.solve.problem import RegularizedRows, eigenbasis, gramian, sparse_rows
from limelight.solve.state import (
    State,
    check_against_zeros,
    check_finite,
    pad_factors,
    told_in_words,
    user_loss,
)
from limelight.solve.steps import solve_side

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids
    from limelight.solve.problem import Eigenbasis, MeanTerm, Problem
    from limelight.solve.step_sizes import StepSizes


def history_rows(histories: Any, item_ids: Ids, *, weighted: bool = False) -> Csr:
    """Check histories against a catalogue and hand them to the kernels.

    A sparse matrix has one column for each item of the catalogue, in its order. Interactions with
    ids are matched by item id; items that the catalogue does not have are left out. Only where a
    model is ``weighted`` may histories be so: the values of a matrix then are weights.
    """
    histories = as_weighted(histories, weighted=weighted)
    if histories.has_ids:
        if not np.array_equal(histories.item_ids, item_ids):
            histories = match_items(histories, item_ids)
    elif histories.n_items != len(item_ids):
        message = (
            f"histories have {histories.n_items:,} columns, the model has {len(item_ids):,} items"
        )
        raise DataError(message, hint="use the item numbering of the training matrix")
    return sparse_rows(histories.indptr, histories.indices, len(item_ids), histories.weights)


def as_weighted(given: Any, *, weighted: bool, what: str = "histories") -> Interactions:
    """Convert a matrix, by its values where a model is ``weighted``; else refuse weights."""
    weight = "values" if weighted and not isinstance(given, Interactions) else None
    found = as_interactions(given, weight=weight)
    if found.weights is not None and not weighted:
        message = f"{what} have weights, but the model knows of none"
        raise DataError(message, hint="fit it to weighted data, or leave out the weights of both")
    return found


def match_items(data: Interactions, item_ids: Ids) -> Interactions:
    """Number the items as a catalogue does, leaving out those that it does not have.

    Integers and strings are compared as strings: 7 in one file is '7' in another.
    """
    numbers = positions(data.item_ids, item_ids)
    if data.n_items and (numbers < 0).all():
        message = f"no item of the histories is in the catalogue, such as {data.item_ids.item(0)!r}"
        raise DataError(message, hint=f"the catalogue has ids such as {item_ids.item(0)!r}")
    columns = numbers[data.indices]
    known = columns >= 0
    pairs, weights = (row_numbers(data.indptr)[known], columns[known]), data.weights
    rows = group(*pairs, data.n_users, len(item_ids))
    if weights is not None:
        [weights] = by_pair(*pairs, len(item_ids), (weights[known], np.add))
    return Interactions(rows.indptr, rows.indices, data.user_ids, item_ids, weights=weights)


def take_rows(rows: Csr, chosen: Int64) -> Csr:
    """Gather some rows of a matrix, in the order given, repeats allowed."""
    if len(chosen) == rows.n_rows == 1:
        return rows
    starts = rows.indptr[chosen]
    lengths = rows.indptr[chosen + 1] - starts
    indptr = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    # Entry t of the result stands at its row's start plus its distance from that row's first entry.
    positions = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    weights = None if rows.weights is None else rows.weights[positions]
    return sparse_rows(indptr, rows.indices[positions], rows.n_columns, weights)


def take_columns(rows: Csr, chosen: Int32) -> Csr:
    """Keep some columns of a matrix, whose numbers ascend, and number them anew."""
    return renumbered(rows, column_numbers(chosen, rows.n_columns), len(chosen))


def column_numbers(chosen: Int32, n_columns: int) -> Int32:
    """Return the new number of each of so many columns, -1 for those that are not chosen."""
    numbers = np.full(n_columns, -1, dtype=np.int32)
    numbers[chosen] = np.arange(len(chosen), dtype=np.int32)
    return numbers


def renumbered(rows: Csr, numbers: Int32, n_columns: int) -> Csr:
    """Number the columns of a matrix anew and leave out those without a number."""
    columns = numbers[rows.indices]
    kept = np.concatenate([[0], np.cumsum(columns >= 0)])
    weights = None if rows.weights is None else rows.weights[columns >= 0]
    return sparse_rows(kept[rows.indptr], columns[columns >= 0], n_columns, weights)


def shared_basis(problem: Problem, V: Float32) -> Eigenbasis:
    """Return the part of every user's system that all users share, a0 V^T V, made diagonal."""
    with threadpool_limits(1, user_api="blas"):
        shared = problem.unobserved_weight * gramian(pad_factors(V), problem.threads)
        return eigenbasis(shared, problem.factors, problem.advice)


def fold_in_alone(
    problem: Problem, V: Float32, price: Float64 | None = None, *, shared: Eigenbasis | None = None
) -> Float32:
    """Solve for each user alone: u = A^-1 (b - price). Nobody's list depends on who else asks.

    ``shared`` is what :func:`shared_basis` returns, where it is known; what is left to do then
    grows with the histories and not with the catalogue.
    """
    if shared is None:
        shared = shared_basis(problem, V)
    side = problem.users
    if side.rows.n_entries < len(V):
        # Only these items have a say, and the others need not be rotated.
        items, columns = _distinct(side.rows)
        rows = sparse_rows(side.rows.indptr, columns, len(items), side.rows.weights)
        side, V = RegularizedRows(rows, side.regularization), V[items]
    factors = pad_factors(V)
    U = factor_matrix(problem.n_users, factors.shape[1])
    solve_side(problem, side, factors, shared=shared, out=U, shift=price)
    return U


def _distinct(rows: Csr) -> tuple[Int32, Int64]:
    """Return the columns of a matrix that have entries, and the place of each entry among them."""
    if rows.n_rows == 1:  # its columns ascend and differ
        return rows.indices, np.arange(rows.n_entries)
    return np.unique(rows.indices, return_inverse=True)


def _zero_users(problem: Problem, V: Float32) -> State:
    """Start from users of zeros, beside items that are fixed."""
    width = V.shape[1]
    U = factor_matrix(problem.n_users, width)
    U[:] = 0
    return State(U=U, V=V, s=np.zeros(width), w=np.zeros(width))


def fold_in_coupled(problem: Problem, V: Float32, term: MeanTerm | None = None) -> Float32:
    """Solve for all users at once, exactly, coupled through their mean as in training.

    The exposure term is |V s|^2 / 2 unless another is given.
    """
    state = _zero_users(problem, V)
    with threadpool_limits(1, user_api="blas"), told_in_words(problem, "in joint fold-in"):
        coupled_u_step(problem, state, gramian(V, problem.threads), term=term, tolerance=0.0)
        state.settle(problem.threads)
    return state.U


def fold_in_together(problem: Problem, V: Float32, step_sizes: StepSizes, rounds: int) -> Float32:
    """Run the steps U, s, w over all users at once, from zeros, with the items fixed.

    The users share one exposure term, as they do in training, so a list depends on the others.
    """
    state = _zero_users(problem, V)
    with threadpool_limits(1, user_api="blas"), told_in_words(problem, "in joint fold-in"):
        G_V = gramian(V, problem.threads)
        for _ in range(rounds):
            mean_user_epoch(problem, state, step_sizes, G_V)
            state.settle(problem.threads)
            state.epoch += 1
        check_finite(problem, state)
        loss = user_loss(problem, state.U, V, G_V)
        check_against_zeros(problem, loss, f"after {rounds} rounds of joint fold-in")
    return state.U
