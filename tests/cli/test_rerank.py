"""Re-ranking on files: targets on the command line, and what happens to wrong files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended

    Run = Callable[..., Ended]

FAILED, WRONG_USE = 1, 2
HEAD = "user_id,item_id,score\n"
GOOD = HEAD + "".join(
    f"{user},{'abcdefgh'[item]},{1 / (1 + item) + 0.01 * ((user * item) % 3)}\n"
    for user in range(40)
    for item in range(8)
)
VARIED = HEAD + "".join(
    f"{user},{'abcdefgh'[item]},{0.6 * (item < 4) + (user * (7 * item + 3) % 101) / 101}\n"
    for user in range(101)
    for item in range(8)
)
FILES = {
    "good.csv": GOOD,
    "varied.csv": VARIED,
    "items.csv": "item_id\n" + "\n".join("abcdefghij") + "\n",
    "few-items.csv": "item_id\na\nb\n",
    "groups.csv": "item_id,group\n" + "".join(f"{j},{'xy'[j > 'd']}\n" for j in "abcdefgh"),
    "strange-groups.csv": "item_id,group\nzzz,x\n",
    "shares.csv": "group,share\nx,60\ny,40\n",
    "other-shares.csv": "group,share\nx,0.6\nq,0.4\n",
    "seen.csv": "user_id,item_id\n0,a\n1,a\n2,b\n",
    "liked.csv": "user_id,item_id\n" + "".join(f"{u},{'ab'[u % 2]}\n" for u in range(40)),
    "strange.csv": "user_id,item_id\n990,zzz\n",
    "no-score.csv": "user_id,item_id\n1,a\n",
    "no-item.csv": "user_id,score\n1,0.5\n",
    "text-score.csv": HEAD + "1,a,high\n",
    "nan-score.csv": HEAD + "1,a,nan\n",
    "infinite.csv": HEAD + "1,a,inf\n",
    "twice.csv": HEAD + "1,a,0.5\n1,a,0.4\n",
    "no-id.csv": HEAD + "1,,0.5\n",
    "empty.csv": "",
    "no-rows.csv": HEAD,
}
REFUSED = [
    ("missing.csv --gini 0.5", FAILED, "no such file or folder"),
    ("no-score.csv --gini 0.5", FAILED, "column not found in no-score.csv: 'score'"),
    ("no-item.csv --gini 0.5", FAILED, "no user and item columns in no-item.csv"),
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
    ("good.csv --gini 0.5 -k 3 --groups items.csv", FAILED, "column not found in items.csv: 'gro"),
    ("good.csv --group-cap 60%", WRONG_USE, "--group-cap needs groups, and none were given"),
    ("good.csv --groups groups.csv --group-cap 60% --gini 0.5", WRONG_USE, "one target, not 2"),
    ("good.csv --groups groups.csv --group-cap much", WRONG_USE, "--group-cap must be a share"),
    ("good.csv --groups groups.csv --group-cap 40% -k 3", WRONG_USE, "caps of 2 groups add up to"),
    ("good.csv --groups groups.csv --group-floor 60% -k 3", WRONG_USE, "floors of 2 groups add"),
    ("good.csv --groups groups.csv --group-shares fair", FAILED, "no such file or folder: fair"),
    ("good.csv --groups groups.csv --group-shares seen.csv", FAILED, "column not found in seen"),
    (
        "good.csv --groups groups.csv --group-shares other-shares.csv -k 3",
        WRONG_USE,
        "no target for",
    ),
    ("good.csv --groups strange-groups.csv --group-cap 60% -k 3", FAILED, "no item of"),
    ("good.csv --gini 0.01 -k 3 --catalogue items.csv", FAILED, "out of reach: a Gini index of"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad tables; tests only read from it."""
    path = tmp_path_factory.mktemp("rerank")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize("output", ["lists", "lists.csv"])
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_a_wrong_file_gets_one_sentence_and_leaves_nothing(
    limelight: Run,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, int, str],
    output: str,
) -> None:
    arguments, code, message = case
    monkeypatch.chdir(folder)
    ended = limelight("rerank", *arguments.split(), "-o", tmp_path / output)
    assert ended.code == code, ended.err
    assert ended.out == ""
    first, blank, hint = ended.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert blank == ""
    assert hint.startswith("hint: ")
    assert list(tmp_path.iterdir()) == []


def run(*words: object, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limelight", "rerank", *map(str, words)]
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_target_is_met_in_a_process(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "lists"
    options = ["-k", 3, "--seed", 1, "--threads", 1]
    ended = run(folder / "good.csv", "--gini", 0.2, *options, "--json", "-o", out)
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert record["gini@3"] == pytest.approx(0.2, abs=0.01)
    assert record["target"] == {"gini": 0.2}
    assert record["gini@3_before"] > record["gini@3"]
    table = pq.read_table(out)
    assert table.column_names == ["user_id", "item_id", "rank", "score"]
    assert table.num_rows == 120
    assert [file.name for file in out.iterdir()] == ["part-00000.parquet"]


def test_shares_of_groups_are_set_in_a_process(folder: Path, tmp_path: Path) -> None:
    options = ["--groups", folder / "groups.csv", "-k", 3, "--relevance", "score", "--json"]
    shares = ["--group-shares", folder / "shares.csv"]
    for target in (["--group-cap", "60%"], ["--group-floor", "40%"], shares):
        out = tmp_path / "lists.csv"
        ended = run(folder / "varied.csv", *target, *options, "-o", out)
        assert ended.returncode == 0, ended.stderr
        record = json.loads(ended.stdout)
        found = {group["id"]: group for group in record["groups"]}
        assert set(found) == {"x", "y"}
        assert found["x"]["before"] > 0.8
        assert found["x"]["after"] == pytest.approx(0.6, abs=0.01)
        assert record["method"] == "group prices"
    assert record["target"] == {"group_shares": {"x": 60.0, "y": 40.0}}
    assert found["x"]["at_least"] == found["x"]["at_most"] == pytest.approx(0.6)
    assert "Target shares add up to 100 and were scaled to 1." in record["notes"]


def test_shares_of_groups_are_shown(limelight: Run, folder: Path, tmp_path: Path) -> None:
    options = ["--groups", folder / "groups.csv", "--group-shares", "equal", "-k", 3]
    ended = limelight("rerank", folder / "good.csv", *options, "-o", tmp_path / "lists.csv")
    assert ended.code == 0, ended.err
    assert "group prices at strength" in ended.err
    assert "\ny   " in ended.err
    assert "%\nx   " in ended.err


def test_everything_at_once_is_explained(
    limelight: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    arguments = (
        "good.csv --max-relevance-loss 5% -k 3 --explain --groups groups.csv --history seen.csv "
        "--held-out liked.csv --catalogue items.csv --memory 0.01"
    )
    ended = limelight("rerank", *arguments.split(), "-o", tmp_path / "lists.csv")
    assert ended.code == 0, ended.err
    for words in ("best-response", "gained most", "lost most", "The average user keeps", "x  "):
        assert words in ended.err
    rows = (tmp_path / "lists.csv").read_text().splitlines()[1:]
    shown = {tuple(row.replace('"', "").split(",")[:2]) for row in rows}
    assert not shown & {("0", "a"), ("1", "a"), ("2", "b")}


def test_an_old_output_stays_when_it_fails(limelight: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "lists.csv"
    out.write_text("old")
    ended = limelight("rerank", folder / "twice.csv", "--gini", 0.5, "-o", out)
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
    limelight: Run, folder: Path, tmp_path: Path
) -> None:
    ended = limelight("rerank", folder / "good.csv", "--gini", 0.5, "-o", tmp_path / "lists.xlsx")
    assert ended.code == FAILED
    assert "unknown kind of file" in ended.err


def test_what_is_read_is_not_written_over(limelight: Run, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(GOOD)
    (tmp_path / "liked.csv").write_text(FILES["liked.csv"])
    for output in ("own.csv", "liked.csv"):
        arguments = ["--gini", 0.2, "-k", 3, "--held-out", tmp_path / "liked.csv"]
        ended = limelight("rerank", tmp_path / "own.csv", *arguments, "-o", tmp_path / output)
        assert ended.code == WRONG_USE
        assert "the output is also an input" in ended.err
    assert (tmp_path / "own.csv").read_text() == GOOD
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    ended = limelight("rerank", tmp_path / "own.csv", "--gini", 0.2, "-o", tmp_path / "mine")
    assert ended.code == FAILED
    assert "will not replace what limelight did not write" in ended.err
