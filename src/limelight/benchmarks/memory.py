"""Peak memory, each candidate in a process of its own so that nobody inherits another's."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import LimelightError
from limelight.benchmarks.peak import FITS, installed_of
from limelight.benchmarks.reading import KINDS, READERS, write_table
from limelight.benchmarks.records import Entry
from limelight.data import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight.benchmarks.records import Race
    from limelight.benchmarks.setting import Setting
    from limelight.data import Interactions

ABOUT_FIT = (
    "The most memory that a fit of two epochs takes beyond what the process held when the data "
    "were loaded, each in a process of its own. Last, for comparison: the arrays that every fit "
    "has to hold, which are the interactions by item and the factors."
)
ABOUT_READ = (
    "The most memory that reading takes beyond what the process held before, each in a process of "
    "its own. Last, for comparison: what `limelight.read` returns."
)
_ARRAYS = "the arrays alone"


def fits(setting: Setting) -> Iterator[Race]:
    """Measure the peak memory of fits."""
    data = setting.data.split.train
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, indptr=data.indptr, indices=data.indices, n_items=data.n_items)
        entries = [_measure("fit", who, file, setting) for who in installed_of(FITS)]
    by_item = data.indices.nbytes + (data.n_items + 1) * data.indptr.itemsize
    factors = 4 * setting.factors * (data.n_users + data.n_items)
    yield setting.record("memory", [*entries, Entry(_ARRAYS, n_bytes=by_item + factors)])


def reads(setting: Setting) -> Iterator[Race]:
    """Measure the peak memory of reading."""
    with TemporaryDirectory() as folder:
        for kind in KINDS:
            file = write_table(setting.data.interactions, Path(folder) / f"table.{kind}")
            entries = [_measure("read", who, file, setting) for who in installed_of(READERS)]
            kept = Entry(_ARRAYS, n_bytes=kept_bytes(read(file)))
            race = setting.record("reading-memory", [*entries, kept], part=kind)
            yield replace(race, factors=None)


def kept_bytes(data: Interactions) -> int:
    """Count the bytes of interactions, their ids included."""
    arrays = (data.indptr, data.indices, data.user_ids, data.item_ids, data.order)
    names = (name for ids in (data.user_ids, data.item_ids) for name in ids.tolist())
    held = sum(array.nbytes for array in arrays if array is not None)
    return held + sum(sys.getsizeof(name) for name in names)


def _measure(action: str, who: str, file: Path, setting: Setting) -> Entry:
    sizes = (str(setting.factors), str(setting.threads))
    command = [sys.executable, "-m", "limelight.benchmarks.peak", action, who, str(file), *sizes]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        reasons = [line for line in ended.stderr.splitlines() if "Error" in line]
        message = f"{who} failed to {action}: {reasons[-1] if reasons else ended.returncode}"
        raise LimelightError(message, hint="leave this job out with --jobs")
    return Entry(who, n_bytes=int(ended.stdout))
