"""Model folders in which one file is anything: they load and serve lists, or say what is wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris

PACKAGES = ["limelight.store", "limelight.models", "limelight.rerank", "limelight.data"]
with atheris.instrument_imports(include=PACKAGES):
    from folders import Folders, mutate
    from harness import run
    from sound import MATRIX, model_folders

    import limelight as ll

FOLDERS = Folders(model_folders(Path(tempfile.mkdtemp())))


def load(data: bytes) -> None:
    """Load the model, and ask it for lists of users that it knows and of one that it does not."""
    path, file = FOLDERS.replace(data)
    try:
        model = ll.load(path)
        repr(model)
        model.recommend(users=[0, len(model.user_ids) - 1], k=2)
        model.recommend(MATRIX[:1, :], k=2)
    finally:
        FOLDERS.restore(file)


if __name__ == "__main__":
    run(load, ll.LimelightError, mutate)
