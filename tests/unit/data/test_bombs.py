"""Small files that unpack to large ones."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight import DataError
from limelight.data import files
from limelight.data.files import parquet
from limelight.data.sources import open_parts


def test_text_that_unpacks_to_the_same_row_over_and_over(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MANY_ROWS", 1000)
    packed = gzip.compress(b"user_id,item_id\n" + b"1,2\n" * 2_000_000)
    (tmp_path / "x.csv.gz").write_bytes(packed)
    with pytest.raises(
        DataError, match=r"has only .* bytes for .* rows, so most of these are repeats"
    ):
        ll.read(tmp_path / "x.csv.gz")


def test_rows_that_differ_are_as_many_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MANY_ROWS", 1000)
    table = pa.table(
        {"user_id": np.repeat(np.arange(500), 100), "item_id": np.tile(np.arange(100), 500)}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    assert ll.read(tmp_path / "x.parquet").nnz == 50_000


@pytest.mark.parametrize("keep_schema", [True, False])
def test_a_long_text_that_rows_repeat(tmp_path, keep_schema):
    once = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 1_000_000])
    table = pa.table({"user_id": once, "item_id": np.arange(100_000)})
    pq.write_table(table, tmp_path / "x.parquet", store_schema=keep_schema)
    with pytest.raises(DataError, match="holds a text of 1,000,000 bytes in a column of ids"):
        ll.read(tmp_path / "x.parquet")


def test_texts_that_are_rather_long_are_unpacked_a_few_rows_at_a_time(tmp_path, monkeypatch):
    ids = [f"{'x' * 200}{n % 7}" for n in range(500)]
    pq.write_table(pa.table({"user_id": ids, "item_id": range(500)}), tmp_path / "x.parquet")
    [part] = open_parts(tmp_path / "x.parquet")
    whole = ll.read(tmp_path / "x.parquet")
    monkeypatch.setattr(parquet, "_TEXT_OF_ROWS", 2010)
    assert {batch.num_rows for batch in part.batches(["user_id"])} == {10}
    assert ll.read(tmp_path / "x.parquet").fingerprint() == whole.fingerprint()


def test_ids_that_a_file_repeats_are_held_once(tmp_path):
    pq.write_table(pa.table({"item_id": ["x" * 60_000] * 500}), tmp_path / "x.parquet")
    from limelight.data.ids import distinct_ids

    with pytest.raises(DataError, match="has 500 ids, of which 1 are distinct"):
        distinct_ids(tmp_path / "x.parquet", "item_id")
