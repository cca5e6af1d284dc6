"""Models of weighted interactions: what they take, keep and refuse."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import limelight as ll
from limelight._base.errors import ConfigError, DataError, LimelightWarning, SolveError
from limelight.data import Interactions
from limelight.testing.planted import random_interactions


@pytest.fixture
def R():
    found = random_interactions(60, 40, seed=3)
    found.data = np.random.default_rng(0).lognormal(size=found.nnz).astype(np.float32)
    return found


MODELS = [
    ll.IALS(factors=8, epochs=3),
    ll.ExADMM(factors=8, epochs=3, exposure_strength=0.1),
    ll.ExADMM(factors=8, epochs=3, exposure_strength=0.1, solver="admm", fold_in="joint"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_matrix_and_interactions_say_the_same(R, model):
    by_matrix = model.fit(R, weight="values").user_factors
    data = Interactions.from_matrix(R, weight="values")
    np.testing.assert_array_equal(model.fit(data).user_factors, by_matrix)
    assert np.abs(model.fit(R.astype(bool)).user_factors - by_matrix).max() > 1e-3


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_weights_of_one_change_no_bit(R, model):
    binary = R.astype(bool)
    plain = model.fit(binary).user_factors
    weighted = model.fit(binary, weight="values")
    np.testing.assert_array_equal(weighted.user_factors, plain)
    assert weighted.learned.weighted


@pytest.mark.parametrize("model", [*MODELS, ll.EASE(), ll.Popularity(), ll.Random()], ids=str)
def test_values_are_never_flattened(R, model):
    with pytest.raises(DataError, match=r'stores 1 for a pair, got: .*\n\nhint: .*weight="values"'):
        model.fit(R)
    model.fit(R.astype(bool))
    with pytest.raises(DataError, match="stores 1 for a pair"):
        model.recommend(R)
    with pytest.raises(DataError, match="histories have weights, but the model knows of none"):
        model.recommend(Interactions.from_matrix(R, weight="values"))


def test_histories_of_a_weighted_model_have_weights_or_none(R):
    model = ll.IALS(factors=8, epochs=3).fit(R, weight="values")
    by_matrix = model.recommend(R, k=5)
    data = Interactions.from_matrix(R, weight="values")
    np.testing.assert_array_equal(model.recommend(data, k=5).scores, by_matrix.scores)
    assert (model.recommend(R.astype(bool), k=5).scores != by_matrix.scores).any()
    # Matched by id, in another order of items.
    order = np.arange(R.shape[1])[::-1]
    turned = Interactions.from_matrix(R[:, order], weight="values")
    turned = replace(turned, item_ids=order, has_ids=True)
    np.testing.assert_array_equal(model.recommend(turned, k=5).scores, by_matrix.scores)


@pytest.mark.parametrize("history", [True, False])
def test_a_folder_keeps_weights(R, tmp_path, history):
    model = ll.ExADMM(factors=8, epochs=3).fit(R, weight="values")
    model.save(tmp_path / "model", history=history)
    loaded = ll.load(tmp_path / "model")
    assert loaded.learned.weighted
    np.testing.assert_array_equal(loaded.fold_in(R), model.fold_in(R))
    if history:
        np.testing.assert_array_equal(loaded.learned.seen.weights, R.data)
    ll.ExADMM(factors=8, epochs=3).fit(R.astype(bool)).save(tmp_path / "plain")
    assert not ll.load(tmp_path / "plain").learned.weighted


def test_popularity_adds_weights_up(R):
    model = ll.Popularity().fit(R, weight="values")
    best = model.recommend(users=[0], k=1, filter_seen=False)
    sums = np.asarray(R.sum(axis=0)).ravel()
    assert best.ids[0, 0] == sums.argmax()
    assert best.scores[0, 0] == pytest.approx(sums.max(), rel=1e-6)


def test_networks_refuse_weights(R):
    with pytest.raises(DataError, match="MultVAE cannot learn from weights"):
        ll.MultVAE(epochs=1).fit(R, weight="values")


def test_a_weighted_split_is_measured_and_put_together_again(R):
    data = Interactions.from_matrix(R, weight="values")
    split = ll.split_users(data, validation=10, test=10)
    model = ll.IALS(factors=8, epochs=3).fit(split.train)
    assert 0 <= ll.evaluate(model, split.test, k=5)["ndcg@5"] <= 1
    everybody = split.everybody()
    by_id = {int(user): row for row, user in enumerate(everybody.user_ids)}
    for user in (0, 17, 59):
        found = everybody.matrix[by_id[user]].toarray().ravel()
        expected = R[user].toarray().ravel()[everybody.item_ids]
        np.testing.assert_array_equal(found, expected)


def test_weight_is_values_or_nothing(R):
    with pytest.raises(ConfigError, match='hint: weight="values" takes what the matrix stores'):
        ll.IALS().fit(R, weight="rating")
    assert sparse.issparse(R)


@pytest.mark.parametrize("value", [1e4, 1e6])
def test_one_absurd_weight_does_not_decide_and_is_said(value):
    data = ll.marketplace(400, 100, 6000).interactions
    split = ll.split_users(data, validation=50, test=100)
    X = split.train.matrix
    plain = {type(model): model.fit(X) for model in (ll.IALS(factors=16), ll.EASE())}
    X.data[7] = value
    for kind, usual in plain.items():
        model = kind(**usual.get_params())
        said = re.escape(f"one pair weighs {value:g}, which is ") + r"\d+ %"
        with pytest.warns(LimelightWarning, match=said):
            model.fit(Interactions.from_matrix(X, weight="values"))
        assert model.chosen_ == pytest.approx(usual.chosen_)
        ndcg = [ll.evaluate(one, split.test, k=20)["ndcg@20"] for one in (usual, model)]
        assert ndcg[1] > 0.9 * ndcg[0]


@pytest.mark.filterwarnings("ignore:one pair weighs:limelight.LimelightWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [1e30, 1e38])
def test_a_weight_that_no_inverse_can_hold_is_named(value):
    X = ll.marketplace(400, 100, 6000).interactions.matrix
    X.data[7] = value
    with pytest.raises(SolveError, match=r"32-bit|off by") as error:
        ll.EASE().fit(X, weight="values")
    assert error.value.hint.endswith(f"correct the largest weight: {np.float32(value):g}")


@pytest.mark.parametrize("model", [ll.EASE(), ll.Popularity(), ll.Random()], ids=str)
def test_features_without_use(R, model):
    with pytest.raises(ConfigError, match=f"{type(model).__name__} does not use item_features"):
        model.fit(R.astype(bool), item_features=np.eye(40))
    assert model.fit(R.astype(bool), item_features=None).is_fitted


def test_weights_are_not_an_array(R):
    with pytest.raises(ConfigError, match="no columns to take weights from") as error:
        ll.IALS(factors=4).fit(R, weight=np.ones(R.nnz))
    assert 'weight="values"' in error.value.hint
