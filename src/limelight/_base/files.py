"""Files and folders that appear under their name only when they are complete.

Work happens under a temporary name beside the target, which is renamed at the end. Whatever
interrupts it (an error, Ctrl-C, a full disk, a kill), the old output stays as it was. A killed
process leaves its temporary file behind, a hidden name that ends in ".tmp"; the next one that
writes to the same place clears it away.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import hashlib
import os
import platform
import re
import secrets
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from limelight._base.errors import DataError, LimelightWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HINTS = {
    errno.ENOSPC: "free some space or choose another place; an older file is untouched",
    errno.EDQUOT: "free some of your quota or choose another place",
    errno.EACCES: "choose a place that you may write to",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that you may write to",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a part of the path is a file, not a folder",
    errno.EISDIR: "name a file, not a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENODEV: "the disk was unmounted meanwhile; bring it back and start again",
    errno.ENOENT: "check the path; a disk may have gone away",
    errno.EMFILE: "allow more open files (ulimit -n), or more memory where there is such a setting",
}
# Messages name a file in an incomplete folder by the folder's final name, which the user knows.
_TEMPORARY = re.compile(r"(^|[/\\])\.([^/\\]+)\.[0-9a-f]+-\d+-[0-9a-f]{8}\.tmp(?=[/\\])")
_FINAL = r"\1\2"


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file under a temporary name and rename it once it is complete.

    Missing parent folders are made. A link is followed, so that the file behind it is replaced.

    Parameters
    ----------
    path
        Where the file shall appear.

    Yields
    ------
    The temporary path, in the same folder, to write to and close before the block ends.

    Raises
    ------
    DataError
        If the file cannot be written; an older file is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_file(folder / "note.txt") as temporary:
    ...     size = temporary.write_text("complete")
    >>> [file.name for file in folder.iterdir()]
    ['note.txt']
    """
    with write_errors(path):
        target = _resolve(path)
        if target.exists() and not target.is_file():
            raise OSError(errno.EISDIR if target.is_dir() else errno.EINVAL, "")
        _sweep(target)
        temporary = _temporary(target)
        _OPEN.add(temporary)
        try:
            # Made at once: a place that cannot be written to is found before the work, not after.
            temporary.touch(exist_ok=False)
            device = temporary.stat().st_dev
            yield temporary
            _refuse_other_disk(temporary, device)
            sync(temporary)
            temporary.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        finally:
            _OPEN.discard(temporary)
        with _settled(target):
            sync(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def atomic_folder(
    path: str | os.PathLike[str], *, replace_if: Callable[[Path], bool]
) -> Iterator[Path]:
    """Fill a folder under a temporary name and rename it once it is complete.

    Parameters
    ----------
    path
        Where the folder shall appear. Missing parents are made.
    replace_if
        Asked about a folder that is already there; only if it says yes, or if that folder is
        empty, is it replaced.

    Yields
    ------
    The temporary folder, empty, beside the target.

    Raises
    ------
    DataError
        If something else is in the way, or if the folder cannot be written; an older folder is
        left as it was.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "model"
    >>> with atomic_folder(target, replace_if=lambda folder: False) as temporary:
    ...     size = (temporary / "config.json").write_text("{}")
    >>> [file.name for file in target.iterdir()]
    ['config.json']
    """
    with write_errors(path):
        target = _resolve(path)
        refuse_stranger(target, replace_if)
        _sweep(target)
        temporary = _temporary(target)
        _OPEN.add(temporary)
        try:
            temporary.mkdir()
            device = temporary.stat().st_dev
            yield temporary
            _refuse_other_disk(temporary, device)
            for file in sorted(temporary.rglob("*")):
                sync(file)
            sync(temporary)
            _swap(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            _OPEN.discard(temporary)
        with _settled(target):
            sync(target.parent)


@contextlib.contextmanager
def write_errors(path: str | os.PathLike[str], *, full: str | None = None) -> Iterator[None]:
    """Raise a failure of the operating system as a DataError that names what was written.

    Parameters
    ----------
    path
        What is written; the error names it.
    full
        What to do if there is no space, where choosing another output would not help.

    Examples
    --------
    >>> with write_errors("lists.parquet"):
    ...     raise OSError(errno.ENOSPC, "")
    Traceback (most recent call last):
    limelight._base.errors.DataError: cannot write 'lists.parquet': No space left on device
    ...
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"cannot write {_TEMPORARY.sub(_FINAL, os.fspath(path))!r}: {reason}"
        hint = hint_of(error) or "check the place and try again"
        if full and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            hint = full
        raise DataError(message, hint=hint) from error


@contextlib.contextmanager
def tidying(done: str) -> Iterator[None]:
    """Warn of a failure of the operating system once an output stands: it is no error any more.

    Parameters
    ----------
    done
        What is true all the same, such as that a file is written.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     with tidying("'model' is written"):
    ...         raise OSError(errno.EIO, "")
    >>> str(told[0].message)
    "'model' is written, but what was left over could not be tidied: Input/output error"
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"{done}, but what was left over could not be tidied: {reason}"
        warnings.warn(message, LimelightWarning, stacklevel=3)


def _settled(target: Path) -> contextlib.AbstractContextManager[None]:
    return tidying(f"{os.fspath(target)!r} is written")


def hint_of(error: OSError) -> str | None:
    """Say what to do about a failure of the operating system, if it is one of the usual ones."""
    return _HINTS.get(error.errno or 0)


def _resolve(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _temporary(target: Path, ending: str = "tmp") -> Path:
    owner = f"{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{owner}.{ending}")


def _sweep(target: Path) -> None:
    """Clear away what killed processes of this machine left beside the target."""
    for file in target.parent.glob(f".{glob.escape(target.name)}.{_HOST}-*-*.tmp"):
        owner = re.search(r"-(\d+)-[0-9a-f]{8}\.tmp$", file.name)
        if owner and file not in _OPEN and not _is_alive(int(owner[1])):
            shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if process == os.getpid():
        return False  # an earlier process had this number; what this one has open is in _OPEN
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_HOST = hashlib.blake2b(platform.node().encode(), digest_size=3).hexdigest()
_OPEN: set[Path] = set()
"""What this process is writing now."""


def refuse_stranger(target: Path, replace_if: Callable[[Path], bool]) -> None:
    """Refuse to replace what is not ours: a wrong path must not cost anybody their files."""
    if not target.exists():
        return
    if target.is_dir() and (not any(target.iterdir()) or replace_if(target)):
        return
    message = f"will not replace what limelight did not write: {os.fspath(target)!r}"
    raise DataError(message, hint="choose a new folder, or move the old one away first")


def delete_within(root: Path, folder: Path) -> None:
    """Delete a folder, unless a link on the way leads out of where it seems to lie.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "model").mkdir()
    >>> delete_within(root, root / "model")
    >>> (root / "model").exists()
    False
    """
    if folder.resolve().is_relative_to(root.resolve()):
        delete_folder(folder)


def delete_folder(folder: Path) -> None:
    """Delete a folder, if there is one, so that a kill leaves all of it or nothing under its name.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> folder.mkdir()
    >>> delete_folder(folder)
    >>> list(folder.parent.iterdir())
    []
    """
    _sweep(folder)
    if folder.is_dir():
        doomed = _temporary(folder)
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _swap(temporary: Path, target: Path) -> None:
    """Rename the new folder into place.

    Where the system can exchange two names, there is no moment without a folder. Elsewhere the old
    one steps aside and comes back on failure; only a kill between the two renames leaves it aside.
    """
    if not target.exists():
        temporary.rename(target)
        return
    if _exchange(temporary, target):
        _discard(temporary, target)
        return
    aside = _temporary(target, "old")
    target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    _discard(aside, target)


def _discard(old: Path, target: Path) -> None:
    """Delete what a new folder has replaced; that it could not be deleted is no error."""
    with _settled(target):
        shutil.rmtree(old)


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths swap what they name, at once; False where the system cannot."""
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _refuse_other_disk(temporary: Path, device: int) -> None:
    """Refuse a file whose disk was unmounted meanwhile: it was written to the disk below."""
    if temporary.stat().st_dev != device:
        raise OSError(errno.ENODEV, "")


def sync(path: Path) -> None:
    """Push a file or folder to the disk, so that a power cut after the rename loses nothing."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems cannot sync a folder; that is no failure of the write.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(handle)
