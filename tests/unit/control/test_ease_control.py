"""EASE under control: in training without a new fit, and as a base of re-rankers."""

import numpy as np
import pytest

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.models import ease

DATA = ll.marketplace(1200, 150, 24_000, seed=1).interactions


@pytest.fixture
def inversions(monkeypatch):
    """How many matrices are inverted."""
    counted, invert = [], ease.invert_gramian

    def counting(*given, **more):
        counted.append(given)
        return invert(*given, **more)

    monkeypatch.setattr(ease, "invert_gramian", counting)
    return counted


def test_a_front_has_one_fit(inversions):
    front = ll.frontier(DATA, model=ll.EASE(), points=5, at=10)
    assert len(inversions) == 1
    assert front.methods == ["ease", "best-response"]
    points = [point for point in front.points if point.method == "ease"]
    assert points[0].validation.gini > points[-1].validation.gini + 0.05


def test_a_front_in_a_folder_keeps_the_inverse_once(tmp_path, inversions):
    settings = {"methods": ["ease"], "points": 4, "at": 10, "folder": tmp_path / "front"}
    front = ll.frontier(DATA, model=ll.EASE(), **settings)
    assert [path.name for path in (tmp_path / "front" / "models").iterdir()] == ["plain"]
    again = ll.frontier(DATA, model=ll.EASE(), **(settings | {"points": 4}))
    assert len(inversions) == 1
    assert again.points == front.points
    model = ll.load(tmp_path / "front" / "models" / "plain")
    assert model.at_strength(front.points[-1].strength).recommend(k=5).ids.shape[1] == 5


def test_a_target_is_met(inversions):
    result = ll.fit_to(DATA, gini=0.45, at=10, model=ll.EASE())
    assert abs(result.served["gini@10"] - 0.45) < 0.01
    assert len(inversions) == 2  # of training users, and of everybody
    assert "ease" in {tried.method for tried in result.tried}


def test_exposure_in_training_can_be_confirmed_for_everybody():
    from limelight.control.served import Everybody
    from limelight.rerank.targets.search import as_goals

    model = ll.EASE().fit(DATA)
    everybody = Everybody.of(model, DATA, DATA.user_ids, DATA.n_users, 10)
    plain = everybody.leave().now.gini
    [goal] = as_goals(gini=plain - 0.05)
    found = everybody.retrain(goal, 0.1)
    assert found.met
    assert found.model.learned.arrays["inverse"] is model.learned.arrays["inverse"]
    np.testing.assert_allclose(found.now.gini, plain - 0.05, atol=0.01)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": ll.IALS()}, "a front is traced with ExADMM or EASE"),
        ({"model": ll.EASE(), "factors": 8}, "without control: factors=8"),
        ({"model": ll.EASE(exposure_strength=1.0)}, "without control: exposure_strength=1.0"),
        ({"model": ll.EASE(), "methods": ["exadmm"]}, "the front of ease has no such method"),
        ({"methods": ["ease"]}, "the front of exadmm has no such method"),
    ],
)
def test_fronts_that_cannot_be_traced(given, message):
    with pytest.raises(ConfigError, match=message):
        ll.frontier(DATA, **given)
