"""A few of the kills that ``make kills`` does by the thousand."""

import subprocess
import sys

from tests.support.places import ROOT


def test_kills_leave_whole_files_and_runs_that_go_on() -> None:
    command = [sys.executable, "-m", "tests.kills.kills", "--kills", "12", "--seed", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "bit-identical" in ended.stdout


def test_kills_leave_the_state_of_a_stream_whole() -> None:
    command = [sys.executable, "-m", "tests.kills.streams", "--kills", "6", "--seed", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "every state whole, every list the same" in ended.stdout
