"""Around every call: who may ask, how often, and how an answer that refuses looks."""

from __future__ import annotations

import hmac
import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

from limelight._base.printable import printable
from limelight._base.text import first_words
from limelight.serve.http.wire import ENCODE, ErrorAnswer, ErrorDetail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from limelight.serve.http.telemetry import Telemetry

_MOST_ADDRESSES = 10_000
_LONGEST_HINT = 1_000
_GONE = 499
"""What figures and the log say of a client that went away before its answer; as of nginx."""
_OPEN = frozenset({"/", "/health/live", "/health/ready", "/metrics", "/openapi.json"})
"""Calls that need no token: they tell nothing of users or items."""


class Refusal(HTTPException):
    """An answer that is not a success, with a sentence and a hint."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        id_: str | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers) if headers else None)
        self.hint, self.id = hint, id_


class GoneError(Exception):
    """The client went away; nobody waits for an answer."""


class JsonResponse(Response):
    """An answer that is JSON already."""

    media_type = "application/json"


def refused(
    status: int,
    message: str,
    hint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    id_: str | None = None,
) -> JsonResponse:
    """Write an error as every call of the service does."""
    content = ENCODE(ErrorAnswer(detail_of(status, message, hint, id_)))
    return JsonResponse(content, status, dict(headers) if headers else None)


def detail_of(
    status: int, message: str, hint: str | None = None, id_: str | None = None
) -> ErrorDetail:
    """Write an error in bounded length, whatever was sent."""
    short_hint = None if hint is None else printable(hint[:_LONGEST_HINT])
    return ErrorDetail(status, first_words(Exception(message)), short_hint, id_)


MISTAKE = (
    "the service has failed: an internal error",
    "see the log of the service, and please report it",
)
_SENTENCES = {
    404: ("there is nothing at this address", "GET /openapi.json lists all calls"),
    405: ("this address does not take that method", "GET /openapi.json lists all calls"),
}


async def refuse_by(_: object, error: Exception) -> Response:
    """Turn an exception of a call into its answer."""
    assert isinstance(error, HTTPException)
    if isinstance(error, Refusal):
        message, hint, id_ = error.detail, error.hint, error.id
    else:
        message, hint = _SENTENCES.get(error.status_code, (error.detail, None))
        id_ = None
    return refused(error.status_code, message, hint, headers=error.headers, id_=id_)


class RateLimit:
    """So many requests a second from one address, and as many at once.

    Examples
    --------
    >>> limit = RateLimit(2.0)
    >>> [limit.wait("here", now=0.0) for _ in range(3)], limit.wait("there", now=0.0)
    ([0.0, 0.0, 0.5], 0.0)
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._burst = rate, max(1.0, rate)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Return how many seconds to wait; 0 if the request may go on."""
        left, at = self._left.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        may = left >= 1.0
        self._left[address] = (left - 1.0 if may else left, now)
        if len(self._left) > _MOST_ADDRESSES:
            self._left.popitem(last=False)
        return 0.0 if may else (1.0 - left) / self._rate


class Keys:
    """Tokens of clients and of admins; compared in the same time whatever they are."""

    def __init__(self, tokens: tuple[bytes, ...], admin: tuple[bytes, ...]) -> None:
        self._tokens, self._admin = tokens, admin
        self.are_needed = bool(tokens)

    def check(self, path: str, header: bytes | None) -> None:
        """Refuse whoever may not call this address."""
        is_admin_call = path.startswith("/admin/")
        if path in _OPEN or not (is_admin_call or self._tokens):
            return
        if is_admin_call and not self._admin:
            hint = "start the service with LIMELIGHT_ADMIN_TOKEN or --admin-token-file"
            raise Refusal(403, "this service has no admin token, so it takes no admin calls", hint)
        kind, _, given = (header or b"").partition(b" ")
        given = given.strip() if kind.lower() == b"bearer" else b""
        is_admin, is_client = _is_one(given, self._admin), _is_one(given, self._tokens)
        if is_admin or (is_client and not is_admin_call):
            return
        if is_client:
            raise Refusal(403, "this call needs the admin token", "the token sent is a client's")
        message = "the token is missing" if not given else "the token is wrong"
        challenge = {"WWW-Authenticate": "Bearer"}
        hint = "send the header 'Authorization: Bearer TOKEN'"
        raise Refusal(401, message, hint, headers=challenge)


def _is_one(given: bytes, tokens: tuple[bytes, ...]) -> bool:
    found = False
    for token in tokens:  # all of them, so that the time does not tell which one was near
        found |= hmac.compare_digest(given, token)
    return found


class Guard:
    """The outermost layer: limits by address, tokens, figures and the log of every request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        rate: RateLimit | None,
        telemetry: Telemetry,
        routes: frozenset[str],
        complain: Callable[[BaseException], None],
    ) -> None:
        self._app, self._keys, self._rate = app, keys, rate
        self._telemetry, self._routes, self._complain = telemetry, routes, complain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        notes: dict[str, object] = {}
        scope["limelight"] = notes

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            refusal = self._look(scope)
            await (refusal or self._app)(scope, receive, watch)
        except GoneError:
            status = _GONE
        except Exception as error:  # a fault of ours must not end the connection
            self._complain(error)
            if not status:
                await refused(500, *MISTAKE)(scope, receive, watch)
        finally:
            self._record(scope, status or 500, time.perf_counter() - started, notes)

    def _look(self, scope: Scope) -> Response | None:
        """Refuse what needs no look at the body."""
        path, client = scope["path"], scope.get("client")
        if self._rate is not None and client and path not in _OPEN:
            seconds = self._rate.wait(client[0], time.monotonic())
            if seconds:
                after = {"Retry-After": str(math.ceil(seconds))}
                hint = "come back after the seconds of the header Retry-After"
                return refused(429, "too many requests from this address", hint, headers=after)
        try:
            self._keys.check(path, header_of(scope, b"authorization"))
        except Refusal as error:
            return refused(error.status_code, error.detail, error.hint, headers=error.headers)
        return None

    def _record(self, scope: Scope, status: int, seconds: float, notes: dict[str, object]) -> None:
        path = scope["path"]
        route = path if path in self._routes else "other"
        self._telemetry.request(route, status, seconds)
        if self._telemetry.log is not None:
            self._telemetry.log.write(
                event="request",
                method=scope["method"],
                route=route,
                status=status,
                ms=round(1000 * seconds, 3),
                **notes,
            )


def header_of(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header of this name."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None
