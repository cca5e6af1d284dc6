"""The audit on files, as a process of its own: what it prints, refuses and costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import without_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended

    Run = Callable[..., Ended]

FAILED, WRONG_USE = 1, 2
HEAD = "user_id,item_id,rank,score,shown_at\n"
GOOD = HEAD + "".join(
    f"{user},{item},{rank},{1 / rank},2024-01-0{user}\n"
    for user, items in ((1, "abc"), (2, "abd"), (3, "ace"))
    for rank, item in enumerate(items, 1)
)
BEFORE = GOOD.replace("e,3", "b,3")
FILES = {
    "good.csv": GOOD,
    "before.csv": BEFORE,
    "items.csv": "item_id\na\nb\nc\nd\ne\nf\n",
    "few-items.csv": "item_id\na\nb\n",
    "groups.csv": "item_id,group\na,x\nb,x\nc,y\nd,y\ne,y\n",
    "chosen.csv": "user_id,item_id\n1,a\n2,a\n3,f\n",
    "no-items.csv": "user_id,rank\n1,1\n",
    "no-order.csv": "user_id,item_id\n1,a\n",
    "text-rank.csv": "user_id,item_id,rank\n1,a,first\n",
    "text-score.csv": "user_id,item_id,score\n1,a,high\n",
    "nan-rank.csv": "user_id,item_id,rank\n1,a,NaN\n",
    "nan-score.csv": "user_id,item_id,score\n1,a,0.5\n1,b,nan\n",
    "no-id.csv": "user_id,item_id,rank\n1,,1\n",
    "same-rank.csv": "user_id,item_id,rank\n1,a,1\n1,b,1\n",
    "same-item.csv": "user_id,item_id,rank\n1,a,1\n1,a,2\n",
    "empty.csv": "",
    "no-rows.csv": HEAD,
    "strange.csv": "user_id,item_id\n1,zzz\n",
}
RANK = "a rank must be a whole number from 1 to 16,777,216"
REFUSED = [
    ("missing.csv", FAILED, "no such file or folder: ", "relative paths"),
    ("no-items.csv", FAILED, "column not found in ", "the columns are: user_id, rank"),
    ("no-order.csv", FAILED, "neither 'rank' nor 'score' in ", "add a column `rank`"),
    (
        "text-rank.csv",
        FAILED,
        f"row 1: {RANK}, got: 'first'",
        "",
    ),
    ("text-score.csv", FAILED, "row 1: a score must be a number, got: 'high'", "correct or drop"),
    (
        "nan-rank.csv",
        FAILED,
        f"row 1: {RANK}, got: 'NaN'",
        "",
    ),
    ("nan-score.csv", FAILED, "row 2: a score must be a number, got: 'nan'", "correct or drop"),
    ("no-id.csv", FAILED, "column 'item_id', row 1: an id must not be empty", "correct or drop"),
    ("same-rank.csv", FAILED, "user 1 has rank 1 twice (1 such rows) in ", "its own rank"),
    ("same-item.csv", FAILED, "user 1 has item 'a' twice (1 such rows) in ", "--timestamp '...'"),
    ("empty.csv", FAILED, "the file is empty: ", "write it again"),
    ("no-rows.csv", FAILED, "no rows in ", "the first line is the header"),
    ("good.csv -k 4", WRONG_USE, "k is larger than the lists are long: 4 > 3", "choose k <= 3"),
    ("good.csv -k 0", WRONG_USE, "k must be a whole number of at least 1", "-k 20"),
    ("good.csv --catalogue few-items.csv", FAILED, "not in the catalogue: 3, e.g. 'c'", "every it"),
    ("good.csv --catalogue no-order.csv", FAILED, "not in the catalogue: 4, e.g. 'b'", "every it"),
    ("good.csv --against same-rank.csv", FAILED, "rank 1 twice (1 such rows) in same", "its own"),
    ("good.csv --against no-rows.csv", FAILED, "no rows in no-rows.csv", "the first line"),
    ("good.csv --merit items.csv", FAILED, "no columns 'user_id' and 'item_id' in ", "counted"),
    ("good.csv --merit strange.csv", FAILED, "no item of strange.csv is in the catalogue", "same"),
    ("good.csv --groups items.csv", FAILED, "column not found in items.csv: 'group'", "hint: "),
    ("good.csv --timestamp when", FAILED, "column not found in good.csv: 'when'", "hint: "),
    ("good.csv --timestamp item_id", FAILED, "row 1: a timestamp must be a finite number", "hint"),
    ("good.csv --timestamp rank", FAILED, "row 1: a timestamp must be a time, or a num", "hint: "),
    ("good.csv --every week", WRONG_USE, "need a column of times: --every 'week'", "--timestamp"),
    (
        "good.csv --timestamp shown_at --every year",
        WRONG_USE,
        "unknown period: --every 'year'",
        "day, week, month",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad tables; tests only read from it."""
    path = tmp_path_factory.mktemp("audit")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_a_wrong_file_gets_one_sentence(
    limelight: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, int, str, str]
) -> None:
    arguments, code, message, hint = case
    monkeypatch.chdir(folder)
    ended = limelight("audit", *arguments.split())
    assert ended.code == code, ended.err
    assert ended.out == ""
    first, blank, second = ended.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert blank == ""
    assert second.startswith("hint: ")
    assert hint in ended.err


def run(folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    # A path that the tests were started with may be relative: stay where they are.
    words = [str(folder / word) if word.endswith(".csv") else word for word in arguments.split()]
    command = [sys.executable, "-m", "limelight", "audit", *words]
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_refusal_in_a_process(folder: Path) -> None:
    ended = run(folder, "same-rank.csv")
    assert ended.returncode == FAILED
    assert ended.stdout == ""
    assert without_memory(ended.stderr).startswith("error: user 1 has rank 1 twice")
    assert "Traceback" not in ended.stderr
    assert run(folder, "good.csv -k 9").returncode == WRONG_USE


EVERYTHING = (
    "good.csv --against before.csv --catalogue items.csv --groups groups.csv --merit chosen.csv "
    "--timestamp shown_at --every day"
)


def test_everything_at_once(folder: Path) -> None:
    ended = run(folder, f"{EVERYTHING} --json")
    assert ended.returncode == 0, ended.stderr
    assert without_memory(ended.stderr) == ""
    record = json.loads(ended.stdout)
    for key in ("gini", "gini_uniform", "coverage", "entropy", "top_share", "merit_gini"):
        assert record[f"{key}@3_low"] <= record[f"{key}@3"] <= record[f"{key}@3_high"]
        change = record[f"{key}@3"] - record[f"{key}@3_before"]
        assert record[f"{key}@3_change"] == pytest.approx(change)
        assert record[f"{key}@3_change_low"] <= change <= record[f"{key}@3_change_high"]
    assert record["overlap@3"] == pytest.approx(8 / 9)
    assert (record["items_entered"], record["items_left"]) == (1, 0)
    assert [period["start"] for period in record["periods"]] == [
        "2024-01-01",
        "2024-01-02",
        "2024-01-03",
    ]
    assert record["without_merit"] == 4
    assert record["conventions"]["elliot"] == pytest.approx(1 - record["gini_uniform@3"] * 6 / 5)


def test_everything_as_text(limelight: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    ended = limelight("audit", *EVERYTHING.split())
    assert ended.code == 0
    for title in ("Exposure audit", "Against 3 users", "Groups, from", "Over time", "no merit"):
        assert title in ended.out
    assert not [line for line in ended.out.splitlines() if line != line.rstrip()]


PEAK = """
import sys
from limelight.benchmarks.peak import peak_bytes
from limelight.cli import main
try:
    main(["audit", *sys.argv[1:], "--json"])
finally:
    print(peak_bytes() // 1024, file=sys.stderr)
"""


def peak_kib(*arguments: object) -> int:
    command = [sys.executable, "-c", PEAK, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(without_memory(ended.stderr))


@pytest.mark.memory
@pytest.mark.parametrize("kind", ["integers", "text"])
def test_memory_for_each_row(tmp_path: Path, kind: str) -> None:
    n_users, k = 100_000, 20
    draw = np.random.default_rng(0)
    items = (draw.integers(0, 20_000, (n_users, 1)) + 37 * np.arange(k)) % 20_000
    columns: dict[str, Any] = {
        "user_id": pa.array(np.repeat(np.arange(n_users, dtype=np.int32), k)),
        "item_id": pa.array(items.ravel().astype(np.int32)),
        "rank": pa.array(np.tile(np.arange(1, k + 1, dtype=np.int32), n_users)),
    }
    if kind == "text":
        columns |= {name: columns[name].cast(pa.string()) for name in ("user_id", "item_id")}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "lists.parquet")
    pq.write_table(table[: 20 * k], tmp_path / "few.parquet")
    more = peak_kib(tmp_path / "lists.parquet") - peak_kib(tmp_path / "few.parquet")
    # 2 GiB for 20 million rows are 107 bytes a row.
    assert 1024 * more / len(table) < 90
