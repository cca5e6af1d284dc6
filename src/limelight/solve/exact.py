"""The users' half-step of exADMM without alternating directions: all users at once, exactly.

With the items fixed, users are coupled through their mean alone. With A_i a user's own matrix,
b_i the sum of her items' factors and kappa = lex / n,

    u_i = A_i^-1 (b_i - p),   p = kappa (Q m - q),   m = mean(U),

where Q = G_V and q = 0 unless exposure has weights, targets or groups (:mod:`exposure_term`). So
m = c - B p with B = mean(A_i^-1) and c = mean(A_i^-1 b_i): a system of d equations. One
pass over the users at a guess of p gives its residual; B is taken from a sample of them. What the
guess was wrong by then is put right for all users together, by their mean response, or by another
pass if it is too much for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.solve.gramian import gramian, mean_row
from limelight.solve.state import Shift
from limelight.solve.steps import exact_u_step, solve_side

if TYPE_CHECKING:
    from limelight._arrays import Float64, Int64
    from limelight.solve.exposure_term import MeanTerm
    from limelight.solve.problem import Problem
    from limelight.solve.state import State

TOLERANCE = 0.003
"""How far the common correction may move users, against their usual length; more takes a pass."""
_MOST_PASSES = 8
_FEWEST, _MOST, _SAMPLE_NUMBERS = 32, 256, 1 << 20
"""How many users B is taken from: fewer where a user's matrix is large."""


def coupled_u_step(
    problem: Problem,
    state: State,
    G_V: Float64,
    *,
    term: MeanTerm | None = None,
    tolerance: float = TOLERANCE,
) -> None:
    """Solve for all users together, and set s to their mean.

    Parameters
    ----------
    problem
        What is minimised.
    state
        Where the fit stands; the price of the epoch before, or its mean user s, is the first guess.
    G_V
        V^T V.
    term
        The exposure term with the items put in, if it is not the problem's own.
    tolerance
        How far the common correction may move users, against their usual length.
    """
    if problem.exposure == 0:
        exact_u_step(problem, state)
        state.s = mean_row(state.U, problem.threads)
        return
    kappa = problem.exposure / problem.n_users
    shared = problem.unobserved_weight * G_V
    sample = _sample(problem, len(G_V))
    if term is None:
        term = problem.mean_term(state.V, G_V)
    B = mean_inverse(problem, state, shared, sample)
    response = kappa * B @ term.Q
    system = np.eye(len(G_V)) + response
    guess, price = state.s, state.price
    if price is None:
        price = kappa * term.Q @ guess - kappa * term.q
    for _ in range(_MOST_PASSES):
        solve_side(problem, problem.users, state.V, shared=shared, out=state.U, shift=price)
        mean = mean_row(state.U, problem.threads)
        # The residual of m = c - B p at the guess; the mean response corrects it. An old price is
        # not that of the guess: the users already are where the difference has moved them.
        moved = B @ (price - (kappa * term.Q @ guess - kappa * term.q))
        step = np.linalg.solve(system, mean - guess + moved)
        correction = response @ step - moved
        guess = guess + step
        price = kappa * term.Q @ guess - kappa * term.q
        length = np.linalg.norm(state.U[sample]) / np.sqrt(len(sample))
        if np.linalg.norm(correction) <= tolerance * length:
            break
    _shift_all(problem, state, mean, correction)
    # Not the mean of what was rounded to float32: a large kappa would make a price of rounding.
    state.s = guess
    state.price = price if problem.has_targets else None


def mean_inverse(problem: Problem, state: State, shared: Float64, users: Int64) -> Float64:
    """Return the mean of A_i^-1 over some users."""
    width, rows = len(shared), problem.rows
    total = np.zeros((width, width))
    for user in users.tolist():
        F = state.V[rows.indices[rows.indptr[user] : rows.indptr[user + 1]]].astype(np.float64)
        # The padding, too, must have something on the diagonal; it is never looked at.
        ridge = max(float(problem.users.regularization[user]), 1e-30)
        A = shared + F.T @ F + ridge * np.eye(width)
        total += np.linalg.inv(A)
    return total / max(len(users), 1)


def _sample(problem: Problem, width: int) -> Int64:
    """Draw the users who stand for all, the same in every epoch."""
    size = int(np.clip(_SAMPLE_NUMBERS // width**2, _FEWEST, _MOST))
    drawn = np.random.default_rng(problem.n_users).permutation(problem.n_users)
    return np.sort(drawn[:size])


def _shift_all(problem: Problem, state: State, mean: Float64, h: Float64) -> None:
    """Leave the shift of every user by the same vector pending; its Gramian is known."""
    n = problem.n_users
    cross = n * np.outer(mean, h)
    state.gramian_U = gramian(state.U, problem.threads) - cross - cross.T + n * np.outer(h, h)
    state.pending = Shift(np.ones(n, dtype=np.float32), h.astype(np.float32))
