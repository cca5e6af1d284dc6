"""The audit on files: what it prints and what it refuses."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

FAILED, WRONG_USE = 1, 2
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
    ("good.csv --merit items.csv", FAILED, "no user column in ", "--merit-user"),
    ("good.csv --merit strange.csv", FAILED, "no item of strange.csv is in the catalogue", "same"),
    ("good.csv --groups items.csv", FAILED, "column not found in items.csv: 'group'", "hint: "),
    ("good.csv --timestamp when", FAILED, "column not found in good.csv: 'when'", "hint: "),
    ("good.csv --timestamp item_id", FAILED, "row 1: a timestamp must be a finite number", "hint"),
    ("good.csv --timestamp rank", FAILED, "row 1: a timestamp must be a time, or a num", "hint: "),
    ("good.csv --at-users 0", WRONG_USE, "--at-users must be a whole number", "--at-users 20"),
    ("good.csv --at-users 9 --timestamp rank", WRONG_USE, "--at-users is for", "or timestamp"),
    ("good.csv --every week", WRONG_USE, "need a column of times: --every 'week'", "--timestamp"),
    (
        "good.csv --timestamp shown_at --every year",
        WRONG_USE,
        "unknown period: --every 'year'",
        "day, week, month",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_a_wrong_file_gets_one_sentence(
    limelight: Run,
    list_tables: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, int, str, str],
) -> None:
    arguments, code, message, hint = case
    monkeypatch.chdir(list_tables)
    ended = limelight("audit", *arguments.split())
    assert ended.code == code, ended.err
    assert ended.out == ""
    first, blank, second = ended.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert blank == ""
    assert second.startswith("hint: ")
    assert hint in ended.err


EVERYTHING = (
    "good.csv --against before.csv --catalogue items.csv --groups groups.csv --merit chosen.csv "
    "--timestamp shown_at --every day"
)


def test_everything_at_once(
    limelight: Run, list_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(list_tables)
    ended = limelight("audit", *EVERYTHING.split(), "--json")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    record = json.loads(ended.out)
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


def test_everything_as_text(
    limelight: Run, list_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(list_tables)
    ended = limelight("audit", *EVERYTHING.split())
    assert ended.code == 0
    for title in (
        "Exposure audit",
        "Against 3 users",
        "Groups, the largest",
        "Over time",
        "no merit",
    ):
        assert title in ended.out
    assert not [line for line in ended.out.splitlines() if line != line.rstrip()]


def test_every_item_and_every_group_is_written(
    limelight: Run, list_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(list_tables)
    items, groups = tmp_path / "items.csv", tmp_path / "groups.tsv"
    written = ("--items", str(items), "--group-table", str(groups))
    ended = limelight("audit", *EVERYTHING.split(), "--json", *written)
    assert ended.code == 0, ended.err
    assert ended.err == ""
    record = json.loads(ended.out)
    with items.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == record["items"]
    assert float(rows[0]["share"]) == record["most_exposed"][0]["share"]
    assert {"merit", "share_before", "change"} <= rows[0].keys()
    with groups.open(newline="") as file:
        shares = [row["exposure_share"] for row in csv.DictReader(file, delimiter="\t")]
    n_groups = len(record["groups"])
    assert [float(share) for share in shares[:n_groups]] == [
        group["exposure_share"] for group in record["groups"]
    ]


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ("--items items.txt", FAILED, "unknown kind of file: 'items.txt'"),
        ("--group-table groups.csv", WRONG_USE, "no groups to write: --group-table 'groups.csv'"),
        ("--group-cap 3%", WRONG_USE, "a bound of groups needs groups: --group-cap 0.03"),
        ("--min-coverage many", WRONG_USE, "--min-coverage must be a share: 'many'"),
    ],
)
def test_tables_and_targets_that_cannot_be(
    limelight: Run,
    list_tables: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: str,
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(list_tables)
    ended = limelight("audit", "good.csv", *flags.split())
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert "hint: " in ended.err


def test_a_missed_target_is_said_first(
    limelight: Run, list_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(list_tables)
    ended = limelight("audit", *EVERYTHING.split(), "--group-cap", "10%", "--gini", "0.9")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("A target is missed: ")
    assert "above the cap of 10.00 %" in ended.out.splitlines()[0]
    assert "Groups over time" in ended.out
