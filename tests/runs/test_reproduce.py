"""``limelight reproduce``, on an experiment small enough to run."""

from __future__ import annotations

import json

import pytest

WRONG_USE = 2


@pytest.mark.usefixtures("tiny_experiment")
def test_some_methods_only(limelight, tmp_path) -> None:
    methods = ("--method", "iALS", "--method", "Popularity")
    ended = limelight(
        "reproduce", "--like", "tiny", *methods, "--budget", 0, "--epochs", 2, "-o", tmp_path
    )
    assert ended.code == 0, ended.err
    protocol = "he paper's protocol: exposure of test users' lists alone"
    over = f"over 50 users' lists and 80 items, by t{protocol}"
    assert ended.out.endswith(f"\nGini {over}\n")
    assert "\nwritten to" in ended.err
    assert f"Exposure is {over}." in (tmp_path / "report.md").read_text()
    record = json.loads((tmp_path / "exhibit" / "exhibit.json").read_text())
    assert record["notes"] == [f"T{protocol}."]
    assert all(point["figures"]["users"] == 50 for point in record["points"])
    assert not (tmp_path / "figure2.png").exists()
    assert "Multi-FR" not in (tmp_path / "table3.csv").read_text()


@pytest.mark.usefixtures("tiny_experiment")
def test_methods_that_do_not_train(limelight, tmp_path) -> None:
    methods = ("--method", "Random", "--method", "Popularity")
    ended = limelight("reproduce", "--like", "tiny", *methods, "--budget", 0, "-o", tmp_path)
    assert ended.code == 0, ended.err
    assert "## Time" not in (tmp_path / "report.md").read_text()


@pytest.mark.usefixtures("tiny_experiment")
def test_more_methods_and_time_measure_what_changed_again(limelight, tmp_path) -> None:
    flags = ("--epochs", 2, "-o", tmp_path, "--json", "--method", "iALS")
    limelight("reproduce", "--like", "tiny", "--budget", 0, *flags)
    ended = limelight(
        "reproduce", "--like", "tiny", "--budget", 0.05, *flags, "--method", "iALS+FairRec"
    )
    record = json.loads(ended.out)
    assert record["protocol"].startswith("the paper's protocol")
    points = record["points"]["10"]
    assert (points["iALS"][0]["users"], points["iALS"][0]["items"]) == (50, 80)
    front = [one["validation"]["gini"] for one in points["iALS+FairRec"]]
    assert len(front) > 1
    assert front == sorted(front)
    assert "iALS+FairRec" in (tmp_path / "table2.csv").read_text()


@pytest.mark.usefixtures("tiny_experiment")
def test_a_number_of_trials_is_the_same_run_again(limelight, tmp_path) -> None:
    methods = ("--method", "iALS", "--method", "exADMM-exact", "--method", "iALS+BestResponse")
    flags = (*methods, "--trials", 5, "--epochs", 2, "--budget", 0, "--seed", 3)
    tables = []
    for name in ("first", "second"):
        ended = limelight("reproduce", "--like", "tiny", *flags, "-o", tmp_path / name)
        assert ended.code == 0, ended.err
        assert ended.err.index("exADMM-exact: about") < ended.err.index("iALS 1: nDCG")
        lines = (tmp_path / name / "trials.csv").read_text().splitlines()
        tables.append([line.rpartition(",")[0] for line in lines])
        tables.append((tmp_path / name / "figure1-10.csv").read_text())
    assert tables[:2] == tables[2:]
    assert len(tables[0]) == 1 + 3 * (5 + 5 + 5)
    report = (tmp_path / "first" / "report.md").read_text()
    assert "5 settings for each method and, of re-rankers, each K; seed 3, and 98765" in report
    assert "(ours, not in the paper)" in report


def test_output_that_is_a_file(limelight, tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    ended = limelight("reproduce", "--like", "msd", "-o", tmp_path / "file")
    assert "the output is not a folder" in ended.err
    assert ended.code == 1


MISTAKES = [
    ([], "no data set was named", "epinions, ml-20m, msd, letterboxd, gowalla"),
    (["netflix"], "unknown experiment: 'netflix'", "epinions, ml-20m, msd, letterboxd, gowalla"),
    (["epinions"], "--data is missing: Epinions is published by others", "trustlet.org"),
    (["msd", "--like", "msd"], "takes neither a name nor --data", "reproduce --like msd"),
    (["--like", "msd", "--budget", "-1"], "--budget must be a finite number", "0 or more"),
    (["--like", "msd", "--epochs", "0"], "--epochs must be at least 1", "integer"),
    (["--like", "msd", "--trials", "0"], "--trials must be at least 1", "integer"),
    (["--like", "msd", "--latent", "0"], "--latent must be at least 1", "integer"),
    (["--like", "msd", "--seed", "-1"], "--seed must be at least 0", "integer"),
    (["gowalla"], "--data is missing: Gowalla is published by others", "LightGCN"),
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
