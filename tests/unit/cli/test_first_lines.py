"""What people see first: an answer on standard output, notes on standard error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from limelight.data import Split
from limelight.metrics.evaluate import evaluate
from limelight.models.folder import load_model

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

SMALL = ("--model", "ials", "--factors", 4, "--epochs", 3)


def test_a_plain_fit_says_that_control_is_off_and_what_comes_next(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    ended = limelight("fit", files / "ratings.csv", *SMALL, "-o", tmp_path / "model")
    first, second, third, following, *_ = ended.out.splitlines()
    assert first.startswith("Control of exposure is off. nDCG@20 is 0.")
    assert "held-out users like" in first
    assert "Gini@20 of exposure is 0." in second
    assert "second fit with the same settings" in third
    assert "--gini 0.6" in following
    assert "limelight recommend" in following
    assert "--no-measure skips it" in ended.err
    assert ended.err.endswith(f"written to {tmp_path / 'model'}\n")


@pytest.mark.parametrize("verb", ["describe", "fit", "target", "recommend", "audit", "rerank"])
def test_json_leaves_standard_error_empty(
    limelight: Run, files: Path, tmp_path: Path, verb: str
) -> None:
    rated = (files / "ratings.csv", "--rating", "rating")
    lists, items = files / "lists.parquet", files / "model" / "items.parquet"
    target = ("--gini", 0.7, "-k", 5, "--nearest", "--report", tmp_path / "page.html")
    ended = limelight(
        *{
            "describe": ("data", "describe", *rated),
            "fit": ("fit", *rated, *SMALL, "-o", tmp_path / "model"),
            "target": ("fit", *rated, *SMALL, *target, "-o", tmp_path / "model"),
            "recommend": ("recommend", files / "model", "-o", tmp_path / "lists.csv"),
            "audit": ("audit", lists, "--catalogue", items, "--items", tmp_path / "items.csv"),
            "rerank": ("rerank", files / "model", *target[:4], "-o", tmp_path / "lists.csv"),
        }[verb],
        "--json",
    )
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)


def test_a_plain_fit_is_the_same_whether_it_is_measured(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    for name, flag in (("one", "--measure"), ("two", "--no-measure")):
        assert (
            limelight("fit", files / "ratings.csv", *SMALL, flag, "-o", tmp_path / name).code == 0
        )
    one, two = (load_model(tmp_path / name) for name in ("one", "two"))
    assert (one.item_factors == two.item_factors).all()


def test_a_fit_to_a_split_is_measured_on_its_test_users(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    command = ("fit", files / "split", *SMALL, "-k", 5, "--json", "-o", tmp_path / "model")
    record = json.loads(limelight(*command).out)
    found = evaluate(load_model(tmp_path / "model"), Split.load(files / "split").test, 5)
    assert {name: record["measured"][name] for name in found} == found.to_dict()


def test_a_fit_that_cannot_spare_users_says_so(limelight: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text(
        "user_id,item_id\n" + "".join(f"{u},{i}\n" for u in range(9) for i in range(4))
    )
    ended = limelight("fit", tmp_path / "few.csv", *SMALL, "-o", tmp_path / "model")
    assert ended.code == 0
    assert "was not measured: 9 users are too few to hold some out." in ended.out
    command = ("fit", files / "ratings.csv", *SMALL, "--no-measure", "--json", "-o")
    record = json.loads(limelight(*command, tmp_path / "model").out)
    assert (record["measured"], record["not_measured"]) == (None, "--no-measure")


def test_verbs_begin_with_an_answer(limelight: Run, files: Path, tmp_path: Path) -> None:
    lists = tmp_path / "lists.parquet"
    ended = limelight("evaluate", files / "model", files / "split", "--at", 5)
    assert ended.out.startswith("nDCG@5 is 0.")
    ended = limelight("recommend", files / "model", "--at", 30, "-o", lists)
    assert ended.out.startswith("Lists of 30 for ")
    assert ended.err.endswith(f"written to {lists}\n")
    command = ("rerank", lists, "--at", 5, "--gini", 0.3, "-o", tmp_path / "even.parquet")
    first, second, *_ = limelight(*command).out.splitlines()
    assert first.startswith("Lists of 5 were re-ranked by best-response")
    assert "falls from 0." in first
    assert second.startswith("It costs ")
    assert pq.read_table(tmp_path / "even.parquet")["rank"].to_pylist()[4] == 5


@pytest.mark.parametrize("verb", ["split", "describe", "convert"])
def test_verbs_below_data_are_found(limelight: Run, verb: str) -> None:
    ended = limelight(verb, "ratings.csv")
    assert ended.code == 2
    assert f"hint: limelight data {verb}" in ended.err
