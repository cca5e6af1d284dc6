"""A disk that fills, is read-only or goes away under a command: one sentence, old output intact."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load
from tests.support.commands import succeed
from tests.support.small_disk import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.small_disk import SmallDisk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what commands read."""
    folder = tmp_path_factory.mktemp("files")
    draw = np.random.default_rng(0)
    rows = [f"u{draw.integers(900)},{draw.zipf(1.5) % 300}" for _ in range(20_000)]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId", *rows]) + "\n")
    succeed("data", "split", folder / "ratings.csv", "-o", folder / "split")
    succeed("fit", folder / "split", "--factors", 8, "--epochs", 2, "-o", folder / "model")
    succeed("recommend", folder / "model", "-k", 100, "-o", folder / "candidates.parquet")
    succeed(*words(DEMO, folder, folder))
    return folder


FIT = "fit {0}/split --factors 8 --epochs 2 -o {1}/model"
RERANK = "rerank {0}/candidates.parquet --gini 0.6 -k 10 -o {1}/"
ONE_OUTPUT = [
    FIT,
    "data split {0}/ratings.csv -o {1}/split",
    "data convert {0}/ratings.csv -o {1}/data.parquet",
    "data convert {0}/ratings.csv -o {1}/data.csv",
    "recommend {0}/model -o {1}/lists.parquet",
    "recommend {0}/model -o {1}/lists.csv",
    f"{RERANK}lists.parquet",
    f"{RERANK}lists.csv",
    f"{RERANK}parts",
    "audit {0}/candidates.parquet --report {1}/audit.html",
    "report {0}/run -o {1}/report.html",
    "plot {0}/run --only lorenz -o {1}/figures",
    "plot {0}/run --only lorenz --as pdf -o {1}/figures",
    "plot {0}/run --only lorenz --as svg -o {1}/figures",
]
"""What is written as one: a file, or a folder that is replaced as a whole."""

DEMO = "demo --users 300 --items 100 --interactions 4000 --factors 8 -o {1}/run"
MANY_OUTPUTS = {
    "demo": DEMO,
    "frontier": "frontier {0}/split --factors 8 --points 4 -o {1}/front",
    "bench": "bench --data a={0}/ratings.csv --jobs exact --rounds 1 -d 4 -o {1}/bench",
    "reproduce": "reproduce --like epinions --method iALS --budget 0 --epochs 2 -o {1}/r",
}
"""What is written piece by piece."""

TINY = """
from dataclasses import replace
from limelight.lab.bench import timing
from limelight.lab.paper import experiments
from limelight.lab import growth
from limelight.lab.paper.experiments import EXPERIMENTS, DataSize

size = DataSize(300, 80, 6000)
small = replace(EXPERIMENTS["epinions"], size=size, held_out=30, factors=8, timed=(5, 10))
experiments.EXPERIMENTS = {"epinions": small}
growth.growth.__defaults__ = (size,)
timing.SGEMM_SIZE = 64

from limelight.cli import main
main()
"""
"""Commands that would take minutes, on data so small that they mean nothing."""


def words(command: str, files: Path, place: Path) -> list[str]:
    return [word.format(files, place) for word in command.split()]


def complaint(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the error of a command: one sentence and a hint."""
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    message = ended.stderr[ended.stderr.index("error: ") :]
    sentence, nothing, hint, end = message.split("\n")
    assert (nothing, end) == ("", "")
    assert hint.startswith("hint: ")
    assert ".tmp" not in sentence
    return message


@pytest.mark.parametrize("command", ONE_OUTPUT)
def test_the_old_output_stays(disk: SmallDisk, files: Path, tmp_path: Path, command: str) -> None:
    succeed(*words(command, files, tmp_path / "old"))
    disk.put(tmp_path / "old")
    before = disk.files()
    disk.fill(leave=sum(map(len, before.values())) // 2)
    message = complaint(disk.limelight(*words(command, files, disk.place)))
    assert message.startswith(f"error: cannot write '{disk.place}/")
    assert "': No space left on device\n\nhint: free some space" in message
    assert disk.files() == before


@pytest.mark.parametrize("name", MANY_OUTPUTS)
def test_every_piece_is_whole_and_the_command_goes_on(
    disk: SmallDisk, files: Path, name: str
) -> None:
    def limelight() -> subprocess.CompletedProcess[str]:
        return disk.run(sys.executable, "-c", TINY, *words(MANY_OUTPUTS[name], files, disk.place))

    disk.fill(leave=20_000)
    assert "No space left on device" in complaint(limelight())
    refuse_broken(disk.files())
    disk.relieve()
    assert limelight().returncode == 0
    complete = disk.files()
    refuse_broken(complete)
    disk.fill(leave=20_000)
    assert "No space left on device" in complaint(limelight())
    refuse_broken(disk.files())
    assert disk.files().keys() == complete.keys()


def refuse_broken(files: dict[str, bytes]) -> None:
    """Read every file to its end."""
    for name, content in files.items():
        assert not name.endswith(".tmp")
        if name.endswith(".json"):
            json.loads(content)
        elif name.endswith(".parquet"):
            pq.read_table(io.BytesIO(content))
        elif name.endswith(".safetensors"):
            load(content)
        elif name.endswith(".png"):
            assert content.endswith(b"IEND\xaeB`\x82")
        elif name.endswith((".html", ".svg")):
            assert content.endswith((b"</html>\n", b"</svg>\n"))


def test_scratch_files(disk: SmallDisk, files: Path, tmp_path: Path) -> None:
    rerank = words(f"{RERANK}lists.csv", files, tmp_path)
    disk.fill(leave=100_000)
    ended = disk.limelight(*rerank, "--memory", 0.001, TMPDIR=str(disk.place))
    sentence, _, hint, _ = complaint(ended).split("\n")
    assert sentence == f"error: cannot write '{disk.place}': No space left on device"
    assert "TMPDIR" in hint
    assert disk.files() == {}
    assert list(tmp_path.iterdir()) == [disk.place]


def test_lists_on_their_way_to_standard_output(disk: SmallDisk, files: Path) -> None:
    disk.fill(leave=20_000)
    ended = disk.limelight("recommend", files / "model", TMPDIR=str(disk.place))
    assert "No space left on device" in complaint(ended)
    assert ended.stdout == ""
    assert disk.files() == {}


@pytest.mark.parametrize("command", ["recommend {0}/model", "evaluate {0}/model {0}/split --json"])
def test_standard_output(disk: SmallDisk, files: Path, command: str) -> None:
    disk.fill(leave=0)
    line = f'"$0" -m limelight {command.format(files)} > "$1"'
    ended = disk.run("sh", "-c", line, sys.executable, disk.place / "output")
    assert complaint(ended).startswith("error: No space left on device\n\nhint: free some space")


@pytest.mark.parametrize("name", ["fit", *MANY_OUTPUTS])
def test_a_disk_that_may_only_be_read(disk: SmallDisk, files: Path, name: str) -> None:
    disk.lock()
    command = words(MANY_OUTPUTS.get(name, FIT), files, disk.place)
    message = complaint(disk.run(sys.executable, "-c", TINY, *command))
    assert "Read-only file system" in message
    assert message.endswith("hint: choose a place that you may write to\n")


def test_a_disk_that_goes_away(disk: SmallDisk, files: Path) -> None:
    wait = """
from limelight.store.lists import ListWriter
write = ListWriter.write

def write_later(*given):
    print("writing", flush=True)
    input()
    write(*given)

ListWriter.write = write_later
"""
    command = ["recommend", files / "model", "-o", disk.place / "lists.parquet"]
    with disk.start(sys.executable, "-c", wait + TINY, *command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        disk.vanish()
        out, err = process.communicate("\n", timeout=60)
    message = complaint(subprocess.CompletedProcess([], process.returncode, out, err))
    assert "lists.parquet': No such device" in message
    assert list(disk.place.iterdir()) == [], "nothing went to the disk below"
