"""What a stranger broke once."""

import json

import numpy as np
import pytest

import limelight as ll
from limelight.store.arrays import load_arrays, save_arrays


@pytest.fixture
def data():
    return ll.marketplace(120, 40, 1500, seed=2).interactions


@pytest.fixture
def model(data, tmp_path):
    ll.IALS(factors=4, epochs=2).fit(data).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_of_ones_own_files_is_not_taken_for_a_split(data, tmp_path):
    (tmp_path / "train.csv").write_text("my own\n")
    with pytest.raises(ll.DataError, match="will not replace what limelight did not write"):
        ll.split_users(data, validation=10, test=10).save(tmp_path)
    assert (tmp_path / "train.csv").read_text() == "my own\n"


@pytest.mark.parametrize("fit", [[], {"trace": [{"epoch": 1}]}, {"status": "SPLENDID"}])
def test_a_model_whose_fit_was_rewritten(model, fit):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"fit": fit}))
    with pytest.raises(ll.DataError, match="fit"):
        ll.load(model)


def test_a_model_whose_vectors_have_another_shape(model):
    arrays = load_arrays(model / "factors.safetensors")
    save_arrays(model / "factors.safetensors", arrays | {"dual": np.zeros((5, 4))})
    with pytest.raises(ll.DataError, match="do not fit its settings"):
        ll.load(model)


def test_a_model_whose_histories_do_not_ascend(model):
    seen = load_arrays(model / "seen.safetensors")
    seen["indices"] = seen["indices"][::-1].copy()
    save_arrays(model / "seen.safetensors", seen)
    with pytest.raises(ll.DataError, match="the histories do not fit"):
        ll.load(model)
