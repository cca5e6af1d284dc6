"""Tuning: what is tried, what is found, that it goes on where it was, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight.control.tuning import search as tuning
from limelight.control.tuning.factors import FactorSearch
from limelight.control.tuning.space import FactorSpace, Plan, Space, around, spread_out
from limelight.models.neural.config import NeuralConfig

ALL_GIVEN = {
    "factors": 8,
    "regularization": 0.02,
    "regularization_exponent": 0.5,
    "unobserved_weight": 0.1,
}


@pytest.fixture(scope="module")
def split():
    data = ll.marketplace(900, 300, 15_000, seed=4).interactions
    return ll.split_users(data, validation=120, test=120)


@pytest.fixture(scope="module")
def found(split):
    return ll.tune(split, model=ll.IALS(), trials=16)


def test_the_best_is_one_with_the_most_factors(found):
    last = max(trial.settings["factors"] for trial in found.trials)
    full = [trial for trial in found.trials if trial.settings["factors"] == last]
    is_default = found.settings == found.default
    assert is_default or found.best.ndcg == max(trial.ndcg for trial in full)
    assert found.best.settings["factors"] == last


def test_settings_make_the_model_that_was_measured(found, split):
    assert found.model.config == found.unfitted().config
    for name, settings in (("tuned", found.settings), ("default", found.default), ("default", {})):
        model = ll.IALS(**settings).fit(split.train)
        for part in ("validation", "test"):
            figures = ll.evaluate(model, getattr(split, part), k=20)
            assert found.measured[name][part] == dict(figures)
        if name == "tuned":
            np.testing.assert_array_equal(model.user_factors, found.model.user_factors)
            np.testing.assert_array_equal(model.item_factors, found.model.item_factors)


@pytest.mark.parametrize("base", [ll.IALS(), ll.EASE()], ids=["ials", "ease"])
def test_defaults_are_measured_alike_however_many_trials_there_are(base, split):
    one, other = (ll.tune(split, model=base, trials=n, at=5) for n in (2, 6))
    assert one.measured["default"] == other.measured["default"]


def test_it_says_what_the_figures_are_of(found):
    text = str(found)
    assert "trial nDCG@20: of validation users, the mean of 5 folds of their items" in text
    assert "folds nDCG@20  validation nDCG@20" in text
    assert "fitted from scratch with these settings" in text
    assert (found.folds, found.to_dict()["folds"]) == (5, 5)
    assert found.plot().get_ylabel() == "nDCG@20 of 5 folds of validation users"


def test_the_defaults_are_taken_where_a_fit_from_nothing_is_no_better(split):
    for trials in (4, 6, 8, 12):
        tuned = ll.tune(split, model=ll.IALS(), trials=trials, at=5)
        is_default = tuned.settings == tuned.default
        folds = [tuned.measured[name]["folds"]["ndcg@5"] for name in ("tuned", "default")]
        assert folds[0] == folds[1] if is_default else folds[0] > folds[1]
        assert ("no more than the defaults" in str(tuned)) <= is_default


def test_a_budget_may_leave_fewer_factors_than_the_first_trial_had(monkeypatch):
    data = ll.marketplace(2700, 2300, 30_000, seed=4).interactions
    split = ll.split_users(data, validation=60, test=60)
    plan = Plan.of(6, 32, fixed=False)
    monkeypatch.setattr(FactorSearch, "_affordable", lambda self, most: plan)
    tuned = ll.tune(split, model=ll.IALS(), budget=600)
    widths = [trial.settings["factors"] for trial in tuned.trials]
    assert widths[:5] == [32, 16, 16, 32, 32]
    assert tuned.settings["factors"] == tuned.default["factors"] == 32


def test_given_factors_stay_within_any_budget(split):
    tuned = ll.tune(split, model=ll.IALS(factors=8), budget=1e-3)
    assert {trial.settings["factors"] for trial in tuned.trials} == {8}
    assert tuned.model.item_factors.shape[1] == 8


def test_as_many_trials_as_asked_for(found):
    assert [trial.number for trial in found.trials] == list(range(16))


def test_trials_are_the_same_on_any_number_of_threads(found, split):
    again = ll.tune(split, model=ll.IALS(num_threads=1), trials=16)
    assert [t.ndcg for t in again.trials] == [t.ndcg for t in found.trials]


def test_given_settings_stay(split):
    base = ll.IALS(factors=8, regularization=0.02, epochs=5)
    tuned = ll.tune(split, model=base, trials=4)
    for trial in tuned.trials:
        assert trial.settings["factors"] == 8
        assert "regularization" not in trial.settings
    assert tuned.settings["regularization"] == 0.02
    assert tuned.settings["epochs"] == 5


def test_one_trial_is_that_of_the_defaults(split):
    only = ll.tune(split, trials=1)
    assert len(only.trials) == 1
    assert only.measured["tuned"] == only.measured["default"]


def test_a_budget_is_kept_to(split, monkeypatch):
    monkeypatch.setattr(tuning.time, "perf_counter", iter(np.arange(0.0, 1e6, 2.0)).__next__)
    # Every look at the clock seems to take two seconds.
    tuned = ll.tune(split, model=ll.IALS(), budget=600)
    assert len(tuned.trials) > 1
    assert sum(trial.seconds for trial in tuned.trials) <= 600


def test_too_small_a_budget_still_gives_a_model_and_says_what_was_left_out(split):
    tuned = ll.tune(split, model=ll.IALS(), budget=1e-3)
    assert tuned.model.item_factors.shape[1] == 16
    assert "The budget is too short for 32 factors" in str(tuned)


def test_it_goes_on_where_it_was_interrupted(split, found, tmp_path, monkeypatch):
    class StopError(Exception):
        """Ends a search between two trials."""

    real, made = tuning.Search.run, []

    def counted(self, *args, **given):
        made.append(1)
        if len(made) == 9:
            raise StopError
        return real(self, *args, **given)

    monkeypatch.setattr(tuning.Search, "run", counted)
    with pytest.raises(StopError):
        ll.tune(split, model=ll.IALS(), trials=16, folder=tmp_path / "t")
    whole = ll.tune(split, model=ll.IALS(), trials=16, folder=tmp_path / "t")
    assert len(made) == 9 + 8
    assert [t.ndcg for t in whole.trials] == [t.ndcg for t in found.trials]
    assert whole.settings == found.settings


def test_a_folder_has_what_was_found(split, tmp_path):
    pytest.importorskip("matplotlib")
    tuned = ll.tune(split, model=ll.IALS(), trials=6, folder=tmp_path / "t")
    record = json.loads((tmp_path / "t" / "tune.json").read_text())
    assert record["settings"] == tuned.settings
    assert pq.read_table(tmp_path / "t" / "tune.parquet").num_rows == 6
    assert (tmp_path / "t" / "tune.png").stat().st_size > 5000
    model = ll.load(tmp_path / "t" / "model")
    np.testing.assert_array_equal(model.item_factors, tuned.model.item_factors)


def test_another_search_in_the_same_folder_is_refused(split, tmp_path):
    ll.tune(split, model=ll.IALS(), trials=2, folder=tmp_path / "t")
    with pytest.raises(ll.ConfigError, match="another run, with trials 2 instead of 3") as refused:
        ll.tune(split, model=ll.IALS(), trials=3, folder=tmp_path / "t")
    assert "not further ones: choose another folder" in refused.value.hint
    with pytest.raises(ll.ConfigError, match="another run, with model 'IALS' instead of 'EASE'"):
        ll.tune(split, model=ll.EASE(), trials=2, folder=tmp_path / "t")
    other = ll.split_users(ll.marketplace(400, 80, 6000).interactions, validation=40, test=40)
    with pytest.raises(ll.ConfigError, match="another run, with other data"):
        ll.tune(other, model=ll.IALS(), trials=2, folder=tmp_path / "t")


def test_another_model_in_an_unfinished_folder_is_named(split, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning.Search, "result", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ll.tune(split, model=ll.IALS(), trials=2, folder=tmp_path / "t")
    with pytest.raises(ll.ConfigError, match="another run, with model 'IALS' instead of 'EASE'"):
        ll.tune(split, model=ll.EASE(), trials=2, folder=tmp_path / "t")


def test_a_finished_folder_holds_only_what_was_found_and_gives_it_again(
    split, tmp_path, monkeypatch
):
    place = tmp_path / "t"
    tuned = ll.tune(split, model=ll.IALS(), trials=6, folder=place)
    assert not (place / "state").exists()
    for name in ("tune.parquet", "tune.png"):
        (place / name).unlink(missing_ok=True)
    monkeypatch.setattr(ll.IALS, "fit", lambda *_, **given: 1 / 0)
    again = ll.tune(split, model=ll.IALS(), trials=6, folder=place)
    assert str(again) == str(tuned)
    assert again.to_dict() == tuned.to_dict()
    np.testing.assert_array_equal(again.model.item_factors, tuned.model.item_factors)
    (place / "tune.json").write_text("{}")
    with pytest.raises(ll.DataError, match="cannot read"):
        ll.tune(split, model=ll.IALS(), trials=6, folder=place)


def test_more_trials_of_ease_go_on_from_fewer(split, tmp_path):
    short = ll.tune(split, model=ll.EASE(), trials=2, folder=tmp_path / "t")
    more = ll.tune(split, model=ll.EASE(), trials=4, folder=tmp_path / "t")
    fresh = ll.tune(split, model=ll.EASE(), trials=4)
    assert more.trials[:2] == short.trials  # their seconds, too
    assert [(t.settings, t.ndcg) for t in more.trials] == [
        (t.settings, t.ndcg) for t in fresh.trials
    ]
    assert (more.settings, more.measured) == (fresh.settings, fresh.measured)
    with pytest.raises(ll.ConfigError, match="the folder holds 4 trials, more than 3"):
        ll.tune(split, model=ll.EASE(), trials=3, folder=tmp_path / "t")


def test_a_folder_of_something_else_is_left_alone(split, tmp_path):
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ll.LimelightError, match="not"):
        ll.tune(split, trials=2, folder=tmp_path)
    assert (tmp_path / "letters.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"trials": 0}, "trials must be at least 1: 0"),
        ({"budget": "soon"}, "budget must be a positive duration: 'soon'"),
        ({"budget": -3}, "budget must be a positive duration: -3"),
        ({"budget": 0}, "budget must be a positive duration: 0"),
        ({"budget": ""}, "budget must be a positive duration: ''"),
        ({"budget": "5m", "trials": 3}, "by time or by trials, not by both: '5m' and 3"),
        ({"at": 0}, "at must be at least 1"),
        ({"model": "ials"}, "no model to tune: 'ials'"),
        ({"model": ll.Popularity(), "trials": 2}, "Popularity has no setting to tune"),
        ({"model": ll.EASE(regularization=9), "trials": 2}, "EASE has no setting to tune"),
        ({"model": ll.IALS(**ALL_GIVEN), "trials": 3}, "IALS has no setting to tune"),
    ],
)
def test_wrong_input_is_refused_before_data_are_looked_at(wrong, words):
    with pytest.raises(ll.ConfigError, match=words):
        ll.tune(None, **wrong)


def test_a_length_beyond_the_items_is_refused(split):
    with pytest.raises(ll.ConfigError, match="at must be at most 298: 299"):
        ll.tune(split, trials=2, at=299)


def test_no_settings_are_tried_twice(split):
    base = ll.IALS(factors=8, regularization=0.02, unobserved_weight=0.1)
    tuned = ll.tune(split, model=base, trials=12)
    exponents = [trial.settings["regularization_exponent"] for trial in tuned.trials]
    assert sorted(exponents) == [0.5, 0.75, 1.0]


def test_settings_that_come_to_nothing_are_passed_over(split, monkeypatch):
    real = ll.IALS.fit

    def sometimes(self, X, **given):
        if self.config.unobserved_weight > 0.5:
            message = "the fit collapsed"
            raise ll.SolveError(message, hint="")
        return real(self, X, **given)

    monkeypatch.setattr(ll.IALS, "fit", sometimes)
    tuned = ll.tune(split, model=ll.IALS(), trials=12)
    assert any(trial.ndcg == 0 for trial in tuned.trials)
    assert tuned.best.ndcg > 0


def test_rounds_have_fewer_trials_and_more_factors():
    for trials in range(1, 80):
        plan = Plan.of(trials, 256, fixed=False)
        assert plan.trials == trials
        factors = [one.factors for one in plan.rounds]
        assert factors == sorted(set(factors))
        assert factors[-1] == 256
    assert len(Plan.of(20, 8, fixed=True).rounds) == 1


def test_the_middle_of_the_space_is_auto(split):
    space = FactorSpace(ll.IALS().config, split.train)
    numbers = space.settled()
    middle = space.settings((0.5, 0.5, 0.0))
    assert middle == space.settings(None)
    assert middle["regularization"] == pytest.approx(numbers.regularization, rel=1e-3)
    assert middle["unobserved_weight"] == pytest.approx(numbers.unobserved_weight, rel=1e-3)


@pytest.mark.parametrize("weight", [1, 3])
def test_the_regularization_of_ease_is_looked_for_around_auto(split, weight):
    if weight > 1:
        weights = np.full(split.train.nnz, weight, dtype=np.float32)
        split = replace(split, train=replace(split.train, weights=weights))
    tuned = ll.tune(split, model=ll.EASE(exposure_strength=0.01), trials=4)
    auto = weight**2 * 6 * split.train.nnz / split.train.n_users
    tried = [trial.settings["regularization"] for trial in tuned.trials]
    assert tried[0] == pytest.approx(auto, rel=1e-3)
    assert len(set(tried)) == 4
    assert all(auto / 4 <= value <= auto * 4 for value in tried)
    assert sorted(tuned.settings) == ["exposure_strength", "regularization"]
    assert tuned.best.ndcg == max(trial.ndcg for trial in tuned.trials) > 0
    assert tuned.model.config.regularization == tuned.settings["regularization"]
    rounded = pytest.approx(tuned.best.settings["regularization"], rel=1e-3)
    assert tuned.settings["regularization"] == rounded


def test_places_stay_in_the_cube():
    for place, _ in zip(spread_out(3), range(200), strict=False):
        assert all(0 <= x < 1 for x in place)
        assert all(0 <= x <= 1 for near in around(place, 0.3) for x in near)


def test_other_models_are_searched_where_they_say():
    space = Space(NeuralConfig(dropout=0.3))
    assert space.settings(None) == {}
    low, high = (space.settings((x,) * space.dimensions) for x in (0.0, 1.0))
    assert low == {"latent": 100, "learning_rate": 3e-4}
    assert high == {"latent": 600, "learning_rate": 3e-3}


def test_a_network_is_tuned_and_stops_by_validation_users():
    pytest.importorskip("jax")
    data = ll.marketplace(300, 60, 4000).interactions
    split = ll.split_users(data, validation=30, test=30)
    tuned = ll.tune(split, model=ll.MultVAE(epochs=2), trials=2, at=5)
    model = ll.MultVAE(**tuned.settings).fit(split.train, validation=split.validation)
    assert tuned.measured["tuned"]["test"] == dict(ll.evaluate(model, split.test, k=5))
