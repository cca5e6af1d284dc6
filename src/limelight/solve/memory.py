"""How much memory a fit takes, before it takes it."""

from __future__ import annotations

import os
from pathlib import Path

from limelight.solve.problem import padded_width

_FLOAT = 4
_INDEX = 4
_POINTER = 8


def fit_bytes(*, n_users: int, n_items: int, n_entries: int, factors: int, threads: int) -> int:
    """Estimate the bytes that a fit takes beside the interactions themselves.

    The factors are held once, and once more while a traced epoch is compared with the one before.
    The larger side is also rotated into a copy. The interactions are held by item as well.

    Examples
    --------
    >>> fit_bytes(n_users=1000, n_items=100, n_entries=5000, factors=64, threads=1) // 1024
    972
    """
    width = padded_width(factors)
    both_sides = (n_users + n_items) * width * _FLOAT
    rotated = max(n_users, n_items) * width * _FLOAT
    by_item = n_entries * _INDEX + (n_items + 1) * _POINTER
    per_row = (n_users + n_items) * 2 * _FLOAT
    scratch = threads * 3 * width * (width + 128) * _FLOAT
    return 2 * both_sides + rotated + by_item + per_row + scratch


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the memory that a process may still take; None where the system does not say.

    Both the machine's free memory and the limit of a control group count.
    """
    found = [_free_memory(), _cgroup_room(root / "sys" / "fs" / "cgroup")]
    known = [room for room in found if room is not None]
    return min(known) if known else None


def _free_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError):
        return None


def _cgroup_room(cgroup: Path) -> int | None:
    """Return what the control group's limit leaves, for both versions of control groups."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return int((cgroup / limit).read_text()) - int((cgroup / used).read_text())
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
    return None
