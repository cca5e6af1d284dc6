"""The users' half-step of exADMM without alternating directions: all users at once, exactly.

With the items fixed, users are coupled through their mean alone. With A_i a user's own matrix,
b_i the sum of her items' factors and kappa = lex / n,

    u_i = A_i^-1 (b_i - p),   p = kappa (Q m - q),   m = mean(U),

where Q = G_V and q = 0 unless exposure has weights, targets or groups (``ExposureTerm``). So
m = c - B p with B = mean(A_i^-1) and c = mean(A_i^-1 b_i): a system of d equations. B, and how far
the users have moved since the epoch before, are taken from a sample of them; that gives a guess of
m. One pass over all users at its price gives the residual of the system. What the guess was wrong
by is put right for all users together, by their mean response, or by another pass if it is too much
for that.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.solve.state import Shift
from limelight.solve.steps import exact_u_step, positive_inverse, solve_side

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int64
    from limelight.solve.population import Cell
    from limelight.solve.problem import MeanTerm, Problem
    from limelight.solve.state import State

TOLERANCE = 0.02
"""How far the common correction may move users, against their usual length; more takes a pass."""
_MOST_PASSES = 8
_FEWEST, _MOST, _SAMPLE_NUMBERS = 32, 128, 1 << 20
"""How many users stand for all: fewer where a user's matrix is large."""


def coupled_u_step(
    problem: Problem,
    state: State,
    G_V: Float64,
    *,
    term: MeanTerm | None = None,
    tolerance: float = TOLERANCE,
) -> None:
    """Solve for all users together; set s to their mean m and w to the price p.

    All users have to be solved for at the price p, which follows from their mean m, which is known
    only when they are solved for. So:

    1. Guess m. A sample of users tells B, and how far users would drift at the old price; with
       these, m = c - B p is a linear system of d equations.
    2. Solve for all users at the price of the guess, and compare their mean with it.
    3. By the linear system, the difference tells how far m is from the guess, and the same shift of
       every user corrects it. If that shift is small, it is left pending. Otherwise the better
       guess takes another pass.

    ``G_V`` is V^T V. ``term`` is the exposure term with the items put in, if it is not the
    problem's own. ``tolerance`` is the largest shift, against the usual length of a user.
    """
    if problem.exposure == 0:
        exact_u_step(problem, state)
        state.s = problem.mean_user(state.U)
        return
    kappa = problem.exposure / problem.n_users
    shared = problem.unobserved_weight * G_V
    if term is None:
        term = problem.mean_term(state.V, G_V)
    some = _solve_sample(problem, state, shared)
    B = some.mean_inverse
    response = kappa * B @ term.Q
    system = np.eye(len(G_V)) + response
    # At the old price the mean user would be s + drift; m = s + drift - B (p - old p).
    at_once = state.s + some.drift + B @ (state.w + kappa * term.q)
    guess: Float64 = np.asarray(np.linalg.solve(system, at_once), np.float64)
    for _ in range(_MOST_PASSES):
        price = kappa * (term.Q @ guess - term.q)
        solve_side(problem, problem.users, state.V, shared=shared, out=state.U, shift=price)
        mean = problem.mean_user(state.U)
        # The residual of m = c - B p at the guess; the mean response corrects it.
        step = np.linalg.solve(system, mean - guess)
        correction = response @ step
        guess = guess + step
        length = some.length(problem, state.U)
        if np.linalg.norm(correction) <= tolerance * length:
            break
    _shift_all(problem, state, mean, correction)
    # The guess is exact to 64 bits. The mean of users in 32 bits is not, and a large kappa would
    # multiply its rounding error into the price.
    state.s = guess
    state.w = kappa * (term.Q @ guess - term.q)


def common_shift(problem: Problem, state: State, term: MeanTerm) -> None:
    """Shift all users by their mean response, after some were solved for at the price w.

    This is the last part of :func:`coupled_u_step`, without its pass over all users: at the price w
    their mean is mean(U), at another price p it is mean(U) - B (p - w), and p = kappa (Q m - q).
    """
    state.s = mean = problem.mean_user(state.U)
    if problem.exposure == 0:
        return
    kappa = problem.exposure / problem.n_users
    shared = problem.unobserved_weight * problem.item_gramian(state.V)
    B = _solve_sample(problem, state, shared).mean_inverse
    system = np.eye(len(B)) + kappa * B @ term.Q
    at_once = mean + B @ (state.w + kappa * term.q)
    state.s = np.asarray(np.linalg.solve(system, at_once), np.float64)
    price = kappa * (term.Q @ state.s - term.q)
    _shift_all(problem, state, mean, B @ (price - state.w))
    state.settle(problem.threads)
    state.w = price


class _Sample(NamedTuple):
    """What a sample of users tells of all of them."""

    users: Int64
    mean_inverse: Float64
    """The mean of A_i^-1."""
    drift: Float64
    """How far they move, on average, if the price stays what it was."""

    def length(self, problem: Problem, U: Float32) -> float:
        """Return how long they usually are."""
        [squares] = problem.population.total(
            lambda cell: [float(np.linalg.norm(U[_among(problem, cell, self.users)])) ** 2]
        )
        return float(np.sqrt(squares / len(self.users)))


def _solve_sample(problem: Problem, state: State, shared: Float64) -> _Sample:
    """Solve for some users at the old price."""
    users = _sample(problem, len(shared))

    def parts(cell: Cell) -> list[Float64]:
        own = _among(problem, cell, users)
        inverses, b = _inverses(problem, state.V, own, shared)
        now = np.einsum("nij,nj->ni", inverses, b - state.w)
        return [inverses.sum(axis=0), np.sum(now - state.U[own], axis=0)]

    inverse, drift = problem.population.total(parts)
    return _Sample(users, inverse / len(users), drift / len(users))


def _inverses(
    problem: Problem, V: Float32, users: Int64, shared: Float64
) -> tuple[Float64, Float64]:
    """Return A_i^-1 and b_i of some users, by their rows in this process."""
    rows, width = problem.rows, len(shared)
    A, b = np.empty((len(users), width, width)), np.empty((len(users), width))
    for at, user in enumerate(users.tolist()):
        own = slice(rows.indptr[user], rows.indptr[user + 1])
        F = V[rows.indices[own]].astype(np.float64)
        if rows.weights is None:
            A[at], b[at] = shared + F.T @ F, F.sum(axis=0)
        else:
            weights = rows.weights[own].astype(np.float64)
            A[at], b[at] = shared + (F.T * weights) @ F, weights @ F
    # Without regularisation the columns of padding would make the matrices singular. What stands
    # there does not matter, because the factors are 0 in them.
    ridge = np.maximum(problem.users.regularization[users].astype(np.float64), 1e-30)
    A[:, np.arange(width), np.arange(width)] += ridge[:, None]
    for matrix in A:
        matrix[:] = positive_inverse(matrix)
    return A, b


def _among(problem: Problem, cell: Cell, users: Int64) -> Int64:
    """Find the rows, in this process, of those users who are in a cell."""
    first, stop, _ = cell.users.indices(problem.rows.n_rows)
    here = users - problem.population.first_user
    return here[(here >= first) & (here < stop)]


def _sample(problem: Problem, width: int) -> Int64:
    """Draw the users who stand for all, the same in every epoch."""
    return _draw(problem.n_users, int(np.clip(_SAMPLE_NUMBERS // width**2, _FEWEST, _MOST)))


@lru_cache(maxsize=4)
def _draw(n_users: int, size: int) -> Int64:
    """Draw a sample of users; cached, because to shuffle a hundred million takes seconds."""
    return np.sort(np.random.default_rng(n_users).permutation(n_users)[:size])


def _shift_all(problem: Problem, state: State, mean: Float64, h: Float64) -> None:
    """Leave the shift of every user by the same vector pending; its Gramian is known."""
    n = problem.n_users
    cross = n * np.outer(mean, h)
    state.gramian_U = problem.user_gramian(state.U) - cross - cross.T + n * np.outer(h, h)
    state.pending = Shift(np.ones(len(state.U), dtype=np.float32), h.astype(np.float32))
