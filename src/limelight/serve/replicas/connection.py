"""Addresses of Valkey and Redis servers, and clients that connect to them."""

from __future__ import annotations

import re
from typing import Any

from limelight._base.errors import ConfigError

_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix")


def public_address(url: str) -> str:
    """Return an address without its user and password.

    Examples
    --------
    >>> public_address("redis://me:secret@example.org:6379/0?password=secret")
    'redis://example.org:6379/0'
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        said = f"by its scheme: {scheme[:20]!r}" if separator else "because it has no scheme"
        message = f"not the address of a Valkey or Redis server, {said}"
        raise ConfigError(message, hint="such as redis://localhost:6379/0")
    place, *more = re.split(r"[?#]", rest, maxsplit=1)
    if "@" not in place and more and "@" in more[0]:
        return f"{scheme}://..."  # what is before the mark may be a part of a password
    return f"{scheme}://{place.rpartition('@')[2]}"


def connect(
    url: str, timeout: float, address: str
) -> tuple[Any, type[Exception], tuple[type[Exception], ...]]:
    """Return a client, and what it raises: of a broken connection, and of anything."""
    try:
        import valkey
    except ImportError as error:
        message = f"the ledger at {address} needs the package valkey"
        raise ConfigError(message, hint="pip install 'limelight[serve]'") from error
    given: dict[str, Any] = {"socket_timeout": timeout}
    if not url.startswith("unix:"):
        given |= {"socket_connect_timeout": timeout, "socket_keepalive": True}
    try:
        pools: Any = valkey.ConnectionPool  # without types
        pool = pools.from_url(url, **given)
        # Answers are read as they are by default, whatever the address asks for.
        pool.connection_kwargs |= {"decode_responses": False, "protocol": 2}
        pool.connection_class(**pool.connection_kwargs)  # which connects later
        client = valkey.Valkey.from_pool(pool)
    except (ValueError, TypeError):
        # Without the cause, which may quote the password.
        message = f"not the address of a server: {address}"
        raise ConfigError(message, hint="such as redis://localhost:6379/0") from None
    # What is not in our form, because somebody else wrote it, counts as a server that is away.
    rubbish = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
    return client, valkey.ConnectionError, (valkey.ValkeyError, OSError, *rubbish)
