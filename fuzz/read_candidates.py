"""Candidates with scores from any file or frame, with and without a catalogue."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["limelight.data", "tables"]):
    from harness import run
    from tables import draw_source

    import limelight as ll
    from limelight.data.candidates.candidates import read_candidates

FOLDER = Path(tempfile.mkdtemp())
NAMES = ("user_id", "item_id", "score")
CATALOGUE = ["a", "b", "1", "2", "3"]


def read(data: bytes) -> None:
    """Let the first byte choose the settings, the rest is the table."""
    flags = data[0] if data else 0
    with read_candidates(
        draw_source(data[1:], FOLDER, NAMES),
        catalogue=CATALOGUE if flags & 1 else None,
        memory=1 << 20,
        folder=FOLDER,
        show_progress=False,
    ) as candidates:
        block = candidates.block(0, candidates.n_users)
        assert block.indptr[-1] == len(block.items) == len(block.scores)
        assert ((block.items >= 0) & (block.items < candidates.n_items)).all()


if __name__ == "__main__":
    run(read, ll.LimelightError)
