"""How results and errors are written."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from limelight._base.memory import size
from limelight.cli import INTERRUPTED, main
from limelight.cli.output import in_flags, to_json
from limelight.models.folder import MODELS

if TYPE_CHECKING:
    from limelight.models.config import Config


def test_json_is_valid_and_unrounded() -> None:
    record = {
        "third": 1 / 3,
        "numpy": np.float32(0.5),
        "count": np.int64(3),
        "nan": math.nan,
        "lists": (np.float64("inf"), [None, True, "ä"]),
        "path": Path("run") / "model",
    }
    assert json.loads(to_json(record)) == {
        "third": 1 / 3,
        "numpy": 0.5,
        "count": 3,
        "nan": None,
        "lists": [None, [None, True, "ä"]],
        "path": str(Path("run") / "model"),
    }


@pytest.mark.parametrize(
    ("python", "spoken"),
    [
        ("pass item='movieId'", "pass --item 'movieId'"),
        (
            "core excludes min_user and min_item: core=2",
            "core excludes --min-user and --min-item: --core 2",
        ),
        ("num_threads must be at least 0: -1", "--threads must be at least 0: -1"),
        ("column not found: 'user'", "column not found: 'user'"),
        ("column not found: 'min_user'", "column not found: 'min_user'"),
        ("the item user_id of the user", "the item user_id of the user"),
        ("pass for example k=20", "pass for example -k 20"),
    ],
)
def test_messages_speak_of_flags(python: str, spoken: str) -> None:
    assert in_flags(python) == spoken


@pytest.mark.parametrize("config", [config for _, config in MODELS.values()])
def test_every_setting_is_spoken_of_as_a_flag(config: type[Config]) -> None:
    for setting in fields(config):
        said = in_flags(f"{setting.name} must be at least 1: 0")
        assert said.startswith("--"), said
        assert "_" not in said


def test_sizes() -> None:
    assert (size(5 << 20), size(3 << 29)) == ("5 MiB", "1.5 GiB")


def test_an_interrupt_outside_of_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("limelight.cli._commands", lambda: interrupt)
    with pytest.raises(SystemExit) as end:
        main(["doctor"])
    assert end.value.code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"
