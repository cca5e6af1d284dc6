"""``limelight reproduce``, on an experiment small enough to run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from limelight.reproduce import experiments, growth
from limelight.reproduce.experiments import EXPERIMENTS, Size

WRONG_USE = 2
SIZE = Size(400, 80, 6000)
TABLES = ("table1", "table2", "table3", "figure1-3", "figure1-5", "figure1-10")
FIGURES = ("figure1", "figure2")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment of a few hundred users; the growth is measured on as few."""
    small = replace(
        EXPERIMENTS["epinions"],
        title="Tiny",
        size=SIZE,
        held_out=50,
        factors=8,
        cutoffs=(3, 5, 10),
        timed=(5, 10),
        weights=(1e-5, 1e-4, 1e-3),
    )
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"tiny": small})
    monkeypatch.setattr(growth.growth, "__defaults__", (Size(200, 60, 3000),))
    monkeypatch.setattr(growth, "_ROUNDS", 1)


@pytest.mark.usefixtures("tiny")
def test_everything_is_written_and_a_second_run_repeats_nothing(limelight, tmp_path) -> None:
    flags = ("--budget", 0, "--epochs", 2, "-o", tmp_path, "--json")
    ended = limelight("reproduce", "--like", "tiny", *flags)
    assert ended.code == 0, ended.err
    tables = {f"{name}.csv" for name in TABLES}
    figures = {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")}
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"report.md", "state", "exhibit"} | tables | figures
    found = json.loads(ended.out)
    assert found["size"] == SIZE._asdict()
    assert set(found["points"]["10"]) == {
        "Random", "Popularity", "iALS", "Mult-VAE", "iALS+FairRec", "Multi-FR", "exADMM"
    }  # fmt: skip
    assert found["times"]["exADMM"]["extrapolated"]
    report = (tmp_path / "report.md").read_text()
    assert "made up like Tiny" in report
    assert "(extrapolated)" in report
    again = limelight("reproduce", "--like", "tiny", *flags)
    assert json.loads(again.out) == found
    assert "nDCG@" not in again.err


@pytest.mark.usefixtures("tiny")
def test_some_methods_only(limelight, tmp_path) -> None:
    methods = ("--method", "iALS", "--method", "Popularity")
    ended = limelight(
        "reproduce", "--like", "tiny", *methods, "--budget", 0, "--epochs", 2, "-o", tmp_path
    )
    assert ended.code == 0, ended.err
    assert not (tmp_path / "figure2.png").exists()
    assert "Multi-FR" not in (tmp_path / "table3.csv").read_text()


@pytest.mark.usefixtures("tiny")
def test_methods_that_do_not_train(limelight, tmp_path) -> None:
    methods = ("--method", "Random", "--method", "Popularity")
    ended = limelight("reproduce", "--like", "tiny", *methods, "--budget", 0, "-o", tmp_path)
    assert ended.code == 0, ended.err
    assert "## Time" not in (tmp_path / "report.md").read_text()


@pytest.mark.usefixtures("tiny")
def test_more_methods_and_time_measure_what_changed_again(limelight, tmp_path) -> None:
    flags = ("--epochs", 2, "-o", tmp_path, "--json", "--method", "iALS")
    limelight("reproduce", "--like", "tiny", "--budget", 0, *flags)
    ended = limelight(
        "reproduce", "--like", "tiny", "--budget", 0.05, *flags, "--method", "iALS+FairRec"
    )
    points = json.loads(ended.out)["points"]["10"]
    assert points["iALS+FairRec"][0]["ndcg@10"] == points["iALS"][0]["ndcg@10"]
    assert "iALS+FairRec" in (tmp_path / "table2.csv").read_text()


def test_output_that_is_a_file(limelight, tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    ended = limelight("reproduce", "--like", "msd", "-o", tmp_path / "file")
    assert "the output is not a folder" in ended.err
    assert ended.code == 1


MISTAKES = [
    ([], "no data set was named", "epinions, ml-20m, msd"),
    (["netflix"], "unknown experiment: 'netflix'", "epinions, ml-20m, msd"),
    (["epinions"], "--data is missing: Epinions is published by others", "trustlet.org"),
    (["msd", "--like", "msd"], "takes neither a name nor --data", "reproduce --like msd"),
    (["--like", "msd", "--budget", "-1"], "--budget must be a finite number", "0 or more"),
    (["--like", "msd", "--epochs", "0"], "--epochs must be at least 1", "integer"),
    (["--like", "msd", "--threads", "-1"], "--threads must be at least 0", "integer"),
    (["--like", "msd", "--user", "who"], "no columns to name: --user", "leave it out"),
    (["--like", "msd", "--method", "SVD"], "unknown method: 'SVD'", "Mult-VAE"),
    (["--like", "msd", "--method", "iALS+FairRec"], "starts from iALS", "add iALS"),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), MISTAKES)
def test_mistakes(limelight, arguments, message, hint) -> None:
    ended = limelight("reproduce", *arguments)
    assert ended.code == WRONG_USE
    assert message in ended.err
    assert hint in ended.err
