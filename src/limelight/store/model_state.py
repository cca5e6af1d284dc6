"""What a model folder knows of those whom it serves: what was asked for them, and a stream's state.

A state is read, changed and written back by one process at a time.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from limelight._base.errors import DataError
from limelight.store.arrays import save_arrays
from limelight.store.model_folder import CONTROL, CONTROL_ARRAYS, TARGET, read_object

try:
    import fcntl
except ImportError:  # Windows has no such locks, so streams are served there without them.
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray


def load_promise(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Read what was asked of the exposure of a model's lists, if something was."""
    root = Path(path)
    if not (root / TARGET).exists():
        return None
    found = read_object(root, TARGET)
    try:
        at, served = found["target"]["at"], found["served"]
        numbers = [at, served["users"], served[f"gini@{at}"]]
        is_whole = all(isinstance(number, int | float) for number in numbers)
    except (KeyError, TypeError):
        is_whole = False
    if not (is_whole and isinstance(found.get("population"), str)):
        message = f"{TARGET} of model folder {str(root)!r} does not say what was asked for whom"
        raise DataError(message, hint="the file is damaged; save the model again")
    return found


@contextmanager
def locked_state(
    path: str | os.PathLike[str], note: Callable[[str], None]
) -> Iterator[Callable[[Mapping[str, NDArray[Any]]], None]]:
    """Keep other processes from changing the state of a model folder meanwhile.

    Yields what writes the state back, whole or not at all. Whoever comes second waits, and is told
    so by ``note``. A folder that was replaced in the meantime is left as it is.
    """
    root = Path(path)
    with _locked(root, note) as held:

        def write(arrays: Mapping[str, NDArray[Any]]) -> None:
            if not _is_same(held.fileno(), root / CONTROL):
                message = f"another model was saved to {str(root)!r} while users were served"
                raise DataError(message, hint="serve them again, with the model that is there now")
            save_arrays(root / CONTROL_ARRAYS, arrays)

        yield write


def _locked(root: Path, note: Callable[[str], None]) -> BinaryIO:
    """Open and lock a folder; whoever waited for a model that was replaced takes the new one."""
    while True:
        try:
            held: BinaryIO = (root / CONTROL).open("r+b")  # locks over a network need a writer
        except PermissionError:
            held = (root / CONTROL).open("rb")
        try:
            if fcntl is not None:
                _lock(held.fileno(), root, note)
            if _is_same(held.fileno(), root / CONTROL):
                return held
        except BaseException:
            held.close()
            raise
        held.close()


def is_writable(path: str | os.PathLike[str]) -> bool:
    """Tell whether the state of a model folder can be written back."""
    return os.access(path, os.W_OK)


def _lock(file: int, root: Path, note: Callable[[str], None]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            message = f"the folder {str(root)!r} cannot be locked: {error.strerror}"
            hint = "copy the model to a local disk, or serve with --no-update"
            raise DataError(message, hint=hint) from error
        note(f"Another process serves from {root}; this one waits until it is done.")
        fcntl.flock(file, fcntl.LOCK_EX)


def _is_same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
