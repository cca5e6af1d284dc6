"""Commands as tests run them: in this process, or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pytest
import typer

import limelight as ll
from limelight.cli import app, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = str(Path(ll.__file__).parents[1])
"""Where the limelight that is tested is imported from; commands are to import the same."""


def _below(command: Any, *path: str) -> Iterator[tuple[str, bool]]:
    """Give all commands of a group, and whether each is a group itself."""
    members = getattr(command, "commands", None)
    yield " ".join(path), members is not None
    for name, member in (members or {}).items():
        yield from _below(member, *path, name)


_COMMANDS = dict(_below(typer.main.get_command(app)))
VERBS = tuple(name for name, is_group in _COMMANDS.items() if not is_group)
GROUPS = tuple(name for name, is_group in _COMMANDS.items() if is_group)


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    """Without what was said of memory before the work."""


Run: TypeAlias = "Callable[..., Ended]"


def without_memory(err: str) -> str:
    """Leave out how much memory the work would take, and that ratings are not used."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if not is_note(line))


def is_note(line: str) -> bool:
    """Tell what may be said before the work from what is wrong."""
    return " of memory (of " in line or line.startswith("The column 'rating' is not used")


@pytest.fixture
def limelight(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(int(end.value.code or 0), out, without_memory(err))

    return run


def succeed(*arguments: object) -> None:
    """Run a command in this process, of which nothing matters but that it succeeds."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code in {0, None}


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a process that imports the limelight that is tested."""
    return {**os.environ, "PYTHONPATH": SOURCE, "NO_COLOR": "1", **variables}


def run_python(code: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return _run([sys.executable, "-c", code, *map(str, arguments)], variables)


def run_limelight(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return _run([sys.executable, "-m", "limelight", *map(str, arguments)], variables)


def _run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    given: dict[str, Any] = {"env": environment(**variables), "timeout": 300}
    return subprocess.run(command, capture_output=True, text=True, check=False, **given)


def start_limelight(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    return start([sys.executable, "-m", "limelight", *arguments], **variables)


class Process(subprocess.Popen[str]):
    """A process that does not outlive a test that has failed."""

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *error)


def start(command: list[object], **variables: str) -> Process:
    """Start a process; what it prints can be read while it runs."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return Process(list(map(str, command)), env=environment(**variables), **pipes)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has made a file or a folder."""
    for _ in range(5000):
        if path.exists():
            return
        if process.poll() is not None:
            _, errors = process.communicate()
            pytest.fail(f"the process ended with {process.returncode}: {errors}")
        time.sleep(0.02)
    pytest.fail(f"{path} did not appear")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ratings.csv, split/, model/ (exADMM on the split) and lists.parquet.

    Tests read from it and write elsewhere.
    """
    folder = tmp_path_factory.mktemp("files")
    draw = np.random.default_rng(0)
    rows = [
        f"u{draw.integers(200)},{draw.zipf(1.5) % 80},{draw.integers(1, 6)},{second}"
        for second in range(4000)
    ]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId,rating,time", *rows]) + "\n")
    ratings, split, model, lists = (
        str(folder / name) for name in ("ratings.csv", "split", "model", "lists.parquet")
    )
    for command in (
        ["data", "split", ratings, "--validation", "20", "--test", "30", "-o", split],
        ["fit", split, "--factors", "8", "--epochs", "5", "--seed", "1", "-o", model],
        ["recommend", model, "-k", "5", "-o", lists],
    ):
        succeed(*command)
    return folder


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a small demo wrote: a split, models, a report."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    size = ["--users", 300, "--items", 60, "--interactions", 4000, "--factors", 8]
    succeed("demo", "-o", folder, *size, "--gini", 0.2, "--json")
    return folder
