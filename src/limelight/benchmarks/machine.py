"""The machine that a run was made on."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any

from limelight._machine import blas, processor, total_memory, version_of
from limelight._native import resolve_threads, variant
from limelight.benchmarks.peers import PACKAGES, irspack_instructions
from limelight.store.model_folder import package_version


def describe_machine() -> dict[str, Any]:
    """Say what the times depend on, versions of the peers included.

    Examples
    --------
    >>> "kernel" in describe_machine()
    True
    """
    name, instructions = processor()
    memory = total_memory()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": name,
        "instructions": instructions,
        "threads": resolve_threads(0),
        "memory": None if memory is None else f"{memory / 2**30:.0f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
        "limelight": package_version(),
        "kernel": variant(),
        "blas": sorted(text.partition(",")[0] for text in blas()),
        **{name: version_of(name) for name in ("numpy", *PACKAGES, "pandas", "polars")},
        "irspack_is_built_for": irspack_instructions(),
    }
