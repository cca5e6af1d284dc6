"""What a run takes of the memory against what it said before, in processes of their own."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.support.commands import run_python

import limelight as ll

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
SAID = re.compile(r"takes about ([0-9.]+) (MiB|GiB) of memory \(of ")
RUN = """
import resource, sys
addresses = int(sys.argv[1])
if addresses:
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
from limelight.cli import main
try:
    main(sys.argv[2:])
finally:
    # Not ru_maxrss, which remembers the process that started this one.
    status = open("/proc/self/status").read().split()
    print("peak", int(status[status.index("VmHWM:") + 1]) * 1024)
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks are those of Linux")


class Ran(NamedTuple):
    code: int
    err: str
    said: float
    """The largest amount of memory that was named before the work, in bytes."""
    peak: float


def run(*arguments: object, addresses: int = 0, **environment: str) -> Ran:
    """Run a command in a process of its own, where given with a limit of addresses."""
    ended = run_python(RUN, addresses, *arguments, **environment)
    said = [
        float(n) * (MIB if unit == "MiB" else 1024 * MIB) for n, unit in SAID.findall(ended.stderr)
    ]
    peak = float(ended.stdout.split()[-1]) if "peak" in ended.stdout else 0.0
    return Ran(ended.returncode, ended.stderr, max(said, default=0.0), peak)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small.csv, large.parquet, models of both, and lists and candidates."""
    folder = tmp_path_factory.mktemp("memory")
    for name, sizes in (
        ("small.csv", (2000, 500, 30_000)),
        ("large.parquet", (60_000, 4000, 3_000_000)),
    ):
        data = ll.marketplace(*sizes).interactions
        users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
        table = pa.table({"user_id": users, "item_id": data.indices})
        if name.endswith(".csv"):
            pa.csv.write_csv(table, folder / name)
        else:
            pa.parquet.write_table(table, folder / name, row_group_size=1 << 18)
    return folder


def near(ran: Ran) -> None:
    """The promise is 10 % of large runs; small ones are mostly what Python and Arrow take."""
    assert ran.code == 0, ran.err
    assert ran.said == pytest.approx(ran.peak, rel=0.15, abs=60 * MIB)


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        ("small.csv", "--factors 16"),
        ("large.parquet", "--factors 128"),
        ("large.parquet", "--factors 50 --model ials"),
        ("large.parquet", "--factors 64 --solver admm --exposure-strength 0.1"),
    ],
)
def test_fits(pairs: Path, tmp_path: Path, data: str, settings: str) -> None:
    ran = run("fit", pairs / data, *settings.split(), "--epochs", 1, "-o", tmp_path / "model")
    near(ran)
    assert ran.err.count(" of memory (of ") == 2  # for reading, and for all of it


@pytest.mark.parametrize("weight", [(), ("--weight", "plays")], ids=["plain", "weighted"])
def test_growth(pairs: Path, tmp_path: Path, weight: tuple[str, ...]) -> None:
    table = pa.parquet.read_table(pairs / "large.parquet")
    table = table.append_column("plays", pa.array(np.arange(table.num_rows) % 3 + 1))
    is_new = np.random.default_rng(0).random(table.num_rows) < 0.02
    for name, rows in (("old", ~is_new), ("new", is_new)):
        pa.parquet.write_table(table.filter(pa.array(rows)), tmp_path / f"{name}.parquet")
    model, settings = tmp_path / "model", ("--epochs", 1, "--factors", 64, "--model", "ials")
    ran = run("fit", tmp_path / "old.parquet", *settings, *weight, "-o", model)
    assert ran.code == 0
    ran = run("fit", tmp_path / "new.parquet", *weight, "--from", model, "-o", model)
    near(ran)
    assert ran.err.count(" of memory (of ") == 2  # for reading, and for all of it


def test_lists_their_audit_and_their_reranking(pairs: Path, tmp_path: Path) -> None:
    model, lists = tmp_path / "model", tmp_path / "lists.parquet"
    assert (
        run("fit", pairs / "large.parquet", "--epochs", 1, "--factors", 32, "-o", model).code == 0
    )
    near(run("recommend", model, "-k", 50, "-o", lists))
    near(run("audit", lists, "--catalogue", model / "items.parquet"))
    near(run("rerank", lists, "--min-coverage", "30%", "-k", 10, "-o", tmp_path / "fair"))


def test_a_fit_that_would_not_fit_says_which_would(pairs: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    fit = ["fit", pairs / "large.parquet", "--epochs", 1, "-o", model]
    ran = run(*fit, "--factors", 1024, LIMELIGHT_MEMORY="400MiB")
    assert ran.code == 1
    assert re.search(r"error: the fit takes about .* of memory, and there are 400 MiB", ran.err)
    assert not model.exists()
    advice = re.search(r"hint: use --factors ([0-9]+)", ran.err)
    assert advice
    ran = run(*fit, "--factors", advice[1], LIMELIGHT_MEMORY="400MiB")
    assert ran.code == 0, ran.err
    assert ran.peak < 440 * MIB


def test_lists_that_would_not_fit_say_how_long_they_may_be(pairs: Path, tmp_path: Path) -> None:
    model, lists = tmp_path / "model", tmp_path / "lists"
    data = pairs / "large.parquet"
    assert run("fit", data, "--epochs", 1, "--factors", 16, "-o", model).code == 0
    recommend = ["recommend", model, "-o", lists]
    ran = run(*recommend, "-k", 1_000_000, LIMELIGHT_MEMORY="400MiB")
    assert ran.code == 1
    advice = re.search(r"hint: make shorter lists: -k ([0-9]+);", ran.err)
    assert advice, ran.err
    assert not lists.exists()
    ran = run(*recommend, "-k", advice[1], LIMELIGHT_MEMORY="400MiB")
    assert ran.code == 0, ran.err
    assert ran.peak < 440 * MIB
    ran = run(*recommend, "-k", 10**30, "--user-id", 0, LIMELIGHT_MEMORY="400MiB")
    assert ran.code == 0, ran.err


def test_reading_that_would_not_fit_is_not_begun(pairs: Path, tmp_path: Path) -> None:
    fit = ["fit", pairs / "large.parquet", "-o", tmp_path / "model"]
    ran = run(*fit, LIMELIGHT_MEMORY="200MiB")
    assert ran.code == 1
    assert ran.err.startswith("error: reading takes about ")
    assert "\n\nhint: read less" in ran.err


def test_addresses_are_a_limit_too(pairs: Path, tmp_path: Path) -> None:
    fit = ["fit", pairs / "large.parquet", "--epochs", 1, "-o", tmp_path / "model"]
    ran = run(*fit, "--factors", 2048, addresses=2048 * MIB)
    assert ran.code == 1, ran.err
    assert "error: the fit takes about " in ran.err
    assert "hint: use --factors " in ran.err


def test_reranking_says_how_much_to_hold(pairs: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    n_users, width = 20_000, 400
    items = (draw.integers(0, 2000, n_users)[:, None] + 3 * np.arange(width)) % 2000
    table = {
        "user_id": np.repeat(np.arange(n_users), width),
        "item_id": items.ravel(),
        "score": draw.random(n_users * width, dtype=np.float32),
    }
    path = tmp_path / "candidates.parquet"
    pa.parquet.write_table(pa.table(table), path)
    rerank = ["rerank", path, "--gini", 0.2, "-k", 10, "-o", tmp_path / "lists"]
    whole = run(*rerank)
    near(whole)
    less = f"{round(0.9 * whole.said / MIB)}MiB"
    ran = run(*rerank, LIMELIGHT_MEMORY=less)
    assert ran.code == 1
    advice = re.search(r"hint: hold less: --memory ([0-9.]+)", ran.err)
    assert advice, ran.err
    ran = run(*rerank, "--memory", advice[1], LIMELIGHT_MEMORY=less)
    assert ran.code == 0, ran.err
    assert ran.peak < whole.peak


def test_a_long_text_that_rows_repeat_is_not_unpacked(tmp_path: Path) -> None:
    once = pa.DictionaryArray.from_arrays(np.zeros(50_000, np.int32), ["x" * 1_000_000])
    table = pa.table({"user_id": once, "item_id": np.arange(50_000)})
    pa.parquet.write_table(table, tmp_path / "x.parquet", store_schema=False)
    ran = run("data", "describe", tmp_path / "x.parquet")
    assert ran.code == 1
    assert ran.peak < 500 * MIB
