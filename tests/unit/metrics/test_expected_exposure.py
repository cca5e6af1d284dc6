"""EE-L, EE-D and EE-R, against a twin and against the average of all orders."""

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles_measures as twins

import limelight as ll
from limelight._base.errors import DataError
from limelight.metrics.expected_exposure import expected_exposure, user_expected_exposure

WEIGHTS = ["log", "uniform", 0.5]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("seed", range(8))
def test_measures_equal_their_twin(seed, weight):
    rng = np.random.default_rng(seed)
    padded, lists = twins.random_lists(rng, n_users=30, n_items=12, k=6)
    likes = rng.random((30, 12)) < rng.choice([0.05, 0.3, 0.8])
    groups = rng.integers(-1, 3, 12)
    groups[:3] = [0, 1, 2]
    names = [None if g < 0 else g for g in groups.tolist()]
    for given, labels in ((None, None), (groups, names)):
        found = expected_exposure(
            padded, sparse.csr_array(likes.astype(float)), groups=given, weight=weight
        )
        each = [
            twins.expected_exposure([items], set(np.flatnonzero(row)), 12, 6, weight, labels)
            for items, row in zip(lists, likes, strict=True)
            if items and row.any()
        ]
        assert tuple(found) == pytest.approx(np.mean(each, axis=0), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_several_lists_of_a_user_are_averaged(seed):
    rng = np.random.default_rng(seed)
    padded, lists = twins.random_lists(rng, n_users=40, n_items=12, k=6)
    owners = rng.integers(0, 10, 40)
    likes = np.eye(10, 12) + (rng.random((10, 12)) < 0.2) > 0
    found = user_expected_exposure(padded, sparse.csr_array(likes.astype(int)), users=owners)
    for user in range(10):
        own = [lists[row] for row in np.flatnonzero(owners == user) if lists[row]]
        if own:
            liked = set(np.flatnonzero(likes[user]))
            expected = twins.expected_exposure(own, liked, 12, 6, "log")
            assert [values[user] for values in found] == pytest.approx(expected, abs=1e-12)
        else:
            assert np.isnan(found.loss[user])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize(("liked", "k"), [({0}, 1), ({1, 3}, 3), ({0, 2, 4}, 2), ({0, 1, 2}, 5)])
def test_the_target_is_the_average_of_all_ideal_orders(liked, k, weight):
    wanted = twins.target_exposure(liked, 5, k, weight)
    likes = sparse.csr_array(([1] * len(liked), ([0] * len(liked), sorted(liked))), shape=(1, 5))
    found = expected_exposure([list(range(k))], likes, weight=weight)
    given = [twins.place(rank, weight) for rank in range(1, k + 1)] + [0.0] * (5 - k)
    loss = sum((e - t) ** 2 for e, t in zip(given, wanted, strict=True))
    assert found.loss == pytest.approx(loss, abs=1e-12)
    assert found.relevance == pytest.approx(np.dot(given, wanted), abs=1e-12)


def test_all_ideal_orders_together_lose_nothing_and_one_of_them_does():
    likes = sparse.csr_array([[1, 1, 0]])
    orders = [[0, 1, 2], [1, 0, 2]]
    assert expected_exposure(orders, likes, users=[0, 0]).loss == pytest.approx(0, abs=1e-15)
    one, wrong = (expected_exposure([items], likes) for items in ([0, 1, 2], [2, 0, 1]))
    assert 0 < one.loss < wrong.loss
    assert one.disparity == wrong.disparity
    assert one.relevance > wrong.relevance


def test_who_likes_nothing_has_no_value():
    likes = sparse.csr_array([[1, 0], [0, 0]])
    found = ll.expected_exposure([[0], [1]], likes, per_user=True)
    assert np.isnan(found.loss).tolist() == [False, True]
    with pytest.raises(DataError, match="no user has anything to measure: 1 users"):
        ll.expected_exposure([[0]], sparse.csr_array((1, 2)))


def test_lists_without_owners():
    likes = sparse.csr_array([[1, 0]])
    with pytest.raises(DataError, match="lists for 2 users, but targets for 1") as end:
        ll.expected_exposure([[0], [1]], likes)
    assert "users=" in end.value.hint
    with pytest.raises(DataError, match="user number outside the 1 rows of targets: 1"):
        ll.expected_exposure([[0], [1]], likes, users=[0, 1])
    with pytest.raises(DataError, match="users must be one row number for each of 2 lists"):
        ll.expected_exposure([[0], [1]], likes, users=[0.0, 1.0])
