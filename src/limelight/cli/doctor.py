"""``limelight doctor``: what limelight found on this machine."""

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

import typer

from limelight.cli.options import Json
from limelight.cli.output import aligned, report, size

_CPU_INFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "asimd")
_PACKAGES = ("numpy", "scipy", "pyarrow", "narwhals", "safetensors", "threadpoolctl")
_EXTRAS = {"plot": "matplotlib"}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(doctor)


def doctor(as_json: Json = False) -> None:
    """Show what limelight found on this machine.

    In: nothing. Out: processor, kernels, threads, memory and versions, for a bug report. The
    environment variable LIMELIGHT_KERNEL=avx512|avx2|baseline overrides the choice of kernels.

    \b
    Examples:
      limelight doctor
      limelight doctor --json
    """
    record = _examine()
    rows = [(name.replace("_", " "), _text(name, value)) for name, value in record.items()]
    report(aligned(rows, left=2), record, as_json=as_json)


def _examine() -> dict[str, Any]:
    from limelight._native import kernels, resolve_threads, variant
    from limelight.solve.memory import available_bytes
    from limelight.store.model_folder import package_version

    model, instructions = _processor()
    return {
        "limelight": package_version(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
        "processor": model,
        "instructions": instructions,
        "kernel": variant(),
        "kernels_available": kernels.variants(),
        "threads": resolve_threads(0),
        "memory_total": _total_memory(),
        "memory_available": available_bytes(),
        "blas": _blas(),
        **{name: _version(name) for name in _PACKAGES},
        **{f"extra_{extra}": _version(package) for extra, package in _EXTRAS.items()},
    }


def _processor() -> tuple[str, list[str]]:
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


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _blas() -> list[str]:
    import scipy.linalg  # noqa: F401  # SciPy brings a BLAS of its own
    from threadpoolctl import threadpool_info

    return [
        f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def _version(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _text(name: str, value: Any) -> str:
    if value is None:
        extra = name.removeprefix("extra_")
        return f"missing: pip install 'limelight[{extra}]'" if extra in _EXTRAS else "unknown"
    if name.startswith("memory"):
        return size(value)
    if isinstance(value, list):
        return ("; " if name == "blas" else ", ").join(value) or "none found"
    return str(value)
