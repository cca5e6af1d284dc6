"""Re-ranking on files: targets on the command line, and what happens to wrong files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.support.tables import CANDIDATES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

FAILED, WRONG_USE = 1, 2
REFUSED = [
    ("missing.csv --gini 0.5", FAILED, "no such file or folder"),
    ("no-score.csv --gini 0.5", FAILED, "column not found in no-score.csv: 'score'"),
    ("no-item.csv --gini 0.5", FAILED, "no item column in no-item.csv"),
    ("text-score.csv --gini 0.5", FAILED, "row 1: a score must be a finite number"),
    ("nan-score.csv --gini 0.5", FAILED, "row 1: a score must be a finite number"),
    ("infinite.csv --gini 0.5", FAILED, "row 1: a score must be a finite number"),
    ("twice.csv --gini 0.5", FAILED, "user 1 has item 'a' twice"),
    ("no-id.csv --gini 0.5", FAILED, "row 1: an id must not be empty"),
    ("empty.csv --gini 0.5", FAILED, "the file is empty"),
    ("no-rows.csv --gini 0.5", FAILED, "no rows in"),
    ("good.csv --gini 0.5 --catalogue few-items.csv", FAILED, "not in the catalogue: 6 items"),
    ("good.csv --gini 0.5 -k 9", FAILED, "k is larger than the candidates of any user: 9"),
    ("good.csv --gini 0.5 -k 0", WRONG_USE, "k must be at least 1: 0"),
    ("good.csv", WRONG_USE, "give one target, not 0"),
    ("good.csv --gini 0.5 --min-coverage 50%", WRONG_USE, "give one target, not 2"),
    ("good.csv --gini 1.5 -k 3", WRONG_USE, "gini must be from 0 to 1: 1.5"),
    ("good.csv --max-relevance-loss two", WRONG_USE, "--max-relevance-loss must be a share: 'two'"),
    ("good.csv --gini 0.5 --method magic", WRONG_USE, "method is not a known choice: 'magic'"),
    ("good.csv --gini 0.5 --relevance rank", WRONG_USE, "is not a known choice: 'rank'"),
    ("good.csv --gini 0.5 --memory 0", WRONG_USE, "--memory must be from 0.001 GiB up: 0"),
    ("good.csv --gini 0.5 -k 3 --history strange.csv", FAILED, "no pair of the history"),
    ("good.csv --gini 0.5 -k 3 --held-out strange.csv", FAILED, "no pair of the held-out pairs"),
    # Groups are looked at before a search that may take long, and here would fail.
    ("good.csv --gini 0.01 -k 3 --groups items.csv", FAILED, "column not found in items.csv: 'gro"),
    ("good.csv --group-cap 60%", WRONG_USE, "--group-cap needs groups, and none were given"),
    ("good.csv --groups groups.csv --group-cap 60% --gini 0.5", WRONG_USE, "one target, not 2"),
    ("good.csv --groups groups.csv --group-cap much", WRONG_USE, "--group-cap must be a share"),
    ("good.csv --groups groups.csv --group-cap 40% -k 3", WRONG_USE, "caps of 2 groups add up to"),
    ("good.csv --groups groups.csv --group-floor 60% -k 3", WRONG_USE, "floors of 2 groups add"),
    (
        "good.csv --groups groups.csv --group-shares fair",
        FAILED,
        "no such file or folder: fair",
    ),
    ("good.csv --groups groups.csv --group-shares seen.csv", FAILED, "column not found in seen"),
    (
        "good.csv --groups groups.csv --group-shares other-shares.csv -k 3",
        WRONG_USE,
        "no target for",
    ),
    ("good.csv --groups strange-groups.csv --group-cap 60% -k 3", FAILED, "no item of"),
    ("good.csv --gini 0.01 -k 3 --catalogue items.csv", FAILED, "out of reach: a Gini index of"),
    ("good.csv --gini 0.5 -k 3 --of missing.csv", FAILED, "no such file or folder: missing.csv"),
    ("good.csv --gini 0.5 -k 3 --of strange-groups.csv", FAILED, "no item of"),
    ("good.csv --gini 0.5 -k 3 --of items.csv", FAILED, "column not found in items.csv: 'group'"),
    ("good.csv --min-mmf 30% -k 3", WRONG_USE, "an MMF needs groups of items, and none were given"),
    (
        "good.csv --min-mmf 60% -k 3 --of groups.csv",
        FAILED,
        "with equal exposure, 2 groups have 0.500",
    ),
    ("good.csv --of groups.csv", WRONG_USE, "give one target, not 0"),
    (
        "good.csv --of groups.csv --groups groups.csv --group-cap 60%",
        WRONG_USE,
        "give one target, not 2: --group-cap, evenness of groups",
    ),
]


@pytest.mark.parametrize("output", ["lists", "lists.csv"])
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_a_wrong_file_gets_one_sentence_and_leaves_nothing(
    limelight: Run,
    candidate_tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, int, str],
    output: str,
) -> None:
    arguments, code, message = case
    monkeypatch.chdir(candidate_tables)
    ended = limelight("rerank", *arguments.split(), "-o", tmp_path / output)
    assert ended.code == code, ended.err
    assert ended.out == ""
    first, blank, hint = ended.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert blank == ""
    assert hint.startswith("hint: ")
    assert list(tmp_path.iterdir()) == []


def test_shares_of_groups_are_set(limelight: Run, candidate_tables: Path, tmp_path: Path) -> None:
    options = [
        "--groups",
        candidate_tables / "groups.csv",
        "-k",
        3,
        "--relevance",
        "score",
        "--json",
    ]
    shares = ["--group-shares", candidate_tables / "shares.csv"]
    for target in (["--group-cap", "60%"], ["--group-floor", "40%"], shares):
        out = tmp_path / "lists.csv"
        ended = limelight("rerank", candidate_tables / "varied.csv", *target, *options, "-o", out)
        assert ended.code == 0, ended.err
        record = json.loads(ended.out)
        found = {group["id"]: group for group in record["groups"]}
        assert set(found) == {"x", "y"}
        assert found["x"]["before"] > 0.8
        assert found["x"]["after"] == pytest.approx(0.6, abs=0.01)
        assert record["method"] == "group prices"
        command = ("rerank", candidate_tables / "varied.csv", *target, *options[:-1], "-o", out)
        first, cost, *_ = limelight(*command).out.splitlines()
        assert cost.startswith("It costs ")
        assert {
            "--group-cap": "largest share of a group falls from",
            "--group-floor": "smallest",
        }.get(target[0], "distance of a group from what was asked falls from") in first
    assert record["target"] == {"group_shares": {"x": 60.0, "y": 40.0}}
    assert found["x"]["at_least"] == found["x"]["at_most"] == pytest.approx(0.6)
    assert "Target shares add up to 100 and were scaled to 1." in record["notes"]


def test_providers_share_exposure(limelight: Run, candidate_tables: Path, tmp_path: Path) -> None:
    groups, out = candidate_tables / "groups.csv", tmp_path / "lists.csv"
    options = ["--of", groups, "-k", 3, "--relevance", "score", "-o", out]
    source = candidate_tables / "varied.csv"
    ended = limelight("rerank", source, "--gini", 0.1, *options, "--json")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    assert record["group_gini@3_before"] > 0.3
    assert record["group_gini@3"] == pytest.approx(0.1, abs=0.01)
    assert record["target"] == {"gini": 0.1, "of": "2 groups"}
    assert {group["id"] for group in record["groups"]} == {"x", "y"}
    ended = limelight("rerank", source, "--min-mmf", "45%", *options)
    assert ended.code == 0, ended.err
    assert "Gini of 2 groups" in ended.out
    assert "Gini within groups" in ended.out


def test_shares_of_groups_are_shown(limelight: Run, candidate_tables: Path, tmp_path: Path) -> None:
    options = ["--groups", candidate_tables / "groups.csv", "--group-shares", "equal", "-k", 3]
    ended = limelight(
        "rerank", candidate_tables / "good.csv", *options, "-o", tmp_path / "lists.csv"
    )
    assert ended.code == 0, ended.err
    assert "group prices at strength" in ended.out
    assert "\ny   " in ended.out
    assert "%\nx   " in ended.out


def test_everything_at_once_is_explained(
    limelight: Run, candidate_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(candidate_tables)
    arguments = (
        "good.csv --max-relevance-loss 5% -k 3 --explain --groups groups.csv --history seen.csv "
        "--held-out liked.csv --catalogue items.csv --memory 0.01"
    )
    ended = limelight("rerank", *arguments.split(), "-o", tmp_path / "lists.csv")
    assert ended.code == 0, ended.err
    for words in (
        "best-response",
        "gained most",
        "lost most",
        "of a user's own list stays",
        "share before",
        "x  ",
    ):
        assert words in ended.out
    rows = (tmp_path / "lists.csv").read_text().splitlines()[1:]
    shown = {tuple(row.replace('"', "").split(",")[:2]) for row in rows}
    assert not shown & {("0", "a"), ("1", "a"), ("2", "b")}


def test_an_old_output_stays_when_it_fails(
    limelight: Run, candidate_tables: Path, tmp_path: Path
) -> None:
    out = tmp_path / "lists.csv"
    out.write_text("old")
    ended = limelight("rerank", candidate_tables / "twice.csv", "--gini", 0.5, "-o", out)
    assert ended.code == FAILED
    assert out.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["lists.csv"]


def test_a_model_is_re_ranked(limelight: Run, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "lists.parquet"
    ended = limelight("rerank", files / "model", "--gini", 0.3, "-k", 5, "--json", "-o", out)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["gini@5"] == pytest.approx(0.3, abs=0.01)
    shown = pq.read_table(out)
    assert set(shown["user_id"].to_pylist()[:1][0]) & set("u")
    audited = limelight("audit", out, "--catalogue", files / "model" / "items.parquet", "--json")
    assert json.loads(audited.out)["gini@5"] == pytest.approx(json.loads(ended.out)["gini@5"])
    ended = limelight(
        "rerank", files / "model", "--gini", 0.3, "--catalogue", folder_of(files), "-o", out
    )
    assert ended.code == WRONG_USE
    assert "a model has its own catalogue" in ended.err


def folder_of(files: Path) -> Path:
    return files / "model" / "items.parquet"


def test_an_unknown_kind_of_output_is_refused_before_the_work(
    limelight: Run, candidate_tables: Path, tmp_path: Path
) -> None:
    ended = limelight(
        "rerank", candidate_tables / "good.csv", "--gini", 0.5, "-o", tmp_path / "lists.xlsx"
    )
    assert ended.code == FAILED
    assert "unknown kind of file" in ended.err


def test_what_is_read_is_not_written_over(limelight: Run, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(CANDIDATES["good.csv"])
    (tmp_path / "liked.csv").write_text(CANDIDATES["liked.csv"])
    for output in ("own.csv", "liked.csv"):
        arguments = ["--gini", 0.2, "-k", 3, "--held-out", tmp_path / "liked.csv"]
        ended = limelight("rerank", tmp_path / "own.csv", *arguments, "-o", tmp_path / output)
        assert ended.code == WRONG_USE
        assert "the output is also an input" in ended.err
    assert (tmp_path / "own.csv").read_text() == CANDIDATES["good.csv"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    ended = limelight("rerank", tmp_path / "own.csv", "--gini", 0.2, "-o", tmp_path / "mine")
    assert ended.code == FAILED
    assert "will not replace what limelight did not write" in ended.err
