"""Many requests in one call: a line of JSON each, answered in order while the rest is worked on."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from starlette.responses import Response

from limelight._base.errors import DataError
from limelight.serve.http import wire
from limelight.serve.http.guard import MISTAKE, GoneError, Refusal, detail_of
from limelight.serve.http.reading import read_body
from limelight.serve.http.wire import ENCODE, ErrorAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.types import Receive, Scope, Send

    from limelight.serve.http.settings import ServiceLimits

    Answering: TypeAlias = Callable[[wire.BatchLine, str, float], Awaitable[wire.ListedAnswer]]

LOG = logging.getLogger("limelight.serve")
_LINE = msgspec.json.Decoder(wire.BatchLine)
_TIMES = 6
"""How much longer than another body that of a batch may take."""
_AT_ONCE = 32
"""How many lines of a batch wait for their lists, so that other requests have room."""
_PATIENCE = 30.0
_PAUSE = 0.05
"""Seconds that a line waits for room while others have it, and after which it tries again."""


class BatchResponse(Response):
    """The answers to the lines of a body.

    Parameters
    ----------
    limits
        Of the body, and of a line.
    room
        Held from the first byte to the last answer, because so long its memory is taken.
    answer
        Makes one list.
    """

    media_type = "application/x-ndjson"

    def __init__(self, limits: ServiceLimits, room: asyncio.Semaphore, answer: Answering) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._limits, self._room, self._make = limits, room, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the lines, and send the answers as they come."""
        async with self._room:
            most, seconds = self._limits.batch_bytes, _TIMES * self._limits.body_seconds
            content = await read_body(scope, receive, most, seconds)
            if content.count(b"\n") > wire.MOST_LINES:
                message = f"a batch has at most {wire.MOST_LINES:,} lines"
                raise Refusal(413, message, "send several batches")
            await self._stream(content, scope, receive, send)

    async def _stream(self, content: bytearray, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(receive())
        tasks: deque[asyncio.Task[bytes]] = deque()
        n_lines = 0

        async def send_first() -> None:
            line = await tasks.popleft()
            if gone.done():
                raise GoneError
            await send({"type": "http.response.body", "body": line, "more_body": True})

        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            for number, line in _lines(content):
                n_lines += 1
                tasks.append(asyncio.create_task(self._answer(line, number)))
                if len(tasks) == _AT_ONCE:
                    await send_first()
            while tasks:
                await send_first()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            scope["limelight"]["lines"] = n_lines
            for waiting in (gone, *tasks):
                waiting.cancel()

    async def _answer(self, line: bytearray, number: int) -> bytes:
        id_: str | None = None
        try:
            self._require_short(line)
            body = wire.decode(_LINE, line)
            id_ = body.id or os.urandom(12).hex()
            return ENCODE(await self._patiently(body, id_)) + b"\n"
        except wire.BadJsonError as error:
            found = detail_of(400, f"line {number} is not JSON: {error}", "one object a line")
        except DataError as error:
            found = detail_of(422, f"line {number}: {error.message}", error.hint, id_)
        except Refusal as error:
            found = detail_of(error.status_code, f"line {number}: {error.detail}", error.hint, id_)
        except Exception:
            LOG.exception("a line of a batch failed")
            found = detail_of(500, f"line {number}: {MISTAKE[0]}", MISTAKE[1], id_)
        return ENCODE(ErrorAnswer(found)) + b"\n"

    def _require_short(self, line: bytearray) -> None:
        if len(line) > self._limits.body_bytes:
            message = f"a line has at most {self._limits.body_bytes:,} bytes"
            raise Refusal(413, message, "name fewer items")

    async def _patiently(self, body: wire.BatchLine, id_: str) -> wire.ListedAnswer:
        """Wait while others have the room; a batch has more time than a request."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return await self._make(body, id_, time.perf_counter())
            except Refusal as error:
                if error.status_code != 503 or time.monotonic() > end:
                    raise
            await asyncio.sleep(_PAUSE)


def _lines(content: bytearray) -> Iterator[tuple[int, bytearray]]:
    """Cut a body into lines with their numbers; empty ones are left out."""
    start = number = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        line = content[start:end].strip()
        start, number = end + 1, number + 1
        if line:
            yield number, line
