"""Fits and lists on more than one machine; only the folder ``ray`` knows Ray."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.cluster.collectives import run_locally
    from limelight.cluster.fit import CheckpointOptions, fit_shards
    from limelight.cluster.ray.executor import RayExecutor
    from limelight.cluster.ray.run import run_on_ray

__all__ = ["CheckpointOptions", "RayExecutor", "fit_shards", "run_locally", "run_on_ray"]

# A name is loaded when it is first used: a forecast needs none of them, and Ray takes long.
_MODULE_OF = {
    "CheckpointOptions": "fit",
    "RayExecutor": "ray.executor",
    "fit_shards": "fit",
    "run_locally": "collectives",
    "run_on_ray": "ray.run",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _MODULE_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
