"""What a run has found out so far, on disk, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from limelight._atomic import atomic_file
from limelight._errors import ConfigError, DataError

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
        folder.mkdir(parents=True, exist_ok=True)
        self._results: dict[str, Any] = {}
        if (folder / FILE).exists():
            self._read(json.loads(json.dumps(about)))
        self._about = dict(about)

    def _read(self, about: dict[str, Any]) -> None:
        try:
            stored = json.loads((self.folder / FILE).read_text(encoding="utf-8"))
            found, self._results = dict(stored["about"]), dict(stored["results"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            message = f"cannot read {str(self.folder / FILE)!r}: {error}"
            raise DataError(message, hint="move it away to start anew") from error
        different = [key for key in found.keys() | about.keys() if found.get(key) != about.get(key)]
        if different:
            key = min(different)
            message = (
                f"the folder holds another run, with {key} {found.get(key)!r} "
                f"instead of {about.get(key)!r}"
            )
            raise ConfigError(message, hint="choose another folder, or repeat the same flags")

    def once(self, name: str, find_out: Callable[[], Any]) -> Any:
        """Return a result, found out now unless it was before. It must be JSON."""
        if name not in self._results:
            self._results[name] = find_out()
            text = json.dumps({"about": self._about, "results": self._results}, indent=1)
            with atomic_file(self.folder / FILE) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        return self._results[name]
