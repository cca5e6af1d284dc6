"""A small object that is kept beside a ledger, such as the state of what holds its target."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from limelight._base.errors import DataError
from limelight._base.files import atomic_file
from limelight._base.text import first_words
from limelight.serve.ledger.journal_files import STATE
from limelight.store.json import read_json

if TYPE_CHECKING:
    from pathlib import Path


class StateFile:
    """Writes an object whole or not at all, if it changed.

    Attributes
    ----------
    state : dict or None
        What is to be written.
    error : DataError or None
        Why it is not on the disk.
    written_at : float
        When that was last tried, on the monotonic clock.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATE
        self.state: dict[str, Any] | None = None
        self.error: DataError | None = None
        self.written_at = time.monotonic()
        self._written: dict[str, Any] | None = None

    def write(self) -> None:
        """Write what is to be written."""
        state, self.written_at = self.state, time.monotonic()
        if state == self._written:
            return
        try:
            with atomic_file(self._path) as temporary:
                temporary.write_text(json.dumps(state) + "\n", encoding="utf-8")
            self._written, self.error = state, None
        except DataError as error:
            self.error = error

    def read(self, notes: list[str]) -> dict[str, Any] | None:
        """Return what was written last; None, and a note, if it cannot be read."""
        try:
            found = read_json(self._path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            found = first_words(error)
        if not isinstance(found, dict):
            notes.append(f"{STATE} was left out, because it is damaged: {found!r:.80}")
            return None
        return found
