"""Prices of groups keep their shares within caps and floors, and never push the wrong way."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.serve.targets.prices import MARGIN, AccountPrices

pytestmark = pytest.mark.unit
NAMES = ["a", "b", "c"]


def prices(low=0.0, high=1.0, names=NAMES):
    return AccountPrices(np.full(len(names), low), np.full(len(names), high), names)


def test_whoever_is_above_a_cap_pays_and_nobody_else():
    found = prices(high=0.3).move(np.array([0.4, 0.2, 0.01]), 0.1)
    assert found[0] > 0
    assert found[1:].tolist() == [0.0, 0.0]


def test_whoever_is_below_a_floor_is_paid_and_nobody_else():
    found = prices(low=0.1).move(np.array([0.05, 0.5, 0.45]), 0.1)
    assert found[0] < 0
    assert found[1:].tolist() == [0.0, 0.0]


def test_a_price_grows_while_a_share_stays_outside_and_falls_afterwards():
    one = prices(high=0.3)
    over, under = np.array([0.36, 0.3, 0.34]), np.array([0.24, 0.3, 0.3])
    grown = [one.move(over, 0.05)[0] for _ in range(5)]
    assert grown == sorted(grown)
    fallen = [one.move(under, 0.05)[0] for _ in range(10)]
    assert fallen == sorted(fallen, reverse=True)
    assert fallen[-1] == 0


def test_prices_aim_a_little_inside_the_bounds():
    aimed = (1 - MARGIN) * 0.3
    one = prices(high=0.3)
    assert one.move(np.full(3, aimed + 1e-3), 0.1).min() > 0
    assert prices(high=0.3).move(np.full(3, aimed - 1e-3), 0.1).max() == 0
    assert prices(low=0.3).move(np.full(3, (1 + MARGIN) * 0.3 - 1e-3), 0.1).max() < 0


def test_nobody_is_bound_by_0_and_1():
    one = prices()
    for shares in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        assert one.move(np.array(shares), 1.0).tolist() == [0.0, 0.0, 0.0]


def test_prices_are_bounded_and_come_down_again():
    one = prices(high=0.1)
    for _ in range(10_000):
        one.move(np.ones(3), 0.5)
    assert one.of_caps.max() == 1000
    # Not wound up: a share far inside brings a price down by as much in each step.
    for _ in range(100):
        one.move(np.zeros(3), 0.5)
    assert one.prices.max() == 0


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.floats(0, 1),
    st.floats(0, 0.3),
    st.floats(0.3, 1),
)
def test_prices_are_finite_and_only_those_outside_get_any(shares, step, low, high):
    one = AccountPrices(np.full(3, low), np.full(3, high), NAMES)
    found = one.move(np.array(shares), step)
    assert np.isfinite(found).all()
    inside = (np.array(shares) < 0.97 * high) & (np.array(shares) > 1.03 * low + 1e-6)
    assert (found[inside] == 0).all()
    outside = one.outside(np.array(shares))
    assert (found[(np.array(shares) > high + 1e-6) & (outside > 0)] >= 0).all()


def test_a_state_goes_on_where_it_was():
    one, other = prices(high=0.3, low=0.1), prices(high=0.3, low=0.1)
    one.move(np.array([0.5, 0.05, 0.2]), 0.1)
    other.restore(json.loads(json.dumps(one.state())))
    np.testing.assert_array_equal(other.prices, one.prices)
    for shares in ([0.4, 0.05, 0.3], [0.2, 0.2, 0.2]):
        moved = [each.move(np.array(shares), 0.01) for each in (one, other)]
        np.testing.assert_array_equal(*moved)


def test_a_state_finds_its_groups_by_name():
    one = prices(high=0.3)
    one.move(np.array([0.5, 0.2, 0.4]), 0.1)
    other = prices(high=0.3, names=["c", "new", "a"])
    other.restore(one.state())
    assert other.prices.tolist() == [one.prices[2], 0.0, one.prices[0]]


def test_what_is_bound_no_more_has_no_price():
    one = prices(high=0.3, low=0.1)
    one.move(np.array([0.5, 0.05, 0.2]), 0.1)
    free = prices()
    free.restore(one.state())
    assert free.prices.tolist() == [0.0, 0.0, 0.0]
    assert free.of_caps.tolist() == [0.0, 0.0, 0.0]


def test_a_state_that_is_not_finite_changes_nothing():
    one = prices(high=0.3)
    with pytest.raises(ValueError, match="not finite"):
        one.restore({"a": [float("nan"), 0.0, 0.0]})
    with pytest.raises(ValueError, match="shape"):
        one.restore({"a": [1.0, 2.0]})
    assert one.prices.tolist() == [0.0, 0.0, 0.0]
