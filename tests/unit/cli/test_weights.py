"""Weights and dates on the command line, from a table to lists."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll

READING = ("--timestamp", "time", "--weight", "plays")


@pytest.fixture
def table(tmp_path):
    draw = np.random.default_rng(0)
    columns = {"user": draw.integers(60, size=1500), "item": draw.integers(40, size=1500)}
    days = np.datetime64("2021-01-01") + draw.integers(300, size=1500)
    plays = draw.integers(1, 9, size=1500)
    pq.write_table(pa.table({**columns, "time": days, "plays": plays}), tmp_path / "plays.parquet")
    return tmp_path / "plays.parquet"


def test_a_weighted_table_is_converted_fitted_and_served(limelight, table, tmp_path):
    flags = (*READING, "--half-life", "30d")
    expected = ll.read(table, timestamp="time", weight="plays", half_life="30d")
    assert limelight("data", "convert", table, *flags, "-o", tmp_path / "w.parquet").code == 0
    converted = ll.read(tmp_path / "w.parquet", weight="weight")
    assert converted.fingerprint() == expected.fingerprint()
    model = tmp_path / "model"
    settings = ("--model", "ials", "--factors", 8, "--epochs", 3)
    assert limelight("fit", table, *flags, *settings, "-o", model).code == 0
    loaded = ll.load(model)
    assert loaded.learned.fingerprint == expected.fingerprint()
    np.testing.assert_array_equal(loaded.learned.seen.weights, expected.weights)
    lists = tmp_path / "lists.parquet"
    asked = ("recommend", model, "--history", table, "-k", 5, "-o", lists)
    assert limelight(*asked, *flags).code == 0
    plain = limelight("fit", table, *settings, "-o", tmp_path / "plain")
    assert plain.code == 0
    ended = limelight("recommend", tmp_path / "plain", *asked[2:], *flags)
    assert (ended.code, "histories have weights" in ended.err) == (1, True)


@pytest.mark.parametrize("cut", [("--at", "2021-08-01"), ("--test", "0.2")])
def test_a_split_by_time_is_fitted_and_evaluated(limelight, table, tmp_path, cut):
    folder, model = tmp_path / "split", tmp_path / "model"
    flags = ("--by", "time", *READING, "--half-life", "2w", *cut)
    ended = limelight("data", "split", table, *flags, "-o", folder, "--json")
    record, split = json.loads(ended.out), ll.Split.load(folder)
    assert record["test_users"] == split.test.n_users > 0
    assert split.has_shared_users
    assert split.train.weights is not None
    assert limelight("fit", folder, "--factors", 8, "--epochs", 3, "-o", model).code == 0
    assert limelight("evaluate", model, folder).code == 0
