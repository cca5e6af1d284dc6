"""Lists go to a file or a folder, batch by batch, and an interrupted one leaves the old."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from limelight._base.errors import DataError
from limelight.store import lists as list_writer
from limelight.store.lists import ListWriter

ITEMS = np.array(["x", "y", "007"], dtype=object)
IDS = np.array([[2, 0], [1, -1]])
SCORES = np.array([[0.75, 0.5], [0.25, -np.inf]], dtype=np.float32)
EXPECTED = {
    "user_id": [10, 10, 11, 20, 20, 21],
    "item_id": ["007", "x", "y", "007", "x", "y"],
    "rank": [1, 2, 1, 1, 2, 1],
    "score": [0.75, 0.5, 0.25, 0.75, 0.5, 0.25],
}


def write_two_batches(path, between=lambda: None, second=(20, 21)):
    with ListWriter(path) as writer:
        writer.write(np.array([10, 11]), ITEMS, IDS, SCORES)
        between()
        writer.write(np.array(second), ITEMS, IDS, SCORES)


def test_parquet(tmp_path):
    write_two_batches(tmp_path / "lists.parquet")
    table = pq.read_table(tmp_path / "lists.parquet")
    assert table.to_pydict() == EXPECTED
    assert [str(kind) for kind in table.schema.types] == ["int64", "large_string", "int32", "float"]
    assert [path.name for path in tmp_path.iterdir()] == ["lists.parquet"]


@pytest.mark.parametrize(("name", "delimiter"), [("lists.csv", ","), ("lists.tsv", "\t")])
def test_text(tmp_path, name, delimiter):
    write_two_batches(tmp_path / name)
    options = pa.csv.ParseOptions(delimiter=delimiter)
    assert pa.csv.read_csv(tmp_path / name, parse_options=options).to_pydict() == EXPECTED


def test_no_user_gives_an_empty_table(tmp_path):
    with ListWriter(tmp_path / "lists.parquet"):
        pass
    table = pq.read_table(tmp_path / "lists.parquet")
    assert table.column_names == ["user_id", "item_id", "rank", "score"]
    assert table.num_rows == 0


def test_an_interrupt_leaves_the_old_file(tmp_path):
    file = tmp_path / "lists.parquet"
    write_two_batches(file)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_two_batches(file, between=interrupt)
    assert pq.read_table(file).to_pydict() == EXPECTED
    assert [path.name for path in tmp_path.iterdir()] == ["lists.parquet"]


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "lists.parquet"
    write_two_batches(file)

    def full(*_):
        raise OSError(28, "Error writing bytes to file")

    with pytest.raises(DataError, match=r"cannot write .*: No space left on device"):
        write_two_batches(
            file, between=lambda: monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
        )
    assert pq.read_table(file).to_pydict() == EXPECTED
    assert [path.name for path in tmp_path.iterdir()] == ["lists.parquet"]


def test_a_close_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "lists.parquet"
    write_two_batches(file)

    def full(*_):
        raise OSError(28, "Error writing bytes to file")

    monkeypatch.setattr(pq.ParquetWriter, "__exit__", full)
    with pytest.raises(DataError, match="No space left on device"):
        write_two_batches(file)
    assert pq.read_table(file).to_pydict() == EXPECTED


def test_unknown_ending(tmp_path):
    with pytest.raises(DataError, match=r"unknown kind of file: .*lists.xlsx"):
        ListWriter(tmp_path / "lists.xlsx")


def test_shapes_must_agree(tmp_path):
    message = r"1 users, ids \(2, 2\) and scores \(2, 2\) differ"
    with pytest.raises(DataError, match=message), ListWriter(tmp_path / "lists.csv") as writer:
        writer.write(np.array([1]), ITEMS, IDS, SCORES)
    assert not list(tmp_path.iterdir())


def test_ids_keep_their_type(tmp_path):
    file = tmp_path / "lists.parquet"
    with pytest.raises(DataError, match="ids changed their type"):
        write_two_batches(file, second=("a", "b"))
    assert not file.exists()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("rows", "n_parts"), [(1, 2), (3, 2), (4, 1), (1000, 1)])
def test_a_folder_of_parts(tmp_path, monkeypatch, rows, n_parts):
    monkeypatch.setattr(list_writer, "_PART_ROWS", rows)
    write_two_batches(tmp_path / "lists")
    assert names(tmp_path) == ["lists"]
    expected = [f"part-{number:05}.parquet" for number in range(n_parts)]
    assert names(tmp_path / "lists") == expected
    table = pq.read_table(tmp_path / "lists")
    assert table.to_pydict() == EXPECTED
    assert [str(kind) for kind in table.schema.types] == ["int64", "large_string", "int32", "float"]


def test_a_folder_without_lists_has_an_empty_part(tmp_path):
    with ListWriter(tmp_path / "lists"):
        pass
    assert names(tmp_path / "lists") == ["part-00000.parquet"]
    assert pq.read_table(tmp_path / "lists").num_rows == 0


def test_an_old_folder_is_replaced_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(list_writer, "_PART_ROWS", 1)
    folder = tmp_path / "lists"
    write_two_batches(folder)
    with ListWriter(folder) as writer:
        writer.write(np.array([1, 2]), ITEMS, IDS, SCORES)
        assert pq.read_table(folder).to_pydict() == EXPECTED
    assert names(folder) == ["part-00000.parquet"]
    assert names(tmp_path) == ["lists"]
    assert pq.read_table(folder)["user_id"].to_pylist() == [1, 1, 2]


@pytest.mark.parametrize("rows", [1, 1000])
def test_an_interrupt_leaves_the_old_folder(tmp_path, monkeypatch, rows):
    folder = tmp_path / "lists"
    write_two_batches(folder)
    monkeypatch.setattr(list_writer, "_PART_ROWS", rows)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_two_batches(folder, between=interrupt)
    assert pq.read_table(folder).to_pydict() == EXPECTED
    assert names(tmp_path) == ["lists"]


def test_a_disk_that_fills_up_leaves_the_old_folder(tmp_path, monkeypatch):
    folder = tmp_path / "lists"
    write_two_batches(folder)

    def full(*_):
        raise OSError(28, "Error writing bytes to file")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(DataError, match=r"cannot write .*lists': No space left on device"):
        write_two_batches(folder)
    assert pq.read_table(folder).to_pydict() == EXPECTED
    assert names(tmp_path) == ["lists"]


@pytest.mark.parametrize("name", ["notes.txt", "part-00000.parquet", "part-00001.parquet"])
def test_a_folder_of_other_things_is_not_replaced(tmp_path, name):
    folder = tmp_path / "lists"
    write_two_batches(folder)
    (folder / name).write_text("not lists")
    with (
        pytest.raises(DataError, match="will not replace what limelight did not write"),
        ListWriter(folder),
    ):
        pass
    assert (folder / name).read_text() == "not lists"


def test_a_folder_of_candidates_is_not_replaced(tmp_path):
    table = pa.table({"user_id": [1], "item_id": [2], "score": [0.5]})
    pq.write_table(table, tmp_path / "part-00000.parquet")
    with pytest.raises(DataError, match="will not replace"), ListWriter(tmp_path):
        pass
    assert pq.read_table(tmp_path).equals(table)


def test_a_folder_can_be_audited(tmp_path):
    from limelight.audit.audit import audit

    write_two_batches(tmp_path / "lists")
    assert audit(tmp_path / "lists", catalogue=ITEMS).metrics["coverage@2"] == 1
