"""What a user sees who made a mistake: a sentence, a way out, an exit code, no traceback."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from limelight.models import ExADMM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Ended, Run

FAILED, WRONG_USE = 1, 2
HEAD = "userId,movieId,rating\n"

TABLES = {
    "empty.csv": "",
    "no-rows.csv": HEAD,
    "other-columns.csv": "who,what\n1,2\n",
    "nan.csv": HEAD + "1,2,NaN\n",
    "negative.csv": HEAD + "1,2,-3\n",
    "no-id.csv": HEAD + "1,,3\n",
    "ragged.csv": HEAD + "1,2,3\n1,2\n",
    "garbage.parquet": "this is not Parquet\n",
    "ratings.xlsx": "1\n",
    "low.csv": HEAD + "1,2,1\n",
    "good.csv": HEAD + "1,2,3\n",
}
READING = [
    ("missing.csv", "", FAILED, "no such file or folder: ", "relative paths start from"),
    ("ratings.xlsx", "", FAILED, "unknown kind of file: ", "the known endings are .parquet"),
    ("empty.csv", "", FAILED, "the file is empty: ", "write it again"),
    ("no-rows.csv", "", FAILED, "no rows in ", "the first line is the header"),
    ("other-columns.csv", "", FAILED, "no user and item columns", "--user '...' and --item '...'"),
    ("good.csv", "--item movie", FAILED, "column not found", "did you mean 'movieId'?"),
    ("nan.csv", "--rating rating", FAILED, "rating", "hint: "),
    ("negative.csv", "--rating rating", FAILED, "-3", "hint: "),
    ("no-id.csv", "", FAILED, "movieId", "hint: "),
    ("ragged.csv", "", FAILED, "cannot read ", "check that it is whole"),
    ("garbage.parquet", "", FAILED, "cannot read ", "check that it is whole"),
    ("good.csv", "--min-rating 4", WRONG_USE, "--min-rating needs a rating", "--rating '...'"),
    ("low.csv", "--rating rating --min-rating 4", FAILED, "no row is rated high", "--min-rating"),
    ("good.csv", "--min-user 2", FAILED, "no interaction is left of 1", "lower --min-user"),
    ("good.csv", "--core 2 --min-item 1", WRONG_USE, "core excludes", "not both"),
    ("good.csv", "--core 0", WRONG_USE, "core must be a whole number from 1 up: 0", "leave it out"),
    ("good.csv", "--filter-order x", WRONG_USE, "unknown --filter-order: 'x'", "together"),
    ("good.csv", "--user movieId --item movieId", WRONG_USE, "the same column", "--item '...'"),
]


def assert_refused(ended: Ended, code: int, message: str, hint: str) -> None:
    assert ended.code == code, ended.err
    assert ended.out == ""
    first, blank, second = ended.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert blank == ""
    assert second.startswith("hint: ")
    assert hint in ended.err


@pytest.mark.parametrize("case", READING, ids=str)
def test_a_table_that_cannot_be_read(
    limelight: Run, tmp_path: Path, case: tuple[str, str, int, str, str]
) -> None:
    name, flags, *refusal = case
    for file, text in TABLES.items():
        (tmp_path / file).write_text(text)
    assert_refused(limelight("data", "describe", tmp_path / name, *flags.split()), *refusal)


def test_a_folder_of_mixed_parts(limelight: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLES["good.csv"])
    (tmp_path / "b.parquet").write_text("")
    ended = limelight("data", "describe", tmp_path)
    assert_refused(ended, FAILED, "the folder mixes kinds of files", "of one kind")


@pytest.mark.parametrize(
    "case",
    [
        ("--test 300", WRONG_USE, "cannot hold out 20 + 300 of 200 users", "lower"),
        ("--test -1", WRONG_USE, "a count from 0 up or a share", "for example 500 or 0.1"),
        ("--test 1.5", WRONG_USE, "a count from 0 up or a share", "for example 500 or 0.1"),
        ("--seed -1", WRONG_USE, "seed must be ", "98765"),
    ],
)
def test_a_split_that_cannot_be(
    limelight: Run, files: Path, tmp_path: Path, case: tuple[str, int, str, str]
) -> None:
    flags, *refusal = case
    output = tmp_path / "split"
    command = ["data", "split", files / "ratings.csv", "--validation", "20", "-o", output]
    assert_refused(limelight(*command, *flags.split()), *refusal)
    assert not output.exists()


def test_a_split_will_not_replace_other_folders(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("dear")
    ended = limelight("data", "split", files / "ratings.csv", "-o", tmp_path)
    assert_refused(ended, FAILED, "will not ", "choose a new folder")
    assert (tmp_path / "thesis.tex").read_text() == "dear"


@pytest.mark.parametrize(
    "case",
    [
        ("--factors 0", WRONG_USE, "factors must be at least 1: 0", "an integer of at least 1"),
        ("--exposure-weight nan", WRONG_USE, "--exposure-weight must be a finite number", "0 or"),
        ("--regularization -1", WRONG_USE, "regularization must be a finite number", "0 or more"),
        ("--penalty much", WRONG_USE, "penalty must be a number: 'much'", "finite number"),
        ("--fold-in alone", WRONG_USE, "--fold-in is not a known choice: 'alone'", "price, joint"),
        ("--threads -1", WRONG_USE, "--threads must be at least 0: -1", "at least 0"),
        ("--seed -1", WRONG_USE, "--seed must be at least 0: -1", "at least 0"),
        (
            "--model ials --exposure-weight 1",
            WRONG_USE,
            "ials has no such setting: --exposure-weight",
            "--model exadmm",
        ),
        ("--min-user 3", WRONG_USE, "already filtered, it does not take: --min-user", "data split"),
        (
            "--learning-rate 1000 --factors 4",
            FAILED,
            "the fit diverged",
            '--learning-rate "auto"',
        ),
    ],
)
def test_a_fit_that_cannot_be(
    limelight: Run, files: Path, tmp_path: Path, case: tuple[str, int, str, str]
) -> None:
    flags, *refusal = case
    output = tmp_path / "model"
    ended = limelight("fit", files / "split", "-o", output, *flags.split())
    assert_refused(ended, *refusal)
    assert not output.exists()


def test_a_fit_will_not_replace_other_folders(limelight: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear")
    ended = limelight("fit", files / "split", "-o", tmp_path)
    assert_refused(ended, FAILED, "will not overwrite what is not a model", "choose a new folder")
    ended = limelight("fit", files / "split", "-o", tmp_path / "thesis.tex")
    assert_refused(ended, FAILED, "will not overwrite what is not a model", "choose a new folder")
    assert (tmp_path / "thesis.tex").read_text() == "dear"


def test_a_place_that_cannot_be_written_to(limelight: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "lists.csv"
    ended = limelight("recommend", files / "model", "-o", output)
    assert_refused(ended, FAILED, "cannot write ", "is a file, not a folder")


@pytest.mark.parametrize(
    "case",
    [
        ("-k 0", WRONG_USE, "k must be at least 1: 0", "length of the lists"),
        ("--user-id nobody", FAILED, "not in the training data: 'nobody'", "--history FILE"),
        ("--user-id u1 --history x.csv", WRONG_USE, "exclude each other", "unseen users"),
        ("--history missing.csv", FAILED, "no such file or folder", "relative paths"),
        ("--min-user 2", WRONG_USE, "without --history", "--history FILE"),
        ("--json", WRONG_USE, "--json needs -o", "-o lists.parquet"),
        ("-o lists.xlsx", FAILED, "unknown kind of file: 'lists.xlsx'", ".parquet, .csv or .tsv"),
        ("--threads -2", WRONG_USE, "--threads must be at least 0", "at least 0"),
    ],
)
def test_lists_that_cannot_be(limelight: Run, files: Path, case: tuple[str, int, str, str]) -> None:
    flags, *refusal = case
    assert_refused(limelight("recommend", files / "model", *flags.split()), *refusal)


def test_a_history_of_strange_items(limelight: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("user_id,item_id\n1,a\n1,b\n")
    ended = limelight("recommend", files / "model", "--history", tmp_path / "new.csv")
    assert_refused(ended, FAILED, "the model knows no item of the history", "ids such as")


def test_a_model_without_histories(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(files / "model", model)
    (model / "seen.safetensors").unlink()
    ended = limelight("recommend", model)
    assert_refused(ended, FAILED, "saved without histories", "--keep-seen")


def test_no_model(limelight: Run, files: Path, tmp_path: Path) -> None:
    ended = limelight("recommend", tmp_path / "model")
    assert_refused(ended, FAILED, "model folder not found", "`limelight fit` wrote")
    ended = limelight("recommend", tmp_path / "model", "--history", files / "ratings.csv")
    assert_refused(ended, FAILED, "model folder not found", "`limelight fit` wrote")
    assert "reading takes" not in ended.err
    ended = limelight("recommend", files / "split")
    assert_refused(ended, FAILED, "not a model folder", "`limelight fit` wrote")


def test_a_damaged_model(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(files / "model", model)
    (model / "factors.safetensors").write_bytes(b"torn")
    ended = limelight("recommend", model)
    assert_refused(ended, FAILED, "factors.safetensors", "hint: ")
    (model / "factors.safetensors").unlink()
    ended = limelight("evaluate", model, files / "split")
    assert_refused(ended, FAILED, "lacks 'factors.safetensors'", "save the model again")


def test_a_model_from_the_future(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(files / "model", model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"schema_version": 99}))
    assert_refused(limelight("recommend", model), FAILED, "has schema 99", "upgrade limelight")


def test_an_evaluation_that_cannot_be(limelight: Run, files: Path, tmp_path: Path) -> None:
    ended = limelight("evaluate", files / "model", files / "model")
    assert_refused(ended, FAILED, "not a split folder", "limelight data split")
    ended = limelight("evaluate", files / "model", files / "split", "-k", 0)
    assert_refused(ended, WRONG_USE, "k must be a whole number of at least 1", "-k 20")
    other = tmp_path / "split"
    flags = ["--min-item", 20, "--test", 0]
    limelight("data", "split", files / "ratings.csv", *flags, "-o", other)
    limelight("fit", other, "--factors", 2, "--epochs", 1, "-o", tmp_path / "fewer")
    ended = limelight("evaluate", tmp_path / "fewer", files / "split")
    assert_refused(ended, FAILED, "the model does not know", "that it was trained on")
    ended = limelight("evaluate", files / "model", other)
    assert_refused(ended, FAILED, "the split has no test users", "--test above 0")


def test_an_evaluation_without_targets(limelight: Run, tmp_path: Path) -> None:
    rows = "".join(f"{user},{item}\n" for user in range(20) for item in range(3))
    (tmp_path / "few.csv").write_text(f"user_id,item_id\n{rows}")
    split, model = tmp_path / "split", tmp_path / "model"
    limelight("data", "split", tmp_path / "few.csv", "-o", split)
    limelight("fit", split, "--factors", 2, "--epochs", 1, "-o", model)
    ended = limelight("evaluate", model, split)
    assert_refused(ended, FAILED, "the 2 test users have no targets", "hold out more users")


@pytest.mark.parametrize(
    "case",
    [
        (None, "", FAILED, "no such file or folder", "relative paths"),
        ("user_id,item_id\n1,2\n", "", FAILED, "neither 'rank' nor 'score'", "hint: "),
        ("user_id,items,rank\n1,2,1\n", "", FAILED, "column not found", "did you mean 'items'?"),
        ("user_id,item_id,rank\n1,2,1\n1,2,2\n", "", FAILED, "twice", "keep its best rank"),
        ("user_id,item_id,rank\n1,2,1\n1,3,1\n", "", FAILED, "rank 1 twice", "its own rank"),
        ("user_id,item_id,rank\n1,2,0\n", "", FAILED, "row 1: a rank must be", "hint: "),
        ("user_id,item_id,rank\n1,2,1\n", "-k 0", WRONG_USE, "k must be a whole", "-k 20"),
        ("user_id,item_id,rank\n1,2,1\n", "--top -1", WRONG_USE, "top must be 0 or", "such as 10"),
        ("user_id,item_id,rank\n1,99,1\n", "--catalogue", FAILED, "not in the cat", "every item"),
    ],
)
def test_lists_that_cannot_be_audited(
    limelight: Run, files: Path, tmp_path: Path, case: tuple[str | None, str, int, str, str]
) -> None:
    lists, flags, *refusal = case
    if lists is not None:
        (tmp_path / "lists.csv").write_text(lists)
    given: list[object] = [*flags.split()]
    if flags == "--catalogue":
        given.append(files / "model" / "items.parquet")
    assert_refused(limelight("audit", tmp_path / "lists.csv", *given), *refusal)


def test_a_conversion_to_an_unknown_kind(limelight: Run, files: Path, tmp_path: Path) -> None:
    ended = limelight("data", "convert", files / "ratings.csv", "-o", tmp_path / "out.xlsx")
    assert_refused(ended, FAILED, "unknown kind of file", ".parquet, .csv or .tsv")


def test_a_marketplace_that_cannot_be(limelight: Run, tmp_path: Path) -> None:
    ended = limelight("demo", "-o", tmp_path / "run", "--interactions", 10)
    assert_refused(ended, WRONG_USE, "--interactions must ", "sizes that fit each other")
    assert not (tmp_path / "run").exists()
    (tmp_path / "file").write_text("")
    sizes = ["--users", 300, "--items", 100, "--interactions", 4000]
    ended = limelight("demo", "-o", tmp_path / "file", *sizes)
    assert_refused(ended, FAILED, "not a folder: ", "name a folder with -o")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fly", "No such command 'fly'"),
        ("fit data.csv", "Missing option '-o'"),
        ("fit", "Missing argument 'DATA'"),
        ("fit data.csv -o m --ginny 0.6", "No such option: --ginny"),
        ("fit data.csv -o m --model magic", "'magic'"),
        ("fit data.csv -o m --factors many", "--factors must be an integer: 'many'"),
        ("data split data.csv -o s --test few", "not a number: 'few'"),
        ("evaluate m s --part train", "'train'"),
    ],
)
def test_wrong_use(limelight: Run, command: str, message: str) -> None:
    ended = limelight(*command.split())
    assert ended.code == WRONG_USE
    assert ended.out == ""
    assert message in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "error: there is not enough memory"),
        (OSError(28, "No space left on device"), "error: No space left on device"),
        (OSError(13, "", "secret"), "error: Permission denied: 'secret'"),
        (OSError("odd"), "error: odd"),
    ],
)
def test_what_the_system_refuses(
    limelight: Run,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    message: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ExADMM, "fit", fail)
    ended = limelight("fit", files / "split", "-o", tmp_path / "model")
    assert ended.code == FAILED
    assert ended.err.startswith(message)
    assert not list(tmp_path.iterdir())
