"""Rank-biased overlap and least item promoted, against twins that follow the definitions."""

import numpy as np
import pytest
from tests.support import oracles_measures as twins

import limelight as ll
from limelight._base.errors import ConfigError, DataError


@pytest.mark.parametrize("persistence", [0.5, 0.9, 0.98])
@pytest.mark.parametrize("seed", range(8))
def test_rbo_is_the_sum_over_lists_that_go_on_as_they_were(seed, persistence):
    rng = np.random.default_rng(seed)
    first, one = twins.random_lists(rng, n_users=30, n_items=15, k=10)
    second, other = twins.random_lists(rng, n_users=30, n_items=15, k=7)
    found = ll.rank_biased_overlap(first, second, persistence=persistence, per_user=True)
    pairs = list(zip(one, other, strict=True))
    expected = [twins.rbo(a, b, persistence) for a, b in pairs]
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
    swapped = ll.rank_biased_overlap(second, first, persistence=persistence, per_user=True)
    assert found == pytest.approx(swapped, abs=1e-15, nan_ok=True)
    cut = ll.rank_biased_overlap(first, second, 4, persistence=persistence)
    expected = twins.mean([twins.rbo(a[:4], b[:4], persistence) for a, b in pairs])
    assert cut == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_lip_equals_its_twin(seed):
    rng = np.random.default_rng(seed)
    before, ranked = twins.random_lists(rng, n_users=30, n_items=30, k=25)
    after, lists = twins.random_lists(rng, n_users=30, n_items=30, k=6)
    pairs = list(zip(ranked, lists, strict=True))
    for k in (None, 3):
        found = ll.least_item_promoted(before, after, k, per_user=True)
        expected = [twins.lip(a, b, k or 6) for a, b in pairs]
        assert np.array_equal(found, expected, equal_nan=True)


def test_the_beginning_of_a_list_is_taken_to_go_on_like_it():
    assert ll.rank_biased_overlap([[0, 1, 2]], [[0, 1, 2, 3, 4]]) == pytest.approx(1)


def test_differences_at_the_top_weigh_most():
    ranking = [list(range(10))]
    top = ll.rank_biased_overlap(ranking, [[1, 0, *range(2, 10)]])
    bottom = ll.rank_biased_overlap(ranking, [[*range(8), 9, 8]])
    assert 0 < top < bottom < 1
    assert ll.rank_biased_overlap(ranking, ranking) == pytest.approx(1)
    assert ll.rank_biased_overlap([[0, 1]], [[2, 3]]) == 0


def test_many_lists_are_compared_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    pair = [twins.random_lists(rng, 50, 20, 8)[0] for _ in range(2)]
    measures = (ll.rank_biased_overlap, ll.least_item_promoted)
    whole = [measure(*pair, per_user=True) for measure in measures]
    monkeypatch.setattr("limelight.metrics.overlap._CELLS", 200)
    parts = [measure(*pair, per_user=True) for measure in measures]
    assert np.array_equal(whole, parts, equal_nan=True)


def test_what_cannot_be_compared():
    with pytest.raises(DataError, match="lists of 1 users and of 2 cannot be compared"):
        ll.rank_biased_overlap([[0]], [[0], [1]])
    with pytest.raises(ConfigError, match=r"persistence must be above 0 and below 1, got 1\.0"):
        ll.rank_biased_overlap([[0]], [[0]], persistence=1.0)
    with pytest.raises(DataError, match="item 3 is listed twice for the user in row 0"):
        ll.least_item_promoted([[3, 3]], [[3]])
    with pytest.raises(ConfigError, match="k is larger than the lists are long: 3 > 2"):
        ll.least_item_promoted([[0, 1, 2]], [[2, 1]], 3)
