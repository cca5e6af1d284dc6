"""The demo tells a true story, and its commands work."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from limelight.cli.demo.runs import choose, exposure_weights, run_all
from limelight.cli.demo.story import tell
from limelight.data import marketplace, split_users

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

    from limelight.cli.demo.runs import Outcome

SMALL = ["--users", "600", "--items", "200", "--interactions", "12000", "--factors", "8"]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    market = marketplace(2000, 400, 60_000)
    split = split_users(market.interactions, validation=0.1, test=0.1)
    return run_all(market, split, factors=16, random_state=0, num_threads=0)


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
    assert [command[0] for command in commands] == ["evaluate", "recommend", "audit"]
    for command in commands:
        assert limelight(*command).code == 0


def test_demo_again_as_json(limelight: Run, tmp_path: Path) -> None:
    (tmp_path / "lists.parquet").write_text("of an earlier run")
    ended = limelight("demo", "-o", tmp_path, *SMALL, "--json")
    record = json.loads(ended.out)
    assert record == json.loads((tmp_path / "results.json").read_text())
    assert [result["method"] for result in record["results"]][:2] == ["iALS", "exADMM 1e-06"]
    assert record["chosen"] in [result["method"] for result in record["results"]]
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


def test_weights_span_no_effect_to_saturation(outcomes: list[Outcome]) -> None:
    gini = [outcome.at_k("gini") for outcome in outcomes]
    assert abs(gini[1] - gini[0]) < 0.02
    assert gini[0] - gini[-1] > 0.05
    assert abs(gini[-1] - gini[-2]) < 0.1 * (gini[0] - gini[-1])
    assert exposure_weights(1_600_000)[0] == pytest.approx(1e-9)


def test_the_kept_model_is_nearly_as_accurate_and_the_evenest(outcomes: list[Outcome]) -> None:
    chosen = choose(outcomes)
    least = 0.98 * outcomes[0].validation["ndcg@20"]
    assert chosen.validation["ndcg@20"] >= least
    for outcome in outcomes:
        worse = outcome.validation["ndcg@20"] < least
        assert worse or outcome.validation["gini@20"] >= chosen.validation["gini@20"]


def test_the_story_of_a_baseline_that_nothing_beats(
    outcomes: list[Outcome], tmp_path: Path
) -> None:
    base = replace(outcomes[0])
    page = tmp_path / "report.html"
    text = tell(tmp_path, [base, *outcomes[1:]], base, page=page, figures=False)
    assert "is iALS: none that is more even comes within 2% of its nDCG." in text
