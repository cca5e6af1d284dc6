"""Fronts of re-rankers: their score, and one small run of all of them."""

import json

import pytest

import limelight as ll
from limelight.lab.bench import rerankers
from limelight.lab.bench.rerankers import RerankedPoint, front_score


def test_only_points_that_no_other_beats_count():
    base, good, beaten = (
        RerankedPoint(0, 1.0, 0.9),
        RerankedPoint(1, 0.9, 0.5),
        RerankedPoint(2, 0.88, 0.7),
    )
    assert front_score([base, good, beaten], 1.0) == front_score([base, good], 1.0)
    assert front_score([base, good], 1.0) > front_score([base, beaten], 1.0)


def test_beyond_the_last_point_a_front_stays_where_it_is():
    assert front_score([RerankedPoint(0, 1.0, 0.9)], 1.0) == pytest.approx(0.1)


def test_all_methods_on_a_small_market(monkeypatch, tmp_path):
    monkeypatch.setattr(rerankers, "STRENGTHS", (0.1, 1.0))
    market = ll.marketplace(500, 60, 9000)
    split = ll.split_users(market.interactions, validation=60, test=80)
    measured = list(rerankers.measure_fronts(split, {"factors": 8, "epochs": 4}, seed=0))
    assert [name for name, _ in measured] == [
        "FairRec",
        "BestResponse",
        "Allocate",
        "Online",
        "Prices",
    ]
    result = measured[-1][1]
    assert all(0 < result.score(name) < 1 for name, _ in measured)
    assert "/ FairRec" in rerankers.table([result])


def test_the_command_writes_points_that_are_drawn(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setattr(rerankers, "STRENGTHS", (0.5,))
    rows = ll.marketplace(300, 40, 5000).interactions
    data = tmp_path / "data.csv"
    pairs = zip(*rows.matrix.nonzero(), strict=True)
    data.write_text("user_id,item_id\n" + "\n".join(f"{u},{i}" for u, i in pairs))
    small = ["--validation", "40", "--test", "50", "--seeds", "1", "--factors", "8"]
    points, picture = tmp_path / "points.json", tmp_path / "fronts.png"
    command = ["score", f"made-up={data}", *small, "--epochs", "3", "-o", str(points)]
    rerankers.app(command, standalone_mode=False)
    assert "\nGini over 50 users' lists and 40 items\n" in capsys.readouterr().out
    record = json.loads(points.read_text())
    assert (record["users"], record["items"]) == (50, 40)
    assert set(record["runs"][0]["points"]) >= {"FairRec", "BestResponse"}
    rerankers.app(["draw", str(points), "-o", str(picture)], standalone_mode=False)
    assert picture.read_bytes()[1:4] == b"PNG"
