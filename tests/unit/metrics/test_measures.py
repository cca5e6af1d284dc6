"""Measures of batches, merged in any order, are those of all lists at once."""

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles_measures as twins

import limelight as ll
from limelight._base.errors import ConfigError, DataError

USERS, ITEMS, K = 60, 25, (3, 8)


@pytest.fixture
def market():
    rng = np.random.default_rng(1)
    before, _ = twins.random_lists(rng, USERS, ITEMS, 20)
    after, _ = twins.random_lists(rng, USERS, ITEMS, 8)
    likes = sparse.csr_array((rng.random((USERS, ITEMS)) < 0.2).astype(float))
    groups = np.arange(ITEMS) % 4 - 1
    return before, after, likes, rng.integers(1, 9, ITEMS), groups


def measure(market, parts):
    before, after, likes, popularity, groups = market
    together = ll.MeasureAccumulator(ITEMS, K, popularity=popularity, groups=groups)
    for part in parts:
        one = ll.MeasureAccumulator(ITEMS, K, popularity=popularity, groups=groups)
        one.update(after[part], likes[part], before[part])
        together.merge(one)
    return together.result()


def test_batches_add_up_bit_by_bit(market):
    order = np.random.default_rng(2).permutation(USERS)
    whole = measure(market, [np.arange(USERS)])
    assert measure(market, [order[:7], order[7:7], order[7:31], order[31:]]) == whole
    assert whole["users"] == USERS


def test_results_are_those_of_the_functions(market):
    before, after, likes, popularity, groups = market
    found = measure(market, [np.arange(USERS)])
    for k in K:
        tail, cut = ll.long_tail(popularity), after[:, :k]
        held = ll.group_exposure(ll.exposure(cut, ITEMS), groups)
        exposed = ll.expected_exposure(cut, likes)
        expected = {
            "arp": ll.arp(cut, popularity),
            "aplt": ll.aplt(cut, tail),
            "aclt": ll.aclt(cut, tail),
            "awrf": ll.awrf(cut, groups, ITEMS),
            "group_gini": ll.gini(held),
            "group_mmf": ll.mmf(held),
            "ee_loss": exposed.loss,
            "ee_disparity": exposed.disparity,
            "ee_relevance": exposed.relevance,
            "user_gini": ll.user_gini(ll.ndcg(cut, likes, per_user=True)),
            "rbo": ll.rank_biased_overlap(before[:, :k], cut),
            "lip": ll.least_item_promoted(before, cut),
        }
        mine = {name: found[f"{name}@{k}"] for name in expected}
        assert mine == pytest.approx(expected, abs=1e-12)


def test_provider_gini_by_hand():
    held = ll.group_exposure(ll.exposure([[0, 1], [0, 2]], 4, weight="uniform"), [0, 1, 1, 2])
    assert held.tolist() == [2, 2, 0]
    assert ll.gini(held) == pytest.approx(twins.gini([2, 2, 0]))
    assert ll.mmf(held) == 0
    with pytest.raises(DataError, match="exposure must hold one number per item"):
        ll.group_exposure([[1.0]], [0])


def test_only_what_was_asked_for_is_measured():
    accumulator = ll.MeasureAccumulator(3, k=1)
    with pytest.raises(DataError, match="no lists to measure: 0 users"):
        accumulator.result()
    accumulator.update([[0]], before=[[1, 0]])
    assert list(accumulator.result()) == ["users", "items", "rbo@1", "lip@1"]


def test_updates_that_do_not_match():
    accumulator = ll.MeasureAccumulator(3, k=1, popularity=[1, 2, 3])
    accumulator.update([[0]])
    with pytest.raises(ConfigError, match="some lists came with targets"):
        accumulator.update([[0]], before=[[0]])
    with pytest.raises(
        ConfigError, match=r"accumulators differ: n_items=3, k=\(1,\) and n_items=4"
    ):
        accumulator.merge(ll.MeasureAccumulator(4, k=1))
    with pytest.raises(ConfigError, match="differ in popularity, head, groups, target or pers"):
        accumulator.merge(ll.MeasureAccumulator(3, k=1, popularity=[9, 2, 3]))
    with pytest.raises(DataError, match="popularity is of 2 items, the catalogue has 3"):
        ll.MeasureAccumulator(3, popularity=[1, 2])


def test_what_nobody_has_is_not_a_number():
    accumulator = ll.MeasureAccumulator(3, k=1, popularity=[1, 2, 3], groups=[0, 1, -1])
    accumulator.update([[2], [-1]], sparse.csr_array((2, 3)))
    found = accumulator.result()
    assert found["arp@1"] == 3
    assert all(np.isnan(found[f"{name}@1"]) for name in ("awrf", "group_gini", "ee_loss"))
