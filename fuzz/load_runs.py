"""Runs in which one file is anything: they can be shown and gone on with, or say what is wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["limelight.metrics", "limelight.report", "limelight.store"]
):
    from folders import Folders, mutate
    from harness import run
    from sound import ABOUT, run_folders

    import limelight as ll
    from limelight.report.exhibit_folder import load_exhibit
    from limelight.report.payload import payload
    from limelight.store.checkpoint import ResultCache

FOLDERS = Folders(run_folders(Path(tempfile.mkdtemp())))


def load(data: bytes) -> None:
    """Load the exhibit, or the notebook, and use it."""
    path, file = FOLDERS.replace(data)
    try:
        if file.name == "notebook.json":
            ResultCache(path, ABOUT).once("plain", lambda: None)
        else:
            json.dumps(payload(load_exhibit(path)), allow_nan=False)
    finally:
        FOLDERS.restore(file)


if __name__ == "__main__":
    run(load, ll.LimelightError, mutate)
