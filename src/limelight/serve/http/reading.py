"""Bodies of requests, read in bounded memory and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limelight._base.text import short
from limelight.serve.http.guard import GoneError, Refusal, header_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

_CLOSE = {"Connection": "close"}
_FULL = _CLOSE | {"Retry-After": "1"}
_LESS = "come back later, or start more replicas"
_DROPPED = 1 << 28
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
        # What is small when it is sent could be of any size when it is read.
        message = f"the body must not be compressed: {short(coding.decode('latin-1'))}"
        raise Refusal(415, message, "leave the header Content-Encoding out")


class BodyRoom:
    """How many bytes the bodies of all clients may have that have no end yet.

    Otherwise many clients that each send all but the end of one would fill the memory.
    """

    def __init__(self, most: int = 1 << 27) -> None:
        self.left = most


async def read_body(
    scope: Scope, receive: Receive, most: int, seconds: float, room: BodyRoom | None = None
) -> bytearray:
    """Read a body of at most so many bytes, in at most so many seconds."""
    room = room or BodyRoom(most)
    length = header_of(scope, b"content-length")
    is_large = length is not None and int(length) > most
    # Whoever waits for leave to send a body that is too large does not get it.
    is_more = not (is_large and header_of(scope, b"expect") is not None)
    content, dropped = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            while is_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                is_more = message.get("more_body", False)
                part = message.get("body", b"")
                content += part
                room.left -= len(part)
                if is_large or len(content) > most:
                    is_large, dropped = True, dropped + len(content)
                    is_more = is_more and dropped < _DROPPED
                    room.left += len(content)
                    content.clear()
                elif is_more and room.left < 0:
                    raise Refusal(503, "too many bodies are being sent", _LESS, headers=_FULL)
    except TimeoutError:
        if not is_large:
            text = f"the body took more than {seconds:g} seconds"
            raise Refusal(408, text, "send it at once", headers=_CLOSE) from None
    finally:
        room.left += len(content)
    if is_large:
        hint = "name fewer items, or send several requests"
        raise Refusal(413, f"a body has at most {most:,} bytes", hint, headers=_CLOSE)
    return content
