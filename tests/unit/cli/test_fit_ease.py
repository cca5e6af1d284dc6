"""`limelight fit --model ease`: memory is said and refused, lists come from the folder."""

from __future__ import annotations

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


def test_it_cannot_answer_its_users_without_histories(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    model, lists = tmp_path / "model", tmp_path / "lists.parquet"
    limelight("fit", files / "ratings.csv", "--model", "ease", "--no-history", "-o", model)
    for more in ((), ("--keep-seen",)):
        ended = limelight("recommend", model, "-k", "5", "-o", lists, *more)
        assert ended.code == 1
        assert "the model was saved without histories, which it answers its users from" in ended.err
        assert "give the histories with --history" in ended.err


def test_a_fit_that_is_too_large_is_refused(
    limelight: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.solve.ease.inverse_bytes", lambda *_: 1 << 50)
    ended = limelight("fit", files / "ratings.csv", "--model", "ease", "-o", tmp_path / "model")
    assert ended.code == 1
    assert "the fit takes about 1048576" in ended.err
    assert "--min-item" in ended.err
