"""ARP, APLT, ACLT and the long tail, against twins that count item by item."""

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles_measures as twins

from limelight._base.errors import ConfigError, DataError
from limelight.metrics.popularity import aclt, aplt, arp, long_tail


@pytest.mark.parametrize("seed", range(20))
def test_measures_equal_their_twins(seed):
    rng = np.random.default_rng(seed)
    padded, lists = twins.random_lists(rng, n_users=30, n_items=25, k=8)
    popularity = rng.integers(0, 4, 25) + (np.arange(25) == 3)  # many ties
    head = float(rng.choice([0.2, 0.5, 0.8]))
    tail = long_tail(popularity, head)
    rest = twins.tail(popularity.tolist(), head)
    assert set(np.flatnonzero(tail).tolist()) == rest
    assert arp(padded, popularity) == pytest.approx(twins.arp(lists, popularity), abs=1e-12)
    assert aplt(padded, tail) == pytest.approx(twins.aplt(lists, rest), abs=1e-12)
    assert aclt(padded, tail) == pytest.approx(twins.aclt(lists, rest), abs=1e-12)
    for k in (1, 5):
        cut = [items[:k] for items in lists]
        assert arp(padded, popularity, k) == pytest.approx(twins.arp(cut, popularity), abs=1e-12)


def test_popular_items_raise_arp_and_lower_aplt():
    popularity = [90, 5, 3, 2]
    tail = long_tail(popularity)
    assert tail.tolist() == [False, True, True, True]
    assert arp([[0, 1]], popularity) > arp([[1, 2]], popularity)
    assert aplt([[0, 1]], tail) < aplt([[1, 2]], tail) == 1
    assert aclt([[1, 2]], tail) == 2


def test_users_without_a_list_have_no_value():
    tail = long_tail([8, 1, 1])
    assert np.isnan(arp([[0, 1], [-1, -1]], [8, 1, 1], per_user=True)).tolist() == [False, True]
    assert aplt([[0, 1], [-1, -1]], tail) == 0.5
    assert aclt([[0, 1], [-1, -1]], tail, per_user=True)[0] == 1
    with pytest.raises(DataError, match="no user has anything to measure: 1 users"):
        aplt([[-1]], tail)


def test_interactions_are_counted():
    seen = sparse.csr_matrix([[1, 1, 0], [0, 1, 0]])
    assert arp([[1, 0]], seen) == 1.5
    assert long_tail(seen, head=0.6).tolist() == [True, False, True]


@pytest.mark.parametrize("head", [0, 1, 1.5])
def test_a_head_of_nothing_or_all(head):
    with pytest.raises(ConfigError, match=f"head must be above 0 and below 1, got {head}"):
        long_tail([1, 2], head)


def test_a_tail_of_numbers():
    with pytest.raises(DataError, match=r"tail must be True or False for each item, got int64\(2,"):
        aplt([[0]], [0, 1])
