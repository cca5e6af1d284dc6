"""EASE against a dense float64 twin, with exposure control, and what every model inherits."""

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles

import limelight as ll
from limelight._base.errors import ConfigError, DataError, MemoryLimitError, SolveError
from limelight._native import kernels, use_variant
from limelight.data import split_users
from limelight.data.synthetic import marketplace
from limelight.jobs.service import Service, UserPiece
from limelight.models.folder import load_model, open_model
from limelight.recommend.fold_in import take_rows
from limelight.testing.contracts import LearnerContract
from limelight.testing.planted import random_interactions


class TestEASE(LearnerContract):
    quality_floor = 0.22

    def make(self, **settings):
        return ll.EASE(**settings)

    def other_setting(self):
        return "regularization", 3.0

    def test_saved_without_history_it_asks_for_one(self, model, tmp_path):
        model.save(tmp_path / "model", history=False)
        loaded = load_model(tmp_path / "model")
        for filter_seen in (True, False):
            with pytest.raises(DataError, match="saved without histories") as caught:
                loaded.recommend(users=[1], k=3, filter_seen=filter_seen)
            assert caught.value.hint == "pass histories= of these users"
        assert loaded.recommend(sparse.eye(3, 40, format="csr"), k=3).ids.shape == (3, 3)


class TestControlledEASE(TestEASE):
    quality_floor = 0.2

    def make(self, **settings):
        return ll.EASE(exposure_strength=0.3, **settings)


GROUPS = np.arange(24) % 4 - 1
OVERLAPPING = sparse.random(9, 24, density=0.3, random_state=1, format="csr")
ASKED = {
    "nothing": None,
    "small scores": ll.ExposureTargets(),
    "weights": ll.ExposureTargets(weights=np.linspace(0, 3, 24)),
    "targets": ll.ExposureTargets(targets=np.linspace(0, 0.3, 24)),
    "groups": ll.ExposureTargets(groups=GROUPS, weights=[1.0, 2.0, 0.5], targets=[1.0, 2.0, 0.5]),
    "overlapping groups": ll.ExposureTargets(groups=OVERLAPPING, targets=np.ones(9)),
}


@pytest.fixture(scope="module")
def X():
    return random_interactions(90, 24, density=0.3, seed=4)


@pytest.fixture(scope="module")
def R(X):
    """The same pairs, with weights."""
    found = X.copy()
    found.data = np.random.default_rng(0).lognormal(size=X.nnz).astype(np.float32)
    return found


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("strength", [0.0, 0.2, 30.0])
def test_the_gradient_of_the_objective_vanishes(X, asked, strength):
    model = ll.EASE(regularization=5.0, exposure_strength=strength).fit(X, exposure=asked)
    term = (ll.ExposureTargets() if asked is None else asked).term(24)
    slope = oracles.ease_slope(
        X.toarray(),
        model.item_weights().astype(float),
        5.0,
        strength * 90,
        term.W.toarray(),
        term.tau,
    )
    np.fill_diagonal(slope, 0)  # where the weights are held at 0
    assert np.abs(slope).max() < 1e-5 * max(1, strength * 90)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("weight", [None, "values"])
def test_agrees_with_its_twin(X, R, asked, weight):
    given = X if weight is None else R
    model = ll.EASE(regularization=5.0, exposure_strength=0.7)
    model.fit(given, exposure=asked, weight=weight)
    term = (ll.ExposureTargets() if asked is None else asked).term(24)
    dense = given.toarray().astype(float)
    twin = oracles.ease(dense, 5.0, 0.7 * 90, term.W.toarray(), term.tau)
    np.testing.assert_allclose(model.item_weights(), twin, atol=1e-5)
    np.testing.assert_allclose(model.mean_scores_, dense.mean(0) @ twin, atol=1e-5)
    for asking in ({"histories": given}, {}):
        scores = model.ranking(**asking, filter_seen=False).top(np.arange(90), 24)
        expected = np.take_along_axis(dense @ twin, scores.ids.astype(int), axis=1)
        np.testing.assert_allclose(scores.scores, expected, rtol=1e-5, atol=1e-5)


def test_weights_of_one_change_no_bit(X):
    plain, weighted = ll.EASE().fit(X), ll.EASE().fit(X, weight="values")
    assert (plain.learned.weighted, weighted.learned.weighted) == (False, True)
    np.testing.assert_array_equal(weighted.item_weights(), plain.item_weights())
    for mine, other in zip(weighted.recommend(X), plain.recommend(X), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_weights_in_another_unit_give_the_same_lists(R):
    one, other = (ll.EASE().fit(X, weight="values") for X in (R, 4 * R))
    assert other.chosen_["regularization"] == pytest.approx(16 * one.chosen_["regularization"])
    np.testing.assert_allclose(other.item_weights(), one.item_weights(), atol=1e-6)


def test_a_folder_keeps_weights(R, tmp_path):
    model = ll.EASE(exposure_strength=0.1).fit(R, weight="values")
    model.save(tmp_path / "model")
    loaded, opened = load_model(tmp_path / "model"), open_model(tmp_path / "model")
    assert loaded.learned.weighted
    expected = model.recommend(k=7)
    np.testing.assert_array_equal(loaded.recommend(k=7).scores, expected.scores)
    np.testing.assert_array_equal(loaded.recommend(R, k=7).scores, expected.scores)
    ranking = Service(tmp_path / "model", 90).ranking(opened, UserPiece(0, 20, 50))
    np.testing.assert_array_equal(ranking.top(np.arange(30), 7).scores, expected.scores[20:50])


def test_what_auto_came_to_stays_with_the_model(X, tmp_path):
    model = ll.EASE().fit(X)
    chosen = {"regularization": 6 * X.nnz / 90}
    assert model.chosen_ == model.at_strength(2.0).chosen_ == chosen
    np.testing.assert_array_equal(model.item_weights(), ll.EASE(**chosen).fit(X).item_weights())
    model.save(tmp_path / "model", history=False)
    assert load_model(tmp_path / "model").chosen_ == chosen
    assert ll.EASE(regularization=3.0).fit(X).chosen_ == {}


@pytest.mark.parametrize("weight", [None, "values"])
def test_parts_of_a_score_are_the_weights_of_a_column(X, R, weight):
    given = X if weight is None else R
    model = ll.EASE(exposure_strength=0.5).fit(given, weight=weight)
    history, B = given[3], model.item_weights().astype(float)
    for item in (int(history.indices[0]), 11):
        found = model.explain(3, item)
        parts = dict(found.parts)
        expected = history.data * B[history.indices, item]
        np.testing.assert_allclose([parts[i] for i in history.indices], expected, atol=1e-6)
        assert found.exposure is None
        lists = model.recommend(users=[3], k=24, filter_seen=False)
        assert found.score == pytest.approx(lists.scores[lists.ids == item][0], abs=1e-5)


def test_items_that_are_alike_are_so_both_ways(X):
    model = ll.EASE(regularization=5.0).fit(X)
    P = np.linalg.inv(X.T @ X + 5 * np.eye(24))
    ids, scores = model.similar_items(np.arange(24), k=23)
    expected = -P / np.sqrt(np.outer(np.diag(P), np.diag(P)))
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, axis=1), atol=1e-6)
    np.testing.assert_array_equal(model.at_strength(3.0).similar_items(2).ids, ids[2:3, :10])


def test_it_is_fitted_again_where_there_is_something_new(X):
    with pytest.raises(ConfigError, match="EASE cannot take in new interactions alone") as caught:
        ll.EASE().fit(X).partial_fit(X)
    assert caught.value.hint == "fit it again, to all interactions: that is one inversion"


def test_agrees_with_its_twin_on_a_catalogue_of_two_blocks():
    data = marketplace(900, 300, 20_000, seed=2).interactions
    assert data.n_items > kernels.SWEEP_ROWS
    model = ll.EASE(exposure_strength=0.1, regularization=9.0).fit(data)
    X = data.matrix.toarray().astype(float)
    twin = oracles.ease_by_columns(X, 9.0, 0.1 * len(X))
    np.testing.assert_allclose(model.item_weights(), twin, atol=1e-5)


def test_every_strength_is_what_a_fit_gives(X):
    plain = ll.EASE().fit(X)
    for strength in (0.0, 0.1, 10.0):
        again, refit = plain.at_strength(strength), ll.EASE(exposure_strength=strength).fit(X)
        assert again.get_params() == refit.get_params()
        assert again.learned.arrays["inverse"] is plain.learned.arrays["inverse"]
        for mine, other in zip(again.recommend(k=9), refit.recommend(k=9), strict=True):
            np.testing.assert_array_equal(mine, other)
    wanted = ASKED["groups"]
    again, refit = (
        plain.at_strength(2.0, exposure=wanted),
        ll.EASE(exposure_strength=2.0).fit(X, exposure=wanted),
    )
    np.testing.assert_array_equal(again.item_weights(), refit.item_weights())


def test_targets_are_met_where_they_weigh_enough(X):
    wanted = ASKED["groups"]
    model = ll.EASE(exposure_strength=1e5).fit(X, exposure=wanted)
    found = [model.mean_scores_[group == GROUPS].sum() for group in range(3)]
    np.testing.assert_allclose(found, wanted.targets, rtol=1e-3)


def test_strength_evens_out_exposure():
    market = marketplace(2000, 300, 40_000, seed=1)
    split = split_users(market.interactions, validation=10, test=500, seed=1)
    plain = ll.EASE().fit(split.train)
    ginis = [
        ll.evaluate(plain.at_strength(strength), split.test, k=20)["gini@20"]
        for strength in (0.0, 0.1, 1.0)
    ]
    assert ginis[0] > ginis[1] > ginis[2]


def test_a_saved_model_takes_any_strength(X, tmp_path):
    model = ll.EASE(exposure_strength=0.5).fit(X)
    model.save(tmp_path / "model")
    found = ll.load(tmp_path / "model").at_strength(3.0).recommend(k=5)
    expected = model.at_strength(3.0).recommend(k=5)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("variant", kernels.variants())
def test_bits_do_not_depend_on_threads(variant):
    data = marketplace(500, 400, 9000, seed=3).interactions
    with use_variant(variant):
        one, three = (ll.EASE(num_threads=n).fit(data).item_weights() for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_what_does_not_fit_into_memory_is_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setenv("LIMELIGHT_MEMORY", "2GiB")
    X = sparse.csr_matrix((np.ones(2), ([0, 1], [0, 49_999])))
    with pytest.raises(
        MemoryLimitError, match=r"EASE of 50,000 items takes about 1?\d\.\d GiB"
    ) as caught:
        ll.EASE().fit(X)
    assert "--min-item" in caught.value.hint


def test_a_regularization_beyond_32_bits_is_refused():
    X = sparse.csr_matrix(np.ones((400, 40)))
    with pytest.raises(SolveError, match="Gramian") as caught:
        ll.EASE(regularization=1e-9).fit(X)
    assert caught.value.hint == "raise regularization"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularization": 0}, "regularization must be a finite number above 0: 0"),
        ({"regularization": "much"}, "regularization must be a number: 'much'"),
        ({"exposure_strength": -1}, "exposure_strength must be a finite number 0 or more: -1"),
        ({"factors": 8}, "unknown hyper-parameter: 'factors'"),
    ],
)
def test_settings_that_nobody_could_use(settings, message):
    with pytest.raises(ConfigError, match=message):
        ll.EASE(**settings)
    if "exposure_strength" in settings:
        with pytest.raises(ConfigError, match=message):
            ll.EASE().fit(random_interactions(30, 20, seed=1)).at_strength(-1)


def test_targets_of_another_catalogue(X):
    with pytest.raises(DataError, match="one for each of 24 items"):
        ll.EASE().fit(X, exposure=ll.ExposureTargets(weights=np.ones(3)))


def test_rankings_of_some_items(X):
    ranking = ll.EASE(exposure_strength=0.2).fit(X).ranking()
    items = np.array([3, 4, 11, 20, 23], dtype=np.int32)
    ids = ranking.top(np.arange(90), 24).ids
    for user, some in enumerate(ranking.among(items).top(np.arange(90), 9).ids.tolist()):
        listed = [item for item in ids[user].tolist() if item in items]
        assert some == listed + [-1] * (9 - len(listed))
    assert ranking.among(items[:0]).top(np.arange(2), 3).ids.tolist() == [[-1] * 3] * 2


def test_it_serves_from_its_folder_as_it_does_in_memory(tmp_path):
    data = marketplace(300, 100, 4000, seed=1).interactions
    model = ll.EASE(exposure_strength=0.1).fit(data)
    model.save(tmp_path / "model")
    opened, rows = open_model(tmp_path / "model"), np.arange(20, 50)
    seen = take_rows(model.learned.seen, rows)
    for filter_seen in (True, False):
        found = opened.ranking_of(rows, seen, filter_seen=filter_seen).top(np.arange(30), 7)
        expected = model.recommend(users=rows, k=7, filter_seen=filter_seen)
        np.testing.assert_array_equal(found.ids, expected.ids)
