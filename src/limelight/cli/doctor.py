"""``limelight doctor``: what limelight found on this machine."""

import platform
from typing import Any

from limelight._base.documents import Table
from limelight._base.memory import size
from limelight.cli.flags import Json
from limelight.cli.output import report

_PACKAGES = ("numpy", "scipy", "pyarrow", "narwhals", "safetensors", "threadpoolctl")
_EXTRAS = {"plot": "matplotlib", "neural": "jax", "ray": "ray", "bench": "irspack"}


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
    report(Table((), rows, left=2).text(), record, as_json=as_json)


def _examine() -> dict[str, Any]:
    from limelight._base.machine import blas, package_version, processor, total_memory, version_of
    from limelight._base.memory import room
    from limelight._native import kernels, resolve_threads, variant

    model, instructions = processor()
    return {
        "limelight": package_version(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
        "processor": model,
        "instructions": instructions,
        "kernel": variant(),
        "kernels_available": kernels.variants(),
        "threads": resolve_threads(0),
        "memory_total": total_memory(),
        "memory_available": room(),
        "blas": blas(),
        **{name: version_of(name) for name in _PACKAGES},
        **{f"extra_{extra}": version_of(package) for extra, package in _EXTRAS.items()},
    }


def _text(name: str, value: Any) -> str:
    if value is None:
        extra = name.removeprefix("extra_")
        return f"missing: pip install 'limelight[{extra}]'" if extra in _EXTRAS else "unknown"
    if name.startswith("memory"):
        return size(value)
    if isinstance(value, list):
        return ("; " if name == "blas" else ", ").join(value) or "none found"
    return str(value)
