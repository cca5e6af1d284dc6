"""Tuning on the command line: what is refused before anything is read, and how a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

GIVEN = ("--factors", "8", "--regularization", "0.1", "--unobserved-weight", "0.2")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--trials", "0"), "trials must be at least 1: 0"),
        (("--at", "0"), "at must be at least 1: 0"),
        (("--budget", "0"), "--budget must be a positive duration: '0'"),
        (("--budget", "5m", "--trials", "3"), "by time or by trials, not by both"),
        (("--model", "popularity"), "Popularity has no setting to tune"),
        ((*GIVEN, "--regularization-exponent", "0.5"), "ExADMM has no setting to tune"),
    ],
)
def test_wrong_flags_are_refused_before_the_data_are_read(
    limelight: Run, flags: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    ended = limelight("tune", tmp_path / "missing.parquet", *flags)
    assert ended.code == 2
    assert words in ended.err
    if "--at" in flags:
        return  # of `fit` it speaks of a target
    model = tmp_path / "model"
    ended = limelight("fit", tmp_path / "missing.parquet", "--tune", *flags, "-o", model)
    assert ended.code == 2
    assert words in ended.err
