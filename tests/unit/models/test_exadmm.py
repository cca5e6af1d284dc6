import dataclasses

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles
from tests.support.models import FIXED

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight._native import kernels, use_variant
from limelight.data import marketplace
from limelight.models import ExADMM
from limelight.models.exadmm import ExADMMConfig
from limelight.testing.contracts import LearnerContract
from limelight.testing.planted import checkerboard, random_interactions

X = random_interactions(60, 40, seed=3)


class TestExADMM(LearnerContract):
    quality_floor = 0.2

    def make(self, **settings):
        return ExADMM(factors=10, epochs=50, solver="admm", exposure_weight=1e-6, **settings)


class TestExADMMByDescent(LearnerContract):
    quality_floor = 0.2

    def make(self, **settings):
        return ExADMM(factors=10, epochs=50, exposure_weight=1e-6, row_solver="cg", **settings)


class TestExADMMWithJointFoldIn(LearnerContract):
    quality_floor = 0.2

    def make(self, **settings):
        return ExADMM(
            factors=10, epochs=50, solver="admm", exposure_weight=1e-6, fold_in="joint", **settings
        )


@pytest.mark.parametrize("variant", kernels.variants())
def test_agrees_with_the_stored_answers(golden, variant):
    with use_variant(variant):
        model = ExADMM(
            factors=8,
            epochs=8,
            tolerance=0.0,
            trace_every=1,
            unobserved_weight=float(golden["alpha0"]),
            regularization=float(golden["l2"]),
            regularization_exponent=float(golden["eta"]),
            exposure_weight=float(golden["exposure"]),
            penalty=float(golden["penalty"]),
            learning_rate=float(golden["learning_rate"]),
        ).fit(sparse.csr_matrix(golden["R"]), init=(golden["U0"], golden["V0"]))
    for found, letter in (
        (model.user_factors, "U"),
        (model.item_factors, "V"),
        (model.mean_user_, "s"),
        (model.dual_, "w"),
    ):
        stored = golden[f"exadmm_{letter}"]
        assert np.linalg.norm(found - stored) < 1e-4 * np.linalg.norm(stored)
    lagrangians = [record.lagrangian for record in model.trace_]
    np.testing.assert_allclose(lagrangians, golden["exadmm_lagrangian"], rtol=1e-5)


def dense_of(R, model, exposure):
    config = model.config
    return oracles.DenseProblem(
        R.toarray().astype(float),
        config.unobserved_weight,
        config.regularization,
        config.regularization_exponent,
        exposure,
    )


def weighted(X):
    found = X.copy()
    found.data = np.random.default_rng(1).lognormal(size=found.nnz).astype(np.float32)
    return found


@pytest.mark.parametrize("data", [X, weighted(X)], ids=["binary", "weighted"])
def test_agrees_with_its_twin_at_the_automatic_tempo(data):
    generator = np.random.default_rng(0)
    U, V = (generator.standard_normal((n, 6)) / 3 for n in data.shape)
    settings = {"factors": 6, "epochs": 5, "trace_every": 1, "solver": "admm", **FIXED}
    weight = None if data is X else "values"
    model = ExADMM(exposure_weight=1e-3, **settings).fit(data, weight=weight, init=(U, V))
    dense = dense_of(data, model, 1e-3 * 60**2)
    state, rho = oracles.DenseState(U, V, U.mean(axis=0), np.zeros(6)), 0.0
    for record in model.trace_:
        V = oracles.v_step(dense, state.U, state.s)
        shared = dense.unobserved_weight * np.linalg.eigvalsh(V.T @ V)[-1]
        steps = 1 / (shared + dense.user_ridge + oracles.curvature(dense.R, V))
        rho, before = 10 * 60 / steps.mean(), rho
        state = oracles.exadmm_epoch(dense, state._replace(w=state.w * before / rho), steps, rho)
        assert record.lagrangian == pytest.approx(dense.lagrangian(state, rho), rel=1e-4)
    np.testing.assert_allclose(model.user_factors, state.U, atol=1e-4)
    np.testing.assert_allclose(model.dual_, state.w, atol=1e-6)


def test_tracing_changes_no_bit():
    often, once = (
        ExADMM(factors=6, solver="admm", exposure_weight=1e-3, trace_every=n).fit(X) for n in (1, 0)
    )
    np.testing.assert_array_equal(often.user_factors, once.user_factors)
    np.testing.assert_array_equal(often.item_factors, once.item_factors)


@pytest.mark.parametrize("solver", ["admm", "exact"])
@pytest.mark.parametrize("data", [X, weighted(X)], ids=["binary", "weighted"])
def test_conditions_of_optimality_at_convergence(data, solver):
    settings = {"factors": 4, "epochs": 4000, "trace_every": 0, "solver": solver, **FIXED}
    weight = None if data is X else "values"
    model = ExADMM(exposure_weight=1e-4, **settings).fit(data, weight=weight)
    U, V, s = model.user_factors.astype(float), model.item_factors.astype(float), model.mean_user_
    dense = dense_of(data, model, 1e-4 * 60**2)
    np.testing.assert_allclose(s, U.mean(axis=0), atol=1e-4)
    # Every user's gradient equals the price of exposure, with its sign.
    price = (dense.exposure / 60) * V.T @ V @ s
    np.testing.assert_allclose(model.price_, price, rtol=1e-6)
    np.testing.assert_allclose(
        oracles.user_gradient(dense, U, V), np.tile(-price, (60, 1)), atol=5e-3
    )


def test_price_fold_in_of_training_users_finds_them_again():
    settings = {"factors": 4, "epochs": 4000, "trace_every": 0, "solver": "admm", **FIXED}
    model = ExADMM(exposure_weight=1e-4, **settings).fit(X)
    assert np.abs(model.fold_in(X) - model.user_factors).max() < 0.02


def test_price_fold_in_does_not_depend_on_who_else_asks():
    model = ExADMM(factors=8, exposure_weight=1e-4).fit(X)
    together = model.fold_in(X)
    alone = np.vstack([model.fold_in(X[i]) for i in range(X.shape[0])])
    np.testing.assert_array_equal(alone, together)


def test_joint_fold_in_converges_to_the_exact_one():
    model = ExADMM(factors=6, exposure_weight=1e-3, fold_in="joint", **FIXED).fit(X)
    histories = random_interactions(25, 40, seed=9)
    rounds = dataclasses.replace(model.config, epochs=3000)
    model.config = rounds
    exposure = 1e-3 * 60 * 25
    dense = dense_of(histories, model, exposure)
    exact = oracles.coupled_users(dense, model.item_factors.astype(float))
    np.testing.assert_allclose(model.fold_in(histories), exact, atol=2e-3)


def test_fold_in_keeps_the_exposure_control():
    plain = ExADMM(factors=8, epochs=100).fit(X)
    controlled = ExADMM(factors=8, epochs=100, exposure_weight=1e-2).fit(X)
    scores = [
        np.sum((m.item_factors @ m.fold_in(X).mean(axis=0)) ** 2) for m in (plain, controlled)
    ]
    assert scores[1] < 0.5 * scores[0]


@pytest.mark.parametrize("shape", [(2, 2), (60, 7)])
def test_init_of_a_wrong_shape(shape):
    with pytest.raises(DataError, match="init U must have shape"):
        ExADMM(factors=6).fit(X, init=(np.zeros(shape), np.zeros((40, 6))))


def test_init_of_three_arrays():
    with pytest.raises(DataError, match="init must be two arrays, of users and of items: 3"):
        ExADMM(factors=6).fit(X, init=(np.zeros((60, 6)),) * 3)


def test_init_of_text():
    with pytest.raises(DataError, match="init U must hold numbers, not <U1"):
        ExADMM(factors=6).fit(X, init=(np.full((60, 6), "a"), np.zeros((40, 6))))


def test_init_that_is_not_finite():
    with pytest.raises(DataError, match="init V holds values that are not finite"):
        ExADMM(factors=6).fit(X, init=(np.zeros((60, 6)), np.full((40, 6), np.nan)))


BAD_SETTINGS = {
    "factors must be at least 1: 0": {"factors": 0},
    "factors must be an integer: 3.5": {"factors": 3.5},
    "epochs must be at least 1: 0": {"epochs": 0},
    "epochs must be an integer: True": {"epochs": True},
    "regularization must be a finite number 0 or more: -1": {"regularization": -1},
    "unobserved_weight must be a finite number 0 or more: nan": {"unobserved_weight": float("nan")},
    "exposure_weight must be a finite number 0 or more: inf": {"exposure_weight": float("inf")},
    "exposure_weight must be a number: 'much'": {"exposure_weight": "much"},
    "penalty must be a finite number above 1e-30: 0": {"penalty": 0},
    "learning_rate must be a number: 'fast'": {"learning_rate": "fast"},
    "init_scale must be a finite number above 0: 0": {"init_scale": 0},
    "random_state must be at least 0: -1": {"random_state": -1},
    "fold_in is not a known choice: 'magic'": {"fold_in": "magic"},
    "solver is not a known choice: 'magic'": {"solver": "magic"},
    "learning_rate must be a finite number above 1e-30: 1e-50": {"learning_rate": 1e-50},
    "num_threads must be at most 4,096: 99999999999": {"num_threads": 99999999999},
    "row_solver is not a known choice: 'qr'": {"row_solver": "qr"},
    "unknown hyper-parameter: 'exposure_wieght'": {"exposure_wieght": 1},
    "unknown hyper-parameter: 'banana'": {"banana": 1},
}


@pytest.mark.parametrize("message", BAD_SETTINGS)
def test_settings_that_no_fit_could_use(message):
    with pytest.raises(ConfigError, match=message) as error:
        ExADMM(**BAD_SETTINGS[message])
    assert error.value.hint


def test_settings_are_given_by_name():
    with pytest.raises(ConfigError, match="given by name: 64"):
        ExADMM(64)


def test_help_shows_every_setting_with_its_default():
    import inspect

    shown = inspect.signature(ExADMM).parameters
    expected = {field.name: field.default for field in dataclasses.fields(ExADMMConfig)}
    assert {name: parameter.default for name, parameter in shown.items()} == expected


def test_defaults():
    assert ExADMM().get_params() == {
        "factors": "auto",
        "regularization": "auto",
        "regularization_exponent": 1.0,
        "unobserved_weight": "auto",
        "row_solver": "cholesky",
        "epochs": 50,
        "tolerance": 3e-4,
        "init_scale": 0.1,
        "random_state": 0,
        "num_threads": 0,
        "trace_every": 10,
        "exposure_weight": 0.0,
        "exposure_strength": 0.0,
        "solver": "auto",
        "penalty": "auto",
        "learning_rate": "auto",
        "fold_in": "price",
    }


@pytest.mark.parametrize("rate", [2.0, 1e4])
def test_joint_fold_in_that_diverges_is_an_error(rate):
    model = ExADMM(factors=6, exposure_weight=1e-3, fold_in="joint").fit(X)
    model.config = dataclasses.replace(model.config, learning_rate=rate)
    with pytest.raises(SolveError, match="the fit diverged"):
        model.fold_in(checkerboard(40))


def test_epinions_trades_accuracy_for_exposure_as_published(epinions):
    import limelight as ll

    settings = {"factors": 32, "unobserved_weight": 0.06, "regularization": 2e-4, "tolerance": 0.0}
    found = {
        penalty: ll.evaluate(
            ExADMM(exposure_weight=1e-3, penalty=penalty, **settings).fit(epinions.train),
            epinions.validation,
            k=20,
        )
        for penalty in (6e-2, "auto")
    }
    assert found[6e-2]["ndcg@20"] >= 0.065
    assert found[6e-2]["gini@20"] <= 0.893
    for key in ("ndcg@20", "gini@20"):
        assert found["auto"][key] == pytest.approx(found[6e-2][key], abs=0.003)


def test_a_strength_is_a_weight_times_the_number_of_users():
    by_weight = ExADMM(factors=6, epochs=5, exposure_weight=1e-2).fit(X)
    by_strength = ExADMM(factors=6, epochs=5, exposure_strength=1e-2 * X.shape[0]).fit(X)
    np.testing.assert_array_equal(by_weight.user_factors, by_strength.user_factors)
    np.testing.assert_array_equal(by_weight.price_, by_strength.price_)
    with pytest.raises(ConfigError, match="exclude each other: 1 and 2"):
        ExADMM(exposure_weight=1, exposure_strength=2)


def test_a_strength_means_the_same_in_data_of_another_size():
    """Half of the users: the mean scores stay what they were by strength, and not by weight."""
    data = marketplace(2000, 100, 30000).interactions.matrix
    ratio = {}
    for name, value in (("exposure_strength", 0.2), ("exposure_weight", 1e-4)):
        whole, half = (
            ExADMM(factors=8, **{name: value}, **FIXED).fit(data[:n]) for n in (2000, 1000)
        )
        scores = [np.linalg.norm(m.item_factors @ m.mean_user_) for m in (whole, half)]
        ratio[name] = scores[1] / scores[0]
    assert abs(ratio["exposure_strength"] - 1) < 0.1 < abs(ratio["exposure_weight"] - 1)


def test_a_penalty_asks_for_alternating_directions():
    assert ExADMM().config.is_exact
    assert not ExADMM(penalty=1.0).config.is_exact
    assert not ExADMM(learning_rate=0.1).config.is_exact
    assert not ExADMM(solver="admm").config.is_exact
