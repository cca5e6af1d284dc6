"""What the paper proves, checked on the fits that are shipped."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support import oracles

from limelight import ConfigError, ExADMM
from limelight.data.interactions import as_interactions
from limelight.models.factor_model import factor_solver, training_rows
from limelight.solve.population import Whole
from limelight.solve.theorem import lagrangian_gradients, largest_gamma, least_rho
from limelight.testing.planted import random_interactions

N_USERS, N_ITEMS = 40, 25
WEIGHTS = {"unobserved_weight": 0.1, "regularization": 0.05}
EXPOSURE = 8.0


def model(**settings) -> ExADMM:
    own = {"factors": 6, "solver": "admm", "exposure_weight": EXPOSURE / N_USERS**2, **WEIGHTS}
    return ExADMM(**{**own, **settings})


@pytest.fixture(scope="module")
def R():
    return random_interactions(N_USERS, N_ITEMS, seed=2)


@pytest.fixture(scope="module")
def twin(R):
    return oracles.DenseProblem(R.toarray().astype(float), **WEIGHTS, exposure=EXPOSURE)


@pytest.fixture(scope="module")
def check(R):
    """A run whose penalty and step size are within the bounds that it turns out to have."""
    return model(penalty=1e5 / N_USERS**2, learning_rate=0.0025, epochs=2500).theorem(R)


def test_the_conditions_hold(check) -> None:
    assert (check.rho_holds, check.gamma_holds, check.holds) == (True, True, True)
    assert check.rho == pytest.approx(1e5)
    assert check.gamma == 0.0025


def test_under_them_the_lagrangian_falls(check) -> None:
    assert len(check.lagrangian) == 2500
    assert check.is_monotone
    found = np.array(check.lagrangian)
    assert (np.diff(found) / np.abs(found[:-1])).max() < 1e-6
    assert found[-1] < 0.9 * found[0]


def test_under_them_gradients_vanish(check) -> None:
    scale = max(check.first_gradients)
    for after in check.last_gradients:
        assert after < 0.1 * scale


def test_the_bounds_are_those_of_the_theorem(check, twin) -> None:
    """Written once more, with the ridges of the twin."""
    lex, alpha = twin.exposure, twin.unobserved_weight
    coupling = 24 * lex**2 * check.C_V * check.C_s / twin.item_ridge.min()
    floor = 0.5 + np.sqrt(0.25 + 6 * lex**2 * check.C_V**2)
    assert check.least_rho == pytest.approx(max(coupling, floor), rel=1e-6)
    assert check.least_penalty == check.least_rho / N_USERS**2
    bend = np.sqrt(N_USERS) * ((1 + alpha) * check.C_V + twin.user_ridge.max()) + 1
    assert check.largest_gamma == pytest.approx(1 / bend, rel=1e-6)


def solver_after(R, epochs, **settings):
    fitted = model(penalty=4e4 / N_USERS**2, learning_rate=0.003, **settings)
    solver = factor_solver(fitted, Whole(training_rows(as_interactions(R))))
    for _ in range(epochs):
        solver.prepare(is_traced=True)
        solver.step()
    solver.measure(0.0)
    return solver


def test_both_bounds_of_the_penalty_count(R) -> None:
    problem = solver_after(R, 1).problem
    assert least_rho(problem, 1.0, 0.0) == pytest.approx(0.5 + np.sqrt(0.25 + 6 * EXPOSURE**2))
    assert least_rho(problem, 1.0, 1e9) == pytest.approx(
        24 * EXPOSURE**2 * 1e9 / problem.item_regularization.min()
    )
    assert largest_gamma(problem, 2.0) < largest_gamma(problem, 1.0) < 1


def test_gradients_are_the_slopes_of_the_lagrangian(R, twin) -> None:
    """A sign that is wrong changes a norm: slopes are finite differences of the twin's value."""
    solver = solver_after(R, 3)
    state, rho = solver.state, solver.state.penalty
    parts = {name: getattr(state, name).astype(float)[..., :6] for name in ("V", "U", "s", "w")}

    def value(**changed):
        own = {**parts, **changed}
        state = oracles.DenseState(own["U"], own["V"], own["s"], own["w"])
        return twin.lagrangian(state, rho)

    for name, found in lagrangian_gradients(solver.problem, state)._asdict().items():
        slopes = np.zeros_like(parts[name])
        for place in np.ndindex(slopes.shape):
            step = np.zeros_like(slopes)
            step[place] = 1e-5
            up, down = (value(**{name: parts[name] + sign * step}) for sign in (1, -1))
            slopes[place] = (up - down) / 2e-5
        assert found == pytest.approx(np.linalg.norm(slopes), rel=1e-4, abs=1e-6)


def test_outside_of_them_it_says_so(R) -> None:
    check = model(epochs=30).theorem(R)
    assert (check.rho_holds, check.gamma_holds) == (False, False)
    assert "rho = " in str(check)
    assert str(check).count("does not hold") == 2
    rising = model(penalty=1e-6, learning_rate=0.2, epochs=40).theorem(R)
    assert not rising.rho_holds


def test_a_rise_is_told(check) -> None:
    risen = replace(check, lagrangian=(*check.lagrangian, 2 * check.lagrangian[-1]))
    assert not risen.is_monotone
    assert "rises in some epochs" in str(risen)
    assert "falls in every epoch" in str(check)


def test_one_epoch(R) -> None:
    check = model(epochs=1).theorem(R)
    assert len(check.lagrangian) == 1
    assert check.first_gradients == check.last_gradients


def test_the_exact_solver_has_no_penalty(R) -> None:
    with pytest.raises(ConfigError, match="about alternating directions: solver='auto'"):
        model(solver="auto").theorem(R)
