"""The service: lists by HTTP, and what users have seen of them.

``create_app`` makes an ASGI application that any server can run; ``limelight serve`` runs it with
uvicorn, whose connections are guarded by :mod:`limelight.serve.http.protocol`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from limelight._base.errors import ConfigError, LimelightError
from limelight.serve.http.admin import AdminCalls
from limelight.serve.http.calls import Calls
from limelight.serve.http.guard import Guard, JsonResponse, Keys, RateLimit, refuse_by
from limelight.serve.http.openapi import document
from limelight.serve.http.opening import load_arm, open_arms
from limelight.serve.http.protocol import GuardedProtocol
from limelight.serve.http.settings import (
    ADMIN_TOKEN,
    TOKEN,
    VARIABLE,
    ServeSettings,
    UserSplit,
    read_tokens,
)
from limelight.serve.http.telemetry import AccessLog, Telemetry
from limelight.serve.http.wire import ENCODE
from limelight.serve.page import HEADERS, live_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request as HttpRequest
    from starlette.types import ASGIApp

    from limelight.serve.http.arms import Arm
    from limelight.serve.http.settings import ServiceLimits

LOG = logging.getLogger("limelight.serve")
"""Where faults of the service itself go."""
_TICK = 0.25
"""How often what is due is looked for when nobody asks."""
_BACKLOG, _DRAIN_SECONDS, _LAST_PORT = 2048, 30, 65_535
_OTHER_FILES = 512
"""Of ledgers, models and libraries, beside connections."""


def create_app(
    settings: ServeSettings,
    *,
    arms: Mapping[str, Arm] | None = None,
    log: AccessLog | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> Starlette:
    """Make the application of a service; models are read before the first request.

    Parameters
    ----------
    settings
        What to serve, and how.
    arms
        The models, if they are open already.
    log
        Where a line for every request goes.
    on_start
        Called when requests can be answered.

    Examples
    --------
    >>> app = create_app(ServeSettings({"demo": "run/model"}))
    >>> [route.path for route in app.routes][:2]
    ['/v1/recommend', '/v1/rerank']
    """
    keys = Keys(
        read_tokens(settings.token_file, TOKEN),
        read_tokens(settings.admin_token_file, ADMIN_TOKEN),
    )
    running = _Running(settings, Telemetry(log), arms, on_start)
    routes = _routes(running, ENCODE(document(settings.limits, needs_token=keys.are_needed)))
    rate = None if settings.limits.rate is None else RateLimit(settings.limits.rate)
    guard = Middleware(
        Guard,
        keys=keys,
        rate=rate,
        telemetry=running.telemetry,
        routes=frozenset(route.path for route in routes),
        complain=lambda error: LOG.error("a call failed", exc_info=error),
    )
    app = Starlette(
        routes=routes,
        middleware=[guard],
        exception_handlers={HTTPException: refuse_by},
        lifespan=running.lifespan,
    )
    app.router.redirect_slashes = False
    return app


def _routes(running: _Running, described: bytes) -> list[Route]:
    def call(name: str) -> Callable[[HttpRequest], Any]:
        async def answer(request: HttpRequest) -> Response:
            found: Response = await getattr(running.calls, name)(request)
            return found

        return answer

    def admin(name: str) -> Callable[[HttpRequest], Any]:
        async def answer(request: HttpRequest) -> Response:
            found: Response = await getattr(running.admin, name)(request)
            return found

        return answer

    async def openapi(_: HttpRequest) -> Response:
        return JsonResponse(described)

    async def page(_: HttpRequest) -> Response:
        return Response(live_page(), headers=HEADERS)

    posts = ("recommend", "rerank", "batch", "shown")
    return [
        *(Route(f"/v1/{name}", call(name), methods=["POST"]) for name in posts),
        Route("/v1/exposure", call("exposure")),
        Route("/health/live", call("live")),
        Route("/health/ready", call("ready")),
        Route("/metrics", call("metrics")),
        Route("/openapi.json", openapi),
        Route("/", page),
        *(Route(f"/admin/{name}", admin(name), methods=["POST"]) for name in ("reload", "target")),
    ]


class _Running:
    """A service from its start to its end."""

    calls: Calls
    admin: AdminCalls

    def __init__(
        self,
        settings: ServeSettings,
        telemetry: Telemetry,
        arms: Mapping[str, Arm] | None,
        on_start: Callable[[], None],
    ) -> None:
        self.settings, self.telemetry = settings, telemetry
        self._given, self._on_start = arms, on_start

    @contextlib.asynccontextmanager
    async def lifespan(self, app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
        """Open the models, answer, and close them."""
        del app
        settings = self.settings
        given = self._given
        arms = dict(given if given else await asyncio.to_thread(open_arms, settings))
        split = UserSplit(list(arms), settings.split)
        self.calls = Calls(settings, arms, split, self.telemetry)
        self.admin = AdminCalls(
            arms, partial(load_arm, settings), settings.limits, n_workers=settings.workers
        )
        for arm in arms.values():
            arm.batcher.start()
            self._measure(arm)
        ticking = asyncio.create_task(_tick(arms))
        self._hear_hup()
        self._on_start()
        try:
            yield {"telemetry": self.telemetry}  # for connections, which uvicorn gives it to
        finally:
            ticking.cancel()
            for arm in arms.values():
                try:
                    await arm.close()
                except Exception:
                    LOG.exception("the ledger of %s could not be closed", arm.name)

    def _measure(self, arm: Arm) -> None:
        gauge = partial(self.telemetry.gauge, model=arm.name)
        gauge("waiting", "Requests without an answer yet.", value=lambda: arm.batcher.waiting)
        gauge("batches", "Calls of the engine.", value=lambda: arm.batcher.batches)
        gauge("window_lists", "Lists in the window.", value=lambda: float(arm.ledger.lists))
        gauge("strength", "Strength of exposure control.", value=lambda: arm.strength)
        gauge("relevance_loss", "Over the window.", value=lambda: arm.loss)

    def _hear_hup(self) -> None:
        """Read the models again on SIGHUP, where there is one."""
        if not hasattr(signal, "SIGHUP"):
            return
        if threading.current_thread() is not threading.main_thread():
            return
        loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

        def hear() -> None:
            task = loop.create_task(self._reload())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        loop.add_signal_handler(signal.SIGHUP, hear)

    async def _reload(self) -> None:
        try:
            await self.admin.load_again()
        except LimelightError as error:
            hint = "" if error.hint is None else f"\n\nhint: {error.hint}"
            LOG.warning("the old model goes on: %s%s", error.message, hint)
            return
        except Exception:
            LOG.exception("the old model goes on, because the new one could not be read")
            return
        LOG.info("models were read again")


async def _tick(arms: Mapping[str, Arm]) -> None:
    while True:
        await asyncio.sleep(_TICK)
        for arm in arms.values():
            try:
                await arm.batcher.run(arm.tick)
            except Exception:
                LOG.exception("what is due could not be done")


def from_environment() -> Starlette:
    """Make the application of one of several workers, or of another server's process."""
    settings = ServeSettings.from_json(os.environ[VARIABLE])
    GuardedProtocol.limits = settings.limits
    return create_app(settings, log=AccessLog(sys.stdout) if settings.log_requests else None)


def listen(host: str, port: int) -> socket.socket:
    """Take the address of a service before its models are read.

    Raises
    ------
    ConfigError
        If the address cannot be had.
    """
    if not 0 <= port <= _LAST_PORT:
        message = f"a port is a number from 0 to {_LAST_PORT}: {port}"
        raise ConfigError(message, hint="8080 is usual, and 0 takes one that is free")
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.create_server((host, port), family=kind, backlog=_BACKLOG)
    except OSError as error:
        message = f"cannot listen on {host}, port {port}: {os.strerror(error.errno or 0)}"
        raise ConfigError(message, hint="choose another one with --host and --port") from None
    found.set_inheritable(True)
    return found


def run(
    settings: ServeSettings,
    place: socket.socket,
    arms: Mapping[str, Arm],
    on_start: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT, then answer all that was asked and write the ledgers.

    Parameters
    ----------
    settings
        What to serve, and how.
    place
        Where to listen.
    arms
        The models, open already. Several workers each open their own; that they can is known before
        they start, because one that cannot is started again and again.
    on_start
        Called when requests can be answered, or when workers are about to start.
    """
    _allow_files(settings.limits.connections)
    if settings.workers == 1:
        log = AccessLog(sys.stdout) if settings.log_requests else None
        app = create_app(settings, arms=arms, log=log, on_start=on_start)
        GuardedProtocol.limits = settings.limits
        config = uvicorn.Config(app, **server_settings(settings.limits))
        uvicorn.Server(config).run(sockets=[place])
        if log is not None:
            log.close()
        return
    for arm in arms.values():
        if arm.keeper is not None:
            arm.keeper.close()
    os.environ[VARIABLE] = settings.to_json()
    host, port = place.getsockname()[:2]
    place.close()  # the workers' supervisor takes it again
    on_start()
    uvicorn.run(
        f"{__name__}:from_environment",
        factory=True,
        workers=settings.workers,
        host=host,
        port=port,
        **server_settings(settings.limits),
    )


def _allow_files(connections: int) -> None:
    """Let the process open as many files as connections need, where the system lets it."""
    try:
        import resource
    except ModuleNotFoundError:  # not a Unix
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def server_settings(limits: ServiceLimits) -> dict[str, Any]:
    """Return how uvicorn is to run the application."""
    return {
        "http": GuardedProtocol,
        "ws": "none",
        "access_log": False,
        "log_config": None,
        # It would warn of every request that is no HTTP, which anybody can send by the thousand.
        "log_level": "error",
        "server_header": False,
        "date_header": True,
        "proxy_headers": False,
        "timeout_keep_alive": int(limits.idle_seconds),
        "timeout_graceful_shutdown": _DRAIN_SECONDS,
        "backlog": _BACKLOG,
    }
