"""Interactions from any file or frame, with any settings of the reader."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["limelight.data", "tables"]):
    from harness import run
    from tables import draw_source

    import limelight as ll

FOLDER = Path(tempfile.mkdtemp())
NAMES = ("user_id", "item_id", "rating", "time")


def read(data: bytes) -> None:
    """Let the first byte choose the settings, the rest is the table."""
    flags = data[0] if data else 0
    ll.read(
        draw_source(data[1:], FOLDER, NAMES),
        rating="rating" if flags & 1 else None,
        timestamp="time" if flags & 2 else None,
        min_rating=2 if flags & 5 == 5 else None,
        min_user=2 if flags & 24 == 8 else None,
        core=2 if flags & 24 == 16 else None,
    )


if __name__ == "__main__":
    run(read, ll.LimelightError)
