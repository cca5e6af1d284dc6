"""The measures against values that others' code gave for the same lists; see guide/measures.md.

The values were made with LensKit 2025.8.1 (`least_item_promoted`, `rank_biased_overlap`), RecBole
1.2.1 (`AveragePopularity`, `TailPercentage`), FairDiverse 1.0.0 (`MMF`, `Gini`), rbo 0.1.3
(`RankingSimilarity.rbo_ext`), and the formulas of expeval (Diaz et al.) and of the TREC Fair
Ranking track of 2022.
"""

import numpy as np
import pytest
from scipy import sparse

import limelight as ll

BEFORE, AFTER = [7, 3, 9, 1, 4, 0, 8, 2], [7, 0, 3, 2]
LISTS = np.array([[0, 1, 2], [0, 3, 1], [4, 0, 5]])
COUNTS = [40, 20, 10, 5, 3, 2]


def test_rbo_is_that_of_the_package_of_this_name():
    even = ll.rank_biased_overlap([[0, 1, 2, 3, 4]], [[1, 0, 5, 3, 2]])
    assert even == pytest.approx(0.7235550000000001, abs=1e-12)
    uneven = ll.rank_biased_overlap([[0, 1, 2, 3, 4, 6, 7]], [[1, 0, 5, 3]])
    assert uneven == pytest.approx(0.69075, abs=1e-12)
    uneven = ll.rank_biased_overlap([BEFORE], [AFTER], persistence=0.85)
    assert uneven == pytest.approx(0.692381180217634, abs=1e-12)


@pytest.mark.parametrize(("p", "lenskit"), [(0.85, 0.694693968278874), (0.9, 0.6846466996219831)])
def test_lenskit_stops_at_k_and_divides_by_its_weights(p, lenskit):
    ours = ll.rank_biased_overlap([BEFORE[:4]], [AFTER], persistence=p)
    shared = len({*BEFORE[:4]} & {*AFTER}) / 4
    assert ours == pytest.approx((1 - p**4) * lenskit + p**4 * shared, abs=1e-12)


def test_lenskit_counts_promotion_from_one_place_further_down():
    assert ll.least_item_promoted([BEFORE], [AFTER]) == 3 + 1
    assert ll.least_item_promoted([[0, 1, 2, 3]], [[2, 0]]) == 0 + 1


def test_popularity_is_that_of_recbole():
    for k, value in enumerate((27.666666666666668, 24.666666666666668, 20.0), start=1):
        assert ll.arp(LISTS, COUNTS, k) == pytest.approx(value, abs=1e-12)
    # RecBole's tail_ratio=0.5: the three least popular items are the tail, whatever they hold.
    rarest = np.array(COUNTS) < 10
    assert [ll.aplt(LISTS, rarest, k) for k in (1, 2, 3)] == pytest.approx([1 / 3] * 3)


def test_provider_figures_are_those_of_fairdiverse():
    held = [5.0, 0.5, 2.0, 2.0, 7.5]
    assert ll.mmf(held) == pytest.approx(0.14705882352941177, abs=1e-12)
    assert ll.gini(held) == pytest.approx(0.4, abs=1e-12)


def test_expected_exposure_of_whole_rankings_is_that_of_its_authors():
    rankings = [[2, 0, 1, 3, 4], [0, 2, 3, 1, 4], [4, 2, 0, 1, 3]]
    likes = sparse.csr_array([[1, 0, 1, 0, 0]])
    found = ll.expected_exposure(rankings, likes, users=[0, 0, 0], weight=0.5)
    expected = (0.0876736111111111, 0.9743923611111113, 1.0377604166666667)
    assert tuple(found) == pytest.approx(expected, abs=1e-12)


def test_awrf_of_trec_has_natural_logarithms():
    ours = ll.awrf([[0, 1, 2, 3]], ["x", "x", "y", "x"], 4, target="equal")
    assert 1 - np.log(2) * (1 - ours) == pytest.approx(0.9474592794837328, abs=1e-12)
