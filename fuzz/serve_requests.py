"""Bodies of requests to a service: each is answered with lists, or refused in words."""

from __future__ import annotations

import json
import random
from typing import Any

import atheris

with atheris.instrument_imports(include=["limelight.serve"]):
    import msgspec
    from folders import changed
    from harness import run

    import limelight as ll
    from limelight._base.errors import LimelightError
    from limelight.rerank.relevance.laws import ScoreRelevance
    from limelight.serve import Engine, Ledger, RequestControl
    from limelight.serve.control import ControlConfig
    from limelight.serve.http import wire
    from limelight.serve.http.calls import _check_event
    from limelight.serve.http.guard import Refusal

DECODERS: tuple[Any, ...] = tuple(
    msgspec.json.Decoder(kind)
    for kind in (wire.RecommendBody, wire.RerankBody, wire.BatchLine, wire.ShownBody)
)
_SHOWN = 3
MODEL = ll.IALS(factors=4, epochs=2, num_threads=1).fit(ll.marketplace(60, 40, 600).interactions)
LEDGER = Ledger(40, window=3600.0)
CONFIG = ControlConfig(n_items=40, law=ScoreRelevance(), unit=1.0, length=3)
ENGINE = Engine(MODEL, k=3, control=RequestControl(CONFIG, 0.2))


def ask(data: bytes) -> None:
    """Let the first byte choose the call; the rest is its body."""
    which = (data[0] if data else 0) % len(DECODERS)
    body = wire.decode(DECODERS[which], data[1:])
    if which == _SHOWN:
        for number, event in enumerate(body.events):
            _check_event(event, number)
            ENGINE.numbers(event.items or [])
        return
    request = body.request(body.id or "1")
    [answer] = ENGINE.answer([request], LEDGER, time=1e9)
    if isinstance(answer, LimelightError):
        raise answer
    msgspec.json.encode(wire.listed(answer, request, "main", 0.0))


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Change the JSON of a body in its structure, or else some bytes."""
    rng = random.Random(seed)
    if rng.random() < 0.6:
        try:
            text = json.dumps(changed(json.loads(data[1:]), rng)).encode()
        except (ValueError, RecursionError):
            return atheris.Mutate(data, max_size)
        return (data[:1] + text)[:max_size]
    return atheris.Mutate(data, max_size)


if __name__ == "__main__":
    run(ask, (LimelightError, wire.BadJsonError, Refusal), mutate)
