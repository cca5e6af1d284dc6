import gzip
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.data import read
from limelight.data.rows import row_numbers, walk

USERS, ITEMS = ["b", "a", "b", "c", "b", "a"], [7, 7, 3, 10, 7, -2]
RATINGS = [5.0, 4.0, 1.0, 4.5, 2.0, 0.0]
TIMES = [60, 50, 10, 30, 20, 40]


def table(**more):
    return pa.table({"user_id": USERS, "item_id": ITEMS, **more})


def pairs(data):
    """The pairs as ids, users ascending, each user's items in the order kept."""
    items = data.item_ids[walk(data.indptr, data.indices, data.order, np.arange(data.n_users))[1]]
    users = data.user_ids[row_numbers(data.indptr)]
    return list(zip(users.tolist(), items.tolist(), strict=True))


EXPECTED = [("a", 7), ("a", -2), ("b", 7), ("b", 3), ("c", 10)]


def write(frame, path):
    if path.name.endswith(".parquet"):
        pa.parquet.write_table(frame, path)
        return path
    delimiter = "\t" if ".tsv" in path.name else ","
    text = pa.BufferOutputStream()
    pa.csv.write_csv(frame, text, pa.csv.WriteOptions(delimiter=delimiter))
    content = text.getvalue().to_pybytes()
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "csv.gz", "tsv.gz", "CSV", "Parquet"])
def test_files(tmp_path, ending):
    path = tmp_path / f"ratings.{ending}"
    write(table(), path.with_name(path.name.lower())).rename(path)
    for source in (path, str(path)):
        data = read(source)
        assert pairs(data) == EXPECTED
        assert data.user_ids.tolist() == ["a", "b", "c"]
        assert data.item_ids.tolist() == [-2, 3, 7, 10]
        assert (data.item_ids.dtype, data.user_ids.dtype) == (np.int64, object)
        assert data.duplicates == 1


@pytest.mark.parametrize(
    "convert",
    [
        pa.Table.to_pandas,
        lambda frame: frame.to_pandas().set_index(pd.Index([9, 9, 8, 8, 7, 7])),
        lambda frame: frame.to_pandas().astype({"user_id": "category", "item_id": "Int64"}),
        lambda frame: frame.to_pandas().astype({"user_id": "object", "item_id": "object"}),
        pl.from_arrow,
        lambda frame: pl.from_arrow(frame).lazy(),
        lambda frame: pl.from_arrow(frame).with_columns(pl.col("user_id").cast(pl.Categorical)),
        lambda frame: frame,
        lambda frame: pa.concat_tables([frame.slice(0, 2), frame.slice(2)]),
        lambda frame: frame.set_column(0, "user_id", frame["user_id"].dictionary_encode()),
        lambda frame: frame.set_column(0, "user_id", frame["user_id"].cast(pa.string_view())),
        lambda frame: frame.set_column(1, "item_id", frame["item_id"].cast(pa.int8())),
        lambda frame: frame.set_column(1, "item_id", frame["item_id"].cast(pa.decimal128(20, 0))),
    ],
)
def test_frames(convert):
    data = read(convert(table(rating=RATINGS)))
    assert pairs(data) == EXPECTED
    assert data.item_ids.dtype == np.int64


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv.gz"])
def test_folder_of_parts_is_read_by_name(tmp_path, ending):
    frame = table(rating=RATINGS, time=TIMES)
    for number, rows in ((2, frame.slice(4)), (1, frame.slice(0, 4)), (3, frame.slice(0, 0))):
        write(rows, tmp_path / f"part-{number}.{ending}")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-1.crc").touch()
    assert pairs(read(tmp_path)) == EXPECTED
    rated = read(tmp_path, rating="rating", timestamp="time", min_rating=2)
    assert pairs(rated) == [("a", 7), ("b", 7), ("c", 10)]


@pytest.mark.parametrize(
    ("user", "item"),
    [
        ("user_id", "item_id"),
        ("user", "item"),
        ("userId", "movieId"),
        ("userId", "itemId"),
        ("userID", "itemID"),
        ("uid", "sid"),
        ("user_id:token", "item_id:token"),
    ],
)
def test_usual_names_are_found(user, item):
    data = read(table().rename_columns([user, item]))
    assert pairs(data) == EXPECTED


def test_named_columns_win_over_usual_names():
    frame = pa.table({"user": [1], "item": [2], "member": ["x"], "film": ["y"]})
    assert pairs(read(frame, user="member", item="film")) == [("x", "y")]
    assert pairs(read(frame, user="member")) == [("x", 2)]
    assert pairs(read(frame, item="film")) == [(1, "y")]


def test_rating_and_timestamp_are_not_read_unless_named(tmp_path):
    frame = table(rating=[None] * 6, timestamp=["?"] * 6)
    assert pairs(read(frame)) == EXPECTED
    assert pairs(read(write(frame, tmp_path / "r.parquet"))) == EXPECTED


def rated(tmp_path, source):
    frame = table(rating=RATINGS, time=TIMES)
    return frame if source == "frame" else write(frame, tmp_path / f"ratings.{source}")


@pytest.mark.parametrize("source", ["frame", "csv", "parquet"])
def test_ratings(tmp_path, source):
    source = rated(tmp_path, source)
    assert pairs(read(source, rating="rating")) == [pair for pair in EXPECTED if pair[1] != -2]
    assert pairs(read(source, rating="rating", min_rating=0)) == EXPECTED
    data = read(source, rating="rating", min_rating=4)
    assert pairs(data) == [("a", 7), ("b", 7), ("c", 10)]
    assert (data.item_ids.tolist(), data.duplicates) == ([7, 10], 0)


@pytest.mark.parametrize("source", ["frame", "csv", "parquet"])
def test_timestamp_orders_the_rows_of_a_user(tmp_path, source):
    data = read(rated(tmp_path, source), timestamp="time")
    assert pairs(data) == [("a", -2), ("a", 7), ("b", 3), ("b", 7), ("c", 10)]


@pytest.mark.parametrize(
    "times",
    [
        pa.array(TIMES, pa.int32()),
        pa.array(TIMES, pa.float64()),
        pa.array(TIMES, pa.timestamp("ms")),
        pa.array(TIMES, pa.timestamp("s", "UTC")),
        pa.array(TIMES, pa.date32()),
        pa.array([time * 86_400_000 for time in TIMES], pa.date64()),
    ],
)
def test_times_of_every_kind(times, tmp_path):
    expected = [("a", -2), ("a", 7), ("b", 3), ("b", 7), ("c", 10)]
    frame = table(time=times)
    assert pairs(read(frame, timestamp="time")) == expected
    assert pairs(read(write(frame, tmp_path / "ratings.csv"), timestamp="time")) == expected


def test_rows_of_the_same_time_stay_in_file_order():
    assert pairs(read(table(time=[1] * 6), timestamp="time")) == EXPECTED


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["7", "10", "-3", "0"], [-3, 0, 7, 10]),
        (["007", "7", "10"], ["007", "10", "7"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["-0", "1"], ["-0", "1"]),
        (["1", "99999999999999999999"], ["1", "99999999999999999999"]),
        (["NA", "1", "nan"], ["1", "NA", "nan"]),
        (['"a,b"', "é", "z"], ["a,b", "z", "é"]),
    ],
)
def test_text_ids_are_integers_only_if_all_are_written_so(tmp_path, ids, expected):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item\n" + "".join(f"{name},1\n" for name in ids), encoding="utf-8")
    data = read(path)
    assert data.user_ids.tolist() == expected
    assert data.user_ids.dtype == (np.int64 if isinstance(expected[0], int) else object)


def test_strings_in_typed_sources_stay_strings():
    data = read(pa.table({"user": ["10", "9"], "item": [1, 2]}))
    assert data.user_ids.tolist() == ["10", "9"]


def test_byte_order_mark_quotes_and_missing_last_newline(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_bytes('\ufeffuser,item,rating\n"1",2,3.5\n3,4, 5'.encode())
    assert pairs(read(path, rating="rating", min_rating=3)) == [(1, 2), (3, 4)]


def test_unused_categories_are_no_users():
    users = pd.Categorical(["a", "c"], categories=["a", "b", "c"])
    data = read(pd.DataFrame({"user": users, "item": [1, 2]}))
    assert data.user_ids.tolist() == ["a", "c"]


def test_counts_are_over_distinct_pairs():
    frame = pa.table({"user": [1, 1, 2, 2], "item": [5, 5, 5, 6]})
    assert pairs(read(frame, min_user=2)) == [(2, 5), (2, 6)]
    assert pairs(read(frame, min_item=2)) == [(1, 5), (2, 5)]


def test_filters_are_passed_on():
    users, items = [1, 1, 2, 2, 3, 3], [1, 2, 1, 2, 1, 3]
    frame = pa.table({"user": users, "item": items})
    sizes = {
        order: read(frame, min_user=2, min_item=2, filter_order=order).shape
        for order in ("together", "items-first", "users-first")
    }
    assert sizes == {"together": (3, 2), "items-first": (2, 2), "users-first": (3, 2)}
    assert read(frame, core=2).shape == (2, 2)


rows = st.tuples(
    st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 1.0, 3.0, 5.0]), st.integers(0, 3)
)


@given(
    st.lists(rows, min_size=1, max_size=60),
    st.sampled_from([1.0, 3.0]),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_read_equals_sets(rows, min_rating, min_user, min_item):
    kept = [row for row in sorted(rows, key=lambda row: row[3]) if row[2] >= min_rating]
    distinct = list(dict.fromkeys((f"u{user}", item) for user, item, *_ in kept))
    users, items = Counter(u for u, _ in distinct), Counter(i for _, i in distinct)
    expected = [(u, i) for u, i in distinct if users[u] >= min_user and items[i] >= min_item]
    if not expected:
        return
    user, item, rating, time = zip(*rows, strict=True)
    frame = pl.DataFrame(
        {"user": [f"u{u}" for u in user], "item": item, "rating": rating, "time": time}
    )
    data = read(
        frame,
        rating="rating",
        timestamp="time",
        min_rating=min_rating,
        min_user=min_user,
        min_item=min_item,
    )
    assert pairs(data) == sorted(expected, key=lambda pair: pair[0])
    assert data.duplicates == len(kept) - len(distinct)
    assert data.user_ids.tolist() == sorted({u for u, _ in expected})
    assert data.item_ids.tolist() == sorted({i for _, i in expected})


def test_real_data(real_data):
    data = read(real_data / "epinions.parquet")
    assert (data.n_users, data.n_items, data.nnz) == (6287, 3999, 129_574)
