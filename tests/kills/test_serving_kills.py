"""A few of the kills of services that ``make serve-kills`` does by the hundred."""

import subprocess
import sys

from tests.support.places import ROOT


def test_kills_lose_nothing_that_was_promised_and_count_nothing_twice() -> None:
    command = [sys.executable, "-m", "tests.kills.serving", "--little", "--seed", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing lost that was promised" in ended.stdout
