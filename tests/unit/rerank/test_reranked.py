"""A model with a re-ranker, asked by ids and for some items, copied and cloned."""

import copy
import io
import pickle

import numpy as np
import pytest

import limelight as ll

joblib = pytest.importorskip("joblib", reason="joblib is not installed")
sklearn = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")

DATA = ll.marketplace(300, 60, 4000).interactions


def by_joblib(thing):
    file = io.BytesIO()
    joblib.dump(thing, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "joblib": by_joblib,
}
RERANKERS = {
    "best response": lambda _: ll.BestResponse(strength=0.3),
    "online": lambda _: ll.Online(strength=0.3),
    "prices": lambda model: ll.FrankWolfe(strength=0.3).fit(model.ranking(), 5),
    "allocate": lambda _: ll.Allocate(),
    "fairrec": lambda _: ll.FairRec(alpha=0.5),
    "greedy": lambda _: ll.Greedy(popularity=DATA),
}


@pytest.fixture(scope="module")
def model():
    return ll.IALS(factors=8, epochs=4).fit(DATA)


@pytest.fixture(params=RERANKERS)
def fair(request, model):
    return RERANKERS[request.param](model).over(model)


@pytest.mark.parametrize("way", COPIES)
def test_copies_make_the_same_lists(fair, way):
    copied = COPIES[way](fair)
    for mine, theirs in zip(copied.recommend(k=5), fair.recommend(k=5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    # What is remembered of those who were served is copied with it.
    again = COPIES[way](fair)
    np.testing.assert_array_equal(again.recommend(k=5).ids, fair.recommend(k=5).ids)
    assert repr(again) == repr(fair)


def test_a_clone_is_not_fitted_and_remembers_nothing(fair):
    fair.recommend(k=5)
    found = sklearn.clone(fair)
    assert not found.model.is_fitted
    assert fair.model.is_fitted
    assert repr(found.reranker) == repr(fair.reranker)
    assert found.get_params()["model__factors"] == 8
    found.model.fit(DATA)
    assert found.recommend(k=5).ids.shape == (300, 5)


def test_items_are_left_out_or_allowed(fair):
    allowed = list(range(10, 40))
    ids = fair.recommend(k=5, allow=allowed, exclude=[11, 12]).ids
    shown = set(ids[ids >= 0].tolist())
    assert shown <= set(allowed) - {11, 12}
    assert len(shown) > 5


def test_users_by_their_own_ids(fair):
    some = list(range(100, 200))
    ids = fair.recommend(user_ids=[*map(str, some)], k=5).ids
    assert ids.shape == (100, 5)
    if fair.serves == "alone":
        np.testing.assert_array_equal(fair.recommend(user_ids=104, k=5).ids[0], ids[4])
    with pytest.raises(ll.DataError, match="user id not in the training data: 'x'"):
        fair.recommend(user_ids=["x"], k=5)


def test_kept_lists_are_used_unless_some_items_are_asked_for(model):
    kept = ll.BestResponse(strength=0.3).over(model)
    kept.lists = model.recommend(k=5)
    np.testing.assert_array_equal(kept.recommend(k=5).ids, kept.lists.ids)
    np.testing.assert_array_equal(kept.recommend(user_ids=[9], k=5).ids[0], kept.lists.ids[9])
    first = int(kept.lists.ids[0, 0])
    assert first not in kept.recommend(k=5, exclude=[first]).ids


def test_settings_of_both_parts_can_be_changed():
    model = ll.IALS(factors=4, epochs=2).fit(ll.marketplace(100, 30, 900).interactions)
    fair = ll.BestResponse(strength=0.1).over(model)

    fair.set_params(reranker__strength=0.4, model__epochs=3)

    assert fair.get_params()["reranker__strength"] == 0.4
    assert model.get_params()["epochs"] == 3
    with pytest.raises(ll.ConfigError, match="foo"):
        fair.set_params(foo=1)


@pytest.mark.parametrize("asked", [{"users": [0, 1]}, {"histories": 2}])
def test_ids_beside_users_are_one_each(asked):
    data = ll.marketplace(100, 30, 900).interactions
    model = ll.IALS(factors=4, epochs=2).fit(data)
    if "histories" in asked:
        asked = {"histories": data.matrix[:2]}
    with pytest.raises(ll.DataError, match="1 user ids for 2 users"):
        model.recommend(**asked, user_ids=[5], k=3)
