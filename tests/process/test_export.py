"""``limelight export`` as a process: streams, exit codes, and what a signal leaves."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import run_limelight, run_python, start_limelight, without_memory

import limelight as ll

if TYPE_CHECKING:
    from pathlib import Path

FAILED, WRONG_USE, TERMINATED = 1, 2, 143


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    data = ll.marketplace(300, 200, 5000).interactions
    ll.IALS(factors=8, epochs=3, num_threads=1).fit(data).save(path)
    return path


@pytest.mark.parametrize("to", ["voyager", "faiss"])
def test_an_index_is_written(model: Path, tmp_path: Path, to: str) -> None:
    ended = run_limelight("export", model, "--to", to, "-o", tmp_path / "out", "--json")
    assert ended.returncode == 0, ended.stderr
    assert without_memory(ended.stderr) == ""
    record = json.loads(ended.stdout)
    assert record["index"]["recall"] >= 0.99
    code = f"import {to}, sys; index = {to}.{'Index.load' if to == 'voyager' else 'read_index'}"
    count = "len(index)" if to == "voyager" else "index.ntotal"
    loaded = run_python(f"{code}(sys.argv[1]); print({count})", tmp_path / "out" / f"index.{to}")
    assert loaded.stdout == "200\n", loaded.stderr


def test_what_cannot_be_exported(model: Path, tmp_path: Path) -> None:
    ended = run_limelight("export", tmp_path / "nothing", "-o", tmp_path / "out")
    assert ended.returncode == FAILED
    assert "Traceback" not in ended.stderr
    ended = run_limelight("export", model, "-o", model / "out")
    assert ended.returncode == WRONG_USE
    assert ended.stderr.startswith("error: an export does not go into a model folder")
    assert not (tmp_path / "out").exists()


def test_a_signal_leaves_nothing(tmp_path: Path) -> None:
    data = ll.marketplace(2000, 20_000, 100_000).interactions
    ll.IALS(factors=32, epochs=1).fit(data).save(tmp_path / "model")
    out = tmp_path / "out"
    command = ["export", tmp_path / "model", "--to", "voyager", "--recall", 1, "-o", out]
    with start_limelight(*command, "--threads", 1) as process:
        assert process.stderr is not None
        process.stderr.readline()  # how much memory it takes: the work begins
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    assert process.returncode in {TERMINATED, 0}
    if process.returncode:
        assert [file.name for file in tmp_path.iterdir()] == ["model"]
