"""``limelight bench``, on data so small that its times mean nothing."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

LARGE = ("--large", "--users", 200, "--items", 60, "--interactions", 2000, "--lists", 50)


@pytest.fixture(autouse=True)
def small_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.lab.bench.timing.SGEMM_SIZE", 64)


def test_a_run_from_end_to_end(limelight: Run, files: Path, tmp_path: Path) -> None:
    data = f"mine={files / 'ratings.csv'},rating=rating,min-rating=3"
    command = ("bench", "--data", data, "-d", 8, "-d", 16, "--rounds", 1, "-o", tmp_path)
    ended = limelight(*command, "--jobs", "exact", "--jobs", "growth")
    assert ended.code == 0
    assert "Exact iALS epoch: mine, 16 factors, 1 thread\n" in ended.err
    assert ended.err.endswith(f"written to {tmp_path}\n")
    assert "## Exact iALS epoch" in ended.out
    page = (tmp_path / "benchmarks.md").read_text()
    assert "## Growth" in page
    assert "| mine | ratings.csv | " in page
    ended = limelight(*command, "--jobs", "user-step", "--add", "--json")
    races = json.loads(ended.out)["races"]
    assert {race["job"] for race in races} == {"exact", "growth", "user-step"}
    assert json.loads((tmp_path / "benchmarks.json").read_text())["races"] == races


def test_an_interrupted_run_keeps_what_it_has(
    limelight: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.lab.bench.epochs.UserStep", _interrupt)
    data = f"mine={files / 'ratings.csv'}"
    jobs = ("--jobs", "exact", "--jobs", "user-step")
    command = ("bench", "--data", data, "-d", 8, "--rounds", 1, "-o", tmp_path)
    assert limelight(*command, *jobs).code == 130
    races = json.loads((tmp_path / "benchmarks.json").read_text())["races"]
    assert [race["job"] for race in races] == ["exact"]


def _interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_built_in_data(limelight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.lab.bench.task.SHAPES", {"small": (200, 50, 2000)})
    ended = limelight(
        "bench", "--jobs", "user-step", "-d", 8, "--rounds", 1, "-o", tmp_path, "--json"
    )
    assert ended.code == 0
    record = json.loads(ended.out)
    assert record["data"]["small"]["source"] == "made up"
    assert [race["data"] for race in record["races"]] == ["small"]


def test_a_large_run_that_is_small(limelight: Run, tmp_path: Path) -> None:
    ended = limelight(
        "bench", *LARGE, "--epochs", 2, "-d", 8, "--threads", 1, "-o", tmp_path, "--json"
    )
    assert ended.code == 0
    large = json.loads(ended.out)["large"]
    assert large["size"] == {
        "users": 200,
        "items": 60,
        "interactions": 2000,
        "factors": 8,
        "epochs": 2,
        "lists": 50,
        "threads": 1,
    }
    assert "## The large run" in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--users", 10), "only the large run takes: --users"),
        (("--large", "--rounds", 5), "the large run does not take: --rounds"),
        (("--large", "--jobs", "exact"), "the large run does not take: --jobs"),
        (("--jobs", "speed"), "no such job: 'speed'"),
        (("--data", "file.csv"), "--data must be NAME=FILE: 'file.csv'"),
        (("--rounds", 0), "rounds must be at least 1: 0"),
        (("-d", 0), "factors must be at least 1: 0"),
        (("--threads", -1), "--threads must not be negative: -1"),
    ],
)
def test_wrong_use(limelight: Run, tmp_path: Path, flags: tuple[object, ...], message: str) -> None:
    ended = limelight("bench", "-o", tmp_path, *flags)
    assert ended.code == 2
    assert message in ended.err
    assert "hint: " in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_busy_machine_is_told(
    limelight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (7.0, 0.0, 0.0))
    ended = limelight("bench", "-o", tmp_path, "--jobs", "speed")
    assert "Other processes are at work: the load of this machine is 7.0." in ended.err


def test_help_lists_all_jobs(limelight: Run) -> None:
    from limelight.lab.bench.jobs import JOBS

    words = " ".join(limelight("bench", "--help").out.split())
    assert f"Jobs: {', '.join(job.name for job in JOBS)}." in words
