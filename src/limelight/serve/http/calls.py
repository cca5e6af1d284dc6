"""What each call of the service does."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.responses import Response

from limelight._base.errors import DataError, LimelightError
from limelight.serve.http import wire
from limelight.serve.http.audit import WindowAudit
from limelight.serve.http.batches import BatchResponse
from limelight.serve.http.batching import OverloadError
from limelight.serve.http.guard import JsonResponse, Refusal
from limelight.serve.http.reading import BodyRoom, read_body, require_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request as HttpRequest

    from limelight.serve.http.arms import Arm, ShownCounts
    from limelight.serve.http.settings import ServeSettings, UserSplit
    from limelight.serve.http.telemetry import Telemetry
    from limelight.serve.requests import Answer, Request

_JSON = "application/json"
_NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_RECOMMEND = msgspec.json.Decoder(wire.RecommendBody)
_RERANK = msgspec.json.Decoder(wire.RerankBody)
_SHOWN = msgspec.json.Decoder(wire.ShownBody)
_MOST_TOP = 1000
_NAMED = 100
_MORE = "come back later, or start more replicas"
_LATER = {"Retry-After": "1"}
_BATCHES = 4
"""How many batches are read and answered at once."""
Kind = TypeVar("Kind")


class Calls:
    """The calls of clients; those of admins are in :mod:`.admin`."""

    def __init__(
        self,
        settings: ServeSettings,
        arms: Mapping[str, Arm],
        split: UserSplit,
        telemetry: Telemetry,
    ) -> None:
        self._limits, self._log_users = settings.limits, settings.log_users
        self._arms, self._split, self._telemetry = arms, split, telemetry
        self._room = BodyRoom()
        self._batches = asyncio.Semaphore(_BATCHES)
        self._audits = {
            name: WindowAudit(arm, settings, telemetry.latencies) for name, arm in arms.items()
        }

    # Lists

    async def recommend(self, call: HttpRequest) -> Response:
        """Make a list from the catalogue."""
        body = await self._body(call, _RECOMMEND)
        return await self._list(call, body)

    async def rerank(self, call: HttpRequest) -> Response:
        """Make a list from candidates."""
        body = await self._body(call, _RERANK)
        return await self._list(call, body)

    async def batch(self, call: HttpRequest) -> Response:
        """Answer lines in order."""
        require_type(call.scope, *_NDJSON)
        if self._batches.locked():
            hint = "send one batch after the other"
            raise Refusal(503, "too many batches are being answered", hint, headers=_LATER)
        return BatchResponse(self._limits, self._batches, self.answer)

    async def _body(self, call: HttpRequest, decoder: msgspec.json.Decoder[Kind]) -> Kind:
        require_type(call.scope, _JSON)
        limits = self._limits
        content = await read_body(
            call.scope, call.receive, limits.body_bytes, limits.body_seconds, self._room
        )
        return decoded(decoder, content)

    async def _list(
        self, call: HttpRequest, body: wire.RecommendBody | wire.RerankBody
    ) -> Response:
        started = time.perf_counter()
        notes: dict[str, Any] = call.scope["limelight"]
        id_ = body.id or os.urandom(12).hex()
        notes["id"] = id_
        if self._log_users:
            notes["user"] = body.user
        made = await self.answer(body, id_, started)
        notes |= {"model": made.model, "items": len(made.items), "basis": made.basis}
        return JsonResponse(wire.ENCODE(made))

    async def answer(
        self,
        body: wire.RecommendBody | wire.RerankBody | wire.BatchLine,
        id_: str,
        started: float,
    ) -> wire.ListedAnswer:
        """Have a list made; refuse it with a sentence if that cannot be."""
        arm = self._arms[self._split.of(id_ if body.user is None else body.user)]
        try:
            request = body.request(id_)
            made = await self._ask(arm, request)
        except LimelightError as error:
            raise Refusal(422, error.message, error.hint, id_=id_) from None
        seconds = time.perf_counter() - started
        self._telemetry.list_made(arm.name, made.basis)
        self._telemetry.latencies.add(seconds, time.monotonic())
        return wire.listed(made, request, arm.name, seconds)

    async def _ask(self, arm: Arm, request: Request) -> Answer:
        seconds = self._limits.seconds
        try:
            async with asyncio.timeout(seconds):
                made = await arm.batcher.ask(request)
        except OverloadError:
            raise self._overloaded(request.id) from None
        except TimeoutError:
            message = f"no list could be made within {seconds:g} seconds"
            raise Refusal(503, message, _MORE, headers=_LATER, id_=request.id) from None
        if isinstance(made, BaseException):
            raise made
        return made

    # What was shown

    async def shown(self, call: HttpRequest) -> Response:
        """Count what users have seen."""
        body = await self._body(call, _SHOWN)
        by_arm: dict[str, list[wire.ShownEvent]] = {}
        for number, event in enumerate(body.events):
            _check_event(event, number)
            by_arm.setdefault(await self._arm_of(event), []).append(event)
        total, strangers = wire.ShownAnswer(0, 0), list[str | int]()
        for name, events in by_arm.items():
            found = await self._count(self._arms[name], events)
            total.accepted += found.accepted
            total.known += found.known
            total.late += found.late
            total.unknown = total.unknown + found.unknown
            strangers += found.unknown_items
            for kind, number in (
                ("accepted", found.accepted),
                ("known", found.known),
                ("late", found.late),
                ("unknown", len(found.unknown)),
            ):
                self._telemetry.events(name, kind, number)
        if strangers:
            total.unknown_items = strangers[:_NAMED]
        call.scope["limelight"] |= {"accepted": total.accepted, "known": total.known}
        return JsonResponse(wire.ENCODE(total))

    async def _count(self, arm: Arm, events: list[wire.ShownEvent]) -> ShownCounts:
        try:
            return await arm.batcher.run(partial(arm.count, events), may_refuse=True)
        except OverloadError:
            raise self._overloaded() from None

    def _overloaded(self, id_: str | None = None) -> Refusal:
        message = f"too many requests wait: {self._limits.queue}"
        return Refusal(503, message, _MORE, headers=_LATER, id_=id_)

    async def _arm_of(self, event: wire.ShownEvent) -> str:
        """Find the model that made a list: the one that remembers it, or the one of its user."""
        if len(self._arms) > 1 and event.id is not None:
            for name, arm in self._arms.items():
                if arm.recent.find(event.id) is not None:
                    return name
            for name, arm in self._arms.items():
                # Forgotten, but counted: the same event must not count for another model.
                if await arm.batcher.run(partial(arm.has_counted, event.id)):
                    return name
        return self._split.of(event.user if event.user is not None else event.id or "")

    # The window, and the service itself

    async def exposure(self, call: HttpRequest) -> Response:
        """Audit the window."""
        query = call.query_params
        top = _whole("top", query.get("top", "20"), _MOST_TOP)
        name = query.get("model", next(iter(self._arms)))
        if name not in self._audits:
            message = f"no model has this name: {name[:80]!r}"
            raise Refusal(422, message, f"the models are: {', '.join(self._arms)}")
        return JsonResponse(await self._audits[name].content(top))

    async def live(self, _: HttpRequest) -> Response:
        """Say that the process answers."""
        return JsonResponse(wire.ENCODE(wire.Health("live")))

    async def ready(self, _: HttpRequest) -> Response:
        """Say whether requests may be sent."""
        models = {name: arm.fingerprint for name, arm in self._arms.items()}
        return JsonResponse(wire.ENCODE(wire.Health("ready", models)))

    async def metrics(self, _: HttpRequest) -> Response:
        """Show figures for Prometheus."""
        page = await asyncio.to_thread(self._telemetry.page)
        return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")


def decoded(decoder: msgspec.json.Decoder[Kind], content: bytearray) -> Kind:
    """Read a body, or refuse it."""
    try:
        return wire.decode(decoder, content)
    except wire.BadJsonError as error:
        raise Refusal(400, f"the body is not JSON: {error}", "send one JSON object") from None
    except DataError as error:
        raise Refusal(422, error.message, error.hint) from None


def _check_event(event: wire.ShownEvent, number: int) -> None:
    if event.id is None and (event.user is None or event.items is None):
        message = f"an event needs the id of a request, or a user and items: event {number}"
        raise Refusal(422, message, "every answer of the service has an id")


def _whole(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= most):
        message = f"{name} must be a whole number from 0 to {most:,}: {text[:40]!r}"
        raise Refusal(422, message, f"for example ?{name}=20")
    return int(text)
