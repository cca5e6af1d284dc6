"""Tests that every model inherits: say how to make it, and its test class has them all.

For example::

    class TestIALS(LearnerContract):
        def make(self, **settings):
            return IALS(factors=8, epochs=5, **settings)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import sparse

from limelight._base.errors import ConfigError, DataError
from limelight.data import split_users
from limelight.data.synthetic import marketplace
from limelight.metrics.evaluate import evaluate
from limelight.models.folder import load_model
from limelight.testing.planted import checkerboard, random_interactions

if TYPE_CHECKING:
    from pathlib import Path


class RecommenderContract(ABC):
    """What anybody may expect of a model's ``fit``, ``recommend``, ``save`` and ``load``."""

    @abstractmethod
    def make(self, **settings: Any) -> Any:
        """Return a small, quick model that has not been fitted."""

    @pytest.fixture(scope="class")
    @classmethod
    def X(cls) -> sparse.csr_matrix:
        """A small matrix with a user and an item that have no interactions."""
        X = random_interactions(60, 40, seed=3).tolil()
        X[7, :] = 0
        X[:, 11] = 0
        return X.tocsr()

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, X: sparse.csr_matrix) -> Any:
        """A model that has been fitted, once for all tests: none of them changes it."""
        return cls().make().fit(X)

    def test_fit_returns_the_model(self, X: sparse.csr_matrix) -> None:
        model = self.make()
        assert model.fit(X) is model

    def test_lists_have_k_columns_of_distinct_items_by_falling_score(self, model: Any) -> None:
        ids, scores = model.recommend(k=5)
        assert ids.shape == scores.shape == (60, 5)
        assert (np.diff(scores, axis=1) <= 0).all()
        assert all(len(set(row)) == 5 for row in ids.tolist())

    def test_seen_items_are_left_out(self, model: Any, X: sparse.csr_matrix) -> None:
        ids, _ = model.recommend(k=40)
        for user in range(60):
            assert not set(ids[user]) & set(X[user].indices)

    def test_seen_items_are_kept_on_request(self, model: Any) -> None:
        ids, _ = model.recommend(k=40, filter_seen=False)
        assert (np.sort(ids, axis=1) == np.arange(40)).all()

    def test_short_lists_are_padded(self, model: Any, X: sparse.csr_matrix) -> None:
        ids, scores = model.recommend(k=50)
        unseen = 40 - X.getnnz(axis=1)
        assert ((ids >= 0).sum(axis=1) == unseen).all()
        assert (ids[scores == -np.inf] == -1).all()

    def test_users_may_be_chosen_and_repeated(self, model: Any) -> None:
        chosen = [3, 0, 3]
        found = model.recommend(users=chosen, k=5).ids
        np.testing.assert_array_equal(found, model.recommend(k=5).ids[chosen])

    def test_unseen_users_by_history(self, model: Any, X: sparse.csr_matrix) -> None:
        ids, _ = model.recommend(X[:9], k=5)
        assert ids.shape == (9, 5)
        assert not any(set(ids[row]) & set(X[row].indices) for row in range(9))

    def test_both_kinds_of_sparse_matrices(self, X: sparse.csr_matrix, model: Any) -> None:
        again = self.make().fit(sparse.csr_array(X))
        np.testing.assert_array_equal(again.recommend(k=5).ids, model.recommend(k=5).ids)

    def test_same_seed_same_bits_on_any_number_of_threads(self, X: sparse.csr_matrix) -> None:
        one, two = (self.make(num_threads=n).fit(X).recommend(k=9).scores for n in (1, 2))
        np.testing.assert_array_equal(one, two)

    def test_saved_and_loaded_it_recommends_the_same(
        self, model: Any, X: sparse.csr_matrix, tmp_path: Path
    ) -> None:
        model.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        for mine, other in zip(loaded.recommend(X, k=5), model.recommend(X, k=5), strict=True):
            np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(loaded.recommend(k=5).ids, model.recommend(k=5).ids)

    def test_saved_without_history_it_asks_for_one(self, model: Any, tmp_path: Path) -> None:
        model.save(tmp_path / "model", history=False)
        loaded = load_model(tmp_path / "model")
        assert loaded.recommend(users=[1], k=3, filter_seen=False).ids.shape == (1, 3)
        with pytest.raises(DataError, match="saved without histories"):
            loaded.recommend(users=[1], k=3)

    def test_not_fitted(self) -> None:
        with pytest.raises(ConfigError, match="has not been fitted"):
            self.make().recommend(k=3)

    def test_nothing_to_learn_from(self) -> None:
        with pytest.raises(DataError, match="nothing to learn from"):
            self.make().fit(sparse.csr_matrix((5, 4)))

    def test_unknown_user(self, model: Any) -> None:
        with pytest.raises(DataError, match="user not in the training data: row 60 of 60"):
            model.recommend(users=[60])

    def test_users_that_are_no_numbers(self, model: Any) -> None:
        with pytest.raises(DataError, match="row numbers"):
            model.recommend(users=["anna"])

    def test_histories_and_users(self, model: Any, X: sparse.csr_matrix) -> None:
        with pytest.raises(ConfigError, match="both given"):
            model.recommend(X, users=[1])

    def test_histories_of_another_catalogue(self, model: Any) -> None:
        with pytest.raises(DataError, match="41 columns, the model has 40 items"):
            model.recommend(sparse.csr_matrix((2, 41)))

    def test_k_below_one(self, model: Any) -> None:
        with pytest.raises(ConfigError, match="k must be at least 1: 0"):
            model.recommend(k=0)

    def test_dense_input(self) -> None:
        with pytest.raises(DataError, match="sparse matrix"):
            self.make().fit(np.eye(3))

    def test_repr_shows_settings_and_size(self, model: Any) -> None:
        assert "60 users x 40 items" in repr(model)


class LearnerContract(RecommenderContract):
    """What may be expected, besides, of a model that learns who likes what."""

    quality_floor = 0.2
    """nDCG@20 that the model must reach on a small marketplace."""

    def test_learns_the_colours_of_a_checkerboard(self) -> None:
        board = checkerboard(40)
        ids, _ = self.make().fit(board).recommend(k=1)
        assert np.mean(ids[:, 0] == np.arange(40)) > 0.9

    def test_quality_floor(self) -> None:
        market = marketplace(800, 300, 16_000, seed=1)
        split = split_users(market.interactions, validation=100, test=100, seed=1)
        model = self.make().fit(split.train)
        assert evaluate(model, split.test, k=20)["ndcg@20"] > self.quality_floor
