"""Checkpoints of unfinished work, written whole or not at all and taken up by the same call.

A :class:`Checkpoint` holds the state of one piece of work, a :class:`ResultCache` the results that
a longer run has so far.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from limelight._base.errors import ConfigError, DataError, LimelightError
from limelight._base.files import (
    atomic_folder,
    delete_folder,
    refuse_stranger,
    tidying,
    write_text,
)
from limelight._base.machine import package_version
from limelight._base.printable import printable
from limelight._base.signals import Terminated, finishing
from limelight._base.text import first_words, short
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.json import read_json
from limelight.store.snapshot_fields import (
    DamagedCheckpointError,
    OtherCheckpointError,
    Refused,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray


if TYPE_CHECKING:
    Place: TypeAlias = "Checkpoint | str | os.PathLike[str] | None"

EVERY = 60.0
"""Seconds between checkpoints: what a kill may cost."""
GOES_ON = "the same call goes on from here"
"""What a signal that ends the work carries as a note, if there is a checkpoint."""
_RECORD, _ARRAYS = "checkpoint.json", "checkpoint.safetensors"


class Snapshot(NamedTuple):
    """How far work has come."""

    record: dict[str, Any]
    """JSON."""
    arrays: dict[str, NDArray[Any]]


class Checkpointing(Protocol):
    """Keeps how far a piece of work has come."""

    def load(self, about: Mapping[str, Any]) -> Snapshot | None:
        """Return how far work of this kind has come."""
        ...

    def keeping(self) -> AbstractContextManager[Callable[..., bool]]:
        """Save work while it goes on; see :func:`checkpointing`."""
        ...


def as_checkpoint(place: Place) -> Checkpoint | None:
    """Make a checkpoint of a path."""
    return place if isinstance(place, Checkpoint) or place is None else Checkpoint(place)


def digest(*arrays: NDArray[Any] | None) -> str | None:
    """Digest arrays into 16 hexadecimal digits; None where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> digest(np.arange(3)) == digest(np.arange(3.0)), digest(None)
    (False, None)
    """
    if any(array is None for array in arrays):
        return None
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        whole = np.ascontiguousarray(array)
        found.update(f"{whole.dtype.str}{whole.shape}".encode())
        found.update(whole.data)
    return found.hexdigest()


def digest_ids(ids: Any) -> str:
    """Digest ids, integers or strings, into 16 hexadecimal digits.

    Examples
    --------
    >>> digest_ids(["a", "b"]) == digest_ids(["b", "a"])
    False
    """
    return hashlib.blake2b(json.dumps(list(map(str, ids))).encode(), digest_size=8).hexdigest()


def digest_files(*paths: Path) -> str:
    """Digest the contents of files, and of the files of folders, into 16 hexadecimal digits."""
    found = hashlib.blake2b(digest_size=8)
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file()) or [path]
        for file in files:
            found.update(f"{file.relative_to(path)} {file.stat().st_size}\n".encode())
            with file.open("rb") as content:
                while block := content.read(1 << 20):
                    found.update(block)
    return found.hexdigest()


class Checkpoint:
    """Keeps how far a piece of work has come.

    Parameters
    ----------
    path
        The folder; only a checkpoint is ever replaced.
    every
        Seconds between two saves; 0 saves whenever it can.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> checkpoint = Checkpoint(tempfile.mkdtemp() + "/fit.checkpoint")
    >>> checkpoint.load({"kind": "a fit", "data": "a"}) is None
    True
    >>> checkpoint.save({"epoch": 3}, {"U": np.ones(2)})
    >>> checkpoint.load({"kind": "a fit", "data": "a"}).record
    {'epoch': 3}
    """

    def __init__(self, path: str | os.PathLike[str], every: float = EVERY) -> None:
        self.path, self._every = Path(path), every
        self._about: dict[str, Any] = {}
        self._saved = time.monotonic()
        refuse_stranger(self.path, _is_checkpoint)

    def load(self, about: Mapping[str, Any]) -> Snapshot | None:
        """Return how far the work has come; None if there is nothing to take up.

        Parameters
        ----------
        about
            What the work is of, as JSON, its ``kind`` in words such as "a fit". A checkpoint of
            anything else is refused.
        """
        self._about = described(about)
        if not self.exists:
            return None
        record = read_record(self.path / _RECORD, self._about)
        try:
            return Snapshot(record, load_arrays(self.path / _ARRAYS))
        except DataError as error:
            message = f"cannot read the checkpoint {str(self.path)!r}: {error.message}"
            hint = "delete it to start from the beginning"
            raise DamagedCheckpointError(message, hint=hint) from error

    @property
    def exists(self) -> bool:
        """Whether there is something to take up."""
        return _is_checkpoint(self.path)

    def is_due(self) -> bool:
        """Tell whether it is time to save."""
        return self.is_due_since(self._saved)

    def is_due_since(self, moment: float) -> bool:
        """Tell whether it is time to save, if that was last done at a moment."""
        return time.monotonic() - moment >= self._every

    def save(self, record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write how far the work has come, in place of what was there."""
        with atomic_folder(self.path, replace_if=_is_checkpoint) as temporary:
            save_arrays(temporary / _ARRAYS, arrays)
            text = json.dumps({"about": self._about, "record": record})
            (temporary / _RECORD).write_text(text + "\n", encoding="utf-8")
        self._saved = time.monotonic()

    @contextmanager
    def keeping(self) -> Iterator[Callable[..., bool]]:
        """Save when it is time, and before a signal passes that arrived meanwhile."""
        try:
            with finishing() as is_asked:

                def keep(make_snapshot: Callable[..., Snapshot], *parts: Any) -> bool:
                    if is_asked() or self.is_due():
                        self.save(*make_snapshot(*parts))
                    return is_asked()

                yield keep
        except (KeyboardInterrupt, Terminated) as end:
            if self.exists:
                end.add_note(GOES_ON)
            raise

    def part(self, name: str) -> Checkpoint:
        """Return the checkpoint of a part of the work, inside this one; save this one before."""
        return Checkpoint(self.path / name, self._every)

    def remove(self) -> None:
        """Delete the checkpoint: the work is complete, or to be done anew."""
        if self.exists or not self.path.exists():
            delete_folder(self.path)


def described(about: Mapping[str, Any]) -> dict[str, Any]:
    """Say of which kind work is, of what and by which version, as it comes back from JSON."""
    words = {**about, "kind": about["kind"], "limelight": package_version()}
    found: dict[str, Any] = json.loads(json.dumps(words))
    return found


def read_record(path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Read how far work has come; work of anything else is refused."""
    place = str(path.parent)
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        found, record = dict(stored["about"]), dict(stored["record"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"cannot read the checkpoint {place!r}: {first_words(error)}"
        raise DamagedCheckpointError(
            message, hint="delete it to start from the beginning"
        ) from error
    if found.get("kind") != about["kind"]:
        message = f"the checkpoint {place!r} is of {kind_of(found)}, not of {about['kind']}"
        hint = "choose another output, or delete the checkpoint to start from the beginning"
        raise OtherCheckpointError(message, hint=hint)
    name = _first_difference(found, about)
    if name is not None:
        message = (
            f"the checkpoint {place!r} is of another run, with {name} "
            f"{found.get(name)!r} instead of {about.get(name)!r}"
        )
        hint = "repeat the same call, or delete the checkpoint to start from the beginning"
        raise OtherCheckpointError(message, hint=hint)
    return record


@contextmanager
def checkpointing(place: Checkpointing | None) -> Iterator[Callable[..., bool]]:
    """Save work whenever that is due, and before a signal ends it.

    Parameters
    ----------
    place
        Where to save; None saves nothing, and lets a signal end the work at once.

    Yields
    ------
    A function to call after every piece of work, with a function that makes a :class:`Snapshot` and
    the arguments of that. If it returns True, a signal has arrived and the work is to stop.
    """
    if place is None:
        yield lambda *_: False
        return
    with place.keeping() as keep:
        yield keep


def _first_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    names = (name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    return min(names, default=None)


def kind_of(about: Mapping[str, Any]) -> str:
    """Say of which kind work is that was described."""
    kind = about.get("kind")
    return printable(kind) if isinstance(kind, str) and kind else "another kind of work"


def _is_checkpoint(path: Path) -> bool:
    return (path / _RECORD).is_file()


@contextmanager
def until_done(kept: Checkpoint) -> Iterator[None]:
    """Delete a checkpoint once the work is done, or has failed for good.

    It stays after an error of the system, such as a full disk, and after a kill, because the same
    call may then succeed later; and where it is of other work, which is not ours to delete.
    """
    try:
        yield
    except LimelightError as error:
        if not isinstance(error.__cause__, OSError) and not isinstance(error, Refused):
            with suppress(OSError):
                kept.remove()
        raise
    with tidying(f"the work of the checkpoint {str(kept.path)!r} is done"):
        kept.remove()


FILE = "notebook.json"


class ResultCache:
    """Results by name, written after each of them.

    Parameters
    ----------
    folder
        Where the file of results lies; it is made if need be.
    about
        What the results belong to. Results of anything else are refused.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> ResultCache(folder, {"data": "a"}).once("sum", lambda: 1 + 1)
    2
    >>> ResultCache(folder, {"data": "a"}).once("sum", lambda: 0 / 0)
    2
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._about = dict(about)
        self._results: dict[str, Any] = {}
        if (folder / FILE).exists():
            self._read(json.loads(json.dumps(about)))
        else:
            # Written before the work, so that a place that cannot be written to is found now, and
            # so that a run with other settings refuses the folder.
            self._write()

    def _read(self, about: dict[str, Any]) -> None:
        try:
            stored = read_json(self.folder / FILE)
            found, self._results = dict(stored["about"]), dict(stored["results"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"cannot read {str(self.folder / FILE)!r}: {first_words(error)}"
            raise DataError(message, hint="move it away to start anew") from error
        if found.get("kind") != about.get("kind"):
            message = f"the folder holds {kind_of(found)}, not {about.get('kind')}"
            raise ConfigError(message, hint="choose another folder")
        key = _first_difference(found, about)
        if key is not None:
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
        write_text(self.folder / FILE, text + "\n")
