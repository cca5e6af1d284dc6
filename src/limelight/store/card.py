"""The file beside a model that says what it is: a model card, which goes with its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CARD, CARD_BEGINS = "README.md", "---\nlibrary_name: limelight\n"


def is_card(path: Path) -> bool:
    """Tell whether a file is a model card of ours, so that it may be replaced with its model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> is_card(Path(tempfile.mkdtemp()) / CARD)
    False
    """
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(len(CARD_BEGINS)) == CARD_BEGINS
    except (OSError, ValueError):
        return False
