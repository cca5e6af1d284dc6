"""A real service for tests: uvicorn with our protocol in a thread, over a small model."""

from __future__ import annotations

import http.client
import io
import json
import socket
import threading
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn

import limelight as ll
from limelight.serve import Engine, Ledger
from limelight.serve.http.arms import Arm, Loaded
from limelight.serve.http.protocol import GuardedProtocol
from limelight.serve.http.settings import ServeSettings, ServiceLimits
from limelight.serve.http.telemetry import AccessLog
from limelight.serve.service import create_app, server_settings
from limelight.serve.start import start_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight.models.base import Model

K = 5
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}


@cache
def small_model() -> Model:
    """Fit a model of 300 users and 120 items."""
    return ll.IALS(factors=8, epochs=4).fit(ll.marketplace(300, 120, 5000).interactions)


def make_arm(name: str = "demo", model: Model | None = None, **more: Any) -> Arm:
    """Make a model that is served, with an empty ledger."""
    model = model or small_model()
    start = start_of(model, k=K, n_candidates=50)
    loaded = Loaded(engine=Engine(model, k=K, n_candidates=50), start=start, fingerprint="abc")
    ledger = Ledger(len(model.item_ids), window=3600.0, time=time.time())
    return Arm(name, loaded, ledger, **more)


@contextmanager
def holding(arm: Arm) -> Iterator[None]:
    """Keep the thread that makes lists busy while the block runs."""
    free, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        free.wait(30)

    arm.batcher._loop.call_soon_threadsafe(arm.batcher.run, wait)
    assert begun.wait(30)
    try:
        yield
    finally:
        free.set()


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> dict[str, Any]:
        return self.body["error"]

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.content.splitlines()]


class LiveService:
    """Serves models at a port of its own, until it is stopped."""

    def __init__(self, *arms: Arm, limits: ServiceLimits | None = None, **settings: Any) -> None:
        self.arms = {arm.name: arm for arm in arms or (make_arm(),)}
        limits = limits or ServiceLimits()
        self.written = io.StringIO()
        self.log = AccessLog(self.written)
        folders = {name: f"folder-of-{name}" for name in self.arms}
        self.settings = ServeSettings(folders, limits=limits, k=K, **settings)
        self.app = create_app(self.settings, arms=self.arms, log=self.log)
        own = {"http": GuardedProtocol.within(limits), "log_level": "critical"}
        self.server = uvicorn.Server(
            uvicorn.Config(self.app, **server_settings(limits) | own, lifespan="on")
        )
        self._place = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port = self._place.getsockname()[1]
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self._place]}, daemon=True
        )

    @property
    def calls(self) -> Any:
        """What answers calls."""
        return self.app.router.lifespan_context.__self__.calls

    def start(self) -> None:
        self._thread.start()
        while not self.server.started:
            assert self._thread.is_alive(), "the service did not start"
            time.sleep(0.005)

    def stop(self) -> None:
        """End as on SIGTERM."""
        self.server.should_exit = True
        self._thread.join(timeout=60)
        assert not self._thread.is_alive(), "the service did not end"
        self.log.close()

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        """What was logged; complete once the service has stopped."""
        return [json.loads(line) for line in self.written.getvalue().splitlines()]

    @property
    def n_connections(self) -> int:
        return len(self.server.server_state.connections)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        seconds: float = 30.0,
    ) -> Reply:
        """Ask, with a connection of its own."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            return ask(link, method, path, body, headers)
        finally:
            link.close()

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.call("POST", path, body, JSON | headers)

    def batch(self, *lines: Any) -> Reply:
        """Send lines, each as JSON unless it is bytes."""
        content = b"\n".join(_content(line) for line in lines)
        return self.call("POST", "/v1/batch", content, NDJSON)

    def open(self, *, seconds: float = 30.0, buffer: int | None = None) -> socket.socket:
        """Open a connection for raw bytes; a small buffer makes a client that reads slowly."""
        link = socket.socket()
        link.settimeout(seconds)
        if buffer is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        link.connect(("127.0.0.1", self.port))
        return link

    def raw(self, *parts: bytes, seconds: float = 30.0) -> bytes:
        """Send bytes, and return all that comes until the connection ends."""
        with self.open(seconds=seconds) as link:
            for part in parts:
                link.sendall(part)
            return read_all(link)


def ask(
    link: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Reply:
    """Ask over a connection that may be used again."""
    content = None if body is None else _content(body)
    link.request(method, path, content, headers or {})
    found = link.getresponse()
    return Reply(found.status, dict(found.headers.items()), found.read())


def _content(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def read_all(link: socket.socket) -> bytes:
    """Read until the other side ends the connection."""
    parts = []
    try:
        while part := link.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass  # what came before counts
    return b"".join(parts)


def read_until(link: socket.socket, end: bytes) -> bytes:
    """Read until some bytes have come."""
    found = b""
    while end not in found:
        part = link.recv(1 << 12)
        assert part, f"the connection ended after {found!r}"
        found += part
    return found


@contextmanager
def serving(*arms: Arm, **settings: Any) -> Iterator[LiveService]:
    """Serve while the block runs."""
    service = LiveService(*arms, **settings)
    service.start()
    try:
        yield service
    finally:
        service.stop()
