"""Files of processes that are killed, or that the system stops half-way."""

import os
import signal
import sys

import numpy as np
import pytest
from tests.support.commands import run_python, start

from limelight._base.files import atomic_file, atomic_folder
from limelight.store.arrays import load_arrays, save_arrays


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_kill_leaves_the_old_output(tmp_path, kind):
    old_file, old_folder = tmp_path / "output", tmp_path / "model"
    old_file.write_text("old")
    old_folder.mkdir()
    (old_folder / "ours").write_text("old")
    script = f"""
import sys, time
from pathlib import Path
from limelight._base.files import atomic_file, atomic_folder
context = (
    atomic_file({str(old_file)!r})
    if {kind == "file"}
    else atomic_folder({str(old_folder)!r}, replace_if=lambda folder: True)
)
with context as temporary:
    (temporary if temporary.is_file() else temporary / "ours").write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""
    with start([sys.executable, "-c", script]) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert old_file.read_text() == "old"
    assert (old_folder / "ours").read_text() == "old"
    left = {path.name for path in tmp_path.iterdir()} - {"output", "model"}
    assert all(name.startswith(".") and name.endswith(".tmp") for name in left)


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    script = (
        "import os, signal, sys\n"
        "from limelight._base.files import atomic_file, atomic_folder\n"
        "with atomic_file(sys.argv[1]) as file, atomic_folder(sys.argv[2], "
        "replace_if=lambda _: False) as folder:\n"
        "    (folder / 'part').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    places = [str(tmp_path / "a.txt"), str(tmp_path / "b")]
    run_python(script, *places)
    left = sorted(tmp_path.iterdir())
    assert len(left) == 2
    assert all(path.name.endswith(".tmp") for path in left)
    other = tmp_path / f".a.txt.somewhere-{os.getpid()}-00000000.tmp"
    other.touch()
    with atomic_file(tmp_path / "a.txt") as one, atomic_file(tmp_path / "a.txt") as two:
        one.write_text("one")
        two.write_text("two")
    with atomic_folder(tmp_path / "b", replace_if=lambda _: False) as folder:
        (folder / "part").write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "a.txt", "b"]


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path):
    pytest.importorskip("resource", reason="file sizes cannot be limited here")
    file = tmp_path / "x.safetensors"
    save_arrays(file, {"x": np.arange(3)})
    script = f"""
import resource
import numpy as np
from limelight._base.errors import DataError
from limelight.store.arrays import save_arrays
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_arrays({str(file)!r}, {{"x": np.zeros(100_000)}})
except DataError as error:
    print(error.message)
"""
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"cannot write {str(file)!r}: File too large"
    assert load_arrays(file)["x"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
