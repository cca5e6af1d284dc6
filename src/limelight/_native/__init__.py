"""The compiled kernels and the threads they may use.

The build holds one set of kernels per instruction set. The fastest that the processor can run is
used; the environment variable ``LIMELIGHT_KERNEL`` (``avx512``, ``avx2`` or ``baseline``) overrides
that choice, to compare variants or to rule one out.
"""

from __future__ import annotations

import copyreg
import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from limelight._base.errors import ConfigError, LimelightError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

try:
    from limelight._native import _kernels as kernels
except ImportError as error:  # pragma: no cover - needs a broken installation
    message = f"limelight's compiled kernels cannot be loaded: {error}"
    raise LimelightError(
        message, hint="install again with: pip install --force-reinstall limelight"
    ) from error

from limelight._base.machine import available_threads

__all__ = ["kernels", "resolve_threads", "use_variant", "variant"]


def _rebuilt(rows: kernels.Csr) -> tuple[type[kernels.Csr], tuple[Any, ...]]:
    """Say what rows of interactions are made from, which is what a pickle or a copy holds."""
    return kernels.Csr, (rows.indptr, rows.indices, rows.n_columns, rows.weights)


# Fitted models hold such rows, and are pickled and copied like any other estimator.
copyreg.pickle(kernels.Csr, _rebuilt)


def variant() -> str:
    """Name the kernel variant in use.

    Examples
    --------
    >>> variant() in kernels.variants()
    True
    """
    _obey_environment()
    return kernels.variant()


@contextmanager
def use_variant(name: str) -> Iterator[None]:
    """Use another kernel variant inside a ``with`` block.

    Examples
    --------
    >>> with use_variant("baseline"):
    ...     variant()
    'baseline'
    """
    before = variant()
    _choose(name, "kernel variant")
    try:
        yield
    finally:
        kernels.use_variant(before)


def resolve_threads(num_threads: int) -> int:
    """Turn the setting ``num_threads`` into a number of threads; 0 means all that may be used."""
    _obey_environment()
    if num_threads < 0:
        message = f"num_threads must not be negative: {num_threads}"
        raise ConfigError(message, hint="0 uses every processor that the process may use")
    return num_threads or available_threads()


def _choose(name: str, source: str) -> None:
    if name not in kernels.variants():
        message = f"{source} not available on this processor: {name!r}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(kernels.variants())}")
    kernels.use_variant(name)


@cache
def _obey_environment() -> None:
    """Take the variant from the environment, once and before any work.

    Not on import, because a wrong value would then stop programs that use no kernel at all.
    """
    name = os.environ.get("LIMELIGHT_KERNEL")
    if name:
        _choose(name, "LIMELIGHT_KERNEL")
