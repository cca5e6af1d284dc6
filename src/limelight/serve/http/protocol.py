"""The connections of the server: how many there may be, and how long and large a head may be.

uvicorn waits for ever for the head of a request, and takes one of any size. Here whoever opens a
connection has some seconds for it, and what comes before its end is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from limelight.serve.http.settings import Limits
from limelight.serve.http.wire import ENCODE, ErrorAnswer, ErrorDetail

if TYPE_CHECKING:
    import asyncio

_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


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

    limits: ClassVar[Limits] = Limits()

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_in_head = True
    _is_refused = False

    @classmethod
    def within(cls, limits: Limits) -> type[GuardedProtocol]:
        """Make the protocol of a server with other limits."""
        return type("GuardedProtocol", (cls,), {"limits": limits})

    def connection_made(self, transport: Any) -> None:
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            message = f"too many connections are open: {self.limits.connections}"
            self._refuse(503, message, "close those that are not used, or come back later")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes."""
        if self._is_refused:
            return
        if self._is_in_head:
            if self._timer is None:
                self._await_head()
            self._head_bytes += len(data)
        super().data_received(data)
        # The end of a head and the beginning of the next may come together; only what has no end
        # yet counts.
        if self._is_in_head and self._head_bytes > self.limits.header_bytes:
            message = f"the head of a request has at most {self.limits.header_bytes:,} bytes"
            self._refuse(431, message, "send ids in the body, and fewer headers")

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        """Start the application."""
        self._is_in_head, self._head_bytes = False, 0
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._is_in_head = True

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        del msg
        self._refuse(400, "this is no HTTP request", "this service speaks HTTP/1.1")

    def _should_upgrade_to_ws(self) -> bool:
        return False

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            return
        seconds = self.limits.header_seconds
        self._refuse(
            408, f"the head of the request took more than {seconds:g} seconds", "send it at once"
        )

    def _refuse(self, status: int, message: str, hint: str) -> None:
        self._is_refused = True
        self._stop_timer()
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.transport.write(bare_answer(status, message, hint))
            self.transport.close()
