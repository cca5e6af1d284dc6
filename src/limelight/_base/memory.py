"""How much memory a process holds and may hold, and refusing work that would not fit.

What a process may hold is the smallest of what the machine has left, what its control groups leave
it, and what `ulimit -v` does. The variable LIMELIGHT_MEMORY, such as 8GiB, overrides that.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from limelight._base.errors import ConfigError, MemoryLimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "LIMELIGHT_MEMORY"
ARROW = 48 << 20
"""What Arrow takes at its first use: its code, its threads and the buffers of a reader."""
_RESERVED = 128 << 20
"""Addresses that libraries and threads reserve and never write to."""
_ROOT = Path("/")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def resident() -> int:
    """Return the bytes of memory that this process holds now; 0 where the system does not say.

    Examples
    --------
    >>> resident() >= 0
    True
    """
    return _status("VmRSS")


def peak() -> int:
    """Return the most bytes of memory that this process ever held; 0 where nobody says.

    Examples
    --------
    >>> resident() <= peak()
    True
    """
    return _status("VmHWM")


def limit(root: Path = _ROOT) -> int | None:
    """Return how many bytes of memory this process may hold in all; None where nobody says.

    Parameters
    ----------
    root
        Where the system's own folders are.
    """
    if stated := os.environ.get(VARIABLE):
        return parse_size(stated)
    left = room(root)
    return None if left is None else resident() + left


def room(root: Path = _ROOT) -> int | None:
    """Return how many more bytes of memory this process may take; None where nobody says."""
    found = (_free_memory(root), _control_group_room(root), _address_room())
    known = [left for left in found if left is not None]
    return max(0, min(known)) if known else None


def require(needed: int, what: str, *, hint: str) -> int | None:
    """Refuse what needs more memory than this process may hold; return how much that is.

    Parameters
    ----------
    needed
        How much the process would hold in all at the peak.
    what
        What would need it, for the message.
    hint
        What would fit.
    """
    most = limit()
    if most is not None and needed > most:
        message = f"{what} takes about {size(needed)} of memory, and there are {size(most)}"
        raise MemoryLimitError(message, hint=f"{hint}; if there is more, say so: {VARIABLE}=8GiB")
    return most


def size(n_bytes: int) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> size(3 * 2**30), size(250_000_000)
    ('3.0 GiB', '238 MiB')
    """
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"


def parse_size(text: str) -> int:
    """Read a number of bytes that a person wrote; units are powers of 1,024.

    Examples
    --------
    >>> parse_size("1.5GiB") == parse_size("1536 m") == 1536 * 2**20
    True
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        message = f"{VARIABLE} must be a size such as 8GiB or 500MiB: {text!r}"
        raise ConfigError(message, hint="leave it out to go by what the system says")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _status(name: str) -> int:
    """Look up a size in what the system says about this process."""
    return _sizes(Path("/proc/self/status")).get(name, 0)


def _sizes(path: Path) -> dict[str, int]:
    """Read the lines of a file of the system that are sizes in kB, in bytes."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[2:] == ["kB"]}


def _free_memory(root: Path) -> int | None:
    if found := _sizes(root / "proc" / "meminfo").get("MemAvailable"):
        return found
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _address_room() -> int | None:
    """Return what `ulimit -v` leaves; it counts reserved addresses, not only used memory."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most - _status("VmSize") - _RESERVED


class _Files(NamedTuple):
    """The names under which a version of control groups tells what is allowed and taken."""

    most: str
    taken: str
    cache: tuple[str, str]
    """Of memory.stat: what is taken for files and given back when it is needed."""


_VERSION_1 = _Files(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_active_file", "total_inactive_file"),
)
_VERSION_2 = _Files("memory.max", "memory.current", ("active_file", "inactive_file"))


def _control_group_room(root: Path) -> int | None:
    """Return what the control groups of this process leave, the tightest one."""
    left = [_group_room(*group) for group in _control_groups(root)]
    return min((room for room in left if room is not None), default=None)


def _control_groups(root: Path) -> Iterator[tuple[Path, _Files]]:
    """Name the folder of every group that this process is in: its own, and those around it."""
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    mounted = root / "sys" / "fs" / "cgroup"
    for line in lines:
        _, kinds, path = line.split(":", 2)
        own = PurePosixPath(path.lstrip("/"))
        for group in (own, *own.parents):
            if not kinds:
                yield mounted / group, _VERSION_2
            elif "memory" in kinds.split(","):
                yield mounted / "memory" / group, _VERSION_1


def _group_room(folder: Path, files: _Files) -> int | None:
    """Return what a group's limit leaves, if it has one."""
    try:
        most, taken = (int((folder / name).read_text()) for name in (files.most, files.taken))
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no such group from here, or "max": no limit
        return None
    counts = dict(line.split() for line in lines)
    return most - taken + sum(int(counts.get(name, 0)) for name in files.cache)
