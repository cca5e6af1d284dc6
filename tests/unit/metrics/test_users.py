"""The Gini of users' utility, and envy, against twins that compare all pairs."""

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles_measures as twins

import limelight as ll
from limelight._base.errors import DataError


@pytest.mark.parametrize("seed", range(10))
def test_envy_equals_its_twin(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    padded, lists = twins.random_lists(rng, n_users=25, n_items=15, k=5)
    values = np.round(rng.random((25, 15)) * (rng.random((25, 15)) < 0.6), 1)  # ties and zeros
    values[:, 0] += 0.1
    expected = twins.envy(lists, values.tolist(), 5)
    assert tuple(ll.envy(padded, values)) == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr("limelight.metrics.users._CELLS", 60)
    assert tuple(ll.envy(padded, sparse.csr_matrix(values))) == pytest.approx(expected, abs=1e-12)


def test_own_best_lists_are_envied_by_nobody():
    values = np.random.default_rng(0).random((12, 30))
    best = np.argsort(-values, axis=1)[:, :5]
    assert ll.envy(best, values) == (0, 0, 0)
    assert ll.envy(np.roll(best, 1, axis=0), values).mean > 0


def test_who_likes_nothing_envies_nobody_and_is_left_out():
    found = ll.envy([[0], [1], [1]], [[1.0, 0.5], [1.0, 0.5], [0.0, 0.0]])
    assert found == (pytest.approx(0.125), 0.25, 0.5)


@pytest.mark.parametrize("seed", range(10))
def test_user_gini_is_the_mean_difference_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    utility = np.where(rng.random(40) < 0.2, np.nan, rng.integers(0, 4, 40) / 4)
    known = utility[~np.isnan(utility)].tolist()
    assert ll.user_gini(utility) == pytest.approx(twins.gini(known), abs=1e-12)


def test_users_who_are_all_served_alike():
    assert ll.user_gini([0.3, 0.3, np.nan]) == 0
    assert ll.user_gini([0.0, 0.0]) == 0
    assert ll.user_gini([0.0, 0.0, 0.0, 1.0]) == 0.75


def test_what_cannot_be_measured():
    with pytest.raises(DataError, match=r"utility must be finite and never negative: -1\.0"):
        ll.user_gini([1.0, -1.0])
    with pytest.raises(DataError, match="utility must be one number per user"):
        ll.user_gini([np.nan])
    with pytest.raises(DataError, match="relevance must be finite and never negative"):
        ll.envy([[0], [0]], [[-np.inf], [0.0]])
    with pytest.raises(DataError, match="lists of 1 users, but relevance of 2"):
        ll.envy([[0]], [[1.0], [1.0]])
    with pytest.raises(DataError, match="relevance must be users x items"):
        ll.envy([[0], [0]], [1.0, 2.0])
