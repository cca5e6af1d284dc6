"""Columns from any source, with the same ids whatever it was."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limelight._errors import DataError
from limelight.store.tables import column_names, ids_to_arrow, read_columns, read_ids, write_ids


def read(source, **options):
    table = read_columns(source, **({"ids": ["user_id"], "numbers": ["rank"]} | options))
    return table.to_pydict()


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.TSV.gz", "x.CSV"])
def test_text_files(tmp_path, name):
    text = "other,user_id,rank\nq,10,1\nr,9,2.5\n"
    file = write(tmp_path / name, text.replace(",", "\t") if "tsv" in name.lower() else text)
    assert read(file) == {"user_id": [10, 9], "rank": [1.0, 2.5]}
    assert column_names(file) == ["other", "user_id", "rank"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["007", "8"], ["007", "8"]),
        (["1", "x"], ["1", "x"]),
        (["-0", "1"], ["-0", "1"]),
        (["+1"], ["+1"]),
        (["1.0"], ["1.0"]),
        (["NA", "null"], ["NA", "null"]),
        (["9" * 19], ["9" * 19]),
        ([" 1"], [" 1"]),
        (['"a,b"', "ä"], ["a,b", "ä"]),
    ],
)
def test_ids_of_text_files(tmp_path, values, expected):
    lines = "\n".join(f"{value},1" for value in values)
    assert read(write(tmp_path / "x.csv", f"user_id,rank\n{lines}\n"))["user_id"] == expected


def test_text_in_parquet_stays_text(tmp_path):
    pq.write_table(pa.table({"user_id": ["1", "2"], "rank": [1, 2]}), tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet") == {"user_id": ["1", "2"], "rank": [1.0, 2.0]}


def test_parts_of_a_folder_in_the_order_of_their_names(tmp_path):
    write(tmp_path / "b.csv", "user_id,rank\n1,1\n")
    pq.write_table(pa.table({"user_id": ["x"], "rank": [2]}), tmp_path / "a.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.crc").touch()
    (tmp_path / "readme.md").touch()
    assert read(tmp_path) == {"user_id": ["x", "1"], "rank": [2.0, 1.0]}


def test_late_rows_may_look_different(tmp_path):
    rows = "\n".join(["1,1"] * 700_000 + ["x,0.5"])
    table = read(write(tmp_path / "x.csv", f"user_id,rank\n{rows}\n"))
    assert table["user_id"][-2:] == ["1", "x"]
    assert table["rank"][-2:] == [1, 0.5]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"user_id": ["b", "a"], "rank": [1, None]}, index=[3, 3]),
        pd.DataFrame({"user_id": pd.Categorical(["b", "a"]), "rank": [1, None], "o": [set(), 1]}),
        pl.DataFrame({"user_id": ["b", "a"], "rank": [1, None]}),
        pa.table({"user_id": ["b", "a"], "rank": [1, None]}),
        pa.table({"user_id": pa.array(["b", "a"], pa.string_view()), "rank": [1, None]}),
    ],
)
def test_frames(frame):
    table = read(frame)
    assert table["user_id"] == ["b", "a"]
    assert table["rank"][0] == 1
    assert np.isnan(table["rank"][1])


def test_optional_columns():
    frame = pa.table({"user_id": [1]})
    assert read(frame, optional=["rank"]) == {"user_id": [1]}
    assert read(pa.table({"user_id": [1], "rank": pa.nulls(1)}), optional=["rank"])["user_id"] == [
        1
    ]


def test_parts_with_different_columns(tmp_path):
    write(tmp_path / "a.csv", "user_id,rank\n1,1\n")
    write(tmp_path / "b.csv", "user_id\n1\n")
    with pytest.raises(DataError, match=r"some parts of .* lack the column 'rank'"):
        read(tmp_path, optional=["rank"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.xlsx", "", "unknown kind of file: .*x.xlsx"),
        ("x.csv", "", "cannot read .*x.csv.*: Empty CSV file"),
        ("x.csv", "user_id,rank\n", "no rows in .*x.csv"),
        ("x.csv", "user_id,rank\n1,2,3\n", "cannot read .*Expected 2 columns, got 3"),
        ("x.csv", "user_id,rank\n1,first\n", "cannot read .*invalid value 'first'"),
        ("x.csv", "user_id,rank\n,1\n", "missing value in column 'user_id', row 1"),
        ("x.csv", "user_id,rank,rank\n1,1,1\n", "column 'rank' occurs 2 times in .*x.csv"),
        ("x.csv", "userid,rank\n1,1\n", "column not found in .*x.csv': 'user_id'"),
        ("x.parquet", "", "cannot read .*x.parquet"),
        ("x.parquet", "PAR1 but not much more", "cannot read .*x.parquet"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / name, content))


def test_a_gzip_file_cut_short(tmp_path):
    file = write(tmp_path / "x.csv.gz", "user_id,rank\n" + "".join(f"{i},1\n" for i in range(9999)))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cannot read .*x.csv.gz"):
        read(file)


def test_missing_places(tmp_path):
    with pytest.raises(DataError, match=r"file not found: .*nowhere.csv"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="no Parquet, CSV or TSV file in folder"):
        read(tmp_path)


def test_a_column_by_another_name():
    with pytest.raises(DataError, match=r"did you mean 'userId'. columns found: userId, rank"):
        read(pa.table({"userId": [1], "rank": [1]}))
    with pytest.raises(DataError, match="hint: columns found: zzz"):
        read(pa.table({"zzz": [1]}))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"user_id": ["a", None], "rank": 1}), "column 'user_id', row 2"),
        (pd.DataFrame({"user_id": ["a", 1], "rank": 1}), "cannot read the columns user_id, rank"),
        (pa.table({"user_id": [1.5], "rank": [1]}), "must be integers or text, found double"),
        (pl.DataFrame({"user_id": [2**63], "rank": [1]}), "do not fit into 64 bits"),
        (pa.table({"user_id": [1], "rank": ["1"]}), "column 'rank' must hold numbers, found str"),
        (pl.DataFrame({"user_id": [1], "rank": [1]}).lazy(), "cannot read a table from the Lazy"),
        ({"user_id": [1]}, "cannot read a table from the dict"),
    ],
)
def test_frames_that_cannot_be_read(frame, message):
    with pytest.raises(DataError, match=message):
        read(frame)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([3, -1, 2**62]),
        np.array(["b", "a", "007"], dtype=object),
        np.array([], dtype=np.int64),
        np.array([], dtype=object),
    ],
)
def test_id_files(tmp_path, ids):
    write_ids(tmp_path / "x.parquet", "item_id", ids)
    loaded = read_ids(tmp_path / "x.parquet", "item_id")
    assert loaded.dtype == ids.dtype
    assert loaded.tolist() == ids.tolist()
    assert loaded.flags.writeable


def test_other_id_arrays():
    assert ids_to_arrow(np.array(["a", "b"])).to_pylist() == ["a", "b"]
    assert ids_to_arrow(np.array([1, 2], dtype=object)).type == pa.int64()
    assert ids_to_arrow(np.array([1, 2], dtype=np.uint8)).type == pa.int64()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array(["a", 1], dtype=object), "ids must be all integers or all text"),
        (np.array(["a", None], dtype=object), "missing value in column 'ids', row 2"),
        (np.array([0.5]), "must be integers or text, found double"),
        (np.array([2**64, 1], dtype=object), "ids must be all integers or all text"),
        (np.array([2**63], dtype=np.uint64), "do not fit into 64 bits"),
    ],
)
def test_ids_that_are_none(ids, message):
    with pytest.raises(DataError, match=message):
        ids_to_arrow(ids)


def test_id_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="file not found"):
        read_ids(tmp_path / "x.parquet", "item_id")
    write_ids(tmp_path / "x.parquet", "user_id", np.array([1]))
    with pytest.raises(DataError, match=r"column not found in .*: 'item_id'"):
        read_ids(tmp_path / "x.parquet", "item_id")
    (tmp_path / "x.parquet").write_text("junk")
    with pytest.raises(DataError, match=r"cannot read .*x.parquet"):
        read_ids(tmp_path / "x.parquet", "item_id")
