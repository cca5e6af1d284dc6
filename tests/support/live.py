"""A made-up service for the page of a real one: its figures change with every question."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from limelight.serve.page import HEADERS, live_page

if TYPE_CHECKING:
    from starlette.requests import Request

TITLES = ["Silent Harbour", "Paper Lanterns", "The Long Way Down", "Northern Light"]


def made_up_exposure(step: int = 0, *, points: int = 40, aim: float | None = 0.6) -> dict[str, Any]:
    """Make an answer of ``/v1/exposure``: the Gini comes nearer to its target with every step."""
    gini = 0.6 + 0.2 * math.exp(-step / 5)
    places = np.linspace(0, 1, 101)
    start = 1_790_000_000 + 2 * step
    history = [
        {
            "time": start + 60 * n,
            "gini": gini + 0.05 * math.exp(-n / 10) * math.cos(n / 3),
            "strength": 1.2 - math.exp(-n / 12),
            "loss": 0.013 * (1 - math.exp(-n / 12)),
        }
        for n in range(points)
    ]
    accounts = [
        {"group": f"Studio {letter}", "share": 0.031 / n, "cap": 0.03}
        for n, letter in enumerate("ABCDEF", start=1)
    ]
    accounts[-1] = {"group": "Small studios", "share": 0.012, "floor": 0.02}
    items = [
        {"id": f"i{n}", "title": f"{TITLES[n % 4]} {n}", "exposure": 900 / (n + 1)}
        for n in range(20)
    ]
    return {
        "model": "default",
        "window_seconds": 7 * 86400.0,
        "lists": 12_000 + step,
        "gini": gini,
        "gini_plain": 0.82,
        "gini_floor": 0.12,
        "coverage": 0.62,
        "lorenz": np.column_stack([places, places ** (1 + 4 * gini)]).tolist(),
        "lorenz_plain": np.column_stack([places, places**9]).tolist(),
        "strength": history[-1]["strength"] if history else 0.0,
        "target": None if aim is None else {"gini": aim},
        "relevance_loss": 0.0123,
        "accounts": accounts,
        "most": items,
        "least": [{"id": f"j{n}", "exposure": 0.0} for n in range(20)],
        "history": history,
        "requests_per_second": 180.0 + step,
        "latency_ms": {"p50": 2.1, "p99": 9.7},
        "notes": ["Lists are counted as they are served."],
        "front": [
            {"gini": 0.3, "loss": 0.08},
            {"gini": 0.6, "loss": 0.02},
            {"gini": 0.82, "loss": 0.0},
        ],
        "stale_seconds": 0.4,
    }


class BackgroundServer:
    """Runs an application in a thread, always at the same address; may stop and start again."""

    def __init__(self, app: Starlette, *, lifespan: Literal["on", "off"] = "on") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._app, self._lifespan = app, lifespan
        self._server: uvicorn.Server | None = None

    def start(self) -> None:
        config = uvicorn.Config(
            self._app, port=self.port, log_level="error", lifespan=self._lifespan
        )
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
        self._thread.start()
        while not server.started:
            assert self._thread.is_alive(), "the service did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        if self._server:
            self._server.should_exit = self._server.force_exit = True
            self._thread.join()
        self._server = None


class MadeUpService(BackgroundServer):
    """Serves the page and what a test put into ``changes``."""

    def __init__(self) -> None:
        self.changes: dict[str, Any] = {}
        self.token: str | None = None
        self.admin = "admin-token"
        self.asked = 0
        self.moved: list[dict[str, Any]] = []
        self.status = 200
        routes = [
            Route("/", lambda _: Response(live_page(), headers=HEADERS)),
            Route("/v1/exposure", self.exposure),
            Route("/admin/target", self.target, methods=["POST"]),
        ]
        super().__init__(Starlette(routes=routes), lifespan="off")

    async def exposure(self, request: Request) -> Response:
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return refusal(401, "this service asks for a token", "send it as a bearer token")
        if self.status != 200:
            return refusal(self.status, "too many requests wait", "come back later")
        self.asked += 1
        return JSONResponse(made_up_exposure(self.asked) | self.changes)

    async def target(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.admin}":
            return refusal(401, "this call needs the admin token", None)
        body = await request.json()
        self.moved.append(body)
        self.changes["target"] = {"gini": body["gini"]}
        return JSONResponse({})


def refusal(status: int, message: str, hint: str | None) -> Response:
    return JSONResponse({"error": {"status": status, "message": message, "hint": hint}}, status)
