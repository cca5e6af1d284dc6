"""Each step against its dense float64 twin, and against the calculus behind it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import oracles
from tests.support.examples import examples

from limelight._base.errors import SolveError
from limelight.solve.epochs import exadmm_epoch, ials_epoch
from limelight.solve.population import Whole
from limelight.solve.problem import Problem, eigenbasis, gramian, sparse_rows
from limelight.solve.state import SideNumber, State, initial_factors, measure_objective, pad_factors
from limelight.solve.step_sizes import StepSizes
from limelight.solve.steps import exact_u_step, s_step, u_step, v_step, w_step
from limelight.testing.planted import random_interactions

FACTORS = 8
N_USERS, N_ITEMS = 70, 45
LEX = 0.02 * N_USERS**2
WEIGHTS = {"unobserved_weight": 0.1, "regularization": 0.01}


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.fixture(params=[False, True], ids=["binary", "weighted"])
def R(request):
    found = random_interactions(N_USERS, N_ITEMS, seed=5)
    if request.param:
        found.data = np.random.default_rng(6).lognormal(size=found.nnz).astype(np.float32)
    return found


@pytest.fixture
def dense(R):
    return oracles.DenseProblem(R.toarray().astype(float), **WEIGHTS_DENSE, exposure=LEX)


WEIGHTS_DENSE = {"unobserved_weight": 0.1, "regularization": 0.01, "exponent": 0.7}


def weights_of(R):
    return None if (R.data == 1).all() else R.data


def problem_of(R, exposure=LEX, threads=2):
    return Problem(
        population=Whole(sparse_rows(R.indptr, R.indices, R.shape[1], weights_of(R))),
        factors=FACTORS,
        regularization_exponent=0.7,
        exposure=exposure,
        threads=threads,
        **WEIGHTS,
    )


@pytest.fixture
def problem(R):
    return problem_of(R)


@pytest.fixture
def state():
    generator = np.random.default_rng(1)
    U, V = (generator.standard_normal((n, FACTORS)) / 2 for n in (N_USERS, N_ITEMS))
    s, w = generator.standard_normal((2, FACTORS)) / 4
    wide = np.zeros((2, 16))
    wide[:, :FACTORS] = s, w
    return State(U=pad_factors(U), V=pad_factors(V), s=wide[0], w=wide[1], penalty=3e4)


def narrow(state):
    return oracles.DenseState(
        *(part[..., :FACTORS].astype(float) for part in (state.U, state.V, state.s, state.w))
    )


def test_regularization_grows_with_the_data(problem, dense):
    np.testing.assert_allclose(problem.users.regularization, dense.user_ridge, rtol=1e-6)
    np.testing.assert_allclose(problem.item_regularization, dense.item_ridge, rtol=1e-6)


def test_v_step(problem, dense, state):
    before = narrow(state)
    v_step(problem, state)
    assert relative(narrow(state).V, oracles.v_step(dense, before.U, before.s)) < 1e-5


def test_gradient_vanishes_after_the_v_step(problem, dense, state):
    v_step(problem, state)
    U, V, s, _ = narrow(state)
    items = oracles.DenseProblem(dense.R.T, **WEIGHTS_DENSE)
    gradient = oracles.user_gradient(items, V, U) + LEX * np.outer(V @ s, s)
    assert np.abs(gradient).max() < 1e-4 * np.abs(dense.R.T @ U).max()


def test_gradient_vanishes_after_the_exact_u_step(problem, dense, state):
    exact_u_step(problem, state)
    U, V, _, _ = narrow(state)
    gradient = oracles.user_gradient(dense, U, V)
    assert np.abs(gradient).max() < 1e-4 * np.abs(dense.R @ V).max()


def test_the_oracle_gradient_is_the_derivative_of_the_loss(dense, state):
    U, V, _, _ = narrow(state)
    gradient = oracles.user_gradient(dense, U, V)
    for i, c in [(0, 0), (13, 5), (69, 7)]:
        moved = U.copy()
        moved[i, c] += 1e-5
        back = U.copy()
        back[i, c] -= 1e-5
        slope = (dense.loss(moved, V) - dense.loss(back, V)) / 2e-5
        assert slope == pytest.approx(gradient[i, c], rel=1e-6)


def check_u_step(problem, dense, state, tempo, gamma, rho):
    """Compare mean, Gramian and factors after a U-step with the dense solution."""
    before = narrow(state)._replace(w=state.w[:FACTORS] * state.penalty / rho)
    expected = oracles.u_step(dense, before, gamma, rho)
    mean = u_step(problem, state, gramian(state.V, 1), tempo)
    np.testing.assert_allclose(mean[:FACTORS], expected.mean(axis=0), atol=1e-6)
    closed_form = state.gramian_U[:FACTORS, :FACTORS]
    assert relative(closed_form, expected.T @ expected) < 1e-5
    state.settle(1)
    assert relative(narrow(state).U, expected) < 1e-5


def test_u_step_solves_the_proximal_problem_with_equal_steps(problem, dense, state):
    check_u_step(problem, dense, state, StepSizes(0.01, 4e4), 0.01, 4e4)


def test_u_step_solves_the_proximal_problem_with_steps_by_curvature(problem, dense, state):
    _, V, _, _ = narrow(state)
    shared = 0.1 * np.linalg.eigvalsh(V.T @ V)[-1]
    gamma = 1 / (shared + dense.user_ridge + oracles.curvature(dense.R, V))
    check_u_step(problem, dense, state, StepSizes(None, None), gamma, 10 * N_USERS / gamma.mean())


def test_mean_user_moves_between_the_gradient_step_and_the_target(problem, dense, state):
    gamma, rho = 0.01, state.penalty
    U, V, s, w = narrow(state)
    c = rho * gamma / (N_USERS + rho * gamma)
    plain = (U - gamma * oracles.user_gradient(dense, U, V)).mean(axis=0)
    mean = u_step(problem, state, gramian(state.V, 1), StepSizes(gamma, rho))
    np.testing.assert_allclose(mean[:FACTORS], (1 - c) * plain + c * (s - w), atol=1e-6)


def test_what_is_pending_changes_no_bit(R):
    often, once = (start(R) for _ in range(2))
    problem = problem_of(R)
    for _ in range(6):
        exadmm_epoch(problem, often, StepSizes(None, None))
        often.settle(2)
        exadmm_epoch(problem, once, StepSizes(None, None))
    once.settle(2)
    np.testing.assert_array_equal(often.U, once.U)
    np.testing.assert_array_equal(often.V, once.V)


def start(R):
    U = initial_factors(range(N_USERS), FACTORS, scale=0.1, seed=0, side=SideNumber.USERS)
    V = initial_factors(range(N_ITEMS), FACTORS, scale=0.1, seed=0, side=SideNumber.ITEMS)
    return State(U=U, V=V, s=np.zeros(16), w=np.zeros(16))


def test_s_step_makes_the_lagrangian_stationary(problem, dense, state):
    mean = problem.mean_user(state.U)
    s_step(problem, state, gramian(state.V, 1), mean)
    now = narrow(state)
    lowest = dense.lagrangian(now, state.penalty)
    for c in range(FACTORS):
        for step in (-1e-3, 1e-3):
            moved = now.s.copy()
            moved[c] += step
            assert dense.lagrangian(now._replace(s=moved), state.penalty) > lowest


def test_dual_identity_holds_after_every_epoch(problem, state):
    for _ in range(4):
        exadmm_epoch(problem, state, StepSizes(None, None))
        G_V = gramian(state.V, 1)
        np.testing.assert_allclose(
            state.penalty * state.w, problem.exposure * G_V @ state.s, rtol=1e-6, atol=1e-9
        )


def test_w_step(state):
    before = state.w.copy()
    mean = np.arange(16.0)
    w_step(state, mean)
    np.testing.assert_allclose(state.w, before + mean - state.s)


def test_penalty_changes_keep_the_unscaled_dual(problem, state):
    before = state.penalty * state.w
    StepSizes(None, 7e3).update_penalty(problem, state, 1.0)
    assert state.penalty == 7e3
    np.testing.assert_allclose(state.penalty * state.w, before)


def test_automatic_penalty_is_ten_times_the_mean_curvature(problem, state):
    StepSizes(None, None).update_penalty(problem, state, 0.5)
    assert state.penalty == pytest.approx(10 * N_USERS / 0.5)


def test_automatic_steps_stay_below_the_stability_bound(problem, dense, state):
    _, V, _, _ = narrow(state)
    u_step(problem, state, gramian(state.V, 1), StepSizes(None, None))
    for i in range(N_USERS):
        history = V[dense.R[i] > 0]
        A = history.T @ history + 0.1 * V.T @ V + dense.user_ridge[i] * np.eye(FACTORS)
        assert state.pending.steps[i] < 2 / np.linalg.eigvalsh(A)[-1]


def test_curvature_is_refreshed_early_on_and_then_now_and_then(state):
    epochs = [
        epoch for epoch in range(20) if StepSizes(None, None).refreshes(replace(state, epoch=epoch))
    ]
    assert epochs == [0, 1, 2, 3, 4, 5, 10, 15]


def test_objective_is_the_oracles(problem, dense, state):
    U, V, _, _ = narrow(state)
    assert measure_objective(problem, state.U, state.V).loss == pytest.approx(
        dense.loss(U, V), rel=1e-6
    )


def test_exact_blocks_never_raise_the_objective(R, state):
    problem = problem_of(R, exposure=0.0)
    losses = []
    for _ in range(6):
        exact_u_step(problem, state)
        losses.append(measure_objective(problem, state.U, state.V).loss)
        v_step(problem, state)
        losses.append(measure_objective(problem, state.U, state.V).loss)
    assert (np.diff(losses) <= 1e-6 * losses[0]).all()


@examples(20)
@given(st.permutations(range(N_USERS)))
def test_permuting_users_permutes_rows(order):
    R = random_interactions(N_USERS, N_ITEMS, seed=5)
    plain, moved = start(R), start(R)
    moved.U = moved.U[order]
    ials_epoch(problem_of(R, 0.0), plain)
    ials_epoch(problem_of(R[order], 0.0), moved)
    np.testing.assert_allclose(moved.U, plain.U[order], atol=1e-4)
    np.testing.assert_allclose(moved.V, plain.V, atol=1e-4)


def test_a_row_without_solution_is_an_error(R, state):
    problem = Problem(
        population=Whole(sparse_rows(R.indptr, R.indices, N_ITEMS)),
        factors=FACTORS,
        unobserved_weight=0.0,
        regularization=0.0,
        regularization_exponent=1.0,
        exposure=0.0,
        threads=1,
    )
    with pytest.raises(SolveError, match="rows without a unique solution"):
        exact_u_step(problem, state)


def test_eigenbasis_rebuilds_the_matrix_and_keeps_the_padding_apart():
    X = np.random.default_rng(0).standard_normal((30, 5))
    matrix = np.zeros((16, 16))
    matrix[:5, :5] = X.T @ X
    values, Q = eigenbasis(matrix, 5, "")
    np.testing.assert_allclose((Q @ np.diag(values) @ Q.T)[:5, :5], matrix[:5, :5], atol=1e-4)
    assert not Q[:5, 5:].any()
    assert (values[:5] >= 0).all()
    assert (values[5:] == 1).all()
