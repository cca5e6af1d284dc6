"""Many requests in one call: a line of JSON each, answered in order while the rest is worked on."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from limelight._base.errors import DataError
from limelight.serve.http import wire
from limelight.serve.http.guard import Refusal
from limelight.serve.http.wire import ENCODE, ErrorAnswer, ErrorDetail

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.types import Receive, Scope, Send

_LINE = msgspec.json.Decoder(wire.BatchLine)
_AT_ONCE = 32
"""How many lines of a batch wait for their lists, so that other requests have room."""
_TRIES = 100
_PAUSE = 0.05


class BatchResponse(Response):
    """The answers to the lines of a body."""

    media_type = "application/x-ndjson"

    def __init__(
        self,
        content: bytes,
        longest: int,
        answer: Callable[[Any, str, float], Awaitable[wire.ListAnswer]],
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._content, self._longest, self._answer_body = content, longest, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answers as they come."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        tasks: deque[asyncio.Task[bytes]] = deque()
        n_lines = 0
        try:
            for line in self._lines():
                n_lines += 1
                tasks.append(asyncio.create_task(self._answer(line, n_lines)))
                if len(tasks) == _AT_ONCE:
                    await _send(send, await tasks.popleft())
            while tasks:
                await _send(send, await tasks.popleft())
        finally:
            for task in tasks:
                task.cancel()
        scope["limelight"]["lines"] = n_lines
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _lines(self) -> Iterator[bytes]:
        """Cut the body into lines; empty ones are left out."""
        start = 0
        while start < len(self._content):
            end = self._content.find(b"\n", start)
            end = len(self._content) if end < 0 else end
            line = self._content[start:end].strip()
            start = end + 1
            if line:
                yield line

    async def _answer(self, line: bytes, number: int) -> bytes:
        id_: str | None = None
        try:
            if len(line) > self._longest:
                raise Refusal(413, f"a line has at most {self._longest:,} bytes")
            body = wire.decode(_LINE, line)
            id_ = body.id or os.urandom(12).hex()
            return ENCODE(await self._patiently(body, id_)) + b"\n"
        except wire.BadJson as error:
            found = ErrorDetail(400, f"line {number} is no JSON: {error}", "one object a line")
        except DataError as error:
            found = ErrorDetail(422, f"line {number}: {error.message}", error.hint, id_)
        except Refusal as error:
            found = ErrorDetail(
                error.status_code, f"line {number}: {error.detail}", error.hint, id_
            )
        found.message = found.message[:500]
        return ENCODE(ErrorAnswer(found)) + b"\n"

    async def _patiently(self, body: wire.BatchLine, id_: str) -> wire.ListAnswer:
        """Wait while others have the room; a batch has more time than a request."""
        for _ in range(_TRIES):
            try:
                return await self._answer_body(body, id_, time.perf_counter())
            except Refusal as error:
                if error.status_code != 503:
                    raise
                await asyncio.sleep(_PAUSE)
        return await self._answer_body(body, id_, time.perf_counter())


async def _send(send: Send, content: bytes) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": True})
