"""Examples of deploying, read by the tools that they are for, where these are installed."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "examples" / "deploy"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (FOLDER / "limelight.service").read_text(encoding="utf-8")
    unit = tmp_path / "limelight.service"
    # It is only told of programs that are there.
    unit.write_text(text.replace("/opt/limelight/bin/limelight", "/bin/true"), encoding="utf-8")
    ended = run("systemd-analyze", "verify", unit)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_hadolint_finds_nothing() -> None:
    ended = run("hadolint", FOLDER / "Dockerfile")
    assert (ended.returncode, ended.stdout) == (0, "")
