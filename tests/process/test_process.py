"""What only a process of its own shows: signals, pipes, streams, start-up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.support.commands import environment, run_limelight, start, without_memory

if TYPE_CHECKING:
    from pathlib import Path

READY = "import limelight, limelight.cli as cli; print('ready', flush=True); cli.main()"

SLOW_ONCE = """
import pathlib, sys, time
seen = pathlib.Path(__file__ + ".seen")
if seen.exists():
    raise ImportError
seen.touch()
print("importing", file=sys.stderr, flush=True)
time.sleep(60)
"""


def test_ctrl_c_ends_a_fit_and_leaves_only_a_checkpoint(files: Path, tmp_path: Path) -> None:
    fit = ["fit", files / "split", "--epochs", 10**8, "--tolerance", 0, "-o", tmp_path / "model"]
    with start([sys.executable, "-c", READY, *fit]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert without_memory(err).startswith("interrupted\n")
    assert {path.name for path in tmp_path.iterdir()} <= {"model.checkpoint"}


def test_ctrl_c_is_not_lost_where_arrow_imports_pandas(files: Path, tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text(SLOW_ONCE, encoding="utf-8")
    fit = ["fit", files / "split", "--epochs", 10**8, "--tolerance", 0, "-o", tmp_path / "model"]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {READY}"]
    with start([*command, *fit]) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert without_memory(err).startswith("interrupted\n")


def test_an_error_in_a_process(tmp_path: Path) -> None:
    ended = run_limelight("fit", tmp_path / "no.csv", "-o", tmp_path / "model")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: no such file or folder: ")
    assert "\n\nhint: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "\x1b" not in ended.stderr


def test_json_is_all_there_is_on_standard_output(files: Path, tmp_path: Path) -> None:
    fit = ["fit", files / "split", "--factors", 4, "--epochs", 2, "-o", tmp_path / "model"]
    ended = run_limelight(*fit, "--json")
    assert ended.returncode == 0
    assert without_memory(ended.stderr) == ""
    assert json.loads(ended.stdout)["epochs"] == 2


def test_a_reader_that_has_enough(files: Path) -> None:
    command = f"{sys.executable} -m limelight recommend {files / 'model'} -k 70 | head -n 1"
    given = {"env": environment(), "capture_output": True, "text": True, "timeout": 60}
    ended = subprocess.run(command, shell=True, check=False, **given)
    assert ended.stdout.startswith('"user_id"')
    assert without_memory(ended.stderr) == ""
