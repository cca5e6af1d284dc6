import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limelight import DataError
from limelight.data import Interactions, Split, marketplace, read, split_users
from limelight.data import split_folder as split_files

TABLES = ["train.csv", "validation_tr.csv", "validation_te.csv", "test_tr.csv", "test_te.csv"]
PUBLISHED = [*TABLES, "unique_sid.txt"]


@pytest.fixture(scope="module")
def split():
    data = marketplace(n_users=200, n_items=80, n_interactions=2000).interactions
    return split_users(data, validation=20, test=25)


@pytest.fixture
def folder(split, tmp_path):
    split.save(tmp_path / "split")
    return tmp_path / "split"


def contents(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def assert_same(split, other):
    assert split.train.fingerprint() == other.train.fingerprint()
    assert np.array_equal(split.train.order, other.train.order)
    for part, twin in ((split.validation, other.validation), (split.test, other.test)):
        assert part.user_ids.tolist() == twin.user_ids.tolist()
        assert (part.history != twin.history).nnz == (part.targets != twin.targets).nnz == 0
        assert np.array_equal(part.history_order, twin.history_order)
        assert np.array_equal(part.targets_order, twin.targets_order)
    assert split.dropped_items == other.dropped_items
    assert split.dropped_interactions == other.dropped_interactions


def test_epinions_comes_out_byte_for_byte(real_data, tmp_path):
    data = read(
        real_data / "epinions_raw.parquet",
        rating="rating",
        min_rating=4,
        min_user=20,
        min_item=20,
        filter_order="together",
    )
    assert (data.n_users, data.n_items, data.nnz) == (6287, 3999, 129_574)
    split = split_users(data, validation=500, test=500, seed=98765)
    split.save(tmp_path / "split")
    for name in PUBLISHED:
        published = (real_data / "epinions_paper_split" / name).read_bytes()
        assert (tmp_path / "split" / name).read_bytes() == published, name
    assert_same(split, Split.load(tmp_path / "split"))
    assert split.train.nnz == 108_711
    assert (split.validation.history.nnz, split.validation.targets.nnz) == (8671, 1914)
    assert (split.test.history.nnz, split.test.targets.nnz) == (8418, 1860)


def test_published_files_alone_can_be_read(real_data):
    split = Split.load(real_data / "epinions_paper_split")
    assert (split.train.shape, split.train.nnz) == ((5287, 3999), 108_711)
    assert split.test.user_ids.tolist() == list(range(5787, 6287))
    assert split.train.item_ids[:3].tolist() == [106, 113, 115]


def test_saved_split_comes_back_and_saves_the_same_bytes(split, folder, tmp_path):
    again = Split.load(folder)
    assert_same(split, again)
    again.save(str(tmp_path / "deeper" / "again"))
    assert contents(tmp_path / "deeper" / "again") == contents(folder)
    assert set(contents(folder)) == {*PUBLISHED, "users.parquet", "items.parquet"}


def test_files_are_as_published(split, folder):
    lines = (folder / "validation_tr.csv").read_text().splitlines()
    assert lines[0] == "uid,sid"
    uids = {int(line.split(",")[0]) for line in lines[1:]}
    assert uids <= set(range(155, 175))
    items = (folder / "unique_sid.txt").read_text().splitlines()
    assert items == [str(item) for item in split.train.item_ids]


def test_string_ids_survive(tmp_path):
    data = marketplace(n_users=200, n_items=80, n_interactions=2000).interactions
    users = np.array([f"u, {i:03}" for i in range(200)], dtype=object)
    items = np.array([f'"{i:03}" ü' for i in range(80)], dtype=object)
    named = Interactions(data.indptr, data.indices, users, items, data.order)
    split = split_users(named, validation=0, test=25)
    split.save(tmp_path / "split")
    again = Split.load(tmp_path / "split")
    assert_same(split, again)
    assert again.train.user_ids.dtype == again.train.item_ids.dtype == object


def test_only_published_files(split, folder):
    (folder / "users.parquet").unlink()
    (folder / "items.parquet").unlink()
    again = Split.load(folder)
    assert again.train.user_ids.tolist() == list(range(155))
    assert again.test.user_ids.tolist() == list(range(175, 200))
    assert again.train.item_ids.tolist() == split.train.item_ids.tolist()
    assert (again.test.targets != split.test.targets).nnz == 0
    (folder / "unique_sid.txt").write_text("".join(f"0{i}\n" for i in range(80)))
    assert Split.load(folder).train.item_ids[:2].tolist() == ["00", "01"]


def test_earlier_split_is_replaced(split, folder):
    (folder / "train.csv").write_text("half of it")
    split.save(folder)
    assert_same(split, Split.load(folder))
    assert [path.name for path in folder.parent.iterdir()] == ["split"]


def test_empty_folder_is_used(split, tmp_path):
    (tmp_path / "empty").mkdir()
    split.save(tmp_path / "empty")
    assert_same(split, Split.load(tmp_path / "empty"))


@pytest.mark.parametrize("step", ["_write_ids", "_write_tables"])
@pytest.mark.parametrize(
    ("error", "seen"), [(OSError("broken"), DataError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_interrupted_save_leaves_nothing(split, tmp_path, monkeypatch, step, error, seen):
    def fail(*_):
        raise error

    monkeypatch.setattr(split_files, step, fail)
    with pytest.raises(seen):
        split.save(tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


def test_other_folders_and_files_are_not_overwritten(split, tmp_path):
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(DataError, match="will not replace what limelight did not write"):
        split.save(tmp_path)
    with pytest.raises(DataError, match="will not replace what limelight did not write"):
        split.save(tmp_path / "holiday.jpg")
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_item_id_with_a_line_break_is_refused(split, tmp_path):
    items = split.train.item_ids.astype(object).astype(str).astype(object)
    items[3] = "two\nlines"
    train = split.train
    train = Interactions(train.indptr, train.indices, train.user_ids, items, train.order)
    with pytest.raises(
        DataError, match=r"line break cannot stand in unique_sid.txt: 'two\\nlines'"
    ):
        Split(train, split.validation, split.test).save(tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


def edit(folder, name, line):
    with (folder / name).open("a") as file:
        file.write(f"{line}\n")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("train.csv", "0,-1", r"train.csv, row \d+: sid outside 0\.\.\d+, got: -1"),
        ("test_te.csv", "180,80", r"test_te.csv, row \d+: sid outside 0\.\.\d+, got: 80"),
        ("train.csv", "-4,0", r"train.csv, row \d+: uid outside .*, got: -4"),
        ("train.csv", "5,", r"train.csv, row \d+: sid outside 0\.\.\d+, got: nan"),
        ("train.csv", "5,x", r"cannot read .*train.csv: .*'x'"),
        ("train.csv", "5", r"cannot read .*train.csv: .*Expected 2 columns"),
        ("train.csv", "190,0", r"uid 190 is in two parts of .*: train and test"),
        ("validation_te.csv", "3,0", r"uid 3 is in two parts of .*: train and validation"),
        ("test_tr.csv", "160,0", r"uid 160 is in two parts of .*: validation and test"),
        ("test_tr.csv", "200,0", r"test_tr.csv, row \d+: uid is not of this part: 200"),
    ],
)
def test_tables_that_do_not_fit_are_refused(folder, name, line, message):
    edit(folder, name, line)
    with pytest.raises(DataError, match=f"(?s){message}.*hint: "):
        Split.load(folder)


def test_targets_in_the_history_are_refused(folder):
    pair = (folder / "test_te.csv").read_text().splitlines()[1]
    edit(folder, "test_tr.csv", pair)
    with pytest.raises(DataError, match=f"both in test_tr.csv and in .*test_te.csv: {pair}"):
        Split.load(folder)


def test_wrong_columns_are_refused(folder):
    (folder / "train.csv").write_text("user,item\n0,0\n")
    with pytest.raises(DataError, match="must have the columns uid,sid, not: user,item"):
        Split.load(folder)


def test_no_training_rows_are_refused(folder):
    (folder / "train.csv").write_text("uid,sid\n")
    with pytest.raises(DataError, match=r"no rows in .*train\.csv"):
        Split.load(folder)


def test_what_is_not_a_split_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match=r"not a split folder, it lacks train\.csv, .*: .*nowhere"):
        Split.load(tmp_path / "nowhere")
    os.remove(folder / "unique_sid.txt")  # noqa: PTH107
    Split.load(folder)
    (folder / "items.parquet").unlink()
    with pytest.raises(DataError, match=r"it lacks unique_sid\.txt"):
        Split.load(folder)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": [1]}, r"column not found in .*users.parquet"),
        ({"user_id": [1, 2], "part": ["test", "train"]}, "training, then validation, then test"),
        ({"user_id": [1], "part": ["rest"]}, "training, then validation, then test"),
        ({"user_id": [1.5], "part": ["train"]}, "an id that is a number must be whole, got: 1.5"),
    ],
)
def test_wrong_lists_of_users_are_refused(folder, columns, message):
    pq.write_table(pa.table(columns), folder / "users.parquet")
    with pytest.raises(DataError, match=message):
        Split.load(folder)


def test_broken_list_of_items_is_refused(folder):
    (folder / "items.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"cannot read .*items\.parquet: "):
        Split.load(folder)
