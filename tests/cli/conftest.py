from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from limelight.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    """Without what was said of memory before the work."""


def without_memory(err: str) -> str:
    """Leave out how much memory the work would take."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if " of memory (of " not in line)


@pytest.fixture
def limelight(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run a command in this process."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(int(end.value.code or 0), out, without_memory(err))

    return run


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
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 0
    return folder
