import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from limelight import ConfigError, DataError
from limelight.data import read


def frame(**columns):
    return pa.table({"user": [1, 2], "item": [3, 4], **columns})


def refused(message):
    """Every error ends with a hint."""
    return pytest.raises(DataError, match=f"(?s){message}.*\n\nhint: ")


def text(tmp_path, content, name="ratings.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_missing_file(tmp_path):
    with refused(r"no such file or folder: .*ratings\.csv"):
        read(tmp_path / "ratings.csv")


def test_unknown_ending(tmp_path):
    with refused(r"unknown kind of file: .*ratings\.xlsx") as caught:
        read(text(tmp_path, "", "ratings.xlsx"))
    assert ".parquet, .csv, .tsv, .txt, .dat" in str(caught.value)


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.tsv.gz"])
def test_empty_file(tmp_path, name):
    with refused(f"the file is empty: .*{name}"):
        read(text(tmp_path, "", name))


@pytest.mark.parametrize("content", [b"", b"user,item\n"])
def test_empty_gzip(tmp_path, content):
    with refused(r"no rows in .*r\.csv\.gz"):
        read(text(tmp_path, gzip.compress(content), "r.csv.gz"))


@pytest.mark.parametrize("content", ["user,item\n", "user,item"])
def test_header_only(tmp_path, content):
    with refused(r"no rows in .*ratings\.csv"):
        read(text(tmp_path, content))


def test_no_rows():
    with refused("no rows in the frame"):
        read(frame().slice(0, 0))


def test_no_rows_in_any_part(tmp_path):
    for number in (1, 2):
        text(tmp_path, "user,item\n", f"part-{number}.csv")
    with refused(r"no rows in the 2 parts from .*part-1\.csv on"):
        read(tmp_path)


def test_folder_without_parts(tmp_path):
    (tmp_path / "_SUCCESS").touch()
    with refused("the folder holds no parts: "):
        read(tmp_path)


def test_folder_of_mixed_kinds(tmp_path):
    text(tmp_path, "user,item\n1,2\n", "a.csv")
    text(tmp_path, "user\titem\n1\t2\n", "b.tsv")
    with refused(r"the folder mixes kinds of files \(.csv, .tsv\): "):
        read(tmp_path)


@pytest.mark.parametrize("name", ["README.md", "part-2.csv.xz"])
def test_folder_with_something_else(tmp_path, name):
    text(tmp_path, "user,item\n1,2\n", "part-1.csv")
    text(tmp_path, "?", name)
    with refused(f"unknown kind of file: .*{name}"):
        read(tmp_path)


def test_folder_in_a_folder(tmp_path):
    (tmp_path / "year=2024.parquet").mkdir()
    with refused("unknown kind of file: .*year=2024"):
        read(tmp_path)


def test_column_not_found():
    with refused("column not found in the frame: 'usr'") as caught:
        read(frame(), user="usr", item="item")
    assert "did you mean 'user'? the columns are: user, item" in str(caught.value)
    with refused("column not found in the frame: 'score'") as caught:
        read(frame(), rating="score")
    assert "did you mean" not in str(caught.value)


def test_many_columns_are_cut_short():
    wide = pa.table({f"column{i}": [1] for i in range(30)})
    with refused("column19 and 10 more"):
        read(wide)


def test_column_missing_in_a_later_part(tmp_path):
    text(tmp_path, "user,item,rating\n1,2,3\n", "a.csv")
    text(tmp_path, "user,item\n1,2\n", "b.csv")
    with refused(r"column not found in .*b\.csv: 'rating'"):
        read(tmp_path, rating="rating")


def test_column_twice(tmp_path):
    with refused(r"ratings\.csv has 2 columns named 'user'"):
        read(text(tmp_path, "user,user,item\n1,2,3\n"), user="user", item="item")


def test_columns_cannot_be_detected():
    with refused("no user column in the frame: who, item"):
        read(pa.table({"who": [1], "item": [2]}))


def test_columns_are_ambiguous():
    with refused("the user and item columns are not clear in the frame"):
        read(pa.table({"userId": [1], "movieId": [2], "itemId": [3]}))


def test_same_column_for_users_and_items():
    with pytest.raises(ConfigError, match="cannot be in the same column: 'user'"):
        read(frame(), user="user", item="user")


@pytest.mark.parametrize(
    ("ids", "type_"),
    [
        ([True, False], "bool"),
        (pa.array([1, 2], pa.date32()), "date32"),
        (pa.array([[1], [2]]), "list"),
        (pa.array([1, 2], pa.decimal128(10, 2)), "decimal128"),
    ],
)
def test_ids_of_other_types(ids, type_):
    with refused(f"the frame, column 'item': ids are integers or strings, got type: {type_}"):
        read(pa.table({"user": [1, 2], "item": ids}))


@pytest.mark.parametrize("ids", [[1, None], ["a", None], pa.array(["a", None]).dictionary_encode()])
def test_missing_ids(ids):
    with refused("the frame, column 'item', row 2: an id is an integer or a string, got: null"):
        read(pa.table({"user": [1, 2], "item": ids}))


def test_missing_ids_in_a_later_chunk():
    chunks = pa.chunked_array([["a", "b"], ["c", ""]])
    with refused("column 'item', row 4: an id must not be empty, got: ''"):
        read(pa.table({"user": [1, 2, 3, 4], "item": chunks}))


def test_missing_id_in_pandas():
    with refused("column 'item', row 1: an id is an integer or a string, got: null"):
        read(pd.DataFrame({"user": [1, 2], "item": [None, "a"]}))


def test_empty_id_in_text(tmp_path):
    with refused(r"ratings\.csv, column 'user', row 2: an id must not be empty, got: ''"):
        read(text(tmp_path, "user,item\n1,2\n,3\n"))


def test_ids_beyond_64_bits():
    with refused("integer ids must fit 64 bits, got type: uint64"):
        read(pa.table({"user": pa.array([2**63, 1], pa.uint64()), "item": [1, 2]}))


def test_parts_with_ids_of_different_types(tmp_path):
    pa.parquet.write_table(pa.table({"user": [1], "item": [1]}), tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"user": ["1"], "item": [1]}), tmp_path / "b.parquet")
    message = r"b\.parquet, column 'user': ids are integers in one part and strings in another"
    with refused(message):
        read(tmp_path)


def test_mixed_ids_in_an_object_column():
    with refused("cannot read the frame: "):
        read(pd.DataFrame({"user": np.array([1, "a"], dtype=object), "item": [1, 2]}))


@pytest.mark.parametrize(
    ("rating", "value"), [(np.nan, "nan"), (np.inf, "inf"), (-1.0, "-1.0"), (None, "null")]
)
def test_bad_ratings(rating, value):
    message = "column 'rating', row 2: a rating must be a finite number from 0 up, got: "
    with refused(message + value):
        read(frame(rating=pa.array([4.0, rating])), rating="rating")


@pytest.mark.parametrize("rating", ["nan", "inf", "-1", "", "good", "1e999", "0x10"])
def test_bad_ratings_in_text(tmp_path, rating):
    path = text(tmp_path, f"user,item,rating\n1,2,3\n4,5,{rating}\n6,7,8\n")
    with refused(f"ratings.csv, column 'rating', row 2: a rating must be .*, got: '{rating}'"):
        read(path, rating="rating")


@pytest.mark.parametrize(("ratings", "type_"), [(["4", "5"], "string"), ([True, False], "bool")])
def test_ratings_of_other_types(ratings, type_):
    with refused(f"column 'rating': a rating must be a finite number .*, got type: {type_}"):
        read(frame(rating=ratings), rating="rating")


@pytest.mark.parametrize(
    ("times", "value"),
    [([1, None], "null"), ([1.0, np.nan], "nan"), ([1.0, np.inf], "inf")],
)
def test_bad_timestamps(times, value):
    rule = "a timestamp must be a finite number from 0 up, or a time"
    message = f"column 'time', row 2: {rule}, got: {value}"
    with refused(message):
        read(frame(time=pa.array(times)), timestamp="time")


def test_missing_timestamp_in_text(tmp_path):
    path = text(tmp_path, "user,item,time\n1,2,3\n1,3,\n")
    with refused(r"ratings\.csv, column 'time', row 2: a timestamp must be .*, got: ''"):
        read(path, timestamp="time")


def test_timestamps_of_other_types():
    with refused(
        "column 'time': a timestamp must be a finite number from 0 up, or a time, got type: string"
    ):
        read(frame(time=["yesterday", "today"]), timestamp="time")


def test_parts_with_different_timestamps(tmp_path):
    text(tmp_path, "user,item,time\n1,2,3\n", "a.csv")
    text(tmp_path, "user,item,time\n1,2,2024-01-02\n", "b.csv")
    with refused(r"b\.csv, column 'time': timestamps are written in two ways: number, timestamp"):
        read(tmp_path, timestamp="time")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("user,item\n1,2\n1,2,3\n", "Expected 2 columns, got 3"),
        (b"user,item\n\xff\xfe,3\n", "invalid UTF8 data"),
    ],
)
def test_malformed_text(tmp_path, content, reason):
    with refused(f"cannot read .*ratings.csv: .*{reason}"):
        read(text(tmp_path, content))


def test_truncated_gzip(tmp_path):
    content = gzip.compress("".join(f"{i},{i * 7919}\n" for i in range(5000)).encode())
    with refused(r"cannot read .*r\.csv\.gz: "):
        read(text(tmp_path, content[:3000], "r.csv.gz"), user="0", item="0")


@pytest.mark.parametrize("content", [b"PAR1", b"not a parquet file at all, but long enough"])
def test_malformed_parquet(tmp_path, content):
    with refused(r"cannot read .*r\.parquet: "):
        read(text(tmp_path, content, "r.parquet"))


@pytest.mark.parametrize("source", [None, 3, [(1, 2)], np.eye(2)])
def test_sources_of_other_types(source):
    with refused("cannot read a table from an object of type: "):
        read(source)


def test_nothing_rated_high_enough():
    with refused("no row is rated high enough: the highest rating is 3"):
        read(frame(rating=[3, 2]), rating="rating", min_rating=4)


@pytest.mark.parametrize("options", [{"min_user": 2}, {"min_item": 2}, {"core": 2}])
def test_nothing_left_after_the_filters(options):
    with refused("no interaction is left of 2 after dropping rare users and items"):
        read(frame(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_rating": 4}, "min_rating needs a rating column: min_rating=4"),
        ({"rating": "r", "min_rating": -1}, "min_rating must be a finite number from 0 up: -1"),
        ({"rating": "r", "min_rating": np.nan}, "min_rating must be a finite number .*: nan"),
        ({"filter_order": "both"}, "unknown filter_order: 'both'"),
        ({"min_user": 0}, "min_user must be a whole number from 1 up: 0"),
        ({"min_item": 2.5}, r"min_item must be a whole number from 1 up: 2\.5"),
        ({"core": True}, "core must be a whole number from 1 up: True"),
        ({"core": 2, "min_user": 3}, "core excludes min_user and min_item: min_user=3, core=2"),
    ],
)
def test_settings_that_contradict(options, message):
    with pytest.raises(ConfigError, match=f"(?s){message}.*\n\nhint: "):
        read(frame(), **options)


def test_settings_of_a_wrong_type():
    frame = pa.table({"user": [1], "item": [2], "rating": [3], "time": [-5]})
    with pytest.raises(ConfigError, match="min_rating must be a finite number from 0 up: '4'"):
        read(frame, rating="rating", min_rating="4")
    with pytest.raises(ConfigError, match="user must be the name of a column, in text: 0"):
        read(frame, user=0, item=1)
    with pytest.raises(
        DataError, match=r"a timestamp must be a finite number from 0 up, .*got: -5"
    ):
        read(frame, timestamp="time")


def test_columns_whose_names_are_no_text_cannot_be_asked_for():
    frame = pd.DataFrame({0: [1], 1: [2]})
    with pytest.raises(DataError, match="column not found in the frame: '0'"):
        read(frame, user="0", item="1")


def test_ids_that_are_not_text(tmp_path):
    # Arrow reads any bytes as a string and stumbles over them when they are shown.
    path = tmp_path / "ratings.parquet"
    users = pa.array([b"a", b"\xff\xfe"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"user": users, "item": [3, 4]}), path)
    with refused("column 'user' holds ids that are not UTF-8 text"):
        read(path)
