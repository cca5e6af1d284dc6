"""Verbs as processes of their own: what goes to which stream, and the exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.support.commands import run_limelight, without_memory

if TYPE_CHECKING:
    from pathlib import Path

FAILED, WRONG_USE = 1, 2


def test_an_audit_refuses(list_tables: Path) -> None:
    ended = run_limelight("audit", list_tables / "same-rank.csv")
    assert ended.returncode == FAILED
    assert ended.stdout == ""
    assert without_memory(ended.stderr).startswith("error: user 1 has rank 1 twice")
    assert "Traceback" not in ended.stderr
    ended = run_limelight("audit", list_tables / "good.csv", "-k", 9)
    assert ended.returncode == WRONG_USE


def test_a_target_is_met(candidate_tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "lists"
    options = ["-k", 3, "--seed", 1, "--threads", 1]
    ended = run_limelight(
        "rerank", candidate_tables / "good.csv", "--gini", 0.2, *options, "--json", "-o", out
    )
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert record["gini@3"] == pytest.approx(0.2, abs=0.01)
    assert record["target"] == {"gini": 0.2}
    assert record["gini@3_before"] > record["gini@3"]
    table = pq.read_table(out)
    assert table.column_names == ["user_id", "item_id", "rank", "score"]
    assert table.num_rows == 120
    assert [file.name for file in out.iterdir()] == ["part-00000.parquet"]


def test_a_front_of_a_table(files: Path, tmp_path: Path) -> None:
    flags = [
        "--method",
        "online",
        "--min-user",
        5,
        "--factors",
        4,
        "--epochs",
        8,
        "--points",
        3,
        "--at",
        5,
        "--seed",
        3,
        "--json",
    ]
    command = ["frontier", files / "ratings.csv", *flags, "-o", tmp_path / "front"]
    ended = run_limelight(*command)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["at"] == 5
    assert found["output"] == str(tmp_path / "front")
    assert [point["strength"] for point in found["points"]] == [0, 0.1, 3]
    assert set(found["points"][0]["test"]) == {
        "ndcg@5", "ndcg@5_low", "ndcg@5_high", "gini@5", "coverage@5"
    }  # fmt: skip
    model = json.loads((tmp_path / "front" / "models" / "plain" / "config.json").read_text())
    assert model["hyperparameters"]["random_state"] == 3
