"""EASE on the command line: fitted, tuned, traced and served; memory is said and refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import limelight as ll

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.support.commands import Run


def test_fitted_saved_and_served(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    flags = ("--model", "ease", "--regularization", "30", "--exposure-strength", "0.2")
    ended = limelight("fit", files / "ratings.csv", *flags, "-o", model)
    assert ended.code == 0
    assert ll.load(model).config.regularization == 30
    ended = limelight("recommend", model, "-k", "5", "-o", tmp_path / "lists.parquet")
    assert ended.code == 0


def test_auto_is_a_number_that_follows_from_the_data(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    flags = ("--model", "ease", "--regularization", "auto", "-o", tmp_path / "model")
    ended = limelight("fit", files / "split", *flags)
    assert ended.code == 0
    chosen = ll.load(tmp_path / "model").model.chosen_["regularization"]
    assert f"chosen from the data: regularization {chosen:.4g}; --tune" in ended.err
    ended = limelight("fit", files / "split", "--model", "ease", "--regularization", "0", "-o", "x")
    assert ended.code == 2
    assert "regularization must be a finite number above 0: 0" in ended.err


def test_weights_count(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    flags = ("--model", "ease", "--weight", "rating", "-o", model)
    assert limelight("fit", files / "ratings.csv", *flags).code == 0
    assert ll.load(model).learned.weighted
    lists = tmp_path / "lists.parquet"
    assert limelight("recommend", model, "-k", "5", "-o", lists).code == 0


def test_tuned(limelight: Run, files: Path, tmp_path: Path) -> None:
    tuning = ("--model", "ease", "--trials", "3")
    ended = limelight("tune", files / "split", *tuning, "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert (found["model"], len(found["trials"])) == ("EASE", 3)
    ended = limelight("fit", files / "split", *tuning, "--tune", "-o", tmp_path / "model")
    assert ended.code == 0
    assert ll.load(tmp_path / "model").config.regularization == found["settings"]["regularization"]


def test_a_front_is_traced(limelight: Run, files: Path, tmp_path: Path) -> None:
    flags = ("--points", "3", "--at", "5", "--seed", "4", "--model", "ease")
    ended = limelight(
        "frontier", files / "split", *flags, "--regularization", "auto", "-o", tmp_path / "front",
        "--json",
    )  # fmt: skip
    assert ended.code == 0
    methods = [point["method"] for point in json.loads(ended.out)["points"]]
    assert methods == ["ease"] * 3 + ["best-response"] * 3
    assert ll.load(tmp_path / "front" / "models" / "plain").config.regularization == "auto"
    ended = limelight("frontier", files / "split", *flags, "--factors", "8")
    assert ended.code == 2
    assert "ease has no such setting: --factors" in ended.err


def test_it_does_not_grow(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    limelight("fit", files / "split", "--model", "ease", "-o", model)
    ended = limelight("fit", files / "ratings.csv", "--from", model, "-o", tmp_path / "new")
    assert ended.code == 2
    assert "EASE cannot take in new interactions alone" in ended.err
    assert "hint: fit it again, to all interactions: that is one inversion" in ended.err


def test_it_cannot_answer_its_users_without_histories(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    model, lists = tmp_path / "model", tmp_path / "lists.parquet"
    limelight("fit", files / "ratings.csv", "--model", "ease", "--no-history", "-o", model)
    for more in ((), ("--keep-seen",)):
        ended = limelight("recommend", model, "-k", "5", "-o", lists, *more)
        assert ended.code == 1
        assert (
            "the model was saved without histories, which it needs to serve its own users"
            in ended.err
        )
        assert "give the histories with --history" in ended.err


def test_a_fit_that_is_too_large_is_refused(
    limelight: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.solve.ease.inverse_bytes", lambda *_: 1 << 50)
    ended = limelight("fit", files / "ratings.csv", "--model", "ease", "-o", tmp_path / "model")
    assert ended.code == 1
    assert "the fit takes about 104857" in ended.err
    assert "--min-item" in ended.err
