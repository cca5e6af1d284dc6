"""The accumulator gives one answer, however the users are divided and merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support.examples import examples

from limelight._base.errors import ConfigError, DataError
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.accuracy import ndcg, recall
from limelight.metrics.exposure import coverage, entropy, exposure, gini, gini_floor, top_share
from limelight.metrics.intervals import bootstrap_interval

N_ITEMS = 30


def problem(seed, n_users=40, k=10):
    generator = np.random.default_rng(seed)
    ids = np.stack([generator.permutation(N_ITEMS)[:k] for _ in range(n_users)])
    targets = sparse.csr_matrix(generator.random((n_users, N_ITEMS)) < 0.05)
    return ids, targets


def accumulate(ids, targets, k=(3, 10)):
    accumulator = ListAccumulator(N_ITEMS, k)
    accumulator.update(ids, targets)
    return accumulator


def test_result_equals_the_plain_functions():
    ids, targets = problem(0)
    result = accumulate(ids, targets).result()
    scored = np.flatnonzero(targets.getnnz(axis=1))
    assert 0 < len(scored) < 40
    assert (result["users"], result["items"]) == (len(scored), N_ITEMS)
    for k in (3, 10):
        log_weighted = exposure(ids[scored], N_ITEMS, k)
        assert result[f"ndcg@{k}"] == pytest.approx(ndcg(ids, targets, k))
        assert result[f"recall@{k}"] == pytest.approx(recall(ids, targets, k))
        assert result[f"gini@{k}"] == pytest.approx(gini(log_weighted))
        uniform = exposure(ids[scored], N_ITEMS, k, "uniform")
        assert result[f"gini_uniform@{k}"] == pytest.approx(gini(uniform))
        assert result[f"gini_floor@{k}"] == pytest.approx(gini_floor(len(scored), k, N_ITEMS))
        assert result[f"coverage@{k}"] == coverage(log_weighted)
        assert result[f"entropy@{k}"] == pytest.approx(entropy(log_weighted))
        assert result[f"top_share@{k}"] == pytest.approx(top_share(log_weighted))
        assert result[f"ndcg@{k}_low"] <= result[f"ndcg@{k}"] <= result[f"ndcg@{k}_high"]


@examples(20)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 40), max_size=4))
def test_any_partition_and_order_gives_the_same_result(seed, cuts):
    ids, targets = problem(seed)
    whole = accumulate(ids, targets)
    edges = [0, *sorted(cuts), 40]
    merged = ListAccumulator(N_ITEMS, (3, 10))
    order = np.random.default_rng(seed).permutation(len(edges) - 1)
    for part in order:
        rows = slice(edges[part], edges[part + 1])
        merged.merge(accumulate(ids[rows], targets[rows]))
    expected, result = whole.result(), merged.result()
    assert list(result) == list(expected)
    for key, value in expected.items():
        exact = "ndcg" in key or "recall" in key
        assert result[key] == (value if exact else pytest.approx(value, rel=1e-12, abs=1e-14))


def test_without_targets_every_list_counts_and_no_accuracy_is_reported():
    ids, _ = problem(1)
    result = accumulate(ids, None, k=10).result()
    assert result["users"] == 40
    assert not [key for key in result if key.startswith(("ndcg", "recall"))]
    assert result["gini@10"] == pytest.approx(gini(exposure(ids, N_ITEMS)))


def test_floor_knows_about_short_lists():
    accumulator = ListAccumulator(4, k=2)
    accumulator.update([[0, -1], [1, 2]])
    assert accumulator.result()["gini_floor@2"] == pytest.approx(gini([1, 1, 1 / np.log2(3), 0]))


def test_longer_lists_are_cut():
    ids, targets = problem(2)
    assert accumulate(ids, targets, k=3).result() == accumulate(ids[:, :3], targets, k=3).result()


def test_nothing_to_measure():
    with pytest.raises(DataError, match="no lists to measure: 0 scored users"):
        ListAccumulator(3).result()


def test_no_scored_user():
    accumulator = ListAccumulator(3, k=1)
    accumulator.update([[0]], sparse.csr_matrix((1, 3)))
    with pytest.raises(DataError, match="no lists to measure"):
        accumulator.result()


def test_targets_with_some_batches_only():
    accumulator = ListAccumulator(3, k=1)
    accumulator.update([[0]])
    with pytest.raises(ConfigError, match="some lists came with targets and some without"):
        accumulator.update([[0]], sparse.csr_matrix([[1, 0, 0]]))


def test_different_accumulators_do_not_merge():
    with pytest.raises(ConfigError, match=r"accumulators differ: n_items=3, k=.5,. and n_items=4"):
        ListAccumulator(3, k=5).merge(ListAccumulator(4, k=5))


def test_targets_of_another_catalogue():
    accumulator = ListAccumulator(3, k=1)
    with pytest.raises(DataError, match="targets have 4 items, the catalogue 3"):
        accumulator.update([[0]], sparse.csr_matrix((1, 4)))


def test_no_cutoff():
    with pytest.raises(ConfigError, match=r"no cutoff given: k=\(\)"):
        ListAccumulator(3, k=())


def test_interval_of_a_fair_coin():
    coins = np.repeat([[0.0], [1.0]], 500, axis=0)
    # A bound of one run is itself noisy, by some 4 % of the half width.
    low, high = np.mean([bootstrap_interval(coins, seed=seed) for seed in range(10)], axis=0)
    half_width = 1.96 * 0.5 / np.sqrt(len(coins))
    assert low[0] == pytest.approx(0.5 - half_width, abs=0.05 * half_width)
    assert high[0] == pytest.approx(0.5 + half_width, abs=0.05 * half_width)


def test_interval_ignores_order_and_depends_on_the_seed():
    values = np.random.default_rng(0).random((50, 2))
    first = bootstrap_interval(values)
    assert np.array_equal(first, bootstrap_interval(values[::-1]))
    assert not np.array_equal(first, bootstrap_interval(values, seed=1))


def test_interval_of_one_user_is_its_value():
    assert np.array_equal(bootstrap_interval([[0.3, 0.7]]), ([0.3, 0.7], [0.3, 0.7]))


@pytest.mark.parametrize("n_users", [1, 3, 128, 300])
def test_resamples_are_those_that_are_drawn_one_after_the_other(n_users) -> None:
    values = np.sort(np.random.default_rng(0).random((n_users, 1)), axis=0)
    generator = np.random.default_rng(5)
    drawn = (generator.integers(0, n_users, size=n_users) for _ in range(1000))
    means = [[values[users, 0].mean()] for users in drawn]
    low, high = bootstrap_interval(values, seed=5)
    assert (low, high) == tuple(np.quantile(means, [0.025, 0.975], axis=0))
