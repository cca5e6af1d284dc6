"""AWRF, against a twin that adds up list by list."""

import numpy as np
import pytest
from tests.support import oracles_measures as twins

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import Groups


@pytest.mark.parametrize("weight", ["log", "uniform", 0.85])
@pytest.mark.parametrize("seed", range(8))
def test_awrf_equals_its_twin(seed, weight):
    rng = np.random.default_rng(seed)
    padded, lists = twins.random_lists(rng, n_users=30, n_items=20, k=7)
    groups = rng.integers(-1, 4, 20)
    groups[:4] = range(4)
    names = [None if g < 0 else g for g in groups.tolist()]
    owned = np.bincount(groups[groups >= 0], minlength=4)
    for target, wanted in (("catalogue", owned), ("equal", np.ones(4)), ([1, 0, 2, 1],) * 2):
        found = ll.awrf(padded, groups, 20, target=target, weight=weight, per_user=True)
        expected = [twins.awrf(items, names, list(wanted), weight) for items in lists]
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
        mean = ll.awrf(padded, groups, 20, target=target, weight=weight)
        assert mean == pytest.approx(twins.mean(expected), abs=1e-12)


def test_attention_as_wanted_is_1_and_elsewhere_is_0():
    groups = ["x", "x", "y", "y"]
    assert ll.awrf([[0, 2]], groups, 4, weight="uniform") == 1
    assert ll.awrf([[0, 1]], groups, 4, target=[0, 1]) == 0
    near, far = (ll.awrf([items], groups, 4) for items in ([0, 2], [0, 1]))
    assert 0 < far < near < 1


def test_an_item_of_two_groups_is_divided():
    members = Groups(np.array([0, 0]), np.array([0, 1]), np.array([0.5, 0.5]), ["x", "y"], 0)
    assert ll.awrf([[0]], members, 1) == 1


def test_lists_without_grouped_items_are_left_out():
    found = ll.awrf([[0], [1], [-1]], ["x", None, None], 3, per_user=True)
    assert np.isnan(found).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("fair", ConfigError, "unknown target of groups: 'fair'"),
        ([1, 2, 3], DataError, r"target must have 2 numbers, got \(3,\)"),
        ([0, 0], DataError, "target must be finite, never negative, and above 0 somewhere"),
        ([-1, 2], DataError, "target must be finite, never negative, and above 0 somewhere"),
    ],
)
def test_a_target_that_cannot_be(target, error, message):
    with pytest.raises(error, match=message):
        ll.awrf([[0]], ["x", "y"], 2, target=target)
