"""A search for a strength that is interrupted goes on to the same lists."""

import numpy as np
import pytest

import limelight as ll
from limelight._base.errors import DataError
from limelight.rerank.targets.controls import Resumable
from limelight.store.arrays import load_arrays, save_arrays

TARGETS = [
    {"gini": 0.2},
    {"min_coverage": 1.0},
    {"max_relevance_loss": 0.02},
    {"gini": 0.25, "method": "online"},
    {"gini": 0.3, "method": "prices"},
    {"gini": 0.25, "method": "allocate"},
    {"gini": 0.25, "method": "fairrec"},
]


class KilledError(Exception):
    """Stands for the end of a process."""


@pytest.fixture(scope="module")
def model():
    return ll.IALS(factors=6, epochs=5).fit(ll.marketplace(300, 60, 3000, seed=2).interactions)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("turns", [0, 1])
def test_a_search_goes_on_to_the_same_bits(model, target, turns, tmp_path, monkeypatch):
    whole = ll.rerank(model, k=10, **target)
    place, keep, left = tmp_path / "c", Resumable._keep, [turns]

    def keep_few(control, *known):
        if not left[0]:
            raise KilledError
        left[0] -= 1
        keep(control, *known)

    with monkeypatch.context() as patch:
        patch.setattr(Resumable, "_keep", keep_few)
        with pytest.raises(KilledError):
            ll.rerank(model, k=10, checkpoint=place, **target)
    assert len(list(place.glob("turn-*"))) == turns
    again = ll.rerank(model, k=10, checkpoint=place, **target)
    np.testing.assert_array_equal(again.lists.ids, whole.lists.ids)
    np.testing.assert_array_equal(again.lists.scores, whole.lists.scores)
    assert again.strength == whole.strength
    assert again.notes == whole.notes


def test_another_goal_or_other_candidates_are_refused(model, tmp_path):
    place = tmp_path / "c"
    ll.rerank(model, k=10, gini=0.2, checkpoint=place)
    with pytest.raises(ll.ConfigError, match="goal"):
        ll.rerank(model, k=10, gini=0.5, checkpoint=place)
    other = ll.IALS(factors=7, epochs=5).fit(ll.marketplace(300, 60, 3000, seed=2).interactions)
    with pytest.raises(ll.ConfigError, match="candidates"):
        ll.rerank(other, k=10, gini=0.2, checkpoint=place)


def test_a_checkpoint_of_another_search_is_refused(model, tmp_path):
    place = tmp_path / "c"
    ll.rerank(model, k=10, gini=0.2, checkpoint=place)
    first, second = place / "turn-00000.safetensors", place / "turn-00001.safetensors"
    first.write_bytes(second.read_bytes())
    with pytest.raises(DataError, match="not of this search"):
        ll.rerank(model, k=10, gini=0.2, checkpoint=place)


@pytest.mark.parametrize("name", ["places", "state/market/exposure", "state/market/served"])
def test_a_checkpoint_that_lacks_something_is_refused(model, tmp_path, name):
    place = tmp_path / "c"
    ll.rerank(model, k=10, gini=0.2, checkpoint=place)
    file = place / "turn-00001.safetensors"
    arrays = load_arrays(file)
    save_arrays(file, {key: values for key, values in arrays.items() if key != name})
    with pytest.raises(DataError, match=r"no \w+ of this work|not of this search"):
        ll.rerank(model, k=10, gini=0.2, checkpoint=place)


def test_a_checkpoint_of_an_older_version_is_taken_up(model, tmp_path):
    """It also held where users stood twice, and what they had chosen before the first choice."""
    place = tmp_path / "c"
    whole = ll.rerank(model, k=10, gini=0.2, checkpoint=place)
    files = sorted(place.glob("turn-*"))
    for file in files[3:]:
        file.unlink()
    for file in files[:3]:
        arrays = load_arrays(file)
        market = {name: values for name, values in arrays.items() if "market/" in name}
        twice = {name.replace("market/", ""): values for name, values in market.items()}
        save_arrays(file, arrays | twice | {"state/is_open": np.array([True])})
    again = ll.rerank(model, k=10, gini=0.2, checkpoint=place)
    np.testing.assert_array_equal(again.lists.ids, whole.lists.ids)
