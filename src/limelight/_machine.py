"""What the machine is and what is installed on it, for bug reports and benchmarks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "asimd")


def processor() -> tuple[str, list[str]]:
    """Name the processor and those of its instruction sets that the kernels care about.

    Examples
    --------
    >>> name, instructions = processor()
    >>> isinstance(name, str)
    True
    """
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine(), []
    pairs = [line.partition(":") for line in lines]
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    flags = facts.get("flags", facts.get("Features", "")).split()
    model = facts.get("model name", platform.machine())
    return model, [name for name in _INSTRUCTIONS if name in flags]


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
    """Return the version of a package; None if it is not installed.

    Examples
    --------
    >>> version_of("no_such_package") is None
    True
    """
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
