"""A fit to more users, from where a model is."""

import numpy as np
import pytest

import limelight as ll
from limelight.control.served import refit
from limelight.models.factor_model import FactorModel


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(300, 120, 2500, seed=4).interactions


@pytest.fixture(scope="module")
def split(data):
    split = ll.split_users(data, validation=60, test=60)
    assert split.dropped_items > 0
    return split


@pytest.fixture
def starts(monkeypatch):
    """What factor models were told to start from."""
    found, fit = [], FactorModel.fit

    def noted(model, *args, init=None, **settings):
        found.append(init)
        return fit(model, *args, init=init, **settings)

    monkeypatch.setattr(FactorModel, "fit", noted)
    for kind in (ll.IALS, ll.ExADMM):
        if "fit" in vars(kind):
            own = kind.fit

            def own_noted(model, *args, _own=own, init=None, **settings):
                found.append(init)
                return _own(model, *args, init=init, **settings)

            monkeypatch.setattr(kind, "fit", own_noted)
    return found


KINDS = {
    "ials": lambda: ll.IALS(factors=6, epochs=24, regularization=0.01, num_threads=1),
    "exadmm": lambda: ll.ExADMM(factors=6, epochs=24, random_state=3, num_threads=1),
}


def column_of(data, item):
    return int(np.flatnonzero(np.asarray(data.item_ids) == item)[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["with ids", "a matrix"])
def test_known_items_start_where_they_were_and_new_ones_from_nothing(
    data, split, starts, kind, form
):
    if form == "a matrix":
        data = data.matrix
        split = ll.split_users(data, validation=60, test=60)
    whole = ll.data.interactions.as_interactions(data)
    plain = KINDS[kind]().fit(split.train)
    starts.clear()
    found = refit(plain, whole)
    U, V = starts[0]
    assert U.shape == (300, 6)
    known = {item: row for row, item in enumerate(plain.item_ids.tolist())}
    for row, item in enumerate(np.asarray(whole.item_ids).tolist()):
        expected = plain.item_factors[known[item]] if item in known else np.zeros(6)
        np.testing.assert_array_equal(V[row], expected)
    assert found.user_factors.shape == (300, 6)
    np.testing.assert_array_equal(found.user_ids, whole.user_ids)
    np.testing.assert_array_equal(found.item_ids, whole.item_ids)


@pytest.mark.parametrize("kind", KINDS)
def test_the_settings_are_those_of_the_plain_model(data, split, kind):
    plain = KINDS[kind]().fit(split.train)
    found = refit(plain, data)
    assert type(found) is type(plain)
    assert found.config == plain.config
    assert found.get_params() == plain.get_params()
    assert found.trace_[-1].epoch == 3  # an eighth of the epochs
    assert repr(found).startswith(repr(plain).split(" fitted")[0])


@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_about_where_a_fit_from_nothing_does(kind):
    data = ll.marketplace(600, 80, 12_000, seed=5).interactions
    split = ll.split_users(data, validation=60, test=60)
    plain = KINDS[kind]().fit(split.train)
    warm, cold = refit(plain, data), KINDS[kind]().fit(data)
    assert warm.trace_[-1].objective == pytest.approx(cold.trace_[-1].objective, rel=0.02)


def test_the_plain_model_is_left_as_it_was(data, split):
    plain = KINDS["ials"]().fit(split.train)
    before = plain.user_factors.copy(), plain.item_factors.copy(), plain.config
    refit(plain, data)
    np.testing.assert_array_equal(plain.user_factors, before[0])
    np.testing.assert_array_equal(plain.item_factors, before[1])
    assert plain.config is before[2]
    assert len(plain.user_ids) == 180


@pytest.mark.parametrize("kind", [ll.Popularity, ll.Random])
def test_models_that_cannot_start_from_somewhere_are_fitted_from_nothing(data, split, kind):
    plain = kind().fit(split.train)
    found = refit(plain, data)
    assert type(found) is kind
    assert found.config == plain.config
    np.testing.assert_array_equal(found.recommend(k=5).ids, kind().fit(data).recommend(k=5).ids)


def test_an_item_that_only_held_out_users_have_is_shown(data, split):
    plain = KINDS["ials"]().fit(split.train)
    new = sorted(set(data.item_ids.tolist()) - set(plain.item_ids.tolist()))
    found = refit(plain, data)
    columns = [column_of(data, item) for item in new]
    assert np.abs(found.item_factors[columns]).sum() > 0


def test_one_epoch_is_not_too_few(data, split):
    found = refit(ll.IALS(factors=4, epochs=1, num_threads=1).fit(split.train), data)
    assert found.trace_[-1].epoch == 2
    assert found.config.epochs == 1
