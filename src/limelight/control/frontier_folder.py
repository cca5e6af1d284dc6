"""What is kept of a front that is being traced: in a folder, to go on from, or in memory.

frontier.json, frontier.parquet, frontier.png   the front, once it is complete
models/plain, models/exadmm-3, ...              the models of its points
exhibit/                                        what `limelight report` shows
state/notebook.json                             every point, as soon as it was found
state/sights/                                   who was shown what at every point
"""

from __future__ import annotations

import json
from collections import UserDict
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError, DataError
from limelight._base.files import atomic_file, delete_within, refuse_stranger
from limelight._base.signals import finishing
from limelight._base.text import short
from limelight.control.frontier_result import FrontierPoint
from limelight.models.ease import EASE
from limelight.models.folder import load_model
from limelight.report.exhibit import ShownLists
from limelight.report.exhibit_folder import load_shown_lists, save_exhibit, shown_arrays
from limelight.store.arrays import save_arrays
from limelight.store.checkpoint import FILE, Checkpoint, ResultCache

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from limelight.control.frontier_result import Frontier
    from limelight.models.exadmm import ExADMM

PLAIN = "plain"
_MODELS, _STATE, _SIGHTS = "models", "state", "sights"


class FrontierFits(UserDict[float, Any]):
    """The fits of a front by strength, in the order of its points.

    With a folder, models are kept there, and only the last fit stays in memory. Of EASE only the
    plain model is: other strengths share its inverse, which is nearly all that there is to keep.
    """

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._folder = folder

    def add_known(self, strength: float) -> None:
        """Take the next model of the folder for that of a strength."""
        self.data.setdefault(strength, None)

    def __setitem__(self, strength: float, model: ExADMM | EASE) -> None:
        is_kept = self._folder is not None and not (strength and isinstance(model, EASE))
        if is_kept:
            self.data = dict.fromkeys(self.data)
        self.data[strength] = model
        if is_kept:
            model.save(self._file(strength))

    def __getitem__(self, strength: float) -> Any:
        found, file = self.data[strength], self._file(strength)
        if found is None and strength and not file.exists():
            found = self[0.0].at_strength(strength)
        return load_model(file) if found is None else found

    def _file(self, strength: float) -> Path:
        number = list(self.data).index(strength)
        return Path(self._folder or "") / (f"exadmm-{number}" if number else PLAIN)


class FrontierFolder:
    """Points and models by name, in a folder or, without a path, in memory.

    ``about`` says what the front is of. A folder with any other front is refused, and so is one
    that holds something else.
    """

    def __init__(self, path: str | os.PathLike[str] | None, about: dict[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self.fits = FrontierFits(None if self._path is None else self._path / _MODELS)
        self._shown: dict[str, ShownLists] = {}
        self._notebook: ResultCache | None = None
        if self._path is not None:
            if self._path.exists() and not self._path.is_dir():
                message = f"the output is not a folder: {str(self._path)!r}"
                raise DataError(message, hint="choose another name")
            refuse_stranger(self._path, _may_go_on)
            self._notebook = ResultCache(self._path / _STATE, about)

    def once(self, name: str, find_out: Callable[[], FrontierPoint]) -> FrontierPoint:
        """Return a point: the one that was written down before, or else what ``find_out`` gives."""
        if self._notebook is None:
            return find_out()
        # A signal waits until the point is written down.
        with finishing():
            found = self._notebook.once(name, lambda: asdict(find_out()))
        point = FrontierPoint.from_dict(found)
        if f"{point.method}-{point.number}" != name:
            # Method and number name folders that are deleted, so a changed notebook must not be
            # able to name others.
            message = f"the folder holds another point in place of {name}: {short(point.method)}"
            raise DataError(message, hint="move the folder away to start anew")
        return point

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Where the fit that starts from scratch keeps how far it has come."""
        return None if self._path is None else Checkpoint(self._path / _STATE / "fit.checkpoint")

    def keep_shown(self, name: str, shown: ShownLists) -> None:
        """Keep who was shown what at a point."""
        if self._path is None:
            self._shown[name] = shown
        else:
            save_arrays(self._shown_file(name), shown_arrays(shown))

    def shown_at(self, point: FrontierPoint) -> ShownLists:
        """Return who was shown what; nothing, where an older version has traced the point."""
        name = f"{point.method}-{point.number}" if point.number else f"{PLAIN}-0"
        if self._path is None:
            return self._shown[name]
        file = self._shown_file(name)
        return load_shown_lists(file) if file.is_file() else ShownLists()

    def _shown_file(self, name: str) -> Path:
        return Path(self._path or "") / _STATE / _SIGHTS / f"{name}.safetensors"

    def finish(self, found: Frontier) -> Frontier:
        """Write the front, and delete the models that are not on it; says what was left out."""
        if self._path is None:
            return found
        for point in found.points:
            # Only models of points are deleted: the folder may hold what limelight did not write.
            if point.method == "exadmm" and point.number and not point.on_front:
                folder = self._path / _MODELS / f"{point.method}-{point.number}"
                delete_within(self._path, folder)
        try:
            found.plot(self._path / "frontier.png")
        except ConfigError as error:
            # Without matplotlib the figures are still there as numbers.
            found = replace(found, notes=(*found.notes, f"No figure: {error.hint}"))
        save_exhibit(self._path, found.exhibit())
        with atomic_file(self._path / "frontier.json") as temporary:
            temporary.write_text(json.dumps(found.to_dict(), indent=1) + "\n", encoding="utf-8")
        with atomic_file(self._path / "frontier.parquet") as temporary:
            import pyarrow.parquet as pq

            pq.write_table(found.to_table(), temporary)
        return found


def _may_go_on(folder: Path) -> bool:
    """Tell whether a folder holds a front, or no file at all, as after a start on a full disk."""
    return (folder / _STATE / FILE).is_file() or not any(
        path.is_file() and not path.name.startswith(".") for path in folder.rglob("*")
    )
