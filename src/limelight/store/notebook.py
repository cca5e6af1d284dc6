"""What a run has found out so far, on disk, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from limelight._atomic import atomic_file
from limelight._errors import ConfigError, DataError
from limelight._short import first_words, short
from limelight.store.json_files import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FILE = "notebook.json"


class Notebook:
    """Results by name, written after each of them.

    Parameters
    ----------
    folder
        Where the notebook lies; it is made if need be.
    about
        What the results belong to. A notebook of anything else is refused.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> Notebook(folder, {"data": "a"}).once("sum", lambda: 1 + 1)
    2
    >>> Notebook(folder, {"data": "a"}).once("sum", lambda: 0 / 0)
    2
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._about = dict(about)
        self._results: dict[str, Any] = {}
        if (folder / FILE).exists():
            self._read(json.loads(json.dumps(about)))
        else:
            # Before the work: it shows that there is room, and whose the folder is from now on.
            self._write()

    def _read(self, about: dict[str, Any]) -> None:
        try:
            stored = read_json(self.folder / FILE)
            found, self._results = dict(stored["about"]), dict(stored["results"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"cannot read {str(self.folder / FILE)!r}: {first_words(error)}"
            raise DataError(message, hint="move it away to start anew") from error
        different = [key for key in found.keys() | about.keys() if found.get(key) != about.get(key)]
        if different:
            key = min(different)
            message = (
                f"the folder holds another run, with {key} {short(found.get(key))} "
                f"instead of {short(about.get(key))}"
            )
            raise ConfigError(message, hint="choose another folder, or repeat the same flags")

    def once(self, name: str, find_out: Callable[[], Any]) -> Any:
        """Return a result, found out now unless it was before. It must be JSON."""
        if name not in self._results:
            self._results[name] = find_out()
            self._write()
        return self._results[name]

    def _write(self) -> None:
        text = json.dumps({"about": self._about, "results": self._results}, indent=1)
        with atomic_file(self.folder / FILE) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
