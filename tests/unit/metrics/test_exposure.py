"""Exposure metrics: identities that must hold for any numbers, and numbers known by hand."""

import heapq
from math import log, log2

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from limelight._base.errors import ConfigError, DataError
from limelight.audit.audit import audit
from limelight.metrics.exposure import (
    coverage,
    entropy,
    exposure,
    gini,
    gini_floor,
    handout_gini,
    lorenz,
    top_share,
)
from limelight.metrics.lists import position_weights

amounts = hnp.arrays(
    np.float64, st.integers(1, 40), elements=st.floats(0, 1e6, allow_subnormal=False)
).filter(lambda values: values.sum() > 0)


def pairwise_gini(values):
    return np.abs(values[:, None] - values).sum() / (2 * len(values) * values.sum())


def welfare_gini(values):
    """Gini(v) = (n + 1)/n - 2 g_w(v)/|v|, g_w the generalised Gini welfare."""
    n = len(values)
    weights = (n - np.arange(1, n + 1) + 1) / n
    return (n + 1) / n - 2 * (weights @ np.sort(values)) / values.sum()


@given(amounts)
def test_gini_equals_its_other_definitions(values):
    assert gini(values) == pytest.approx(pairwise_gini(values), abs=1e-9)
    assert gini(values) == pytest.approx(welfare_gini(values), abs=1e-9)


@given(amounts)
def test_gini_is_one_minus_twice_the_area_under_the_lorenz_curve(values):
    q, share = lorenz(values)
    assert 1 - 2 * np.trapezoid(share, q) == pytest.approx(gini(values), abs=1e-9)
    assert (q[0], share[0], q[-1], share[-1]) == (0, 0, 1, 1)
    assert (np.diff(share) >= 0).all()


@given(amounts, st.floats(1e-3, 1e3), st.randoms(use_true_random=False))
def test_gini_ignores_scale_and_order(values, factor, random):
    shuffled = values.copy()
    random.shuffle(shuffled)
    assert gini(shuffled * factor) == pytest.approx(gini(values), abs=1e-9)


@given(st.integers(1, 200), st.floats(1e-6, 1e6))
def test_equal_exposure(n, amount):
    values = np.full(n, amount)
    assert gini(values) == pytest.approx(0, abs=1e-12)
    assert entropy(values) == pytest.approx(1)
    assert coverage(values) == 1


@given(st.integers(2, 200), st.data())
def test_one_item_has_everything(n, data):
    values = np.zeros(n)
    values[data.draw(st.integers(0, n - 1))] = 3
    assert gini(values) == pytest.approx(1 - 1 / n)
    assert entropy(values) == 0
    assert coverage(values) == pytest.approx(1 / n)
    assert top_share(values) == 1


@given(amounts)
def test_metrics_stay_in_range(values):
    for metric in (gini, coverage, entropy, top_share):
        assert 0 <= metric(values) <= 1 + 1e-12


def test_gini_by_hand():
    assert gini([0, 0, 0, 0, 1, 2, 3, 4, 10, 20]) == pytest.approx(0.7)


def test_huge_and_tiny_exposure_does_not_overflow():
    assert gini([1e308, 1e308, 1e308]) == pytest.approx(0)
    assert gini([5e-324, 0]) == pytest.approx(0.5)


def test_exposure_by_hand():
    ids = np.array([[0, 1, 2], [1, 0, -1]], dtype=np.int32)
    log_weighted = [1 + 1 / log2(3), 1 + 1 / log2(3), 0.5, 0]
    assert exposure(ids, 4) == pytest.approx(log_weighted)
    assert exposure(ids, 4, k=1).tolist() == [1, 1, 0, 0]
    assert exposure(ids, 4, weight="uniform").tolist() == [2, 2, 1, 0]
    assert exposure(np.empty((0, 3), dtype=int), 2).tolist() == [0, 0]
    assert exposure(ids, 4).dtype == np.float64


def test_entropy_by_hand():
    shares = np.array([0.5, 0.25, 0.25])
    assert entropy([2, 1, 1, 0]) == pytest.approx(-(shares @ np.log(shares)) / log(4))
    assert entropy([3]) == 1


@pytest.mark.parametrize(("n", "top", "expected"), [(100, 0.07, 7), (100, 0.01, 1), (50, 0.01, 1)])
def test_top_share_rounds_up_to_whole_items(n, top, expected):
    assert top_share(np.ones(n), top) == pytest.approx(expected / n)


def naive_floor(n_lists, k, n_items, weight):
    heap = [0.0] * n_items
    for worth in position_weights(min(k, n_items), weight):
        for _ in range(n_lists):
            heapq.heapreplace(heap, heap[0] + worth)
    return gini(heap)


@given(
    st.integers(1, 40), st.integers(1, 25), st.integers(1, 60), st.sampled_from(["log", "uniform"])
)
def test_floor_equals_handing_out_one_by_one(n_lists, k, n_items, weight):
    expected = naive_floor(n_lists, k, n_items, weight)
    assert gini_floor(n_lists, k, n_items, weight) == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 500))
def test_uniform_floor_has_a_closed_form(n_lists, k, n_items):
    places = n_lists * min(k, n_items)
    rest = places % n_items
    expected = rest * (n_items - rest) / (n_items * places)
    assert gini_floor(n_lists, k, n_items, "uniform") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("k", "expected"), [(3, 0.653), (5, 0.422), (10, 0.114), (20, 0.093)])
def test_floor_of_the_epinions_test_part(k, expected):
    assert gini_floor(462, k, 3999, weight="uniform") == pytest.approx(expected, abs=6e-4)


def test_floor_of_millions_of_lists_takes_no_time():
    assert 0 <= gini_floor(1_000_000, 20, 999_983) < 0.01
    assert gini_floor(10_000_000, 20, 7) == pytest.approx(0, abs=1e-6)


def test_floor_of_lists_of_different_lengths():
    assert handout_gini(np.array([1.0, 0.5]), np.array([2, 1]), 3) == pytest.approx(
        gini([1, 1, 0.5])
    )


@pytest.mark.parametrize("metric", [gini, lorenz, coverage, entropy, top_share])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 0, 0], "no exposure at all: the sum over 3 items is 0"),
        ([], r"exposure must hold one number per item, got shape \(0,\)"),
        ([[1, 2]], r"exposure must hold one number per item, got shape \(1, 2\)"),
        ([1, -2], "exposure of item 1 is negative or not finite: -2.0"),
        ([np.nan, 1], "exposure of item 0 is negative or not finite: nan"),
        ([1, np.inf], "exposure of item 1 is negative or not finite: inf"),
    ],
)
def test_impossible_exposure(metric, values, message):
    with pytest.raises(DataError, match=message):
        metric(values)


def test_unknown_weight():
    with pytest.raises(ConfigError, match="unknown position weight: 'rbp'"):
        exposure([[0]], 1, weight="rbp")


@pytest.mark.parametrize("top", [0, 1.5, -0.1])
def test_top_out_of_range(top):
    with pytest.raises(ConfigError, match="top must be above 0 and at most 1"):
        top_share([1, 2], top)


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_floor_needs_positive_numbers(numbers):
    with pytest.raises(ConfigError, match="must be a whole number of at least 1, got 0"):
        gini_floor(*numbers)


def test_golden_lists(golden):
    measured = exposure(golden["top10"], n_items=golden["R"].shape[1])
    assert measured == pytest.approx(golden["exposure10"], rel=1e-12)
    assert gini(measured) == pytest.approx(float(golden["gini10"]), rel=1e-12)


def test_gini_of_an_audit_is_the_mean_difference_of_all_pairs():
    generator = np.random.default_rng(0)
    ids = np.argsort(generator.gumbel(size=(400, 500)) - 0.01 * np.arange(500), axis=1)[:, -20:]
    table = {
        "user_id": np.repeat(np.arange(400), 20),
        "item_id": ids.ravel(),
        "rank": np.tile(np.arange(1, 21), 400),
    }
    found = audit(pa.table(table), catalogue=range(500))
    for key, shares in (
        ("gini@20", exposure(ids, 500)),
        ("gini_uniform@20", exposure(ids, 500, weight="uniform")),
    ):
        differences = np.abs(shares[:, np.newaxis] - shares).sum()
        naive = differences / (2 * len(shares) * shares.sum())
        assert found.metrics[key] == pytest.approx(naive, abs=1e-12)
