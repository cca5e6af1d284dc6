"""``limelight reproduce`` with all methods, networks among them."""

from __future__ import annotations

import json

import pytest
from tests.support.reproduction import SIZE

from limelight.lab.paper.plan import METHODS

TABLES = (
    *("table1", "table2", "table3", "planned", "trials", "figure2"),
    *(f"{table}-{k}" for table in ("figure1", "table4") for k in (3, 5, 10)),
)
FIGURES = ("figure1", "figure2")


@pytest.mark.usefixtures("tiny_experiment")
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
    assert tuple(found["points"]["10"]) == METHODS
    assert found["times"]["exADMM"]["extrapolated"]
    lengths = {name: time["d"] for name, time in found["times"].items()}
    assert set(lengths.values()) == {8}
    assert all(time["bytes"] >= 0 for time in found["times"].values())
    assert "memory measured" in (tmp_path / "table2.csv").read_text()
    report = (tmp_path / "report.md").read_text()
    assert "made up like Tiny" in report
    assert "(extrapolated)" in report
    again = limelight("reproduce", "--like", "tiny", *flags)
    assert json.loads(again.out) == found
    assert "nDCG@" not in again.err
