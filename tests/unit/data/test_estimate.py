from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from limelight.data.estimate import reading_bytes, sample_table
from limelight.data.read import ReadOptions
from limelight.data.sources import open_parts

if TYPE_CHECKING:
    from pathlib import Path

N_USERS, N_ITEMS, LENGTH = 20_000, 500, 10


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = np.random.default_rng(0)
    n_rows = N_USERS * LENGTH
    return pa.table(
        {
            "user": np.repeat(np.arange(N_USERS), LENGTH),
            "item": draw.integers(0, N_ITEMS, n_rows),
            "rating": draw.integers(1, 6, n_rows),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=1 << 14)
    else:
        plain = path.with_suffix("") if path.suffix == ".gz" else path
        pa.csv.write_csv(table, plain)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(plain.read_bytes()))
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_rows_ids_and_ratings_are_about_right(table: pa.Table, tmp_path: Path, name: str) -> None:
    found = sample_table(open_parts(write(table, tmp_path / name)), ["user", "item", "rating"])
    assert found.n_rows == pytest.approx(table.num_rows, rel=0.1)
    assert found.distinct("user") == pytest.approx(N_USERS, rel=0.1)
    assert found.distinct("item") == pytest.approx(N_ITEMS, rel=0.1)
    assert found.rated("rating", 4) / found.n_rows == pytest.approx(0.4, abs=0.02)
    assert found.rated("rating", None) / found.n_rows == 1
    assert found.is_grouped("user")
    assert not found.is_grouped("item")


def test_users_in_any_order_are_counted_too(table: pa.Table, tmp_path: Path) -> None:
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    found = sample_table(open_parts(write(shuffled, tmp_path / "t.parquet")), ["user"])
    assert not found.is_grouped("user")
    assert found.distinct("user") == pytest.approx(N_USERS, rel=0.2)


def test_a_folder_of_many_parts(table: pa.Table, tmp_path: Path) -> None:
    for part in range(40):
        write(table.slice(part * 5000, 5000), tmp_path / f"part-{part:02}.parquet")
    assert sample_table(open_parts(tmp_path), ["user"]).n_rows == pytest.approx(
        table.num_rows, rel=0.1
    )


def test_strings_take_more_than_numbers(table: pa.Table, tmp_path: Path) -> None:
    texts = table.set_column(0, "user", pa.array([f"user {n}" for n in table["user"].to_pylist()]))
    numbers = reading_bytes(ReadOptions().open(write(table, tmp_path / "numbers.parquet")))
    strings = reading_bytes(ReadOptions().open(write(texts, tmp_path / "strings.parquet")))
    assert strings - numbers == pytest.approx(N_USERS * 66, rel=0.2)


def test_ratings_that_are_filtered_take_nothing(table: pa.Table, tmp_path: Path) -> None:
    path = write(table, tmp_path / "t.parquet")
    options = (ReadOptions(rating="rating", min_rating=least) for least in (4, 1))
    few, all_ = (reading_bytes(option.open(path)) for option in options)
    assert all_ - few == pytest.approx(0.6 * 16 * table.num_rows, rel=0.1)


def test_ratings_that_are_no_numbers_are_left_to_the_reader(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("user,item,rating\n1,2,good\n")
    options = ReadOptions(rating="rating", min_rating=4)
    assert reading_bytes(options.open(tmp_path / "t.csv")) > 0
