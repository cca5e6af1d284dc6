"""The page says what the numbers say."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from limelight._base.errors import ConfigError, DataError
from limelight.lab.bench.large import LargeRunSize, run_large
from limelight.lab.bench.records import Entry, Race, Results
from limelight.lab.bench.report import (
    PLOTS,
    describe_machine,
    draw_growth,
    draw_ratios,
    load,
    page,
    write,
)
from limelight.lab.tables import details, glance

if TYPE_CHECKING:
    from pathlib import Path

EXACT = [
    Race(
        "exact",
        "ml-1m",
        (
            Entry("limelight iALS", 0.05 * scale, flops=2e9 * scale, objective=83685.17, ndcg=0.3),
            Entry("irspack CHOLESKY", 0.2, objective=83685.18, ndcg=0.3),
        ),
        factors=factors,
        peak=80e9,
    )
    for factors, scale in ((32, 1.0), (64, 2.0))
]
GROWTH = Race("growth", "ml-1m", (Entry("doubled", 3.0), Entry("as it is", 2.0)), part="twice")
THREADS = Race(
    "threads", "ml-1m", (Entry("1 thread", 3.0), Entry("2 threads", 2.0)), part="Gramian", threads=2
)
MEMORY = [
    Race(
        job, "ml-1m", (Entry("limelight", n_bytes=2**20), Entry("arrays", n_bytes=2**19)), part=part
    )
    for job, part in (("memory", ""), ("reading-memory", "csv"))
]
RESULTS = Results(
    {"processor": "abacus", "instructions": ["bead", "rod"], "threads": 2, "lenskit": None},
    {"ml-1m": {"source": "ml.csv", "users": 6000, "items": 3500, "interactions": 575000}},
    (*EXACT, GROWTH, THREADS, *MEMORY),
)


def test_details_leave_empty_columns_out() -> None:
    lines = details(EXACT).splitlines()
    heads = "| data | factors | threads | who | time | ratio | GFLOP/s | of peak | objective |"
    assert lines[0] == f"{heads} nDCG@20 |"
    assert lines[2] == (
        "| ml-1m | 32 | 1 | limelight iALS | 50 ms |  | 40.0 | 50% | 83685.2 | 0.3000 |"
    )
    assert (
        lines[3] == "| ml-1m | 32 | 1 | irspack CHOLESKY | 200 ms | 0.25 |  |  | 83685.2 | 0.3000 |"
    )
    assert details(MEMORY[:1]).splitlines()[0] == "| data | threads | who | memory | ratio |"


def test_a_glance_has_a_column_for_each_size() -> None:
    other = replace(EXACT[0], data="gowalla")
    assert glance([*EXACT, other]).splitlines() == [
        "| data | threads | against | 32 factors | 64 factors |",
        "|---|---|---|--:|--:|",
        "| ml-1m | 1 | irspack CHOLESKY | 0.25 | 0.50 |",
        "| gowalla | 1 | irspack CHOLESKY | 0.25 |  |",
    ]


def test_the_page_has_everything() -> None:
    text = page(RESULTS, ["benchmarks-ratios.png"])
    for part in (
        "| processor | abacus |",
        "| instructions | bead, rod |",
        "| lenskit | not installed |",
        "| ml-1m | ml.csv | 6,000 | 3,500 | 575,000 |",
        "## At a glance",
        "**Exact iALS epoch**",
        "## Growth",
        "| ml-1m | 1 | twice | as it is | 2 s | 1.50 |",
        "| ml-1m | 1 | limelight | 1.0 MiB |",
        "![Our time against others'](figures/benchmarks-ratios.png)",
        "## How it was measured",
        "Timed: ``run_epoch`` of its trainer",
        "Timed: the two calls of its solver",
        "Timed: ``train_epoch`` of its trainer",
    ):
        assert part in text
    assert "## Top-k" not in text
    assert "## The large run" not in text


def test_a_large_run_on_the_page() -> None:
    size = LargeRunSize(
        users=200, items=60, interactions=2000, factors=8, epochs=2, lists=50, threads=1
    )
    told: list[str] = []
    record = run_large(size, told.append)
    assert told[0] == "generate ..."
    assert told[-1].startswith("audit: ")
    assert list(record["parts"]) == ["generate", "fit", "recommend", "audit"]
    assert record["seconds_per_epoch"] > 0
    assert 0 < record["audit"]["gini@20"] < 1
    assert record["peak_bytes"] >= record["parts"]["fit"]["peak_bytes"]
    text = page(replace(RESULTS, large=json.loads(json.dumps(record))))
    assert "A marketplace of 200 users x 60 items x 2,000 interactions; exADMM with 8" in text
    assert "| recommend | " in text


def test_write_and_add(tmp_path: Path) -> None:
    write(RESULTS, tmp_path)
    assert load(tmp_path, RESULTS.machine) == RESULTS
    assert (tmp_path / "benchmarks.md").read_text().startswith("# Benchmarks\n")
    assert load(tmp_path / "empty", {"processor": "x"}) == Results({"processor": "x"})


def test_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    write(RESULTS, tmp_path)
    assert {file.name for file in (tmp_path / "figures").iterdir()} == set(PLOTS)
    text = (tmp_path / "benchmarks.md").read_text()
    assert all(f"(figures/{name})" in text for name in PLOTS)
    write(replace(RESULTS, races=(GROWTH,)), tmp_path / "fewer")
    drawn = [file.name for file in (tmp_path / "fewer" / "figures").iterdir()]
    assert drawn == ["benchmarks-growth.png"]


def test_figures_show_the_ratios() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    threaded = replace(EXACT[0], threads=2)
    ax = draw_ratios([*EXACT, threaded], "Ratios")
    dots = [offsets.get_offsets().tolist() for offsets in ax.collections]
    assert dots == [[[0.25, 0], [0.25, 1]], [[0.5, 0]]]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == "exact, ml-1m: irspack CHOLESKY"
    assert names[1] == "exact, ml-1m, 2 threads: irspack CHOLESKY"
    bars = draw_growth([GROWTH], "Growth").containers[0]
    assert [bar.get_width() for bar in bars] == [1.5]


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(RESULTS, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["benchmarks.json", "benchmarks.md"]
    assert "figures/" not in (tmp_path / "benchmarks.md").read_text()


def test_another_machine_is_refused(tmp_path: Path) -> None:
    write(RESULTS, tmp_path)
    machine = {**RESULTS.machine, "date": "today", "processor": "slide rule"}
    with pytest.raises(ConfigError, match="another machine: processor is not 'slide rule'"):
        load(tmp_path, machine)


def test_a_record_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.json").write_text('{"races": 1}')
    with pytest.raises(DataError, match="not a record of benchmarks: "):
        load(tmp_path, {})


def test_the_machine() -> None:
    machine = describe_machine()
    assert {"processor", "kernel", "threads", "irspack", "implicit", "lenskit"} <= set(machine)
    assert json.loads(json.dumps(machine)) == machine
