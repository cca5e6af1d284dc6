"""Checkpoints in which one file is anything: a fit goes on from them, or says what is wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["limelight.store", "limelight.solve"]):
    from folders import Folders, mutate
    from harness import run
    from sound import MATRIX, checkpoint_folders, unfinished

    import limelight as ll

FOLDERS = Folders(checkpoint_folders(Path(tempfile.mkdtemp())))


def resume(data: bytes) -> None:
    """Go on with the fit of the checkpoint, which is read and never written: epochs are short."""
    path, file = FOLDERS.replace(data)
    try:
        model = unfinished()[path.name]
        model.fit(MATRIX, checkpoint=path, show_progress=False)
    finally:
        FOLDERS.restore(file)


if __name__ == "__main__":
    run(resume, ll.LimelightError, mutate)
