"""Growth of models with weights, and of models whose settings were left to the data."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.support.models import FIXED, MODELS

import limelight as ll
from limelight._base.errors import DataError
from limelight.data.interactions import Interactions
from limelight.models.grow import united
from limelight.models.popularity import WithoutEpochs

MARKET = ll.marketplace(600, 200, 12_000, seed=2).interactions.matrix
PLAYS = MARKET.copy()
PLAYS.data = np.random.default_rng(0).lognormal(size=MARKET.nnz).astype(np.float32)
GROWING = [*MODELS.values(), ll.Popularity(), ll.Random()]


def early(X):
    return X[:590, :196]


def without(X, n_users, n_items):
    """Return what the first users do not have of the first items."""
    dense = X.toarray()
    dense[:n_users, :n_items] = 0
    return sparse.csr_matrix(dense)


NEW = without(PLAYS, 590, 196)


def late(pairs):
    """Return a matrix with nothing but these weights, of all users and items."""
    users, items = zip(*pairs, strict=True)
    return sparse.csr_matrix((list(pairs.values()), (users, items)), MARKET.shape)


@pytest.fixture(params=GROWING, ids=str)
def model(request):
    return copy.copy(request.param)


@pytest.mark.filterwarnings("ignore:.* of all pairs is new:limelight.LimelightWarning")
def test_weights_are_kept_and_added_up(model):
    model.fit(early(PLAYS), weight="values").partial_fit(NEW)
    assert model.learned.weighted
    np.testing.assert_array_equal(model.learned.seen.weights, PLAYS.data)
    whole = Interactions.from_matrix(PLAYS, weight="values")
    assert model.learned.fingerprint == whole.fingerprint()
    seen = model.partial_fit(PLAYS).learned.seen
    np.testing.assert_array_equal(seen.weights, 2 * PLAYS.data)
    np.testing.assert_array_equal(seen.indices, PLAYS.indices)


def test_pairs_without_a_weight_weigh_one(model):
    model.fit(early(PLAYS), weight="values")
    plain = Interactions.from_matrix(NEW.astype(bool))
    model.partial_fit(plain)
    whole = early(PLAYS).copy()
    whole.resize(MARKET.shape)
    np.testing.assert_array_equal(model.learned.seen.weights, (whole + NEW.astype(bool)).data)


def test_a_model_without_weights_refuses_them(model):
    model.fit(early(MARKET))
    before = model.learned
    match = "new interactions have weights, but the model knows of none"
    with pytest.raises(DataError, match=match) as error:
        model.partial_fit(Interactions.from_matrix(NEW, weight="values"))
    assert "weighted data" in error.value.hint
    with pytest.raises(DataError, match="stores 1 for a pair"):
        model.partial_fit(NEW)
    assert model.learned is before


def test_weights_that_add_up_beyond_32_bits():
    heavy = late({(0, 0): 3e38, (1, 1): 1.0})
    model = ll.Popularity().fit(heavy, weight="values")
    before = model.learned
    with pytest.raises(DataError, match=r"finite number above 0, in 32 bits .* got inf in row 0"):
        model.partial_fit(heavy)
    assert model.learned is before


def test_popularity_adds_up_weights():
    grown = ll.Popularity().fit(early(PLAYS), weight="values").partial_fit(NEW)
    again = ll.Popularity().fit(PLAYS, weight="values")
    for name, values in grown.learned.arrays.items():
        np.testing.assert_allclose(values, again.learned.arrays[name], rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_one_change_no_bit(name):
    plain, weighted = copy.copy(MODELS[name]), copy.copy(MODELS[name])
    plain.fit(early(MARKET)).partial_fit(MARKET)
    weighted.fit(early(MARKET), weight="values")
    weighted.partial_fit(NEW.astype(bool).astype(np.float32))
    for array, values in plain.learned.arrays.items():
        np.testing.assert_array_equal(weighted.learned.arrays[array], values)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_nearly_as_good_as_a_fit_to_everything(name):
    figures = []
    for seed in range(3):  # one market alone tells grown models from others by chance
        market = ll.marketplace(600, 200, 12_000, seed=seed).interactions
        split = ll.split_users(market, validation=50, test=100, seed=1)
        train = split.train.matrix
        train.data = np.random.default_rng(seed).lognormal(size=train.nnz).astype(np.float32)
        grown, again = copy.copy(MODELS[name]), copy.copy(MODELS[name])
        grown.fit(train[:442, :196], weight="values").partial_fit(without(train, 442, 196))
        again.fit(train, weight="values")
        figures += [[ll.evaluate(one, split.test, k=20)["ndcg@20"] for one in (grown, again)]]
    mean = np.mean(figures, axis=0)
    assert mean[0] > 0.97 * mean[1]


def test_a_new_user_is_solved_for_as_by_a_dense_twin(monkeypatch):
    monkeypatch.setattr("limelight.models.grow._GROWN", np.inf)  # no known item moves
    model = ll.IALS(factors=6, epochs=3, **FIXED).fit(PLAYS[:590], weight="values")
    model.partial_fit(without(PLAYS, 590, 200))
    V = model.item_factors.astype(float)
    W = PLAYS.toarray()[590:].astype(float)
    for weights, found in zip(W, model.user_factors[590:], strict=True):
        ridge = 0.003 * (weights.sum() + 0.1 * len(V))
        system = 0.1 * V.T @ V + ridge * np.eye(6) + (V.T * weights) @ V
        np.testing.assert_allclose(found, np.linalg.solve(system, V.T @ weights), atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_only_those_whose_weight_changed_are_solved_for(name):
    model = copy.copy(MODELS[name]).fit(PLAYS, weight="values")
    before = model.learned
    user, item = 3, int(PLAYS[3].indices[0])
    heavy, light = 0.2 * PLAYS[:, item].sum(), 1e-30
    model.partial_fit(late({(user, item): heavy}))
    moved = (model.item_factors != before.arrays["item_factors"]).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(moved), [item])
    if isinstance(model, ll.IALS):
        moved = (model.user_factors != before.arrays["user_factors"]).any(axis=1)
        np.testing.assert_array_equal(np.flatnonzero(moved), [user])
    # Too light to change anything, but the user has the item: it is not shown again.
    unseen = int(np.setdiff1d(np.arange(200), PLAYS[user].indices)[0])
    factors = model.item_factors
    model.partial_fit(late({(user, unseen): light}))
    np.testing.assert_array_equal(model.item_factors, factors)
    assert unseen not in model.recommend(users=[user], k=200).ids


def test_much_weight_that_is_new_is_said():
    model = ll.IALS(factors=4, epochs=2).fit(PLAYS, weight="values")
    with pytest.warns(ll.LimelightWarning, match="50 % of the weight of all pairs is new"):
        model.partial_fit(PLAYS)


def test_items_by_features_keep_the_weights():
    about = np.eye(5)[np.arange(200) % 5]
    model = ll.IALS(factors=4, epochs=2)
    model.fit(PLAYS, weight="values", item_features=about)
    np.testing.assert_array_equal(model.learned.seen.weights, PLAYS.data)
    assert model.learned.weighted


@pytest.mark.parametrize("kind", [ll.IALS, ll.ExADMM])
def test_what_the_data_chose_stays(kind, tmp_path):
    model = kind(epochs=3).fit(early(MARKET))
    chosen, numbers = dict(model.chosen_), model.numbers
    assert set(chosen) == {"factors", "regularization", "unobserved_weight"}
    model.save(tmp_path / "model")
    loaded = ll.load(tmp_path / "model")
    model.partial_fit(MARKET)
    loaded.partial_fit(MARKET)
    for one in (model, loaded):
        assert (one.chosen_, one.numbers) == (chosen, numbers)
        np.testing.assert_array_equal(one.item_factors, model.item_factors)
    assert kind(epochs=3).fit(MARKET).chosen_ != chosen
    loaded.save(tmp_path / "model")
    assert ll.load(tmp_path / "model").numbers == numbers


def test_settings_of_the_next_fit_do_not_count_yet(model):
    other = {"random_state": 7} if isinstance(model, ll.Random) else {}
    if not isinstance(model, WithoutEpochs):
        other = {"regularization": 1.0, "unobserved_weight": 1.0, "factors": 3}
    model.fit(early(MARKET))
    changed = copy.copy(model).set_params(**other)
    changed.partial_fit(MARKET)
    model.partial_fit(MARKET)
    np.testing.assert_array_equal(changed.recommend(k=5).ids, model.recommend(k=5).ids)
    for name, values in model.learned.arrays.items():
        np.testing.assert_array_equal(changed.learned.arrays[name], values)
    assert changed.get_params() == {**model.get_params(), **other}


@pytest.mark.filterwarnings("ignore:.* no history:limelight.LimelightWarning")
@pytest.mark.parametrize("history", [True, False])
def test_popular_items_are_those_of_the_grown_data(tmp_path, history):
    ll.IALS(factors=4, epochs=2).fit(MARKET).save(tmp_path / "model")
    model = ll.load(tmp_path / "model")
    # Everybody has the last item now, and so have 100 users who are new.
    ones = sparse.csr_matrix((np.ones(700), (np.arange(700), np.full(700, 199))), (700, 200))
    model.partial_fit(ones)
    model.save(tmp_path / "grown", history=history)
    for one in (model, ll.load(tmp_path / "grown")):
        ids, scores = one.recommend(sparse.csr_matrix((1, 200)), k=1)
        assert (ids.item(), scores.item()) == (199, 1.0)


def test_union_of_nothing_with_weights():
    known = ll.Popularity().fit(PLAYS, weight="values").learned
    empty = Interactions.from_matrix(sparse.csr_matrix(MARKET.shape))
    np.testing.assert_array_equal(united(known, empty).weights, PLAYS.data)
    bare = replace(known, seen=ll.Popularity().fit(MARKET).learned.seen)
    assert (united(bare, empty).weights == 1).all()
