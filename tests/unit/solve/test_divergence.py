"""Numbers that cannot be trusted are not returned, and the error says what to change."""

import numpy as np
import pytest
from tests.support.models import FIXED

import limelight as ll
from limelight import SolveError
from limelight.recommend.index import ItemIndex
from limelight.solve.state import told_in_words


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(300, 100, 4000).interactions


def refusal(model, data, **fit):
    with pytest.raises(SolveError) as error:
        model.fit(data, **fit)
    return error.value


@pytest.mark.parametrize("strength", [1e14, 1e20, 1e30])
def test_an_exposure_weight_that_makes_more_of_rounding_than_of_the_data(data, strength):
    model = ll.ExADMM(factors=8, epochs=8, exposure_strength=strength, **FIXED)
    error = refusal(model, data)
    assert "rounding alone raises the objective from " in error.message
    assert error.hint.startswith(
        f"bring this nearer to its default: exposure_strength={strength!r}; "
    )


def test_the_largest_exposure_weights_that_can_be_trusted_are(data):
    fits = [ll.ExADMM(factors=8, epochs=8, exposure_strength=s).fit(data) for s in (1e8, 1e12)]
    few, many = (model.trace_[-1].objective for model in fits)
    assert many == pytest.approx(few, rel=0.01)


@pytest.mark.parametrize("row_solver", ["cholesky", "cg"])
@pytest.mark.parametrize(
    "setting",
    [
        {"unobserved_weight": 1e30},
        {"unobserved_weight": 1e300},
        {"regularization": 1e30},
        {"regularization": 1e300},
        {"regularization_exponent": 1e5},
        {"init_scale": 1e30},
        {"init_scale": 1e300},
        {"init_scale": 1e-45},
    ],
    ids=str,
)
@pytest.mark.parametrize("solver", ["exact", "admm"])
def test_settings_beyond_all_bounds_are_told_of(data, solver, setting, row_solver):
    solvers = {"solver": solver, "row_solver": row_solver}
    model = ll.ExADMM(factors=4, epochs=3, exposure_strength=1.0, **solvers, **FIXED | setting)
    error = refusal(model, data)
    assert error.message.startswith("the ")
    assert ("learning_rate" in error.hint) <= (solver == "admm")


def test_rows_without_any_weight(data):
    error = refusal(ll.IALS(factors=8, regularization=0, unobserved_weight=0), data)
    assert error.message.startswith("rows without a unique solution: ")
    assert error.hint.startswith("raise regularization or unobserved_weight; ")


def test_factors_that_score_nothing_are_no_model(data):
    nothing = np.zeros((300, 4)), np.zeros((100, 4))
    assert "collapsed" in refusal(ll.IALS(factors=4, epochs=2), data, init=nothing).message
    model = ll.IALS(factors=4, epochs=2, init_scale=1e-30, row_solver="cg")
    assert "scores are 0 in 32 bits" in refusal(model, data).message


def test_what_linear_algebra_says_is_said_in_our_words():
    class Problem:
        advice = "do less"

    with (
        pytest.raises(SolveError, match="the fit diverged: singular, in epoch 3") as error,
        told_in_words(Problem(), "in epoch 3"),
    ):
        raise np.linalg.LinAlgError("singular")
    assert error.value.hint == "do less"


@pytest.mark.parametrize("value", [3e38, np.inf, np.nan])
def test_scores_beyond_32_bits_are_not_searched(value):
    items = np.ones((3, 2), dtype=np.float32)
    users = np.full((1, 2), value, dtype=np.float32)
    with pytest.raises(SolveError, match="scores are too large for 32-bit numbers"):
        ItemIndex(items, threads=1).search(users, k=1)
