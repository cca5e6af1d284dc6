"""An audit in which one of the tables, the lists or what goes with them, may be anything."""

from __future__ import annotations

import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["limelight.data", "limelight.audit", "limelight.metrics", "tables"]
):
    from harness import run
    from tables import draw_source

    import limelight as ll

import pyarrow as pa

FOLDER = Path(tempfile.mkdtemp())
SOUND = {
    "lists": pa.table(
        {
            "user_id": [1, 1, 2, 2, 3],
            "item_id": ["a", "b", "a", "1", "2"],
            "rank": [1, 2, 1, 2, 1],
            "time": [10**9, 10**9, 10**9, 10**9, 2 * 10**9],
        }
    ),
    "catalogue": pa.table({"item_id": ["a", "b", "1", "2", "3"]}),
    "groups": pa.table({"item_id": ["a", "b", "1"], "group": ["x", "y", "x"]}),
    "merit": pa.table({"user_id": [1, 2], "item_id": ["a", "b"]}),
    "against": pa.table({"user_id": [1, 2], "item_id": ["b", "b"], "score": [0.5, 0.25]}),
}
NAMES = {
    "lists": ("user_id", "item_id", "rank", "score", "time"),
    "catalogue": ("item_id",),
    "groups": ("item_id", "group", "weight"),
    "merit": ("user_id", "item_id"),
    "against": ("user_id", "item_id", "rank", "score", "time"),
}
ROLES = tuple(SOUND)


def audit(data: bytes) -> None:
    """Let the first byte choose which table is drawn and which ones are there, the rest is it."""
    flags = data[0] if data else 0
    drawn = ROLES[flags % len(ROLES)]
    table = draw_source(data[1:], FOLDER, NAMES[drawn])
    given = {drawn: table}
    if drawn != "lists":
        given["lists"] = SOUND["lists"]
    elif flags & 64:
        given |= {role: SOUND[role] for role in ("groups", "merit", "against")}
    timed = bool(flags & 128) and "against" not in given
    found = ll.audit(**given, timestamp="time" if timed else None)
    str(found)
    found.to_dict()


if __name__ == "__main__":
    run(audit, ll.LimelightError)
