"""Popularity and Random: the two ends of every comparison."""

import numpy as np
import pytest
from scipy import sparse

from limelight._base.errors import ConfigError
from limelight.data import split_users
from limelight.data.synthetic import marketplace
from limelight.metrics.evaluate import evaluate
from limelight.models import Popularity, Random
from limelight.testing.contracts import RecommenderContract


class TestPopularity(RecommenderContract):
    def make(self, **settings):
        return Popularity(**settings)

    def test_ranks_by_number_of_interactions(self, X: sparse.csr_matrix) -> None:
        ids, scores = Popularity().fit(X).recommend(k=40, filter_seen=False)
        counts = X.getnnz(axis=0)
        assert (scores == np.sort(counts)[::-1]).all()
        assert (counts[ids] == scores).all()


class TestRandom(RecommenderContract):
    def make(self, **settings):
        return Random(**settings)

    def test_another_seed_another_order(self, X: sparse.csr_matrix) -> None:
        one, two = (Random(random_state=seed).fit(X).recommend(k=20).ids for seed in (0, 1))
        assert (one != two).any(axis=1).all()

    def test_a_list_does_not_depend_on_who_else_asks(self, X: sparse.csr_matrix) -> None:
        model = Random().fit(X)
        alone = model.recommend(users=[17], k=20).ids
        np.testing.assert_array_equal(alone[0], model.recommend(k=20).ids[17])

    def test_negative_seed(self) -> None:
        with pytest.raises(ConfigError, match="random_state must be at least 0: -1"):
            Random(random_state=-1)


def test_they_are_the_ends_of_the_plot() -> None:
    market = marketplace(2000, 300, 40_000, seed=1)
    split = split_users(market.interactions, validation=10, test=500, seed=1)
    popular, anything = (
        evaluate(model.fit(split.train), split.test, k=20) for model in (Popularity(), Random())
    )
    assert popular["gini@20"] > 0.85
    assert anything["gini@20"] < 0.15
    assert popular["ndcg@20"] > 3 * anything["ndcg@20"]
