"""Tuning on the command line: what is refused before anything is read, and how a run goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import limelight as ll
from limelight.control.tuning import search
from limelight.store.arrays import load_arrays

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

FACTORS = "factors.safetensors"
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


@dataclass
class Stops:
    at: int = 0
    made: int = 0


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> Stops:
    """Let the n-th trial from now on be interrupted; count those that are made."""
    real = search.Search.run
    stops = Stops()

    def run(self: search.Search, *args: Any, **given: Any) -> Any:
        stops.made += 1
        if stops.made == stops.at:
            raise KeyboardInterrupt
        return real(self, *args, **given)

    monkeypatch.setattr(search.Search, "run", run)
    return stops


def test_an_interrupted_search_says_that_the_same_command_goes_on(
    limelight: Run, files: Path, tmp_path: Path, stops: Stops
) -> None:
    flags = ("tune", files / "split", "--model", "ials", "--trials", "4")
    stops.at = 3
    ended = limelight(*flags, "-o", tmp_path / "t")
    assert ended.code == 130
    assert "the same command goes on from here" in ended.err
    assert limelight(*flags, "-o", tmp_path / "t").code == 0
    assert stops.made == 3 + 2
    stops.at = stops.made + 1
    ended = limelight(*flags)
    assert ended.code == 130
    assert "goes on" not in ended.err


@pytest.mark.parametrize("target", [(), ("--gini", "0.8", "--at", "5", "--nearest")])
def test_trials_of_a_fit_are_in_its_checkpoint(
    limelight: Run, files: Path, tmp_path: Path, stops: Stops, target: tuple[str, ...]
) -> None:
    model, kept = tmp_path / "model", tmp_path / "model.checkpoint"
    flags = ("fit", files / "split", "--model", "ials", "--tune", "--trials", "6", *target)
    stops.at = 5
    ended = limelight(*flags, "-o", model)
    assert ended.code == 130
    assert "the same command with --resume goes on from here" in ended.err
    assert kept.is_dir()
    ended = limelight(*flags, "--regularization", "0.1", "--resume", "-o", model)
    assert ended.code == 2  # another search, which must not cost the trials
    ended = limelight(*flags, "--resume", "-o", model)
    assert ended.code == 0
    assert stops.made == 5 + 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert limelight(*flags, "-o", tmp_path / "whole").code == 0
    found, whole = (load_arrays(at / FACTORS) for at in (model, tmp_path / "whole"))
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_fit_to_a_split_is_the_model_that_was_measured(
    limelight: Run, files: Path, tmp_path: Path
) -> None:
    flags = (files / "split", "--model", "ials", "--trials", "6")
    assert limelight("tune", *flags, "-o", tmp_path / "tuned").code == 0
    assert limelight("fit", *flags, "--tune", "-o", tmp_path / "model").code == 0
    record = json.loads((tmp_path / "tuned" / "tune.json").read_text())
    alone = ll.IALS(**record["settings"]).fit(ll.Split.load(files / "split").train)
    alone.save(tmp_path / "alone")
    expected = load_arrays(tmp_path / "alone" / FACTORS)
    for folder in (tmp_path / "tuned" / "model", tmp_path / "model"):
        for name, values in load_arrays(folder / FACTORS).items():
            np.testing.assert_array_equal(values, expected[name])
