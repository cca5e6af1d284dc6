"""What the machine is, what is installed on it, and how many threads a process may use."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable

_OURS = {"limelight", "limelight.exe"}
_CPU_INFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "asimd")


def processor() -> tuple[str, list[str]]:
    """Name the processor and those of its instruction sets that the kernels care about."""
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine(), []
    pairs = [line.partition(":") for line in lines]
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    flags = facts.get("flags", facts.get("Features", "")).split()
    model = facts.get("model name", platform.machine())
    return model, [name for name in _INSTRUCTIONS if name in flags]


def command_line() -> list[str] | None:
    """Return the words of the command that this process runs; None if it is not limelight's."""
    program = Path(sys.argv[0])
    is_ours = program.name in _OURS or program.parts[-2:] == ("limelight", "__main__.py")
    return ["limelight", *sys.argv[1:]] if is_ours else None


def total_memory() -> int | None:
    """Return the bytes of memory that the machine has; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def blas() -> list[str]:
    """Describe the BLAS libraries that NumPy and SciPy brought."""
    import scipy.linalg  # noqa: F401  # SciPy brings a BLAS of its own
    from threadpoolctl import threadpool_info

    return [
        f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def version_of(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


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


def package_version() -> str:
    """Give the version of limelight, "0+unknown" in a tree that is not installed."""
    try:
        return importlib.metadata.version("limelight")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


SGEMM_SIZE = 2048
"""Rows and columns of the matrices whose product shows the machine's peak."""


def matrix_product(threads: int) -> Callable[[], object]:
    """Make the function that multiplies two large matrices with so many threads of BLAS."""
    draw = np.random.default_rng(0)
    A = draw.standard_normal((SGEMM_SIZE, SGEMM_SIZE), dtype=np.float32)
    B, out = A.T.copy(), np.empty_like(A)
    pools = ThreadpoolController()

    def run() -> None:
        with pools.limit(limits=threads, user_api="blas"):
            np.matmul(A, B, out=out)

    return run


def peak(threads: int, rounds: int) -> float:
    """Measure the operations a second of a matrix product, by wall-clock time."""
    product, seconds = matrix_product(threads), []
    for _ in range(rounds + 1):  # the first one warms up
        started = time.perf_counter()
        product()
        seconds.append(time.perf_counter() - started)
    return 2.0 * SGEMM_SIZE**3 / min(seconds[1:])
