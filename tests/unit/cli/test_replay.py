"""``limelight replay``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import limelight as ll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

FAILED, WRONG_USE = 1, 2
HOUR = 3600.0
BAD_LOGS = {
    "no-times.csv": "user,when\n1,2\n",
    "no-users.csv": "time,x\n1,2\n",
    "nan.csv": "user,time\n1,NaN\n2,5\n",
    "missing.csv": "user,time\n1,\n2,5\n",
    "text.csv": "user,time\n1,soon\n2,5\n",
    "no-user.csv": "user,time\n,3\n2,5\n",
    "one-time.csv": "user,time\n1,5\n2,5\n",
    "no-rows.csv": "user,time\n",
    "empty.csv": "",
}
REFUSED = [
    ("no-times.csv", FAILED, "column not found in no-times.csv: 'timestamp'"),
    ("no-users.csv", FAILED, "column not found in no-users.csv: 'user_id'"),
    ("nan.csv", FAILED, "row 1: a timestamp must be a finite number"),
    ("missing.csv", FAILED, "row 1: a timestamp must be a finite number"),
    ("text.csv", FAILED, "row 1: a timestamp must be a finite number"),
    ("no-user.csv", FAILED, "row 1: an id must not be empty"),
    ("one-time.csv", FAILED, "have the same time: 1970-01-01 00:00:05"),
    ("no-rows.csv", FAILED, "no rows in no-rows.csv"),
    ("empty.csv", FAILED, "the file is empty"),
    ("nowhere.csv", FAILED, "no such file or folder"),
    ("log.csv --user name", FAILED, "column not found in log.csv: 'name'"),
    ("log.csv --timestamp name", FAILED, "column not found in log.csv: 'name'"),
]
WRONGLY_ASKED = [
    ("--window 1h", WRONG_USE, "no target was given"),
    ("--gini 2 --window 1h", WRONG_USE, "gini must be from 0 to 1: 2"),
    ("--max-relevance-loss much --window 1h", WRONG_USE, "--max-relevance-loss must be a share"),
    ("--gini 0.4", WRONG_USE, "give one of --window and --half-life, not 0"),
    ("--gini 0.4 --window 1h --half-life 1h", WRONG_USE, "--window and --half-life, not 2"),
    ("--gini 0.4 --window soon", WRONG_USE, "--window must be a positive duration: 'soon'"),
    ("--gini 0.4 --half-life 0", WRONG_USE, "--half-life must be a positive duration: '0'"),
    ("--gini 0.4 --window 1h -k 0", WRONG_USE, "k must be at least 1: 0"),
    ("--group-cap 30% --window 1h", WRONG_USE, "--group-cap and --group-floor need groups"),
    (
        "--group-cap 30% --window 1h --groups log.csv",
        FAILED,
        "column not found in log.csv: 'item_id'",
    ),
    ("--gini 0.4 --window 1h -o out.txt", WRONG_USE, "unknown kind of output: 'out.txt'"),
    ("--gini 0.4 --window 1h -o log.csv", WRONG_USE, "the output is also an input: 'log.csv'"),
    ("--gini 0.4 --window 1h -o model/x.csv", WRONG_USE, "does not write to the model folder"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a model, logs and groups."""
    made = tmp_path_factory.mktemp("replay")
    market = ll.marketplace(200, 100, 4000)
    ll.IALS(factors=8, epochs=4).fit(market.interactions).save(made / "model")
    generator = np.random.default_rng(0)
    times = np.sort(generator.uniform(0, 4 * HOUR, 2000)) + 1e9
    log = pa.table({"user": generator.integers(0, 200, 2000), "time": times})
    pc.write_csv(log, made / "log.csv")
    pq.write_table(log.take(generator.permutation(2000)), made / "shuffled.parquet")
    pc.write_csv(market.groups, made / "groups.csv")
    for name, text in BAD_LOGS.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_it_says_and_writes_what_would_have_happened(limelight: Run, folder: Path) -> None:
    files = ["-o", "a.png", "-o", "a.csv", "-o", "a.parquet", "-o", "a.json", "-o", "a.tsv"]
    asked = ["--gini", "0.4", "--window", "1h", "-k", "10"]
    before = sorted(file.stat().st_mtime_ns for file in (folder / "model").rglob("*"))
    ended = limelight("replay", "model", "log.csv", *asked, *files)
    assert ended.code == 0
    assert "2,000 requests from 2001-09-09 01:46" in ended.out
    assert "asked for a Gini index of 0.4" in ended.out
    assert "written to a.png" in ended.err
    assert (folder / "a.png").read_bytes()[:4] == b"\x89PNG"
    found = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert found["measured"]["gini"] == pytest.approx(0.4, abs=0.01)
    columns = ["time", "gini", "coverage", "loss", "strength"]
    assert pc.read_csv("a.csv").column_names == columns
    assert pq.read_table("a.parquet").num_rows == len(found["history"])
    assert (folder / "a.tsv").read_text(encoding="utf-8").count("\t") > 4
    assert sorted(file.stat().st_mtime_ns for file in (folder / "model").rglob("*")) == before


def test_it_prints_json(limelight: Run) -> None:
    ended = limelight("replay", "model", "log.csv", "--gini", "0.4", "--half-life", "30m", "--json")
    found = json.loads(ended.out)
    assert found["half_life_seconds"] == 1800
    assert found["asked"] == {"gini": 0.4}


def test_rows_may_be_in_any_order(limelight: Run) -> None:
    asked = ["--gini", "0.4", "--window", "1h", "--json"]
    sorted_log, shuffled = (
        json.loads(limelight("replay", "model", log, *asked).out)
        for log in ("log.csv", "shuffled.parquet")
    )
    assert shuffled["notes"] == ["The log was out of order and was sorted by time."]
    assert shuffled["history"] == sorted_log["history"]


def test_caps_of_groups(limelight: Run) -> None:
    asked = ["--group-cap", "50%", "--groups", "groups.csv", "--window", "1h", "--json"]
    found = json.loads(limelight("replay", "model", "log.csv", *asked).out)
    assert found["accounts"][0]["cap"] == 0.5
    assert found["accounts"][0]["share"] <= 0.502


@pytest.mark.parametrize(("log", "code", "said"), REFUSED)
def test_logs_that_are_refused(limelight: Run, log: str, code: int, said: str) -> None:
    ended = limelight("replay", "model", *log.split(), "--gini", "0.4", "--window", "1h")
    assert ended.code == code
    assert said in ended.err
    assert "hint: " in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(("asked", "code", "said"), WRONGLY_ASKED)
def test_wishes_that_are_refused(limelight: Run, asked: str, code: int, said: str) -> None:
    ended = limelight("replay", "model", "log.csv", *asked.split())
    assert ended.code == code
    assert said in ended.err
    assert "hint: " in ended.err


def test_a_model_that_is_not_there(limelight: Run) -> None:
    ended = limelight("replay", "nowhere", "log.csv", "--gini", "0.4", "--window", "1h")
    assert ended.code == FAILED
    assert "nowhere" in ended.err
