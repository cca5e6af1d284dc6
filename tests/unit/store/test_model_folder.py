"""Model folders: all parts come back, and every way to damage them has its message."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limelight._base.errors import DataError
from limelight._base.machine import package_version
from limelight.store.arrays import load_arrays, save_arrays, write_ids
from limelight.store.model_folder import (
    SCHEMA_VERSION,
    ModelFolder,
    is_model_folder,
    load_control,
    load_model_folder,
    save_model_folder,
)

DEEP = "[" * 100_000
FILES = [
    "config.json",
    "factors.safetensors",
    "items.parquet",
    "seen.safetensors",
    "users.parquet",
]


@pytest.fixture
def folder():
    return ModelFolder(
        config={
            "model": "exadmm",
            "hyperparameters": {"factors": np.int64(2), "penalty": "auto", "regularization": 0.003},
            "data": {"fingerprint": "abc", "interactions": 3},
        },
        arrays={
            "user_factors": np.arange(6, dtype=np.float32).reshape(3, 2),
            "item_factors": np.ones((2, 2), dtype=np.float32),
            "mean_user": np.zeros(2),
        },
        user_ids=np.array([30, 10, 20]),
        item_ids=np.array(["b", "007"], dtype=object),
        seen=(np.array([0, 1, 1, 3]), np.array([1, 0, 1], dtype=np.int32)),
    )


@pytest.fixture
def saved(tmp_path, folder):
    save_model_folder(tmp_path / "model", folder)
    return tmp_path / "model"


def test_round_trip(saved, folder):
    assert sorted(file.name for file in saved.iterdir()) == FILES
    loaded = load_model_folder(saved)
    assert loaded.config == {
        "schema_version": SCHEMA_VERSION,
        "limelight_version": package_version(),
        "model": "exadmm",
        "hyperparameters": {"factors": 2, "penalty": "auto", "regularization": 0.003},
        "data": {"fingerprint": "abc", "interactions": 3},
    }
    assert loaded.arrays.keys() == folder.arrays.keys()
    for name, array in folder.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array)
        assert loaded.arrays[name].dtype == array.dtype
    assert loaded.user_ids.tolist() == [30, 10, 20]
    assert loaded.item_ids.tolist() == ["b", "007"]
    assert [part.tolist() for part in loaded.seen] == [[0, 1, 1, 3], [1, 0, 1]]
    assert [part.dtype for part in loaded.seen] == [np.int64, np.int32]


def test_a_loaded_model_can_be_saved_again(saved):
    save_model_folder(saved, load_model_folder(saved))
    assert load_model_folder(saved).config["model"] == "exadmm"


def test_without_histories_no_file_is_left_of_them(saved, folder):
    save_model_folder(saved, replace(folder, seen=None))
    assert not (saved / "seen.safetensors").exists()
    assert load_model_folder(saved).seen is None


def test_a_model_without_users(tmp_path, folder):
    empty = replace(
        folder,
        arrays={"user_factors": np.empty((0, 2)), "item_factors": np.ones((2, 2))},
        user_ids=np.array([], dtype=np.int64),
        seen=(np.array([0]), np.array([], dtype=np.int32)),
    )
    save_model_folder(tmp_path / "model", empty)
    assert load_model_folder(tmp_path / "model").arrays["user_factors"].shape == (0, 2)


def test_nothing_but_a_model_is_replaced(saved, folder):
    (saved / "notes.txt").touch()
    assert not is_model_folder(saved)
    with pytest.raises(DataError, match="will not replace what limelight did not write"):
        save_model_folder(saved, folder)


def test_somebody_elses_config_is_no_model(tmp_path):
    (tmp_path / "config.json").write_text('{"model": "theirs"}')
    assert not is_model_folder(tmp_path)
    (tmp_path / "config.json").write_text("{")
    assert not is_model_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrays": {"w": np.array([np.nan])}}, "the model: 'w' holds values that are not finite"),
        ({"arrays": {"user_factors": np.ones((2, 2))}}, r"shape \(2, 2\) for 3 user ids"),
        ({"arrays": {"item_bias": np.ones(3)}}, r"'item_bias' has shape \(3,\) for 2 item ids"),
        (
            {"arrays": {"user_factors": np.ones((3, 2)), "item_factors": np.ones((2, 4))}},
            "factors of different width",
        ),
        ({"user_ids": np.array([1, 1, 2])}, "has 3 user ids, of which 2 are distinct"),
        ({"seen": (np.array([0, 1]), np.array([0]))}, "histories do not fit 3 users and 2 items"),
        ({"seen": (np.array([0, 1, 1, 1]), np.array([2]))}, "histories do not fit"),
        ({"seen": (np.array([0, 2, 1, 2]), np.array([0, 1]))}, "histories do not fit"),
        ({"config": {"model": "x", "data": {}}}, "lacks the key 'hyperparameters'"),
        (
            {"config": {"model": 3, "hyperparameters": {}, "data": {}}},
            "'model' must be str, got 3",
        ),
        (
            {"config": {"model": "x", "hyperparameters": {}, "data": {}, "colour": 1}},
            "has an unknown key: 'colour'",
        ),
        (
            {"config": {"model": "x", "hyperparameters": {"a": np.inf}, "data": {}}},
            "cannot store this in config.json",
        ),
        (
            {"config": {"model": "x", "hyperparameters": {"a": {1, 2}}, "data": {}}},
            r"cannot store this in config.json: set \{1, 2\}",
        ),
    ],
)
def test_what_cannot_be_a_model_is_not_written(tmp_path, folder, change, message):
    with pytest.raises(DataError, match=message):
        save_model_folder(tmp_path / "model", replace(folder, **change))
    assert not list(tmp_path.iterdir())


def test_missing_folder(tmp_path):
    with pytest.raises(DataError, match=r"model folder not found: .*nowhere"):
        load_model_folder(tmp_path / "nowhere")


def test_another_folder(tmp_path):
    with pytest.raises(DataError, match=r"not a model folder, it has no config.json"):
        load_model_folder(tmp_path)


@pytest.mark.parametrize("name", ["factors.safetensors", "users.parquet", "items.parquet"])
def test_missing_file(saved, name):
    (saved / name).unlink()
    with pytest.raises(DataError, match=f"lacks '{name}'"):
        load_model_folder(saved)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("config.json", "cannot read config.json of model folder"),
        ("factors.safetensors", "cannot read arrays from"),
        ("seen.safetensors", "cannot read arrays from"),
        ("users.parquet", "cannot read .*users.parquet"),
    ],
)
def test_damaged_file(saved, name, message):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=message):
        load_model_folder(saved)


def edit_config(saved, **changes):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | changes))


def test_newer_schema(saved):
    edit_config(saved, schema_version=SCHEMA_VERSION + 1, limelight_version="9.9", what="is this")
    with pytest.raises(DataError, match="has schema 4, this limelight reads 3") as error:
        load_model_folder(saved)
    assert error.value.hint == "upgrade limelight; the model was written by 9.9"


@pytest.mark.parametrize("content", ["[]", "{}", '{"schema_version": "1"}'])
def test_config_of_something_else(saved, content):
    (saved / "config.json").write_text(content)
    with pytest.raises(DataError, match=r"not a model folder, config.json has no schema_version"):
        load_model_folder(saved)


def test_unknown_key(saved):
    edit_config(saved, colour="red")
    with pytest.raises(DataError, match=r"config of model folder .* has an unknown key: 'colour'"):
        load_model_folder(saved)


def test_parts_of_different_models(saved):
    write_ids(saved / "users.parquet", "user_id", np.arange(5))
    with pytest.raises(DataError, match=r"'user_factors' has shape .* for 5 user ids"):
        load_model_folder(saved)


def test_nan_in_the_factors(saved):
    arrays = load_arrays(saved / "factors.safetensors")
    arrays["item_factors"][1, 1] = np.nan
    save_arrays(saved / "factors.safetensors", arrays)
    with pytest.raises(DataError, match="'item_factors' holds values that are not finite"):
        load_model_folder(saved)


def test_other_arrays_in_the_histories(saved):
    save_arrays(saved / "seen.safetensors", {"rows": np.zeros(1)})
    with pytest.raises(DataError, match=r"must hold indptr and indices, found: \['rows'\]"):
        load_model_folder(saved)


def test_an_interrupted_save_leaves_the_old_model(saved, folder, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("limelight.store.model_folder.write_ids", stop)
    with pytest.raises(KeyboardInterrupt):
        save_model_folder(saved, replace(folder, arrays={"mean_user": np.ones(2)}))
    assert load_model_folder(saved).arrays["mean_user"].tolist() == [0, 0]
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_version_of_a_tree_that_is_not_installed(monkeypatch):
    def not_found(name):
        raise __import__("importlib.metadata").metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", not_found)
    assert package_version() == "0+unknown"


def test_a_config_nested_too_deeply_is_refused(tmp_path, folder):
    save_model_folder(tmp_path / "model", folder)
    (tmp_path / "model" / "config.json").write_text(DEEP)
    with pytest.raises(DataError, match=r"cannot read config\.json"):
        load_model_folder(tmp_path / "model")
    assert not is_model_folder(tmp_path / "model")


def test_a_control_nested_too_deeply_is_refused(tmp_path):
    (tmp_path / "control.json").write_text(DEEP)
    with pytest.raises(DataError, match=r"cannot read control\.json"):
        load_control(tmp_path)


def test_ids_that_are_not_text_are_refused(tmp_path, folder):
    save_model_folder(tmp_path / "model", folder)
    ids = pa.array([b"a", b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"item_id": ids}), tmp_path / "model" / "items.parquet")
    with pytest.raises(DataError, match="ids that are not UTF-8 text"):
        load_model_folder(tmp_path / "model")
