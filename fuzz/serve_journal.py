"""Ledgers on disk in which one file is anything: they are taken up, or say what is wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["limelight.serve.ledger", "limelight.store"]):
    from folders import Folders, mutate
    from harness import run
    from sound import JOURNAL_IDS, journal_folders

    import limelight as ll
    from limelight.serve.ledger.journal import Journal
    from limelight.serve.ledger.ledger import Ledger

FOLDERS = Folders(journal_folders(Path(tempfile.mkdtemp())))


def take_up(data: bytes) -> None:
    """Take the ledger up: what it counts is never below 0, and no list more than there were."""
    path, _ = FOLDERS.replace(data)
    try:
        ledger = Ledger(4, window=3600.0)
        with Journal(path, ledger, item_ids=JOURNAL_IDS, flush_every=1e6) as journal:
            assert (ledger.totals >= 0).all()
            journal.read_state()
            journal.status()
    finally:
        FOLDERS.restore_all(path)


if __name__ == "__main__":
    run(take_up, ll.LimelightError, mutate)
