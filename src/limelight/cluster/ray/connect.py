"""The connection to a Ray cluster, or to one of this machine alone that is started and ended here.

Ray is an optional dependency, so it is imported only inside functions, and :func:`require_ray` says
how to install it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.text import first_words
from limelight._native import resolve_threads

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_ray() -> None:
    """Say how to install Ray, where it is missing."""
    try:
        import ray
    except ImportError as error:
        message = f"work on a cluster needs Ray: {error}"
        raise ConfigError(message, hint="pip install 'limelight[ray]'") from error
    del ray


_PROBE_SECONDS = 10.0


@contextmanager
def connected(address: str | None, cores: int | None = None) -> Iterator[None]:
    """Connect to a cluster for a ``with`` block; afterwards end only a cluster started here.

    Parameters
    ----------
    address
        Where the head of the cluster listens, such as ``"10.0.0.1:6379"``. None takes the one in
        the environment variable ``RAY_ADDRESS``, which ``ray job submit`` sets; without it, a
        cluster on this machine is started. A process that is connected already stays so.
    cores
        How many cores a cluster that is started here has; those of this machine unless given.

    Raises
    ------
    ConfigError
        If Ray is not installed, or no cluster answers.
    """
    # Ray reports dead workers on the standard output, where our results go. It reads this once,
    # when it is imported.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    require_ray()
    import ray

    if ray.is_initialized():
        yield
        return
    _connect(address or os.environ.get("RAY_ADDRESS"), cores or resolve_threads(0))
    try:
        yield
    finally:
        ray.shutdown()


def _connect(address: str | None, cores: int) -> None:
    import ray

    where: dict[str, Any] = {"address": address}
    if not address:
        where = {"address": "local", "num_cpus": cores, "include_dashboard": False}
    try:
        if address:
            _probe(address)
        with _own_signals():
            ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        message = f"cannot connect to a Ray cluster at {address or 'local'!r}: {first_words(error)}"
        hint = "start one with: ray start --head, with the same versions of Python and Ray"
        raise ConfigError(message, hint=hint) from of_the_system(error)


def of_the_system(error: Exception) -> OSError:
    """Return an OSError as the cause of a failure, by which callers keep what can be resumed."""
    found = ConnectionError(str(error))
    found.__cause__ = error
    return found


def _probe(address: str) -> None:
    """Fail at once if nothing listens at an address; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if "://" in address:
        message = (
            "the driver must be on a machine of the cluster itself, so that 'ray://' is no use"
        )
        raise ValueError(message)
    if host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS).close()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handler of SIGTERM, which Ray overwrites by one that ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
