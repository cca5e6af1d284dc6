"""Calls of admins: read models again, and move the target."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from limelight._base.errors import LimelightError
from limelight.serve.http import wire
from limelight.serve.http.calls import decoded
from limelight.serve.http.guard import JsonResponse, Refusal
from limelight.serve.http.reading import read_body, require_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

    from limelight.serve.http.arms import Arm, Loaded
    from limelight.serve.http.settings import ServiceLimits

_RELOAD = msgspec.json.Decoder(wire.ReloadBody)
_TARGET = msgspec.json.Decoder(wire.TargetBody)


class AdminCalls:
    """What needs the admin token.

    Parameters
    ----------
    arms
        The models by name.
    load
        Reads the folder of a model and warms its engine up; in a thread, as it may take long.
    limits
        Of bodies.
    """

    def __init__(
        self,
        arms: Mapping[str, Arm],
        load: Callable[[str], Loaded],
        limits: ServiceLimits,
        *,
        n_workers: int = 1,
    ) -> None:
        self._arms, self._load, self._limits = arms, load, limits
        self._n_workers = n_workers
        self._lock = asyncio.Lock()

    async def reload(self, call: HttpRequest) -> Response:
        """Read models again, beside those that answer, and swap them in."""
        self._refuse_one_of_many()
        content = await self._content(call)
        body = decoded(_RELOAD, content) if content else wire.ReloadBody()
        try:
            await self.load_again(self._named(body.model))
        except LimelightError as error:
            message = f"the old model goes on, because the new one cannot be used: {error.message}"
            raise Refusal(422, message, error.hint) from None
        return JsonResponse(
            wire.ENCODE(
                wire.ReloadAnswer(
                    {name: arm.fingerprint for name, arm in self._arms.items()},
                    {name: len(arm.engine.item_ids) for name, arm in self._arms.items()},
                )
            )
        )

    async def load_again(self, names: list[str] | None = None) -> None:
        """Read models again; what is broken is not swapped in."""
        async with self._lock:
            # All of them first: of two models that belong together, none is swapped in alone.
            read = {name: await asyncio.to_thread(self._load, name) for name in names or self._arms}
            for name, loaded in read.items():
                arm = self._arms[name]
                await arm.batcher.run(partial(arm.swap, loaded))

    async def target(self, call: HttpRequest) -> Response:
        """Move the target."""
        self._refuse_one_of_many()
        require_type(call.scope, "application/json")
        body = decoded(_TARGET, await self._content(call))
        async with self._lock:
            for name in self._named(body.model):
                arm = self._arms[name]
                try:
                    await arm.batcher.run(partial(_aim, arm, body))
                except LimelightError as error:
                    raise Refusal(422, error.message, error.hint) from None
        targets = {name: arm.target or None for name, arm in self._arms.items()}
        return JsonResponse(wire.ENCODE(wire.TargetAnswer(targets)))

    def _refuse_one_of_many(self) -> None:
        """Refuse what would change one worker, and leave the others as they are."""
        if self._n_workers > 1:
            message = f"a call reaches one of {self._n_workers} workers, and must change all"
            raise Refusal(409, message, "send SIGHUP to the service, or start it with other flags")

    async def _content(self, call: HttpRequest) -> bytearray:
        limits = self._limits
        content = await read_body(call.scope, call.receive, limits.body_bytes, limits.body_seconds)
        if content:
            require_type(call.scope, "application/json")
        return content

    def _named(self, name: str | None) -> list[str]:
        if name is not None and name not in self._arms:
            message = f"no model has this name: {name[:80]!r}"
            raise Refusal(422, message, f"the models are: {', '.join(self._arms)}")
        return list(self._arms) if name is None else [name]


def _aim(arm: Arm, body: wire.TargetBody) -> None:
    arm.aim(body.moved(arm.target))
