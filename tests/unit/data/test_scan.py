"""Columns of any source, with the same values whatever it was."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limelight._base.errors import DataError
from limelight.data import files
from limelight.data.columns import NumberColumn, TimeColumn, join, scan
from limelight.data.ids import IdColumn
from limelight.data.sources import open_parts

RANK = NumberColumn("rank", "a rank must be above 0", lambda ranks: ranks > 0)


def read(source):
    """The ids and the numbers of a source, row by row."""
    column = IdColumn("user_id")
    codes, ranks = join(scan(open_parts(source), [column, RANK]))
    return column.ids().take(pa.array(codes)).to_pylist(), ranks.tolist()


def write(path, text):
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.TSV.gz", "x.CSV"])
def test_text_files(tmp_path, name):
    text = "other,user_id,rank\nq,10,1\nr,9,2.5\n"
    file = write(tmp_path / name, text.replace(",", "\t") if "tsv" in name.lower() else text)
    assert read(file) == ([10, 9], [1.0, 2.5])
    assert open_parts(file)[0].columns == ["other", "user_id", "rank"]


def test_gzip_by_its_name_in_capitals(tmp_path):
    content = gzip.compress(b"user_id,rank\n1,2\n")
    (tmp_path / "X.CSV.GZ").write_bytes(content)
    assert read(tmp_path / "X.CSV.GZ") == ([1], [2.0])


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
    assert read(write(tmp_path / "x.csv", f"user_id,rank\n{lines}\n"))[0] == expected


def test_text_in_parquet_stays_text(tmp_path):
    pq.write_table(pa.table({"user_id": ["1", "2"], "rank": [1, 2]}), tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet") == (["1", "2"], [1.0, 2.0])


def test_parts_of_a_folder_in_the_order_of_their_names(tmp_path):
    write(tmp_path / "b.csv", "user_id,rank\n1,1\n")
    write(tmp_path / "a.csv.gz", "rank,user_id\n2,x\n")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.crc").touch()
    assert read(tmp_path) == (["x", "1"], [2.0, 1.0])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_many_batches(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(files, "_TEXT_BYTES", 100)
    monkeypatch.setattr(files, "ROWS", 7)
    users, ranks = [f"u{i % 13}" for i in range(200)], [float(i + 1) for i in range(200)]
    table, file = pa.table({"user_id": users, "rank": ranks}), tmp_path / f"x.{ending}"
    table.to_pandas().to_csv(file, index=False) if ending == "csv" else pq.write_table(table, file)
    assert read(file) == (users, ranks)
    assert read(table) == (users, ranks)


def test_line_breaks_in_quotes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_TEXT_BYTES", 100)
    rows = "".join(f'{i},1,"two\n\nlines, {i}"\n' for i in range(50))
    assert read(write(tmp_path / "x.csv", f"user_id,rank,text\n{rows}"))[0] == list(range(50))


def test_late_rows_may_look_different(tmp_path):
    rows = "\n".join(["1,1"] * 700_000 + ["x,0.5"])
    users, ranks = read(write(tmp_path / "x.csv", f"user_id,rank\n{rows}\n"))
    assert users[-2:] == ["1", "x"]
    assert ranks[-2:] == [1, 0.5]


def test_times_of_text_files_may_change_from_whole_to_fractions(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_TEXT_BYTES", 20)
    file = write(tmp_path / "x.csv", "time\n" + "3\n" * 20 + "3.5\n")
    assert join(scan(open_parts(file), [TimeColumn("time")]))[0].tolist() == [3] * 20 + [3.5]


@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-02", "9999-12-31"],
        ["2024-01-02 03:04:05.123456", "2024-01-02 03:04:05.123457"],
        ["2024-01-02 03:04:05.123456788", "2024-01-02 03:04:05.123456789"],
        ["2024-01-02T03:04:05+02:00", "2024-01-02T02:04:05Z"],
    ],
)
def test_times_of_text_files(tmp_path, times):
    file = write(tmp_path / "x.csv", "\n".join(["time", *times, ""]))
    [found] = join(scan(open_parts(file), [TimeColumn("time")]))
    assert found[0] < found[1]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"user_id": ["b", "a"], "rank": [1, 2]}, index=[3, 3]),
        pd.DataFrame({"user_id": pd.Categorical(["b", "a"]), "rank": [1, 2], "o": [set(), 1]}),
        pl.DataFrame({"user_id": ["b", "a"], "rank": [1, 2]}),
        pl.DataFrame({"user_id": ["b", "a"], "rank": [1, 2]}).lazy(),
        pa.table({"user_id": ["b", "a"], "rank": [1, 2]}),
        pa.table({"user_id": pa.array(["b", "a"], pa.string_view()), "rank": [1, 2]}),
        pa.table({"user_id": ["b", "a"], "rank": pa.array([1, 2], pa.decimal128(9, 1))}),
    ],
)
def test_frames(frame):
    assert read(frame) == (["b", "a"], [1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.xlsx", "?", "unknown kind of file: .*x.xlsx"),
        ("x.csv", "", "the file is empty: .*x.csv"),
        ("x.csv", "user_id,rank\n", "no rows in .*x.csv"),
        ("x.csv", "user_id,rank\n1,2,3\n", "cannot read .*Expected 2 columns, got 3"),
        ("x.csv", "user_id,rank\n1,first\n", "'rank', row 1: a rank must be .*, got: 'first'"),
        ("x.csv", "user_id,rank\n1,\n", "'rank', row 1: a rank must be above 0, got: ''"),
        ("x.csv", "user_id,rank\n,1\n", "'user_id', row 1: an id must not be empty, got: ''"),
        ("x.csv", "user_id,rank,rank\n1,1,1\n", "x.csv has 2 columns named 'rank'"),
        ("x.csv", "userid,rank\n1,1\n", "column not found in .*x.csv: 'user_id'"),
        ("x.parquet", "PAR1 but not much more", "cannot read .*x.parquet"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / name, content))


@pytest.mark.parametrize("row", [1, 2, 77, 100])
def test_a_wrong_value_is_found_in_its_row(tmp_path, row):
    rows = [f"{i},{i}" for i in range(1, 101)]
    rows[row - 1] = "1,one"
    file = write(tmp_path / "x.csv", "\n".join(["user_id,rank", *rows]))
    with pytest.raises(DataError, match=f"x.csv, column 'rank', row {row}: .*, got: 'one'"):
        read(file)


def test_rows_are_counted_over_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROWS", 8)
    ranks = np.ones(50)
    ranks[41] = -2
    with pytest.raises(DataError, match=r"row 42: a rank must be above 0, got: -2\.0"):
        read(pa.table({"user_id": np.arange(50), "rank": ranks}))


def test_a_gzip_file_cut_short(tmp_path):
    file = write(tmp_path / "x.csv.gz", "user_id,rank\n" + "".join(f"{i},1\n" for i in range(9999)))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cannot read .*x.csv.gz"):
        read(file)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"user_id": ["a", None], "rank": 1}), "column 'user_id', row 2: an id is"),
        (pd.DataFrame({"user_id": ["a", 1], "rank": 1}), "cannot read the frame: "),
        (
            pa.table({"user_id": [1.5], "rank": [1]}),
            "row 1: an id that is .* whole, got: 1.5",
        ),
        (pl.DataFrame({"user_id": [2**63], "rank": [1]}), "must fit 64 bits, got type: uint64"),
        (pa.table({"user_id": [1], "rank": ["1"]}), "'rank': a rank must be .*, got type: string"),
        (pa.table({"user_id": [1], "rank": pa.nulls(1)}), "row 1: a rank must be .*, got: null"),
        ({"user_id": [1]}, "column not found in the frame: 'rank'"),
    ],
)
def test_frames_that_cannot_be_read(frame, message):
    with pytest.raises(DataError, match=message):
        read(frame)
