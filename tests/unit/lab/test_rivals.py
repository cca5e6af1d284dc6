"""Each twin does what its paper says, on examples that can be followed by hand."""

import numpy as np
import pyarrow as pa
import pytest

from limelight.data import read_candidates
from limelight.lab.rivals import (
    OFFR,
    PMMF,
    RIVALS,
    CPFair,
    ElasticRank,
    ManifoldRank,
    MinRegularizer,
    Traffic,
    project,
    serve,
)


def traffic(*popularity, n_users=10, k=1):
    return Traffic(n_users, k, np.array(popularity, dtype=float))


def same_taste(n_users, *scores):
    """Return candidates of users who all give items 0, 1, ... these scores."""
    n = len(scores)
    users, items = np.repeat(np.arange(n_users), n), np.tile(np.arange(n), n_users)
    rows = {"user_id": users, "item_id": items, "score": np.tile(scores, n_users)}
    return read_candidates(pa.table(rows), catalogue=list(range(n)))


@pytest.mark.parametrize("rival", RIVALS.values())
def test_without_strength_everybody_gets_her_own_list(rival):
    lists = serve(rival, same_taste(6, 0.9, 0.8, 0.1), 2, 0.0, np.arange(3))
    assert (lists.ids == [0, 1]).all()
    assert lists.scores[0] == pytest.approx([0.9, 0.8])


@pytest.mark.parametrize("rival", RIVALS.values())
def test_strength_shares_places_and_lists_stay_in_the_order_of_scores(rival):
    lists = serve(rival, same_taste(30, 0.9, 0.8, 0.7, 0.6, 0.5), 2, 100.0, np.arange(5))
    counts = np.bincount(lists.ids.ravel(), minlength=5)
    assert counts[0] < 30
    assert counts[2:].sum() > 0
    assert (np.diff(lists.scores, axis=1) < 0).all()


@pytest.mark.parametrize("rival", RIVALS.values())
def test_providers_share_instead_of_items(rival):
    scores = np.linspace(0.9, 0.5, 12)
    lists = serve(rival, same_taste(30, *scores), 1, 100.0, np.arange(12) // 2)
    counts = np.bincount(lists.ids.ravel(), minlength=12)
    assert counts[2:].sum() > 0
    assert counts[1::2].sum() == 0  # the better item of a provider takes all of its places


def test_min_regularizer_takes_from_who_is_beyond_the_poorest():
    stream = MinRegularizer(traffic(1, 1, n_users=4), 0.5)
    stream.learn(np.array([0, 0]), np.ones(2))
    assert stream.bonus(np.ones(2)) == pytest.approx([-0.5, 0])


def test_pmmf_subsidises_who_is_left_out_within_its_means():
    stream = PMMF(traffic(1, 1, 1, n_users=4), 0.3)
    for _ in range(10):
        stream.learn(np.array([0]), np.ones(1))
    assert stream.subsidy[0] == 0
    assert stream.subsidy[1] == stream.subsidy[2] > 0
    assert stream.subsidy.mean() == pytest.approx(0.3)


def test_projection_is_the_nearest_point():
    generator = np.random.default_rng(0)
    values = generator.random(50) * 3
    found = project(values, 5.0)
    assert found.sum() == pytest.approx(5)
    assert found.min() == 0
    kept = found > 0
    assert np.ptp((values - found)[kept]) < 1e-9  # all that stay lose the same
    np.testing.assert_array_equal(project(values, 1e3), values)


def test_cp_fair_helps_the_unpopular_as_long_as_they_are_behind():
    stream = CPFair(traffic(9, 1, 1, 1, 1), 0.2)
    assert stream.is_popular.tolist() == [True, False, False, False, False]
    assert stream.bonus(np.ones(1)).tolist() == [0, 0.2, 0.2, 0.2, 0.2]
    stream.learn(np.array([1, 2, 3, 4, 1]), np.ones(5))
    assert stream.bonus(np.ones(1)).tolist() == [0.2, 0, 0, 0, 0]


def test_offr_follows_the_gradient_of_its_welfare():
    stream = OFFR(traffic(1, 1), 2.0)
    stream.learn(np.array([0]), np.ones(1))
    assert stream.bonus(np.ones(1)) == pytest.approx([2 / 2.1, 2 / 0.1])


def test_elastic_rank_compares_with_the_median():
    stream = ElasticRank(traffic(1, 1, 1), 1.0)
    stream.learn(np.array([0]), np.array([2.0]))
    share = np.array([3, 1, 1]) / 5
    expected = (np.sqrt(0.2) - np.sqrt(share)) * 0.5 / np.sqrt(share)
    assert stream.bonus(np.ones(1)) == pytest.approx(expected)


def test_manifold_rank_steps_along_its_gradient():
    stream = ManifoldRank(traffic(1, 1, 1), 1.0)
    stream.learn(np.array([0]), np.array([1.0]))
    v = np.array([2.0, 1.0, 1.0])
    total = (v**-1.5).sum()
    gradient = v**-2.5 * (1 - 4 * v**-1.5 / total)
    sign = np.sign(6 * v**-1.5 - 2.5 * total)
    step = 0.08  # of a user with few candidates, the shortest
    expected = -step * sign * gradient / gradient.sum()
    assert stream.bonus(np.array([0.5, 0.4])) == pytest.approx(expected)


def test_manifold_rank_takes_longer_steps_where_scores_are_alike():
    stream = ManifoldRank(traffic(1, 1), 1.0)
    many = np.full(400, 0.5)
    assert stream._length(many) == pytest.approx(0.7 * (np.log(400) / np.log(1.2) - 21))
    assert stream._length(np.zeros(4)) == 0.08
