"""Exposure with weights, targets and groups: stationary, monotone, and the plain term once more."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles
from tests.support.models import FIXED

import limelight as ll
from limelight._native import kernels, use_variant
from limelight.models.factor_model import problem_of
from limelight.solve.exact import coupled_u_step
from limelight.solve.problem import ExposureTerm, gramian, sparse_rows
from limelight.solve.state import SideNumber, State, initial_factors, measure_objective
from limelight.solve.steps import v_step

N_USERS, N_ITEMS, FACTORS = 120, 50, 6
DATA = ll.marketplace(N_USERS, N_ITEMS, 1500).interactions


def partition():
    """Five groups of nine items; the last five items are in none."""
    return sparse.csr_array((np.arange(5)[:, None] == np.arange(N_ITEMS) // 9).astype(float))


def terms():
    draw = np.random.default_rng(0)
    shared = sparse.random_array((7, N_ITEMS), density=0.3, rng=draw, format="csr")
    few = sparse.random_array((60, N_ITEMS), density=0.03, rng=draw, format="csr")
    for name, W in (
        ("items", sparse.csr_array(sparse.eye_array(N_ITEMS))),
        ("disjoint", partition()),
        ("overlapping", shared),
        ("many overlapping", few),
    ):
        n = W.shape[0]
        yield name, oracles.DenseTerm(W.toarray(), draw.random(n), 0.3 * draw.random(n))


TERMS = dict(terms())


@pytest.fixture(params=TERMS)
def dense_term(request):
    return TERMS[request.param]


def start(dense_term, weight):
    config = ll.ExADMM(factors=FACTORS, exposure_weight=weight, num_threads=1, **FIXED).config
    rows = sparse_rows(DATA.indptr, DATA.indices, N_ITEMS)
    W, c, tau = dense_term
    term = ExposureTerm.weighted(sparse.csr_array(W), c, tau)
    problem = problem_of(config, rows, weight * N_USERS**2, term)
    dense = oracles.DenseProblem(
        DATA.matrix.toarray().astype(float),
        config.unobserved_weight,
        config.regularization,
        exposure=problem.exposure,
        term=dense_term,
    )
    U, V = (
        initial_factors(range(n), FACTORS, scale=1.0, seed=0, side=side)
        for n, side in zip((N_USERS, N_ITEMS), SideNumber, strict=True)
    )
    U[:, :FACTORS] += 0.3
    return problem, dense, State(U, V, s=U.mean(axis=0, dtype=np.float64), w=np.zeros(16))


def factors(state):
    state.settle(1)
    return (X[:, :FACTORS].astype(float) for X in (state.U, state.V))


def test_the_twin_has_the_gradient_of_its_objective(dense_term):
    _, dense, state = start(dense_term, 1e-2)
    U, V = factors(state)
    force, draw = dense.exposure_force(V, U.mean(axis=0)), np.random.default_rng(1)
    by_items = oracles.item_gradient(dense, U, V) + np.outer(force, U.mean(axis=0))
    by_users = oracles.user_gradient(dense, U, V) + V.T @ force / N_USERS
    for gradient, move in (
        (by_items, lambda way: dense.objective(U, V + way)),
        (by_users, lambda way: dense.objective(U + way, V)),
    ):
        way = 1e-5 * draw.standard_normal(gradient.shape)
        assert move(way) - move(-way) == pytest.approx(2 * np.vdot(gradient, way), rel=1e-6)


@pytest.mark.parametrize("weight", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("variant", kernels.variants())
def test_no_item_could_be_better(dense_term, weight, variant):
    problem, dense, state = start(dense_term, weight)
    s = state.s[:FACTORS]
    with use_variant(variant):
        v_step(problem, state)
    U, V = factors(state)
    pull = np.outer(dense.exposure_force(V, s), s)
    gradient = oracles.item_gradient(dense, U, V) + pull
    scale = np.abs(dense.R.T @ U).max() + np.abs(pull).max()
    np.testing.assert_allclose(gradient, 0, atol=1e-4 * scale)


@pytest.mark.parametrize("weight", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("old_price", [np.zeros(16), 0.5 * np.eye(16)[2]], ids=["none", "price"])
def test_no_user_could_be_better(dense_term, weight, old_price):
    problem, dense, state = start(dense_term, weight)
    state.w = old_price
    coupled_u_step(problem, state, gramian(state.V, 1), tolerance=0.0)
    U, V = factors(state)
    price = V.T @ dense.exposure_force(V, U.mean(axis=0)) / N_USERS
    gradient = oracles.user_gradient(dense, U, V) + price
    scale = np.abs(dense.R @ V).max() + np.abs(price).max()
    np.testing.assert_allclose(gradient, 0, atol=2e-4 * scale)
    np.testing.assert_allclose(state.w[:FACTORS], price, atol=2e-4 * scale)


def test_the_objective_is_that_of_the_twin(dense_term):
    problem, dense, state = start(dense_term, 1e-2)
    found = measure_objective(problem, state.U, state.V).total(problem)
    U, V = factors(state)
    assert found == pytest.approx(dense.objective(U, V), rel=1e-6)
    assert problem.at_zeros == pytest.approx(dense.objective(0 * U, 0 * V))


def the_paper_s_term():
    return oracles.DenseTerm(np.eye(N_ITEMS), np.ones(N_ITEMS), np.zeros(N_ITEMS))


@pytest.mark.parametrize("weight", [1e-6, 1e-4, 1e-2, 1.0, 1e2])
def test_the_paper_s_term_in_the_general_form_against_its_twin(weight):
    problem, dense, state = start(the_paper_s_term(), weight)
    U, _ = factors(state)
    expected = oracles.v_step(dense, U, state.s[:FACTORS])
    v_step(problem, state)
    _, V = factors(state)
    np.testing.assert_allclose(V, expected, atol=1e-5 * np.abs(expected).max())
    expected = oracles.coupled_users(dense, V)
    coupled_u_step(problem, state, gramian(state.V, 1), tolerance=0.0)
    U, _ = factors(state)
    np.testing.assert_allclose(U, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("weight", [1e-6, 1e-4, 1e-2])
def test_the_paper_s_term_in_the_general_form_against_the_plain_one(weight):
    # Not for larger weights: there the general form is nearer to the twin than the plain one.
    general, _, state = start(the_paper_s_term(), weight)
    plain, same = replace(general, term=None), start(the_paper_s_term(), weight)[2]
    for _ in range(2):
        for problem, one in ((general, state), (plain, same)):
            v_step(problem, one)
            coupled_u_step(problem, one, gramian(one.V, 1), tolerance=0.0)
        for found, expected in zip(factors(state), factors(same), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_groups_in_many_blocks(monkeypatch):
    problem, _, state = start(TERMS["many overlapping"], 1e-2)
    whole = problem.term.at_items(state.V)
    monkeypatch.setattr("limelight.solve.problem._GROUP_BLOCK", 7)
    for found, expected in zip(problem.term.at_items(state.V), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_sparse_and_dense_solves_agree(monkeypatch):
    problem, _, _ = start(TERMS["overlapping"], 1e-2)
    free, response = np.random.default_rng(0).random((2, N_ITEMS))
    found = []
    for share in (0.0, 1.0):
        monkeypatch.setattr("limelight.solve.problem._DENSE", share)
        found.append(problem.term.pulls(100.0, free, response))
    np.testing.assert_allclose(*found, rtol=1e-9)
