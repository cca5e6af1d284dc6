"""Snapshots of what must not change unnoticed; ``make freeze`` writes them anew."""

import difflib
import os

from tests.support.places import ROOT

FOLDER = ROOT / "tests" / "snapshots"


def compare(name: str, found: str) -> None:
    """Compare a text with its snapshot, line by line, or write the snapshot anew if so asked."""
    file = FOLDER / name
    if os.environ.get("LIMELIGHT_FREEZE"):
        file.write_text(found, encoding="utf-8")
    frozen = file.read_text(encoding="utf-8") if file.exists() else ""
    changes = difflib.unified_diff(
        frozen.splitlines(), found.splitlines(), f"frozen {name}", "found", lineterm="", n=1
    )
    assert found == frozen, "\n".join(
        ["what was frozen has changed; where that is meant, run `make freeze`:", *changes]
    )
