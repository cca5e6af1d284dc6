"""Tests that every model inherits: say how to make it, and its test class has them all.

For example::

    class TestIALS(LearnerContract):
        def make(self, **settings):
            return IALS(factors=8, epochs=5, **settings)
"""

from __future__ import annotations

import copy
import pickle
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import sparse

from limelight._base.errors import ConfigError, DataError, LimelightWarning
from limelight.data import split_users
from limelight.data.synthetic import marketplace
from limelight.metrics.evaluate import evaluate
from limelight.models.base import Model
from limelight.models.folder import load_model
from limelight.testing.planted import checkerboard, random_interactions

if TYPE_CHECKING:
    from pathlib import Path


# One user of the matrix has no history, which models warn of in nearly every test.
@pytest.mark.filterwarnings("ignore:.* no history:limelight.LimelightWarning")
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

    @pytest.mark.parametrize("k", [5, 40])
    def test_users_without_history_get_popular_items(
        self, model: Any, X: sparse.csr_matrix, tmp_path: Path, k: int
    ) -> None:
        if not model.ranks_by_history:
            pytest.skip("the model ranks in the same way for users with and without a history")
        shares = np.asarray(X.mean(axis=0)).ravel().astype(np.float32)
        expected = np.argsort(-shares, kind="stable")[:k]
        nobody = sparse.csr_matrix((1, 40))
        model.save(tmp_path / "model", history=False)
        told = "1 of {} no history that the model knows: they get the most popular items"
        for found, asked, n in (
            (model, {"users": [7]}, "1 user has"),
            (model, {"users": [3, 7], "filter_seen": False}, "2 users has"),
            (model, {"histories": nobody}, "1 user has"),
            (load_model(tmp_path / "model"), {"histories": nobody}, "1 user has"),
        ):
            with pytest.warns(LimelightWarning, match=told.format(n)):
                ids, scores = found.recommend(**asked, k=k)
            np.testing.assert_array_equal(ids[-1], expected)
            np.testing.assert_allclose(scores[-1], shares[expected], rtol=1e-6)

    def test_settings_can_be_changed_for_the_next_fit(
        self, X: sparse.csr_matrix, model: Any
    ) -> None:
        changed = copy.deepcopy(model)
        name, value = self.other_setting()
        if name not in changed.get_params():
            pytest.skip(f"the model has no setting {name}: let other_setting name another")
        assert changed.set_params(**{name: value}) is changed
        assert changed.get_params()[name] == value
        # What was learnt goes on as it was, whatever the next fit will do.
        _same_lists(changed, model, X)
        assert "to be fitted next with" in repr(changed)
        _same_lists(changed.fit(X), self.make(**{name: value}).fit(X), X)
        assert "to be fitted next with" not in repr(changed)

    def other_setting(self) -> tuple[str, Any]:
        """Return a setting, and a value that it does not have: a model may name another."""
        return "random_state", 5

    def test_settings_that_are_refused(self, model: Any) -> None:
        before = model.get_params(deep=True)
        with pytest.raises(ConfigError, match="unknown hyper-parameter: 'num_thread'") as error:
            model.set_params(num_thread=2)
        assert error.value.hint == "did you mean 'num_threads'?"
        with pytest.raises(ConfigError, match="num_threads must be at least 0: -1"):
            model.set_params(num_threads=-1)
        assert model.get_params() == before

    def test_a_generator_is_a_random_state(self) -> None:
        if "random_state" not in self.make().get_params():
            pytest.skip("nothing of the model is drawn")
        one, two = (self.make(random_state=np.random.default_rng(0)) for _ in range(2))
        assert one.get_params() == two.get_params()
        assert isinstance(one.get_params()["random_state"], int)

    def test_clone_has_the_settings_and_nothing_learnt(self, model: Any) -> None:
        sklearn = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
        for one in (self.make(), model):
            found = sklearn.clone(one)
            assert type(found) is type(one)
            assert found.get_params() == one.get_params()
            assert not found.is_fitted

    @pytest.mark.parametrize("way", ["pickle", "deepcopy", "joblib"])
    def test_copies_recommend_the_same(
        self, model: Any, X: sparse.csr_matrix, tmp_path: Path, way: str
    ) -> None:
        copied = _copied(self.make(), way, tmp_path)
        assert (copied.get_params(), copied.is_fitted) == (self.make().get_params(), False)
        copied = _copied(model, way, tmp_path)
        assert repr(copied) == repr(model)
        _same_lists(copied, model, X)
        assert copied.learned.fingerprint == model.learned.fingerprint

    def test_users_by_their_own_ids(self, model: Any) -> None:
        found = model.recommend(user_ids=[3, 0], k=5).ids
        np.testing.assert_array_equal(found, model.recommend(users=[3, 0], k=5).ids)
        with pytest.raises(DataError, match="user id not in the training data: 60") as error:
            model.recommend(user_ids=[3, 60])
        assert error.value.hint == "pass histories= of unseen users"

    def test_items_are_left_out_or_allowed(self, model: Any) -> None:
        every = model.recommend(k=40, filter_seen=False).ids
        kept = [[item for item in row if item not in {0, 1, 2}] for row in every.tolist()]
        found = model.recommend(k=37, filter_seen=False, exclude=[0, 1, 2]).ids
        np.testing.assert_array_equal(found, kept)
        found = model.recommend(k=4, allow=[5, 6, 7, 8], exclude=[6], filter_seen=False).ids
        kept = [[item for item in row if item in {5, 7, 8}] for row in every.tolist()]
        np.testing.assert_array_equal(found[:, :3], kept)
        assert (found[:, 3] == -1).all()

    def test_items_that_cannot_be_left_out_or_allowed(self, model: Any) -> None:
        found = model.recommend(k=3, exclude=[3, "x"])
        np.testing.assert_array_equal(found.ids, model.recommend(k=3, exclude=[3]).ids)
        for asked in ({"allow": ["x"]}, {"allow": [4], "exclude": [4]}):
            with pytest.raises(DataError, match="leave none of 40 items"):
                model.recommend(k=3, **asked)

    def test_items_that_are_alike(self, model: Any) -> None:
        if not model.ranks_by_history:
            with pytest.raises(ConfigError, match="does not know which items are alike"):
                model.similar_items([1])
            return
        ids, scores = model.similar_items([1, 2], k=5)
        assert ids.shape == scores.shape == (2, 5)
        assert (np.diff(scores, axis=1) <= 0).all()
        assert 1 not in ids[0]
        assert 2 not in ids[1]
        assert model.similar_items(1, k=99).ids.shape == (1, 39)
        with pytest.raises(DataError, match="item id not in the training data: 'x'"):
            model.similar_items(["x"])

    def test_parts_of_a_score_add_up_to_it(self, model: Any, X: sparse.csr_matrix) -> None:
        history = X[3].indices.tolist()
        if type(model)._contributions is Model._contributions:
            with pytest.raises(ConfigError, match="cannot say what each item of a history adds"):
                model.explain(3, 1)
            return
        found = model.explain(3, 1)
        assert sorted(item for item, _ in found.parts) == history
        total = sum(part for _, part in found.parts) + (found.exposure or 0.0)
        assert total == pytest.approx(found.score)
        assert model.explain(item=1, history=history) == found
        with pytest.raises(DataError, match="no history to explain a score by: user 7"):
            model.explain(7, 1)
        with pytest.raises(ConfigError, match="either a user or a history"):
            model.explain(3, 1, history=history)

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


def _same_lists(one: Any, other: Any, X: sparse.csr_matrix) -> None:
    for mine, theirs in zip(one.recommend(X, k=5), other.recommend(X, k=5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(one.recommend(k=5).ids, other.recommend(k=5).ids)


def _copied(thing: Any, way: str, folder: Path) -> Any:
    if way == "joblib":
        joblib = pytest.importorskip("joblib", reason="joblib is not installed")
        joblib.dump(thing, folder / "copy.joblib")
        return joblib.load(folder / "copy.joblib")
    return copy.deepcopy(thing) if way == "deepcopy" else pickle.loads(pickle.dumps(thing))


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
