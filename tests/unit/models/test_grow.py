"""Models that take in new users, items and pairs, and items that are known by features alone."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from tests.support.models import MODELS

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.interactions import Interactions
from limelight.testing.contracts import RecommenderContract, load_model

MARKET = ll.marketplace(600, 200, 12_000, seed=2).interactions
SHELVES = 5


def of_ids(X, users, items):
    """Return the pairs of some users with some items, under their ids."""
    part = sparse.csr_array(X.matrix)[users][:, items]
    part.sort_indices()
    arrays = part.indptr.astype(np.int64), part.indices.astype(np.int32)
    return Interactions(*arrays, X.user_ids[users], X.item_ids[items])


EARLY = of_ids(MARKET, np.arange(590), np.arange(196))


def make(name, **settings):
    return type(MODELS[name])(**{**MODELS[name].get_params(), **settings})


@pytest.fixture(scope="module", params=MODELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    return make(name).fit(EARLY)


@pytest.fixture(scope="module")
def first(fitted):
    """What a model has learnt before anything new arrives."""
    return fitted.learned


@pytest.fixture
def model(fitted):
    return copy.copy(fitted)


def test_new_users_and_items_come_after_the_others(model, first):
    assert model.partial_fit(MARKET) is model
    np.testing.assert_array_equal(model.user_ids, MARKET.user_ids)
    np.testing.assert_array_equal(model.item_ids, MARKET.item_ids)
    assert model.learned.seen.n_entries == MARKET.nnz
    assert model.learned.fingerprint == MARKET.fingerprint() != first.fingerprint
    ids, _ = model.recommend(users=[595], k=200)
    assert not set(ids[0]) & set(MARKET.matrix[595].indices)


def test_new_ids_are_appended_in_their_own_order(model):
    users, items = np.array(["b", "a"], object), np.array([900, 7])
    new = Interactions(np.array([0, 1, 2]), np.array([0, 1], np.int32), users, items)
    with pytest.raises(DataError, match="ids of the model are integers, a new one is text: 'b'"):
        model.partial_fit(new)
    known = model.learned
    new = Interactions(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([901, 3]), items)
    model.partial_fit(new)
    assert model.user_ids[-1] == 901
    assert model.item_ids[-1] == 900
    assert len(model.user_ids) == len(known.user_ids) + 1
    assert 900 in model.item_ids[model.learned.seen.indices[-1:]]


def test_numbers_become_text_where_ids_are_text():
    ids = np.array([f"{n}" for n in range(200)], object)
    model = ll.IALS(factors=4, epochs=2).fit(
        Interactions(EARLY.indptr, EARLY.indices, EARLY.user_ids, ids[:196])
    )
    model.partial_fit(MARKET)
    np.testing.assert_array_equal(model.item_ids, ids)


def test_text_that_names_known_ids_leaves_them_numbers(model):
    users, items = np.array(["3"], object), np.array(["195"], object)
    model.partial_fit(Interactions(np.array([0, 1]), np.array([0], np.int32), users, items))
    assert model.user_ids.dtype == model.item_ids.dtype == np.int64


def test_it_is_nearly_as_good_as_a_fit_to_everything(name):
    split = ll.split_users(MARKET, validation=50, test=100, seed=1)
    train = split.train
    early = of_ids(train, np.arange(train.n_users - 8), np.arange(train.n_items - 4))
    grown = make(name).fit(early).partial_fit(train)
    again = make(name).fit(train)
    figures = [ll.evaluate(one, split.test, k=20)["ndcg@20"] for one in (grown, again)]
    assert figures[0] > 0.97 * figures[1]


def test_a_new_user_is_solved_for_exactly(model, monkeypatch):
    monkeypatch.setattr("limelight.models.grow._GROWN", np.inf)  # no known item moves
    new = of_ids(MARKET, np.arange(590, 600), np.arange(196))
    exact = model.partial_fit(new).fold_in(new)
    off = np.linalg.norm(model.user_factors[590:] - exact) / np.linalg.norm(exact)
    # Where exposure is controlled, the price moves a little once new users are there.
    assert off < (1e-4 if isinstance(model, ll.IALS) else 0.02)


def test_known_items_keep_their_vectors_unless_they_have_grown(model, first):
    model.partial_fit(MARKET)
    before, after = EARLY.matrix.getnnz(axis=0), MARKET.matrix.getnnz(axis=0)[:196]
    same = (model.item_factors[:196] == first.arrays["item_factors"]).all(axis=1)
    np.testing.assert_array_equal(same, after <= 1.1 * before)
    assert (np.linalg.norm(model.item_factors[196:], axis=1) > 0.01).all()


def test_the_price_stays_consistent(model):
    model.partial_fit(MARKET)
    mean = model.user_factors.mean(axis=0)
    np.testing.assert_allclose(model.learned.arrays["mean_user"], mean, atol=1e-5)
    if isinstance(model, ll.ExADMM):
        cosine = model.dual_ @ model.price_
        assert cosine == pytest.approx(np.linalg.norm(model.dual_) * np.linalg.norm(model.price_))
        if model.config.is_exact:
            np.testing.assert_allclose(model.dual_, model.price_, rtol=1e-4)


def test_pairs_that_are_known_change_nothing(model, first):
    assert model.partial_fit(EARLY).learned is first
    assert model.partial_fit(of_ids(MARKET, np.arange(0), np.arange(0))).learned is first
    grown = model.partial_fit(MARKET).learned
    assert model.partial_fit(MARKET).learned is grown


def test_same_bits_on_any_number_of_threads(fitted):
    found = []
    for threads in (1, 2):
        model = copy.copy(fitted).set_params(num_threads=threads)
        assert model.config.num_threads == threads
        found.append(model.partial_fit(MARKET).learned.arrays)
    for array, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][array])


def test_a_grown_model_can_be_saved(model, tmp_path):
    model.partial_fit(MARKET).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.recommend(k=5).ids, model.recommend(k=5).ids)


def test_a_matrix_is_known_by_its_numbers():
    X = MARKET.matrix
    model = ll.IALS(factors=4, epochs=2).fit(X[:590])
    assert len(model.partial_fit(X).user_ids) == 600
    named = ll.IALS(factors=4, epochs=2).fit(
        of_ids(MARKET, np.arange(5, 590), np.arange(MARKET.n_items))
    )
    with pytest.raises(DataError, match="ids such as 5, a matrix has none"):
        named.partial_fit(X)


def test_much_that_is_new_is_said(name):
    model = make(name).fit(of_ids(MARKET, np.arange(300), np.arange(200)))
    with pytest.warns(ll.LimelightWarning, match=r"\d\d % of the pairs are new"):
        model.partial_fit(MARKET)
    assert len(model.user_ids) == 600


def test_without_histories_it_cannot_grow(model, tmp_path):
    model.save(tmp_path / "model", history=False)
    with pytest.raises(DataError, match="saved without histories"):
        load_model(tmp_path / "model").partial_fit(MARKET)


def test_what_fails_leaves_the_model_as_it_was(model, first, monkeypatch):
    def fail(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("limelight.models.grow.common_shift", fail)
    with pytest.raises(ll.SolveError, match="new interactions were taken in"):
        model.partial_fit(MARKET)
    assert model.learned is first


def test_exposure_targets_hold_for_the_items_that_they_are_of():
    model = ll.ExADMM(factors=8, solver="exact", exposure_weight=1e-3, epochs=10)
    model.fit(EARLY, exposure=ll.ExposureTargets(groups=np.arange(196) % 3))
    before = model.item_factors.copy()
    model.partial_fit(MARKET)
    np.testing.assert_array_equal(model.item_factors[:196], before)
    np.testing.assert_allclose(model.dual_, model.price_, rtol=1e-4)


def test_popularity_counts_on():
    grown = ll.Popularity().fit(EARLY).partial_fit(MARKET)
    counts = MARKET.matrix.getnnz(axis=0)
    np.testing.assert_array_equal(grown.learned.arrays["item_counts"], counts)


def test_a_network_cannot_grow():
    with pytest.raises(ConfigError, match="MultVAE cannot take in new interactions"):
        ll.MultVAE().partial_fit(MARKET)


def test_a_promise_does_not_outlive_growth(model):
    model.promise = {"gini": 0.6}
    model.partial_fit(EARLY)
    assert model.promise == {"gini": 0.6}
    with pytest.warns(ll.LimelightWarning, match="the promise is dropped"):
        model.partial_fit(MARKET)
    assert model.promise is None


def test_a_reranked_model_is_not_grown(model):
    with pytest.raises(ConfigError, match="BestResponse was set for the users"):
        ll.BestResponse(strength=0.3).over(model).partial_fit(MARKET)


NOBODY = pytest.mark.filterwarnings("ignore:.* no history:limelight.LimelightWarning")
"""One user of the shop has bought nothing."""


@pytest.fixture(scope="module")
def shop():
    """Users who like one shelf each, and items of which the last of every shelf is cold."""
    draw = np.random.default_rng(0)
    shelf_of_user, shelf = draw.integers(SHELVES, size=400), np.arange(100) % SHELVES
    likes = 0.02 + 0.3 * (shelf_of_user[:, None] == shelf)
    X = (draw.random((400, 100)) < likes).astype(np.float32)
    cold = np.arange(100) >= 90
    names = np.array([f"shelf {n}" for n in range(SHELVES)])
    table = pa.table({"item_id": np.arange(100), "shelf": names[shelf], "price": shelf + 0.5})
    warm = sparse.csr_matrix(X * ~cold)
    return warm, X > 0, cold, table


def hit_rate(model, warm, X, cold):
    """Return how often the best cold item of a user is one that she likes."""
    rows = model.ranking(filter_seen=False).top(np.arange(len(X)), 100).ids
    first = np.array([row[cold[row]][0] for row in rows])
    likes = X[np.arange(len(X)), first]
    return likes.mean() / X[:, cold].mean()


def features_of(kind, table):
    if kind == "table":
        return table
    dense = np.eye(SHELVES)[np.arange(100) % SHELVES]
    return dense if kind == "dense" else sparse.csr_matrix(dense)


@NOBODY
@pytest.mark.parametrize("kind", ["table", "dense", "sparse"])
def test_cold_items_are_found_by_their_features(name, shop, kind):
    warm, X, cold, table = shop
    model = make(name).fit(warm, item_features=features_of(kind, table))
    assert hit_rate(model, warm, X, cold) > 2
    assert 0.01 < model.cold_exposure().share < 0.2


@NOBODY
def test_items_of_the_table_alone_are_added(name, shop, tmp_path):
    warm, X, cold, table = shop
    model = make(name).fit(warm[:, :90], item_features=table)
    np.testing.assert_array_equal(model.item_ids, np.arange(100))
    assert hit_rate(model, warm, X, cold) > 2
    later = make(name).fit(warm[:, :90], item_features=table.slice(0, 90))
    later.save(tmp_path / "model")
    later = load_model(tmp_path / "model")
    later.add_items(table.slice(90))
    assert hit_rate(later, warm, X, cold) > 2
    if isinstance(model, ll.ExADMM):
        np.testing.assert_allclose(later.mean_user_, later.user_factors.mean(axis=0), atol=1e-5)


def test_items_by_features_and_pairs_arrive_together(name, shop):
    warm, X, _, table = shop
    model = make(name).fit(warm[:395, :90], item_features=table.slice(0, 90))
    model.partial_fit(sparse.csr_matrix(X[:, :92] * 1.0), item_features=table.slice(0, 100))
    assert len(model.item_ids) == 100
    assert len(model.user_ids) == 400
    after = model.learned
    assert model.add_items(table.slice(0, 90)).learned is after


def test_without_features_the_fit_is_the_same(name, shop):
    warm, _, cold, table = shop
    plain, with_features = make(name).fit(warm), make(name).fit(warm, item_features=table)
    np.testing.assert_array_equal(plain.item_factors[~cold], with_features.item_factors[~cold])
    assert not plain.item_factors[cold].any()


def test_features_that_the_fit_did_not_have(shop):
    warm, _, _, table = shop
    model = ll.IALS(factors=4, epochs=2).fit(warm)
    with pytest.raises(ConfigError, match="fitted without item features"):
        model.add_items(table)
    model.fit(warm, item_features=table)
    for wrong, match in (
        (None, "no item features"),
        (np.eye(3), "does not say which items"),
        (table.drop_columns(["price"]), "column not found in the frame: 'price'"),
    ):
        with pytest.raises(DataError, match=match):
            model.add_items(wrong)
    with pytest.raises(DataError, match="knows items by other features: shelf, price"):
        model.partial_fit(warm, item_features=np.eye(100))


def test_features_of_other_items(shop):
    warm, _, _, table = shop
    others = table.set_column(0, "item_id", pa.array(np.arange(500, 600)))
    with pytest.raises(DataError, match="too few items with interactions have features: 0"):
        ll.IALS(factors=4).fit(warm, item_features=others)


def test_a_map_of_another_model_is_refused(shop, tmp_path):
    warm, _, _, table = shop
    model = ll.IALS(factors=4, epochs=2).fit(warm, item_features=table)
    model.learned.features["width"] = 3
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match="do not add up to 3"):
        load_model(tmp_path / "model")


class TestWithItemFeatures(RecommenderContract):
    """A model with a map of features is copied, cloned and saved like any other."""

    def make(self, **settings):
        return ll.IALS(factors=10, epochs=8, **settings)

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, X):
        return cls().make().fit(X, item_features=np.eye(4)[np.arange(40) % 4])

    def test_both_kinds_of_sparse_matrices(self, X, model):
        again = self.make().fit(
            sparse.csr_array(X), item_features=sparse.eye_array(4).tocsr()[np.arange(40) % 4]
        )
        np.testing.assert_array_equal(again.recommend(k=5).ids, model.recommend(k=5).ids)

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    def test_copies_know_the_features(self, model, copied):
        new, about = sparse.csr_matrix((0, 42)), np.eye(4)[np.arange(42) % 4]
        found = [
            copy_of(model).partial_fit(new, item_features=about) for copy_of in (copied, copy.copy)
        ]
        np.testing.assert_array_equal(found[0].item_factors, found[1].item_factors)
        assert found[0].item_factors[40:].any(axis=1).all()
