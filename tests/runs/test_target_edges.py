"""Targets on data that say little, and promises that do not hold."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import limelight as ll
from limelight._base.errors import SolveError
from limelight.control import served
from limelight.data import HeldOut, Split

K = 10


def hopeless(split, draw):
    """Let validation users look for what hardly anybody has, so that lists find nothing."""
    counts = np.asarray(split.train.matrix.sum(axis=0)).ravel()
    rare = np.argsort(counts)[:15]
    part, targets = split.validation, np.zeros(split.validation.history.shape)
    for user in range(part.n_users):
        free = [item for item in rare if not part.history[user, item]]
        targets[user, draw.choice(free)] = 1
    lost = HeldOut(part.history, csr_matrix(targets), part.user_ids)
    return Split(split.train, lost, split.test)


@pytest.mark.parametrize("n_items", [80, 300])
@pytest.mark.parametrize("serve", ["batch", "stream"])
def test_validation_users_who_find_nothing_do_not_spoil_the_exposure(serve, n_items):
    """They cannot tell what is lost, but the Gini index that was asked for is that of everybody."""
    data = ll.marketplace(500, n_items, 7000, seed=3).interactions
    split = hopeless(ll.split_users(data, validation=60, test=60), np.random.default_rng(0))
    found = ll.fit_to(split, gini=0.5, at=K, model=ll.Popularity(), serve=serve)
    assert found.validation["ndcg@10_before"] == 0
    assert found.served["gini@10"] == pytest.approx(0.5, abs=0.01)
    assert found.test["ndcg@10"] > 0


def test_a_promise_that_does_not_hold_for_everybody_is_not_passed_over(monkeypatch):
    """What validation users decided may fail once everybody is served: that must be said."""
    data = ll.marketplace(300, 60, 5000, seed=1).interactions
    monkeypatch.setattr(served, "_confirm", lambda control, *_: _unmoved(control))
    with pytest.raises(SolveError, match="a Gini index of"):
        ll.fit_to(data, gini=0.5, at=K, model=ll.Popularity())
    found = ll.fit_to(data, gini=0.5, at=K, model=ll.Popularity(), nearest=True)
    assert not found.met
    assert any("was missed over all users" in note for note in found.notes)


def _unmoved(control):
    trial = control.try_at(0.0)
    return trial.measure, trial


def test_figures_over_different_catalogues_are_not_compared_without_a_word():
    """The search knows the items of training users, what serves those of everybody."""
    data = ll.marketplace(300, 400, 3000, seed=1).interactions
    found = ll.fit_to(data, gini=0.7, at=5, model=ll.Popularity())
    assert found.served["items"] == 400
    assert found.test["items"] < 400
    assert any(f"{found.test['items']:,.0f}" in note for note in found.notes)


def test_lists_of_one_place():
    data = ll.marketplace(500, 40, 7000, seed=3).interactions
    found = ll.fit_to(data, gini=0.4, at=1, model=ll.IALS(factors=4, epochs=4))
    assert found.served["gini@1"] == pytest.approx(0.4, abs=0.01)
    assert found.model.recommend(k=1).ids.shape == (500, 1)


def test_users_who_have_seen_nearly_everything():
    draw = np.random.default_rng(0)
    seen = draw.random((300, 40)) < draw.uniform(0.3, 1.0, size=(300, 1))
    for serve in ("batch", "stream", "stateless"):
        found = ll.fit_to(
            csr_matrix(seen.astype(float)), gini=0.1, at=K, model=ll.Popularity(), serve=serve
        )
        ids = found.model.recommend(k=K).ids
        lengths = np.minimum((~seen).sum(axis=1), K)
        np.testing.assert_array_equal((ids >= 0).sum(axis=1), lengths)
        given = ll.metrics.exposure.exposure(ids, 40)
        assert ll.metrics.exposure.gini(given) == pytest.approx(0.1, abs=0.01)


def test_threads_make_no_difference():
    data = ll.marketplace(400, 60, 6000, seed=2).interactions
    found = [
        ll.fit_to(data, gini=0.4, at=K, model=ll.IALS(factors=6, epochs=4, num_threads=threads))
        for threads in (1, 2)
    ]
    assert found[0].promise() == found[1].promise()
    np.testing.assert_array_equal(*(one.model.recommend(k=K).ids for one in found))


def test_a_sample_is_searched_with_and_everybody_confirms(monkeypatch):
    monkeypatch.setattr("limelight.control.population._SEARCHED", 300)
    data = ll.marketplace(1500, 100, 22_000, seed=4).interactions
    split = ll.split_users(data, validation=75, test=75)
    found = ll.fit_to(split, gini=0.4, at=K, model=ll.IALS(factors=6, epochs=4))
    [note] = found.notes
    assert note.startswith("The strength was searched for with 300 of 1,500 users: at ")
    assert found.test["users"] == 300
    assert found.served["users"] == 1500
    assert found.served["gini@10"] == pytest.approx(0.4, abs=0.01)
    monkeypatch.setattr("limelight.control.population._SEARCHED", 20_000)
    more = ll.fit_to(split, gini=0.4, at=K, model=ll.IALS(factors=6, epochs=4), population=5000)
    assert not any("searched for with" in note for note in more.notes)  # there are no more users
