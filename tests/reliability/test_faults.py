"""A few of the points that ``make faults`` tries at every system call."""

import shutil
import subprocess
import sys

import pytest
from tests.support.places import ROOT

pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and shutil.which("cc")), reason="needs Linux and a C compiler"
)


def test_outputs_are_old_or_new_after_a_fault() -> None:
    names = ["data convert csv", "recommend parquet", "plot png", "serve's journal"]
    command = [sys.executable, "-m", "tests.reliability.faults", *names, "--most", "7"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "28 points, 0 bad" in ended.stdout
