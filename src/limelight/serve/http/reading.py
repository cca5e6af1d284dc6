"""Bodies of requests, read in bounded memory and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limelight._base.text import short
from limelight.serve.http.guard import Refusal, header_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

_CLOSE = {"Connection": "close"}
_DRAINED = 1 << 28
"""How much of a body that is too large is read and dropped, so that the client hears why."""


def require_type(scope: Scope, *kinds: str) -> None:
    """Refuse a body that is marked as another kind, or not at all.

    Browsers send such bodies across sites without asking, and those that are marked as JSON not.
    """
    given = (header_of(scope, b"content-type") or b"").partition(b";")[0].strip().lower()
    if given.decode("latin-1") not in kinds:
        shown = short(given.decode("latin-1")) if given else "nothing"
        message = f"the body must be marked as {kinds[0]}, not {shown}"
        raise Refusal(415, message, f"send the header 'Content-Type: {kinds[0]}'")
    coding = (header_of(scope, b"content-encoding") or b"identity").strip().lower()
    if coding != b"identity":
        message = f"the body must not be compressed: {short(coding.decode('latin-1'))}"
        raise Refusal(415, message, "leave the header Content-Encoding out")


async def read_body(scope: Scope, receive: Receive, most: int, seconds: float) -> bytes:
    """Read a body of at most so many bytes, in at most so many seconds."""
    length = header_of(scope, b"content-length")
    is_large = length is not None and (len(length) > 15 or int(length) > most)
    content = b""
    try:
        async with asyncio.timeout(seconds):
            if not is_large:
                message = await receive()
                _require_connected(message)
                content = message.get("body", b"")
                if not message.get("more_body"):
                    # Nearly always the whole body is there.
                    is_large = len(content) > most
                    if not is_large:
                        return content
                else:
                    rest, is_large = await _rest(receive, most - len(content))
                    content += rest
            if is_large:
                await _drain(scope, receive)
    except TimeoutError:
        if not is_large:
            text = f"the body took more than {seconds:g} seconds"
            raise Refusal(408, text, "send it at once", headers=_CLOSE) from None
    if is_large:
        hint = "name fewer items, or send several requests"
        raise Refusal(413, f"a body has at most {most:,} bytes", hint, headers=_CLOSE)
    return content


async def _rest(receive: Receive, most: int) -> tuple[bytes, bool]:
    parts, size = [], 0
    while True:
        message = await receive()
        _require_connected(message)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return b"", True
        if not message.get("more_body"):
            return b"".join(parts), False


async def _drain(scope: Scope, receive: Receive) -> None:
    """Drop the rest of a body, unless the client waits for leave to send it."""
    if header_of(scope, b"expect") is not None:
        return
    size = 0
    while size < _DRAINED:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return
        size += len(message.get("body", b""))


def _require_connected(message: object) -> None:
    if message["type"] == "http.disconnect":  # type: ignore[index]
        raise Gone


class Gone(Exception):
    """The client went away; nobody waits for an answer."""
