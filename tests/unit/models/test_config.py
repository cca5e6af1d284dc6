"""What "auto" comes to, and that it stays so in folders."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight import ConfigError, DataError
from limelight.models.config import AUTO, FactorNumbers, numbers_of, settled

ALL = dict.fromkeys(FactorNumbers._fields, AUTO)
SIZES = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(1e-5, 1.0))


def numbers(n_users, n_items, share, **settings):
    observed = max(1.0, share * n_users * n_items)
    sizes = {"n_users": n_users, "n_items": n_items, "observed": observed}
    return settled({**ALL, **settings}, **sizes), sizes


def ridge(found, n_users, n_items, observed):
    """Return the ridge of an average row, as a share of what was observed of it."""
    pairs = n_users * n_items
    return found.regularization * (1 + found.unobserved_weight * pairs / observed)


@given(SIZES)
def test_numbers_that_a_fit_can_use(size):
    found, _ = numbers(*size)
    assert ll.IALS(**found._asdict()).numbers == found
    assert found.factors % 16 == 0
    assert 0 < found.unobserved_weight <= 1
    assert 0 < found.regularization < np.inf


@given(SIZES)
def test_users_and_items_count_alike(size):
    n_users, n_items, share = size
    found, other = numbers(*size)[0], numbers(n_items, n_users, share)[0]
    assert found == pytest.approx(other)


@given(SIZES, st.integers(2, 50))
def test_the_ridge_follows_from_the_lengths_of_histories_alone(size, times):
    """As many interactions for each user and each item, in larger data: as much is known."""
    found, sizes = numbers(*size)
    larger = {name: times * n for name, n in sizes.items()}
    assert ridge(settled(ALL, **larger), **larger) == pytest.approx(ridge(found, **sizes))


@given(SIZES, st.integers(2, 50))
def test_an_unobserved_pair_weighs_the_same_among_more_users_like_these(size, times):
    found, sizes = numbers(*size)
    more = sizes | {"n_users": times * sizes["n_users"], "observed": times * sizes["observed"]}
    assert settled(ALL, **more).unobserved_weight == pytest.approx(found.unobserved_weight)


def test_the_more_is_known_the_less_is_shrunk_and_the_more_an_unobserved_pair_says():
    found = [numbers(30_000, 40_000, share) for share in (1e-4, 1e-3, 1e-2, 0.1)]
    for (less, few), (more, many) in pairwise(found):
        assert ridge(less, **few) > ridge(more, **many)
        assert less.unobserved_weight <= more.unobserved_weight


def test_factors_grow_with_the_rows_up_to_a_bound_and_fall_with_very_many_interactions():
    by_rows = [numbers(n, n, 0.01)[0].factors for n in (10, 300, 1000, 3000, 30_000)]
    assert by_rows == sorted(by_rows)
    assert by_rows[0] == 16
    assert by_rows[-1] == max(by_rows) == 256
    by_pairs = [numbers(10**6, 10**6, share)[0].factors for share in (1e-6, 1e-4, 1e-3)]
    assert by_pairs == sorted(by_pairs, reverse=True)
    assert by_pairs[-1] < 256


@given(SIZES, st.sampled_from(FactorNumbers._fields))
def test_a_number_that_was_given_stays_what_it_is(size, name):
    found, _ = numbers(*size, **{name: 7})
    assert getattr(found, name) == 7
    assert name not in found.chosen({**ALL, name: 7})


def test_the_regularization_makes_up_for_an_unobserved_weight_that_was_given():
    found = [numbers(3000, 2000, 0.01, unobserved_weight=weight) for weight in (0.0, 0.01, 1.0)]
    ridges = [ridge(numbers, **sizes) for numbers, sizes in found]
    assert ridges == pytest.approx(ridges[:1] * 3)


def test_without_interactions_nothing_follows():
    with pytest.raises(DataError, match="nothing to learn from: 3 users, 2 items, no pairs") as e:
        settled(ALL, n_users=3, n_items=2, observed=0)
    assert e.value.hint


def test_before_a_fit_there_are_no_numbers():
    with pytest.raises(ConfigError, match='factors is "auto": it is settled when') as error:
        numbers_of(ALL)
    assert "fit(X)" in error.value.hint


DATA = ll.marketplace(300, 100, 4000).interactions


@pytest.fixture(params=[ll.IALS, ll.ExADMM])
def kind(request):
    return request.param


def test_a_fit_keeps_what_was_asked_beside_what_it_came_to(kind):
    model = kind(epochs=2).fit(DATA)
    assert model.get_params()["factors"] == AUTO
    assert model.chosen_ == model.numbers._asdict()
    assert model.user_factors.shape == (300, model.numbers.factors)
    assert "factors (auto)" in model.summary().text()
    same = kind(epochs=2, **model.chosen_).fit(DATA)
    np.testing.assert_array_equal(same.user_factors, model.user_factors)
    assert same.chosen_ == {}


def test_another_fit_settles_anew(kind):
    model = kind(epochs=2).fit(DATA)
    before = model.chosen_
    model.fit(ll.marketplace(300, 300, 2000).interactions)
    assert model.chosen_ != before


def test_a_start_says_how_long_vectors_are(kind):
    draw = np.random.default_rng(0)
    U, V = (draw.normal(size=(n, 5)) for n in (300, 100))
    assert kind(epochs=1).fit(DATA, init=(U, V)).numbers.factors == 5
    with pytest.raises(DataError, match=r"init U must have shape \(300, 5\): \(300, 4\)"):
        kind(epochs=1).fit(DATA, init=(U[:, :4], V))
    with pytest.raises(DataError, match=r"init U must have shape \(300, 8\): \(300, 5\)"):
        kind(epochs=1, factors=8).fit(DATA, init=(U, V))
    for wrong in ((U,), (U, 3), (U, V[0])):
        with pytest.raises(DataError, match="init"):
            kind(epochs=1).fit(DATA, init=wrong)


def test_a_loaded_model_folds_in_with_the_numbers_of_its_fit(kind, tmp_path):
    model = kind(epochs=2, unobserved_weight=0.2).fit(DATA)
    model.save(tmp_path / "model")
    loaded = ll.load(tmp_path / "model")
    assert loaded.chosen_ == model.chosen_ == {
        "factors": model.numbers.factors, "regularization": model.numbers.regularization
    }  # fmt: skip
    assert loaded.get_params() == model.get_params()
    few = DATA.matrix[:7]
    np.testing.assert_array_equal(loaded.fold_in(few), model.fold_in(few))


def saved(path, change, **settings):
    """Save a model, and let something else than a fit tell what "auto" came to."""
    ll.IALS(epochs=1, **settings).fit(DATA).save(path)
    config = json.loads((path / "config.json").read_text())
    change(config["fit"])
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_folders_that_know_nothing_of_auto_are_read(tmp_path):
    given = {"factors": 8, "regularization": 0.01, "unobserved_weight": 0.1}
    model = ll.load(saved(tmp_path / "model", lambda fit: fit.pop("chosen"), **given))
    assert model.numbers == FactorNumbers(**given)


WRONG = {
    "a negative number": {"factors": -1},
    "text": {"factors": "many"},
    "auto": {"factors": "auto"},
    "nothing": {"regularization": None},
    "a truth": {"unobserved_weight": True},
    "no finite number": {"regularization": float("nan")},
    "a share of a vector": {"factors": 16.5},
    "what was given": {"epochs": 3},
    "what is no setting": {"magic": 3},
    "another width": {"factors": 32},
    "no names": [1, 2],
    "a number alone": 16,
}


@pytest.mark.parametrize("name", WRONG)
def test_changed_choices_are_refused(name, tmp_path):
    def change(fit):
        wrong = WRONG[name]
        fit["chosen"] = fit["chosen"] | wrong if isinstance(wrong, dict) else wrong

    path = saved(tmp_path / "model", change)
    with pytest.raises(DataError, match="model folder ") as error:
        ll.load(path)
    assert "save" in error.value.hint


@pytest.mark.parametrize("name", FactorNumbers._fields)
def test_a_choice_that_is_gone_is_missed(name, tmp_path):
    path = saved(tmp_path / "model", lambda fit: fit["chosen"].pop(name))
    with pytest.raises(DataError, match=f'cannot be used: {name} is "auto"') as error:
        ll.load(path)
    assert "config.json was changed" in error.value.hint
