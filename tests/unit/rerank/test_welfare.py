"""Welfare: concave, and its marginal values are its derivative."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from limelight._base.errors import ConfigError, DataError
from limelight.rerank.welfare import (
    GiniWelfare,
    Impact,
    MinimumExposure,
    Power,
    TargetShares,
    as_welfare,
)

WELFARES = [
    Power(),
    Power(exponent=0.5, offset=0.1),
    Power(exponent=2, offset=0.5),
    Impact(merit_exponent=0.5),
    MinimumExposure(least=0.7, width=0.3),
    TargetShares([1, 2, 3, 4, 5]),
    GiniWelfare(),
    GiniWelfare(smoothing=0.05),
]
exposures = hnp.arrays(np.float64, 5, elements=st.floats(0, 20))


@pytest.mark.parametrize("welfare", WELFARES, ids=repr)
def test_marginal_welfare_is_the_derivative(welfare):
    x = np.array([0.2, 0.9, 1.3, 4.0, 0.45])
    step = 1e-6
    for j in range(len(x)):
        ahead, behind = x.copy(), x.copy()
        ahead[j] += step
        behind[j] -= step
        slope = (welfare.value(ahead) - welfare.value(behind)) / (2 * step)
        # The value is a mean over items.
        assert slope * len(x) == pytest.approx(welfare.marginal(x)[j], abs=1e-5)


@pytest.mark.parametrize("welfare", WELFARES, ids=repr)
@given(x=exposures, y=exposures)
def test_welfare_is_concave(welfare, x, y):
    middle = welfare.value((x + y) / 2)
    assert middle >= (welfare.value(x) + welfare.value(y)) / 2 - 1e-9


@pytest.mark.parametrize("welfare", WELFARES, ids=repr)
@given(x=exposures)
def test_who_has_more_is_helped_no_more(welfare, x):
    helped = welfare.marginal_given(x)(np.sort(x))
    assert (np.diff(helped) <= 1e-9).all()


@given(x=exposures)
def test_gini_welfare_gives_the_gini_index_without_smoothing(x):
    assume(x.max() > 0.1)
    welfare, n = GiniWelfare(smoothing=1e-6), len(x)
    gini = np.abs(x[:, None] - x).sum() / (2 * n * x.sum())
    found = (n + 1) / n - 2 * welfare.value(x) * n / x.sum()
    assert found == pytest.approx(gini, abs=1e-4)


def test_target_shares_are_scaled_and_checked():
    assert TargetShares([2, 2]).shares(2).tolist() == [0.5, 0.5]
    for targets in ([1], [1, -1], [0, 0], [1, np.nan]):
        with pytest.raises(DataError, match="target shares"):
            TargetShares(targets).shares(2)


def test_merit_pulls_only_where_it_should():
    merit = np.array([1.0, 4.0])
    assert Power().pull(merit).tolist() == [1, 1]
    assert Impact(merit_exponent=0.5).pull(merit).tolist() == pytest.approx([2 / 3, 4 / 3])


def test_unknown_welfare_is_refused():
    with pytest.raises(ConfigError, match="unknown welfare: 'nash'"):
        as_welfare("nash")
    with pytest.raises(ConfigError, match="offset must be a finite number above 0"):
        Power(offset=0)


def test_so_many_items_tell_how_exposure_is_spread():
    x = np.random.default_rng(0).gamma(0.5, 2.0, 20_000)
    welfare, at = GiniWelfare(), np.linspace(0, 8, 50)
    order = np.argsort(x)
    expected = np.interp(at, x[order], welfare.marginal(x)[order])
    np.testing.assert_allclose(welfare.marginal_given(x)(at), expected, atol=2e-3)
