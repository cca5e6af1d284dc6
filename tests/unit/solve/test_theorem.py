"""What the paper proves, checked in float64 with the NumPy twins."""

import numpy as np
import pytest
from tests.support import oracles

from limelight.testing.planted import random_interactions


def run_exadmm(problem, state, *, step, rho, epochs):
    """Run exADMM and record the Lagrangian, the residuals and the largest squared norms."""
    lagrangians, residuals, norms = [], [], []
    for _ in range(epochs):
        before, state = state, oracles.exadmm_epoch(problem, state, step, rho)
        lagrangians.append(problem.lagrangian(state, rho))
        residuals.append([np.linalg.norm(a - b) for a, b in zip(state, before, strict=True)])
        norms.append([np.sum(part**2) for part in (state.V, state.U, state.s)])
    return np.array(lagrangians), np.array(residuals), np.max(norms, axis=0)


def smallest_penalty(problem, C_V, C_s):
    lex = problem.exposure
    coupling = 24 * lex**2 * C_V * C_s / problem.item_ridge.min()
    return max(coupling, 0.5 + np.sqrt(0.25 + 6 * lex**2 * C_V**2))


def largest_step(problem, C_V):
    curvature = (1 + problem.unobserved_weight) * C_V + problem.user_ridge.max()
    return 1 / (np.sqrt(len(problem.R)) * curvature + 1)


def first_state(U, V):
    return oracles.DenseState(U, V, U.mean(axis=0), np.zeros(U.shape[1]))


def check_descent(problem, state, *, step, rho, epochs):
    lagrangians, residuals, (C_V, _, C_s) = run_exadmm(
        problem, state, step=step, rho=rho, epochs=epochs
    )
    # The bounds of the theorem's conditions are those of this very run.
    assert rho >= smallest_penalty(problem, C_V, C_s)
    assert step <= largest_step(problem, C_V)
    rises = np.diff(lagrangians) / np.abs(lagrangians[:-1])
    assert rises.max() <= 1e-12
    return residuals


def test_lagrangian_falls_on_planted_data():
    generator = np.random.default_rng(0)
    R = random_interactions(40, 25, seed=2).toarray().astype(float)
    problem = oracles.DenseProblem(R, unobserved_weight=0.1, regularization=0.05, exposure=8.0)
    U, V = (0.1 * generator.standard_normal((n, 6)) for n in R.shape)
    residuals = check_descent(problem, first_state(U, V), step=2e-4, rho=2e5, epochs=1500)
    assert (residuals[-1] <= residuals[150]).all()


def test_lagrangian_falls_over_5000_epochs_of_the_golden_problem(golden):
    n = len(golden["R"])
    problem = golden_problem(golden, exposure=float(golden["exposure"]) * n**2)
    state = first_state(golden["U0"], golden["V0"])
    residuals = check_descent(problem, state, step=1.75e-4, rho=510 * n**2, epochs=5000)
    assert (residuals[-1] <= 0.3 * residuals[199]).all()


def golden_problem(golden, exposure):
    return oracles.DenseProblem(
        golden["R"].astype(float),
        float(golden["alpha0"]),
        float(golden["l2"]),
        float(golden["eta"]),
        exposure,
    )


def test_without_exposure_weight_it_ends_where_ials_ends(golden):
    problem = golden_problem(golden, exposure=0.0)
    U, V = golden["U0"], golden["V0"]
    for _ in range(300):
        U, V = oracles.ials_epoch(problem, U, V)
    state = first_state(golden["U0"], golden["V0"])
    for _ in range(1000):
        # Without exposure weight rho is 0: a plain gradient step, s = mean(U) and w = 0.
        V_new = oracles.v_step(problem, state.U, state.s)
        U_new = state.U - 0.1 * oracles.user_gradient(problem, state.U, V_new)
        state = first_state(U_new, V_new)
    assert problem.objective(state.U, state.V) == pytest.approx(problem.objective(U, V), rel=0.01)


def test_twins_agree_with_the_stored_answers(golden):
    n = len(golden["R"])
    problem = golden_problem(golden, exposure=float(golden["exposure"]) * n**2)
    state = first_state(golden["U0"], golden["V0"])
    rho = float(golden["penalty"]) * n**2
    for lagrangian in golden["exadmm_lagrangian"]:
        state = oracles.exadmm_epoch(problem, state, float(golden["learning_rate"]), rho)
        assert problem.lagrangian(state, rho) == pytest.approx(lagrangian, rel=1e-10)
    np.testing.assert_allclose(state.U, golden["exadmm_U"], atol=1e-10)
    coupled = oracles.coupled_users(problem, golden["exact_V"])
    np.testing.assert_allclose(coupled, golden["exact_U"], atol=1e-10)
