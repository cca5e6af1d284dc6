import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import limelight as ll
from limelight import DataError
from limelight.cluster.collectives import run_locally
from limelight.cluster.fit import leave_rows, left_rows, write_model
from limelight.cluster.ingest.prepare import prepare
from limelight.cluster.ingest.shards import load_shards
from limelight.models.folder import config_of
from limelight.store import arrays as array_stream
from limelight.store.arrays import Stretches, save_arrays, save_stretches

N_SHARDS = 6


@pytest.fixture
def fitted():
    data = ll.marketplace(120, 50, 1500).interactions
    return ll.ExADMM(factors=10, exposure_weight=1e-3, epochs=3, trace_every=1).fit(data), data


def leave(fitted, folder, size):
    """Let ranks leave the rows of a model that one machine has fitted."""
    model, data = fitted

    def work(comm):
        mine = prepare(data, folder / "data", comm)
        for shard in mine.numbers:
            users = slice(*mine.cut.user_bounds[shard : shard + 2])
            items = slice(*mine.cut.item_bounds[shard : shard + 2])
            leave_rows(folder, "user_factors", shard, model.user_factors[users])
            leave_rows(folder, "item_factors", shard, model.item_factors[items])
        return mine

    run_locally(work, size, N_SHARDS)
    sharded = load_shards(folder / "data", range(0))
    arrays = dict(model.learned.arrays) | {"item_counts": sharded.cut.item_counts}
    for name in ("user_factors", "item_factors"):
        arrays[name] = left_rows(folder, name, N_SHARDS)
    learned = model.learned
    about = (sharded.fingerprint, learned.trace, learned.status, model.chosen_)
    return config_of(model, *about), arrays, sharded


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("history", [True, False])
def test_the_folder_is_what_one_machine_saves(fitted, tmp_path, monkeypatch, size, history):
    monkeypatch.setattr(array_stream, "_STRETCH", 400)  # a few rows at a time
    fitted[0].save(tmp_path / "one", history=history)
    write_model(tmp_path / "many", *leave(fitted, tmp_path, size), history=history)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")
    mode = {file.name: file.stat().st_mode for file in (tmp_path / "one").iterdir()}
    assert mode == {file.name: file.stat().st_mode for file in (tmp_path / "many").iterdir()}
    assert repr(ll.load(tmp_path / "many")) == repr(fitted[0])


def test_string_ids(tmp_path):
    table = pa.table({"user": ["b", "a", "c", "b"], "item": ["x", "é", "x", "é"]})
    pa.parquet.write_table(table, tmp_path / "pairs.parquet")
    data = ll.read(tmp_path / "pairs.parquet")
    model = ll.IALS(factors=2, epochs=1).fit(data)
    model.save(tmp_path / "one")
    sharded = run_locally(
        lambda comm: prepare(tmp_path / "pairs.parquet", tmp_path / "data", comm), 2, 5
    )[0]
    learned = model.learned
    about = (sharded.fingerprint, learned.trace, learned.status, model.chosen_)
    config = config_of(model, *about)
    arrays = {**learned.arrays, "item_counts": sharded.cut.item_counts}
    write_model(tmp_path / "many", config, arrays, sharded)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_a_model_is_replaced_and_nothing_else(fitted, tmp_path):
    parts = leave(fitted, tmp_path, 2)
    ll.Popularity().fit(fitted[1]).save(tmp_path / "model")
    write_model(tmp_path / "model", *parts)
    assert isinstance(ll.load(tmp_path / "model"), ll.ExADMM)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="will not replace"):
        write_model(tmp_path / "notes", *parts)


def test_values_that_are_not_finite_leave_no_folder(fitted, tmp_path):
    parts = leave(fitted, tmp_path, 2)
    bad = np.array(fitted[0].user_factors[:1])
    bad[:] = np.nan
    first = next(iter(parts[1]["user_factors"].read()))
    leave_rows(tmp_path, "user_factors", 0, np.concatenate([bad, first[1:]]))
    with pytest.raises(
        DataError, match="the model: 'user_factors' holds values that are not finite"
    ):
        write_model(tmp_path / "many", *parts)
    assert not (tmp_path / "many").exists()


def test_rows_of_another_run(fitted, tmp_path):
    config, arrays, data = leave(fitted, tmp_path, 2)
    leave_rows(tmp_path, "user_factors", 0, np.ones((1, 10), np.float32))
    with pytest.raises(DataError, match=r"'user_factors' has .* bytes instead of"):
        write_model(tmp_path / "many", config, arrays, data)


def test_rows_that_nobody_left(fitted, tmp_path):
    leave(fitted, tmp_path, 2)
    for file in tmp_path.glob("user_factors-*"):
        file.unlink()
    with pytest.raises(DataError, match="file not found"):
        left_rows(tmp_path, "user_factors", N_SHARDS)


def test_stretches_are_written_as_arrays_are(tmp_path):
    kinds = ["?", "u1", "i1", "i2", "u2", "f2", "i4", "u4", "f4", "f8", "i8", "u8"]
    arrays = {f'{n} é"{k}': np.arange(n).astype(k) for n, k in enumerate(kinds)}
    arrays["none"] = np.empty((0, 3), np.float32)
    arrays["turned"] = np.arange(6).reshape(2, 3).T
    arrays["one"] = np.array(5.0)
    pieces = {
        name: Stretches(a.shape, a.dtype, lambda a=a: np.array_split(a, 2)) if a.ndim else a
        for name, a in arrays.items()
    }
    save_arrays(tmp_path / "whole", arrays)
    save_stretches(tmp_path / "pieces", pieces)
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()
