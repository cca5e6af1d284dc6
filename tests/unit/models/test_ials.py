import numpy as np
import pytest
from tests.support import oracles
from tests.support.models import FIXED

from limelight._native import kernels, use_variant
from limelight.models import IALS
from limelight.testing.contracts import LearnerContract
from limelight.testing.planted import random_interactions

GOLDEN_SETTINGS = {
    "alpha0": "unobserved_weight",
    "l2": "regularization",
    "eta": "regularization_exponent",
}


def golden_settings(golden):
    return {name: float(golden[key]) for key, name in GOLDEN_SETTINGS.items()}


class TestIALS(LearnerContract):
    quality_floor = 0.22

    def make(self, **settings):
        return IALS(factors=10, epochs=8, **settings)


class TestIALSByDescent(LearnerContract):
    quality_floor = 0.22

    def make(self, **settings):
        return IALS(factors=10, epochs=8, row_solver="cg", **settings)


def test_descent_reaches_nearly_the_same_objective():
    R = random_interactions(200, 120, seed=7)
    exact, descent = (
        IALS(factors=20, epochs=12, row_solver=solver, **FIXED).fit(R).trace_[-1].objective
        for solver in ("cholesky", "cg")
    )
    assert descent == pytest.approx(exact, rel=0.005)


def test_fold_in_is_exact_whatever_trained_the_model():
    R = random_interactions(50, 30, seed=7)
    model = IALS(factors=5, epochs=4, row_solver="cg", **FIXED).fit(R)
    V = model.item_factors.astype(float)
    dense = oracles.DenseProblem(R.toarray().astype(float), 0.1, 0.003)
    exact = oracles.solve_rows(dense.R, V, 0.1 * V.T @ V, dense.user_ridge)
    np.testing.assert_allclose(model.fold_in(R), exact, atol=1e-4)


@pytest.mark.parametrize("variant", kernels.variants())
def test_agrees_with_the_stored_answers(golden, variant):
    from scipy import sparse

    with use_variant(variant):
        model = IALS(factors=8, epochs=5, tolerance=0.0, **golden_settings(golden))
        model.fit(sparse.csr_matrix(golden["R"]), init=(golden["U0"], golden["V0"]))
    for found, stored in ((model.user_factors, "ials_U"), (model.item_factors, "ials_V")):
        assert np.linalg.norm(found - golden[stored]) < 1e-4 * np.linalg.norm(golden[stored])


@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_its_twin(weighted):
    R = random_interactions(50, 30, seed=7)
    generator = np.random.default_rng(0)
    if weighted:
        R.data = generator.lognormal(size=R.nnz).astype(np.float32)
    U, V = (generator.standard_normal((n, 5)) for n in R.shape)
    dense = oracles.DenseProblem(R.toarray().astype(float), 0.2, 0.01, 0.5)
    settings = {"unobserved_weight": 0.2, "regularization": 0.01, "regularization_exponent": 0.5}
    weight = "values" if weighted else None
    settings = {"factors": 5, "epochs": 3, "tolerance": 0.0, **settings}
    model = IALS(**settings).fit(R, weight=weight, init=(U, V))
    for _ in range(3):
        U, V = oracles.ials_epoch(dense, U, V)
    np.testing.assert_allclose(model.user_factors, U, atol=1e-5)
    np.testing.assert_allclose(model.item_factors, V, atol=1e-5)
    assert model.trace_[-1].objective == pytest.approx(dense.objective(U, V), rel=1e-5)
    exact = oracles.solve_rows(dense.R, V, 0.2 * V.T @ V, dense.user_ridge)
    np.testing.assert_allclose(model.fold_in(R), exact, atol=1e-4)


def test_fold_in_of_a_training_user_is_her_last_update():
    R = random_interactions(50, 30, seed=7)
    model = IALS(factors=5, epochs=500, trace_every=0, **FIXED).fit(R)
    np.testing.assert_allclose(model.fold_in(R), model.user_factors, atol=1e-3)


def test_epinions_reaches_the_published_accuracy(epinions):
    import limelight as ll

    model = IALS(factors=32, unobserved_weight=0.06, regularization=7e-4, epochs=50, tolerance=0.0)
    found = ll.evaluate(model.fit(epinions.train), epinions.validation, k=20)
    assert found["ndcg@20"] >= 0.072
