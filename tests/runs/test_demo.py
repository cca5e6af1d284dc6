"""The demo tells a true story, and its commands work."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

SMALL = ["--users", "600", "--items", "200", "--interactions", "12000", "--factors", "8"]


def test_demo(limelight: Run, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = limelight("demo", "-o", run, *SMALL)
    assert ended.code == 0
    assert "limelight.marketplace" in ended.err, "where the data come from"
    names = {"results.json", "tradeoff.png", "lorenz.png", "providers.parquet", "split", "model"}
    names |= {"exhibit", "report.html"}
    assert {file.name for file in run.iterdir()} == names
    assert (run / "tradeoff.png").read_bytes().startswith(b"\x89PNG")
    commands = [line.split()[1:] for line in ended.out.splitlines() if line.startswith("  limel")]
    assert [command[0] for command in commands] == ["recommend", "audit"]
    for command in commands:
        assert limelight(*command).code == 0


def test_what_the_demo_measured_is_what_the_model_serves(limelight: Run, tmp_path: Path) -> None:
    ended = limelight("demo", "-o", tmp_path, *SMALL, "--gini", "0.5", "--json")
    record = json.loads(ended.out)
    lists, catalogue = tmp_path / "lists.parquet", tmp_path / "model/items.parquet"
    limelight("recommend", tmp_path / "model", "-o", lists)
    audited = json.loads(limelight("audit", lists, "--catalogue", catalogue, "--json").out)
    assert record["served"]["users"] == audited["users"] == record["users"] == 600
    assert record["served"]["gini@20"] == pytest.approx(audited["gini@20"])
    assert record["served"]["gini@20"] == pytest.approx(0.5, abs=0.01)
    assert record["plain"]["gini@20"] > 0.6
    loss = 100 * record["target"]["test"]["ndcg_loss@20"]
    told = "Asked for Gini 0.5 over 600 users, served 600 users, measured 0.50, cost "
    assert record["answer"].startswith(f"{told}{loss:.1f} % of nDCG (")


def test_demo_again_as_json(limelight: Run, tmp_path: Path) -> None:
    (tmp_path / "lists.parquet").write_text("of an earlier run")
    ended = limelight("demo", "-o", tmp_path, *SMALL, "--json")
    record = json.loads(ended.out)
    assert record == json.loads((tmp_path / "results.json").read_text())
    methods = [point["method"] for point in record["frontier"]["points"]]
    assert [*dict.fromkeys(methods)] == ["exadmm", "best-response"]
    assert limelight("demo", "-o", tmp_path, *SMALL, "--json").code == 0


def test_demo_without_matplotlib(
    limelight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = limelight("demo", "-o", tmp_path, *SMALL)
    assert ended.code == 0
    assert "hint: pip install 'limelight[plot]'" in ended.err
    assert "exADMM" in ended.out
    assert "tradeoff.png" not in ended.out
    assert not list(tmp_path.glob("*.png"))


def test_the_story_of_a_wish_that_the_plain_model_meets(limelight: Run, tmp_path: Path) -> None:
    ended = limelight("demo", "-o", tmp_path, *SMALL, "--gini", "0.9")
    assert ended.code == 0
    assert "The target was met by the plain model." in ended.out
    assert ended.out.rstrip().endswith("cost 0.0 % of nDCG (0.0 % to 0.0 %).")


def test_a_wish_that_is_none_is_refused_before_the_work(limelight: Run, tmp_path: Path) -> None:
    ended = limelight("demo", "-o", tmp_path, *SMALL, "--gini", "1.5")
    assert ended.code == 2
    assert "gini" in ended.err
    assert not (tmp_path / "model").exists()
