"""The connections of the server: how many there may be, and what each may take.

uvicorn waits for ever for the head of a request, for the rest of a body that is answered already,
and for a client that does not read, and it keeps heads and trailers of any size. Here all of that
has bounds, so that no client can hold a connection or memory for long.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from limelight.serve.http.settings import ServiceLimits
from limelight.serve.http.wire import ENCODE, ErrorAnswer, ErrorDetail

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
_OF_BODIES = frozenset({b"content-length", b"transfer-encoding"})
_NETWORKS = frozenset({socket.AF_INET, socket.AF_INET6})
_AHEAD = 100
"""Requests that a client may send before it has read an answer; then the connection ends."""
_UNREAD = 1 << 17
"""Bytes that the system keeps for a client that does not read; by itself it would keep megabytes.
Also, it says that the client has read only once a third of them is gone."""
_WORTH = 16
"""A byte of a body pays for so many around it: one that comes alone needs five to say its size."""


def bare_answer(status: int, message: str, hint: str) -> bytes:
    """Write an answer without an application, which then ends the connection."""
    content = ENCODE(ErrorAnswer(ErrorDetail(status, message, hint)))
    after = "retry-after: 1\r\n" if status == 503 else ""
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\n{after}connection: close\r\n\r\n"
    )
    return head.encode() + content


class GuardedProtocol(HttpToolsProtocol):
    """Speaks HTTP with one client."""

    limits: ClassVar[ServiceLimits] = ServiceLimits()

    _is_in_head = True
    _is_over = False
    """Whether nothing that comes is read any more."""
    _reason = (400, "this is not an HTTP request", "this service speaks HTTP/1.1")
    """Why the parser does not go on, if it does not."""
    _answered: RequestResponseCycle | None = None
    """The request that is being answered, or was last."""
    _extra = 0
    """Bytes of the head so far, or of all that comes with a body but is none."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @classmethod
    def within(cls, limits: ServiceLimits) -> type[GuardedProtocol]:
        """Make the protocol of a server with other limits."""
        return type("GuardedProtocol", (cls,), {"limits": limits})

    # The connection

    def connection_made(self, transport: Any) -> None:
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            message = f"too many connections are open: {self.limits.connections}"
            self._refuse(503, message, "close those that are not used, or come back later")
            return
        place = transport.get_extra_info("socket")
        if place is not None and place.family in _NETWORKS:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        for name in list(self._timers):
            self._stop(name)
        self.pipeline.clear()
        if self._answered is not None:
            # uvicorn tells only the last request that came.
            self._answered.disconnected = not self._answered.response_complete
            self._answered.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that reads slowly, but not for ever."""
        super().pause_writing()
        self._start("read", self.limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, because the client has read."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop("read")

    def shutdown(self) -> None:
        """End after what is being answered."""
        super().shutdown()
        self._end_if_closing()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is not used."""
        super().timeout_keep_alive_handler()
        self._end_if_closing()

    # What comes

    def data_received(self, data: bytes) -> None:
        """Read some bytes."""
        if self._is_over:
            return
        if self._is_in_head and "head" not in self._timers:
            self._await_head()
        self._extra += len(data)
        super().data_received(data)
        if self._extra > self.limits.header_bytes and not self._is_over:
            self._refuse(*self._too_large())

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that follows a body is dropped, because it was not looked at."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the application."""
        self._stop("head")
        self._require_usual_head()
        super().on_headers_complete()
        self._is_in_head, self._extra = False, 0
        if self.parser.should_upgrade():
            # What follows is no HTTP to the parser, so the connection ends with the answer.
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        super().on_body(body)
        self._extra = max(0, self._extra - _WORTH * len(body))

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._is_in_head, self._extra = True, 0
        self._is_over = self.parser.should_upgrade()
        self._stop("body")
        if self.cycle.response_complete and not self.transport.is_closing():
            # Answered before it ended; uvicorn waits for the next request from an answer on.
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        """End an answer."""
        super().on_response_complete()
        self._end_if_closing()
        if not self._is_in_head and self.cycle.response_complete:
            self._start("body", self.limits.body_seconds, self.transport.abort)

    # What is refused

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser did not get through."""
        del msg
        self._refuse(*self._reason)

    def _require_usual_head(self) -> None:
        """End the work of the parser with an error if a head is not to be answered."""
        if len(self.pipeline) >= _AHEAD:
            # The parser would not stop before thousands are read, and meanwhile nobody is answered.
            raise ValueError
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.header_bytes:
            self._reason = self._too_large()
            raise ValueError
        has_body = any(name in _OF_BODIES for name, _ in self.headers)
        if has_body and self.parser.should_upgrade():
            # The parser would take the body for what is spoken after the upgrade.
            message = "a request with a body cannot ask for another protocol"
            self._reason = (400, message, "leave the header Upgrade out")
            raise ValueError

    def _too_large(self) -> tuple[int, str, str]:
        what = "the head of a request" if self._is_in_head else "what comes with a body"
        message = f"{what} has at most {self.limits.header_bytes:,} bytes"
        return 431, message, "send ids in the body, and fewer headers"

    def _should_upgrade_to_ws(self) -> bool:
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered as if it had not asked for more."""

    def _await_head(self) -> None:
        self._start("head", self.limits.header_seconds, self._give_up)

    def _give_up(self) -> None:
        self._stop("head")
        if self.cycle is not None and not self.cycle.response_complete:
            self._await_head()  # its answer comes first
            return
        seconds = self.limits.header_seconds
        self._refuse(
            408, f"the head of the request took more than {seconds:g} seconds", "send it at once"
        )

    def _refuse(self, status: int, message: str, hint: str) -> None:
        """Answer, and end the connection; requests that came before are answered first."""
        self._is_over = True
        self._stop("head")
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        if (telemetry := self.app_state.get("telemetry")) is not None:
            telemetry.refused(status)
        if not (is_busy and (self.pipeline or self.cycle.response_started)):
            self.transport.write(bare_answer(status, message, hint))
        self.transport.close()
        self._end_if_closing()

    # Time

    def _end_if_closing(self) -> None:
        """Give a client that has to read the last answer some time for it."""
        if self.transport.is_closing():
            self._start("read", self.limits.idle_seconds, self.transport.abort)

    def _start(self, name: str, seconds: float, function: Callable[[], None]) -> None:
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, function)

    def _stop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
