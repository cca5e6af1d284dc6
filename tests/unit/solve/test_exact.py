"""The coupled half-step: stationary, monotone, and the stored answers of another implementation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.support.models import FIXED

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.models.factor_model import problem_of
from limelight.solve.exact import TOLERANCE, coupled_u_step
from limelight.solve.problem import gramian, sparse_rows
from limelight.solve.state import SideNumber, State, initial_factors, measure_objective
from limelight.solve.steps import v_step

WEIGHTS = [1e-6, 1e-4, 1e-2, 1.0, 1e6]


def market(n_users=300, n_items=80, n=5000, seed=0, *, weighted=False):
    data = ll.marketplace(n_users, n_items, n, seed=seed).interactions
    if not weighted:
        return data
    weights = np.random.default_rng(seed).lognormal(size=data.nnz).astype(np.float32)
    return replace(data, weights=weights)


def start(data, *, weight, factors=8):
    config = ll.ExADMM(factors=factors, exposure_weight=weight, **FIXED).config
    rows = sparse_rows(data.indptr, data.indices, data.n_items, data.weights)
    problem = problem_of(config, rows, weight * data.n_users**2)
    U, V = (
        initial_factors(range(n), factors, scale=1.0, seed=0, side=side)
        for n, side in zip((data.n_users, data.n_items), SideNumber, strict=True)
    )
    return problem, State(U=U, V=V, s=problem.mean_user(U), w=np.zeros(U.shape[1]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_passes_until_nothing_moves_are_exact(weight, weighted):
    """A_i u_i = b_i - (lex / n) G_V mean(U) for every user."""
    data = market(weighted=weighted)
    problem, state = start(data, weight=weight)
    G_V = gramian(state.V, 1)
    coupled_u_step(problem, state, G_V, tolerance=0.0)
    state.settle(1)
    U, V = state.U.astype(np.float64), state.V.astype(np.float64)
    R = data.matrix.toarray()
    price = problem.exposure / problem.n_users * G_V @ state.s
    for i in (0, 7, 299):
        A = problem.unobserved_weight * G_V + V.T @ (R[i][:, None] * V)
        A += problem.users.regularization[i] * np.eye(len(A))
        b = R[i] @ V
        scale = np.abs(b).max() + np.abs(price).max()
        np.testing.assert_allclose(A @ U[i], b - price, atol=2e-4 * scale)
    np.testing.assert_allclose(state.s, U.mean(axis=0), atol=1e-6 * np.abs(U).max())


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_pending_shift_and_its_gramian_agree(weight):
    problem, state = start(market(), weight=weight)
    coupled_u_step(problem, state, gramian(state.V, 1))
    known = state.gramian_U
    state.settle(1)
    np.testing.assert_allclose(
        known, gramian(state.U, 1), rtol=1e-3, atol=1e-4 * np.abs(known).max()
    )


@pytest.mark.parametrize("weight", WEIGHTS)
def test_few_passes_end_where_many_do(weight):
    objectives = []
    for tolerance in (TOLERANCE, 0.0):
        problem, state = start(market(), weight=weight)
        for _ in range(10):
            v_step(problem, state)
            coupled_u_step(problem, state, gramian(state.V, 1), tolerance=tolerance)
        state.settle(1)
        objectives.append(measure_objective(problem, state.U, state.V).total(problem))
    # Two paths may end in different optima; on real data they were within 0.02 %.
    assert objectives[0] <= 1.003 * objectives[1]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("row_solver", ["cholesky", "cg"])
@pytest.mark.parametrize("weight", [0.0, *WEIGHTS])
def test_the_objective_never_rises(weight, row_solver, weighted):
    model = ll.ExADMM(
        factors=8,
        exposure_weight=weight,
        solver="exact",
        row_solver=row_solver,
        epochs=20,
        trace_every=1,
    ).fit(market(weighted=weighted))
    objectives = np.array([record.objective for record in model.trace_])
    assert (np.diff(objectives) <= 1e-6 * objectives[:-1]).all()


def test_the_stored_answers(golden):
    model = ll.ExADMM(
        factors=golden["U0"].shape[1],
        unobserved_weight=float(golden["alpha0"]),
        regularization=float(golden["l2"]),
        exposure_weight=float(golden["exposure"]),
        solver="exact",
        epochs=8,
        trace_every=1,
    ).fit(sparse.csr_matrix(golden["R"]), init=(golden["U0"], golden["V0"]))
    for found, name in (
        (model.user_factors, "exact_U"),
        (model.item_factors, "exact_V"),
        (model.price_, "exact_price"),
        (np.array([record.objective for record in model.trace_]), "exact_objective"),
    ):
        error = np.abs(found - golden[name]).max() / np.abs(golden[name]).max()
        assert error < 1e-4, name


def test_without_exposure_weight_it_is_ials_in_the_other_order():
    data = market()
    exact = ll.ExADMM(factors=8, solver="exact", epochs=30).fit(data)
    ials = ll.IALS(factors=8, epochs=30).fit(data)
    assert exact.trace_[-1].objective == pytest.approx(ials.trace_[-1].objective, rel=2e-2)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_without_matrices_it_ends_at_the_same_objective(weight):
    settings = {"factors": 8, "exposure_weight": weight, "solver": "exact", "epochs": 60}
    rows, descent = (
        ll.ExADMM(row_solver=name, **settings).fit(market()).trace_[-1].objective
        for name in ("cholesky", "cg")
    )
    assert descent == pytest.approx(rows, rel=5e-3)


def test_the_dual_is_the_price():
    model = ll.ExADMM(factors=8, exposure_weight=1e-3, solver="exact", epochs=5).fit(market())
    np.testing.assert_allclose(model.dual_, model.price_, rtol=1e-4)


def test_threads_do_not_matter():
    one, two = (
        ll.ExADMM(factors=8, exposure_weight=1e-3, solver="exact", epochs=5, num_threads=n).fit(
            market()
        )
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.user_factors, two.user_factors)
    np.testing.assert_array_equal(one.item_factors, two.item_factors)


def test_what_only_alternating_directions_have_is_refused():
    for name in ("penalty", "learning_rate"):
        with pytest.raises(ConfigError, match=f"{name} has no effect with solver='exact': 0.1"):
            ll.ExADMM(solver="exact", **{name: 0.1})


def test_joint_fold_in_is_what_alternating_directions_come_to():
    data = market(600, 80, 9000)
    split = ll.split_users(data, validation=50, test=150)
    fits = {"factors": 8, "exposure_weight": 1e-4, "fold_in": "joint", "epochs": 400, **FIXED}
    exact = ll.ExADMM(solver="exact", **fits).fit(split.train)
    slow = ll.ExADMM(solver="admm", **fits)
    slow._learned = exact._learned
    np.testing.assert_allclose(
        exact.fold_in(split.test.history), slow.fold_in(split.test.history), atol=2e-3
    )
