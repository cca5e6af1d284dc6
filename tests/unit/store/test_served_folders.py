"""Folders of models that were fitted to a target: what they keep, and how they can be damaged."""

import importlib
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix
from tests.support.executors import Elsewhere

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.jobs.recommend import recommend
from limelight.store import model_state
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.model_folder import is_model_folder
from limelight.store.model_state import locked_state

job = importlib.import_module("limelight.jobs.recommend")
K, N_USERS, N_ITEMS = 10, 300, 60
TOLD_NOT_TO = "The model does not record these lists as served, because it was told not to."
READ_ONLY = "The model does not record these lists as served, because its folder cannot be written."


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(N_USERS, N_ITEMS, 5000, seed=1).interactions


@pytest.fixture(scope="module")
def models(data):
    return {
        serve: ll.fit_to(data, gini=0.5, at=K, model=ll.Popularity(), serve=serve).model
        for serve in ("batch", "stream", "stateless")
    }


@pytest.fixture
def saved(models, tmp_path):
    def save(serve="stream"):
        models[serve].fresh().save(tmp_path / "model")
        return tmp_path / "model"

    return save


def served(folder, **asked):
    """Return everybody's list, as rows of a table, and what was noted."""
    notes, file = [], folder.with_name("lists.parquet")
    recommend(folder, file, **{"k": K, "note": notes.append, **asked})
    return pq.read_table(file), notes


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def change(folder, name, **parts):
    record = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(record | parts))


def change_arrays(folder, **changes):
    arrays = {name: np.array(values) for name, values in load_arrays(_arrays(folder)).items()}
    for name, value in changes.items():
        arrays[name] = value(arrays[name]) if callable(value) else value
    save_arrays(_arrays(folder), {name: v for name, v in arrays.items() if v is not None})


def _arrays(folder):
    return folder / "control.safetensors"


def make_old(folder):
    """Turn a folder into what the first schema had: numbers in JSON, no lists, no target."""
    change(folder, "config.json", schema_version=1, limelight_version="0.4.0")
    arrays = load_arrays(_arrays(folder))
    memory = {name: float(arrays[name]) for name in ("served", "unit", "total") if name in arrays}
    kept = {name: np.array(arrays[name]) for name in ("exposure", "merit") if name in arrays}
    record = json.loads((folder / "control.json").read_text())
    is_stream = record["reranker"] == "Online"
    change(folder, "control.json", memory=memory if is_stream else {})
    save_arrays(_arrays(folder), kept if is_stream else {})
    (folder / "target.json").unlink()
    return folder


class TestOlderSchema:
    def test_a_batch_is_read_and_says_what_it_lacks(self, saved):
        folder = make_old(saved("batch"))
        loaded = ll.load(folder)
        assert (loaded.lists, loaded.promise) == (None, None)
        assert not loaded.reranker.is_settled
        table, notes = served(folder)
        assert table.num_rows == N_USERS * K
        assert len(notes) == 1
        assert "saved without the population that its target" in notes[0]
        _, notes = served(folder, users=[0, 1])
        assert "For 2 users together they are nearly those of the model alone." in notes

    def test_a_stream_is_read_and_goes_on(self, saved):
        folder = make_old(saved("stream"))
        before = ll.load(folder).reranker.served_
        table, _ = served(folder)
        assert table.num_rows == N_USERS * K
        after = ll.load(folder)
        assert after.reranker.served_ == before + N_USERS
        assert after.reranker.length_ == K

    def test_a_stream_says_what_it_lacks(self, saved):
        """It does not know who was served before, so that who asks twice counts twice."""
        _, notes = served(make_old(saved("stream")))
        assert notes != []

    def test_prices_need_nothing_else(self, saved, models):
        folder = saved("stateless")
        change(folder, "config.json", schema_version=1)
        (folder / "target.json").unlink()
        table, notes = served(folder)
        assert notes == []
        first = models["stateless"].recommend(k=K).ids[0]
        np.testing.assert_array_equal(table.column("item_id")[:K].to_numpy(), first)

    def test_a_model_without_control(self, data, tmp_path):
        ll.Popularity().fit(data).save(tmp_path / "model")
        change(tmp_path / "model", "config.json", schema_version=1)
        assert served(tmp_path / "model")[1] == []

    @pytest.mark.parametrize("version", [4, 99, 0, -1, True, "2"])
    def test_other_schemas_are_refused(self, saved, version):
        folder = saved()
        change(folder, "config.json", schema_version=version)
        before = contents(folder)
        with pytest.raises(DataError, match="model folder") as error:
            served(folder)
        assert error.value.hint
        assert contents(folder) == before


class TestPromise:
    def test_it_comes_back(self, saved, models):
        for serve, model in models.items():
            loaded = ll.load(saved(serve))
            assert loaded.promise == model.promise
            assert loaded.promise["target"] == {"gini": 0.5, "at": K}

    def test_who_saves_again_keeps_it(self, saved, tmp_path):
        loaded = ll.load(saved("batch"))
        loaded.save(tmp_path / "again")
        assert contents(tmp_path / "again") == contents(tmp_path / "model")
        loaded.promise = None
        loaded.save(tmp_path / "again")
        assert not (tmp_path / "again" / "target.json").exists()

    def test_recommend_returns_it(self, saved, models):
        found = recommend(saved("batch"), saved("batch").with_name("lists.csv"), k=K)
        assert found["promise"] == models["batch"].promise

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "",
            "[1]",
            "7",
            "[" * 100_000,
            "{}",
            '{"target": null}',
            '{"target": [1]}',
            '{"target": {"gini": 0.5}, "population": "x", "served": {}}',
            '{"target": {"gini": 0.5, "at": "ten"}, "population": "x", "served": {"users": 3}}',
            '{"target": {"gini": 0.5, "at": 10}}',
            '{"target": {"gini": 0.5, "at": 10}, "population": "x", "served": {}}',
        ],
        ids=lambda text: text[:60],
    )
    def test_a_damaged_one_is_one_sentence(self, saved, text, limelight):
        folder = saved("stream")
        (folder / "target.json").write_text(text)
        before = contents(folder)
        ended = limelight("recommend", folder, "-k", K, "-o", folder.with_name("lists.csv"))
        assert ended.code == 1
        assert "target.json" in ended.err
        assert "hint: " in ended.err
        assert contents(folder) == before


def both(change):
    return {"list_items": change, "list_scores": change}


DAMAGE = {
    "lists of too few users": both(lambda v: v[:-1]),
    "scores of another length": {"list_scores": lambda v: v[:, :-1]},
    "scores left out": {"list_scores": None},
    "an item beyond the catalogue": {"list_items": lambda v: v + 60},
    "an item below none": {"list_items": lambda v: v - 2},
    "items that are no whole numbers": {"list_items": lambda v: v.astype(np.float32)},
    "items that are true or false": {"list_items": lambda v: v.astype(bool)},
    "scores that are whole numbers": {"list_scores": lambda v: v.astype(np.int32)},
    "one row": both(lambda v: v[:, 0]),
    "three dimensions": both(lambda v: v[:, :, None]),
    "a single number": {"list_items": np.int32(1), "list_scores": np.float32(1)},
    "no unit": {"unit": None},
    "nobody served, and fewer": {"served": np.float64(-1)},
    "lists of no length": {"length": np.float64(0)},
    "a length that is no number": {"length": np.float64("nan")},
    "exposure of other items": {"exposure": np.ones(3)},
    "offsets of other items": {"offsets": np.ones(3)},
}


@pytest.mark.parametrize("serve", ["batch", "stream"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_one_sentence(saved, models, serve, damage):
    folder = saved(serve)
    if serve == "stream":  # lists that were made
        ids, scores = models["batch"].lists
        change_arrays(folder, list_items=ids, list_scores=scores)
    change_arrays(folder, **DAMAGE[damage])
    before = contents(folder)
    with pytest.raises(DataError, match="re-ranker that cannot be used") as error:
        served(folder)
    assert "hint" not in error.value.message
    assert contents(folder) == before


class TestStreamState:
    def test_lists_and_exposure_are_written_back(self, saved):
        folder = saved()
        warm = ll.load(folder)
        assert (warm.lists.ids == -1).all()
        table, notes = served(folder, users=[5, 3])
        assert notes == []
        after = ll.load(folder)
        assert np.flatnonzero(after.lists.ids[:, 0] >= 0).tolist() == [3, 5]
        np.testing.assert_array_equal(after.lists.ids[5], table.column("item_id")[:K].to_numpy())
        assert after.reranker.served_ == warm.reranker.served_ + 2
        weights = 1 / np.log2(np.arange(K) + 2)
        given = after.reranker.exposure_.sum() - warm.reranker.exposure_.sum()
        assert given == pytest.approx(2 * weights.sum())

    def test_nothing_else_is_written(self, saved):
        folder = saved()
        before = contents(folder)
        served(folder)
        after = contents(folder)
        assert {name for name in before if before[name] != after[name]} == {"control.safetensors"}
        assert before.keys() == after.keys()

    @pytest.mark.parametrize("serve", ["batch", "stateless"])
    def test_other_models_are_not_written_to(self, saved, serve, monkeypatch):
        folder = saved(serve)
        before = contents(folder)
        monkeypatch.setattr(job, "locked_state", None)
        _, notes = served(folder, update=False)
        assert notes == []
        assert contents(folder) == before

    def test_told_not_to_remember(self, saved):
        folder = saved()
        before = contents(folder)
        first, notes = served(folder, update=False)
        assert notes == [TOLD_NOT_TO]
        assert contents(folder) == before
        assert served(folder, update=False)[0].equals(first)

    def test_a_folder_that_cannot_be_written(self, saved, monkeypatch):
        folder = saved()
        before = contents(folder)
        monkeypatch.setattr(job, "is_writable", lambda _: False)
        _, notes = served(folder)
        assert notes == [READ_ONLY]
        assert contents(folder) == before

    def test_a_folder_without_write_permission(self, saved):
        folder = saved()
        folder.chmod(0o555)
        try:
            table, notes = served(folder)
        finally:
            folder.chmod(0o755)
        assert table.num_rows == N_USERS * K
        assert notes in ([], [READ_ONLY])  # root may write anywhere

    def test_a_model_that_was_replaced_meanwhile_is_left_alone(self, saved, models):
        folder = saved()
        with locked_state(folder, print) as write:
            models["stream"].fresh().save(folder)
            before = contents(folder)
            with pytest.raises(DataError, match="another model was saved to"):
                write({"exposure": np.ones(3)})
        assert contents(folder) == before

    def test_a_model_that_was_deleted_meanwhile(self, saved):
        folder = saved()
        with locked_state(folder, print) as write:
            shutil.rmtree(folder)
            with pytest.raises(DataError, match="another model was saved to"):
                write({"exposure": np.ones(3)})
        assert not folder.exists()

    def test_a_folder_that_cannot_be_locked(self, saved, monkeypatch):
        def fail(*_):
            raise OSError(37, "No locks available")

        monkeypatch.setattr(model_state.fcntl, "flock", fail)
        with pytest.raises(DataError, match="cannot be locked: No locks available") as error:
            served(saved())
        assert "--no-update" in error.value.hint

    def test_without_locks_streams_are_served_all_the_same(self, saved, monkeypatch):
        monkeypatch.setattr(model_state, "fcntl", None)
        folder = saved()
        before = ll.load(folder).reranker.served_
        served(folder, users=[1])
        assert ll.load(folder).reranker.served_ == before + 1

    def test_what_fails_changes_nothing(self, saved):
        folder = saved()
        before = contents(folder)
        for asked in ({"users": ["nobody"]}, {"k": 0}):
            with pytest.raises((DataError, ConfigError)):
                served(folder, **asked)
        assert contents(folder) == before

    def test_an_empty_list_is_a_list(self, tmp_path):
        """A user who has seen everything has nothing to be shown, however often she asks."""
        seen = np.zeros((40, 12))
        seen[:, :6] = np.random.default_rng(0).random((40, 6)) < 0.7
        seen[0] = 1
        model = ll.Popularity().fit(csr_matrix(seen))
        online = ll.Online(strength=0.3).warm_up(model.ranking(users=np.arange(1, 40)), 3)
        served_model = online.over(model)
        served_model.lists = ll.BestResponse().rerank(model.ranking(), 3)
        served_model.lists.ids[:] = -1
        served_model.save(tmp_path / "model")
        recommend(tmp_path / "model", tmp_path / "lists.csv", k=3)
        first = ll.load(tmp_path / "model").reranker.served_
        recommend(tmp_path / "model", tmp_path / "lists.csv", k=3)
        assert ll.load(tmp_path / "model").reranker.served_ == first


# Names as limelight gives them, and as safetensors does while it writes a file.
@pytest.mark.parametrize("name", [".control.safetensors.x1y2.tmp", ".tmpQwGFby"])
def test_a_temporary_file_does_not_keep_a_model_from_being_replaced(saved, models, name):
    folder = saved()
    (folder / name).write_bytes(b"half")
    assert is_model_folder(folder)
    assert served(folder)[0].num_rows == N_USERS * K
    models["batch"].save(folder)
    assert not list(folder.glob(".*"))
    (folder / "thesis.tmp").write_text("mine")
    assert not is_model_folder(folder)
    with pytest.raises(DataError):
        models["batch"].save(folder)


class TestPieces:
    """An executor that is parallel makes lists in pieces, as if all were served at once."""

    def in_pieces(self, folder, **asked):
        place = folder.with_name("parts")
        recommend(folder, place, executor=Elsewhere(), per_piece=77, **{"k": K, **asked})
        return pq.read_table(place)

    @pytest.mark.parametrize("serve", ["batch", "stateless"])
    def test_lists_are_those_of_one_piece(self, saved, serve):
        folder = saved(serve)
        assert self.in_pieces(folder).equals(served(folder)[0])

    def test_users_outside_the_population_have_lists_too(self, data, tmp_path):
        some = data.user_ids[:200].tolist()
        found = ll.fit_to(data, gini=0.5, at=K, model=ll.Popularity(), population=some)
        found.model.save(tmp_path / "model")
        assert served(tmp_path / "model")[0].num_rows == N_USERS * K
        try:
            table = self.in_pieces(tmp_path / "model")
        except ConfigError:
            return  # who cannot serve them may say so
        assert table.num_rows == N_USERS * K

    def test_lists_do_not_depend_on_the_pieces(self, saved):
        folder = saved("batch")
        try:
            table = self.in_pieces(folder, k=5)
        except ConfigError:
            return  # who cannot serve them may say so
        assert table.equals(served(folder, k=5)[0])

    def test_a_stream_is_refused(self, saved):
        with pytest.raises(ConfigError, match="made for all users together, so not in pieces"):
            self.in_pieces(saved("stream"))
