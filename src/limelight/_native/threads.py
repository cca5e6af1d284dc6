"""How many threads a process may use: its affinity, and the quota of its control group."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_threads(cgroup: Path = _CGROUP) -> int:
    """Count the processors that this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not every platform has affinities
        allowed = os.cpu_count() or 1
    quota = _cgroup_quota(cgroup)
    return max(1, min(allowed, quota)) if quota else allowed


def _cgroup_quota(cgroup: Path) -> int | None:
    """Read the processor quota of the control group, rounded up; None where there is none."""
    try:
        if (cgroup / "cpu.max").exists():
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text().strip()
        share = int(quota) / int(period)
    except (OSError, ValueError):  # no such files, or "max": no quota
        return None
    return math.ceil(share) if share > 0 else None
