"""FairDiverse's measures of providers, on numbers that can be worked out by hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limelight._base.errors import DataError
from limelight.data.groups import Groups
from limelight.lab.bench.arenas import Protocol, table_arena
from limelight.lab.bench.providers import evenness, providers_of, score_ndcg, utilities
from limelight.lab.bench.rerankers import METHODS, choose_methods, plain_point
from limelight.metrics.lists import Lists


def lists_of(ids, scores):
    return Lists(np.array(ids, np.int32), np.array(scores, np.float32))


def test_an_item_without_a_provider_belongs_to_the_first():
    members = Groups(np.array([3, 1]), np.array([0, 1]), np.ones(2), [7, 4], 0)
    assert providers_of(members, 5).tolist() == [0, 0, 0, 1, 0]


def test_an_item_with_two_providers_is_refused():
    members = Groups(np.array([1, 1]), np.array([0, 1]), np.full(2, 0.5), [7, 4], 0)
    with pytest.raises(DataError, match="an item has several groups") as caught:
        providers_of(members, 5)
    assert caught.value.hint


def test_utility_is_the_sum_of_rounded_scores():
    lists = lists_of([[0, 1], [2, -1]], [[0.12344, 0.5], [0.11116, -np.inf]])
    assert utilities(lists, np.array([0, 1, 0])) == pytest.approx([0.1234 + 0.1112, 0.5])


def test_equal_utilities_are_perfectly_even():
    found = evenness(np.full(8, 2.5))
    assert (found["minmax"], found["mmf"]) == (1, 0.5)
    assert found["gini"] == pytest.approx(0, abs=1e-12)
    assert found["entropy"] == pytest.approx(3)


def test_measures_by_hand():
    found = evenness(np.array([6.0, 1.0, 3.0]))
    assert found["minmax"] == pytest.approx(1 / 6)
    assert found["mmf"] == pytest.approx(0.1)  # one of three is the poorer half
    assert found["gini"] == pytest.approx((4 - 2 * (1 + 4 + 10) / 10) / 3)
    shares = np.array([0.6, 0.1, 0.3])
    assert found["entropy"] == pytest.approx(-(shares * np.log2(shares)).sum())


def test_a_provider_without_utility_is_infinitely_unfair():
    assert evenness(np.array([0.0, 1.0]))["ef"] == -np.inf


def test_lists_are_judged_by_their_scores_in_order():
    own = lists_of([[0, 1, 2]], [[0.9, 0.6, 0.3]])
    swapped = lists_of([[1, 0, 2]], [[0.6, 0.9, 0.3]])
    assert score_ndcg(swapped, own, 3) == pytest.approx(1)
    worse = lists_of([[0, 2]], [[0.9, 0.3]])
    assert score_ndcg(worse, own, 2) == pytest.approx(
        (0.9 + 0.3 / np.log2(3)) / (0.9 + 0.6 / np.log2(3))
    )


def test_our_methods_share_utility_among_providers(tmp_path):
    generator = np.random.default_rng(0)
    users, items = np.nonzero(np.ones((60, 20)))
    scores = generator.random(len(users)) + np.where(items < 10, 0.5, 0.0)
    path, groups = tmp_path / "candidates.parquet", tmp_path / "groups.parquet"
    pq.write_table(pa.table({"user_id": users, "item_id": items, "score": scores}), path)
    owners = pa.table({"item_id": np.arange(20), "group": np.arange(20) // 5})
    pq.write_table(owners, groups)
    names = ["BestResponse", "Online", "Prices"]
    assert set(names) <= set(choose_methods([], of_providers=True))
    with table_arena(path, groups, None, Protocol(k=5)) as arena:
        base = plain_point(arena)
        for name in names:
            ndcg, gini, more = arena.measure(METHODS[name].lists(arena, 1.0))
            assert gini < 0.5 * base.gini
            assert more["mmf"] > base.more["mmf"]
            assert 0.8 < ndcg < 1
