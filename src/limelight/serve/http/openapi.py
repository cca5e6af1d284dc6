"""The OpenAPI document of the service, written from the types of :mod:`.wire`."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from limelight._base.machine import package_version
from limelight.serve.http import wire
from limelight.serve.http.settings import ServiceLimits

Part: TypeAlias = dict[str, Any]

_PREFIX = "#/components/schemas/{name}"
_TYPES = (
    wire.RecommendBody,
    wire.RerankBody,
    wire.BatchLine,
    wire.ShownBody,
    wire.TargetBody,
    wire.TargetAnswer,
    wire.ReloadBody,
    wire.ListedAnswer,
    wire.ShownAnswer,
    wire.ErrorAnswer,
    wire.Health,
    wire.ReloadAnswer,
    wire.Exposure,
)
_MEANINGS = {
    400: "The body is not JSON, or the request is not HTTP.",
    401: "The token is missing or wrong.",
    403: "The call needs the admin token.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is compressed, or not marked as what it should be.",
    422: "The body, or a parameter, is not as it should be.",
    429: "Too many requests from one address.",
    431: "The head of the request is too large.",
    500: "An internal error; see the log of the service.",
    503: "Too many connections are open or requests wait, or one waited too long.",
}
_ANY = (400, 408, 431, 500, 503)
"""What each call may be refused with."""
_JSON, _NDJSON = "application/json", "application/x-ndjson"


def document(limits: ServiceLimits | None = None, *, needs_token: bool = False) -> Part:
    """Write the document for a service with these limits.

    Examples
    --------
    >>> sorted(document()["paths"])[:3]
    ['/', '/admin/reload', '/admin/target']
    """
    limits = limits or ServiceLimits()
    _, schemas = msgspec.json.schema_components(_TYPES, ref_template=_PREFIX)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "limelight",
            "version": package_version(),
            "description": _about(limits),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _client_calls(needs_token=needs_token) | _open_calls() | _admin_calls(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Of clients."},
                "admin": {"type": "http", "scheme": "bearer", "description": "Of admins."},
            },
        },
    }


def _about(limits: ServiceLimits) -> str:
    rate = "not limited" if limits.rate is None else f"at most {limits.rate:g} from one address"
    return (
        "Lists that hold a promise about exposure. ServiceLimits: heads of "
        f"{limits.header_bytes:,} bytes, bodies of {limits.body_bytes:,} bytes, batches of "
        f"{limits.batch_bytes:,} bytes and {wire.MOST_LINES:,} lines, "
        f"{wire.MOST_ITEMS:,} items a request, lists of {wire.MOST_PLACES:,}, ids of "
        f"{wire.LONGEST_ID} characters, {wire.MOST_EVENTS:,} events a report, "
        f"{limits.header_seconds:g} seconds for a head, {limits.body_seconds:g} for a body, "
        f"{limits.seconds:g} for a list, {limits.queue:,} requests that wait, "
        f"{limits.connections:,} connections, requests a second: {rate}. Every answer that is "
        "not a success has the body ErrorAnswer: a sentence and a hint."
    )


# Calls


def _client_calls(*, needs_token: bool) -> dict[str, Part]:
    """Describe the calls under /v1/, which take the token of clients if there is one."""
    refusals = (429, 401) if needs_token else (429,)
    security: Part = {"security": [{"token": []}, {"admin": []}] if needs_token else []}

    def post(name: str, text: str, body: Part, answer: Part) -> Part:
        errors = _errors(*_ANY, 413, 415, 422, *refusals)
        return {"post": _call(name, text, answer, errors) | security | {"requestBody": body}}

    lines = {"schema": {"type": "string"}}
    batch = {"required": True, "content": {_NDJSON: lines}}
    answers = {
        "description": "A ListedAnswer or an ErrorAnswer a line.",
        "content": {_NDJSON: lines},
    }
    exposure = _call("exposure", "Audit the window, live.", _answer("Exposure"), {}) | security
    exposure["responses"] |= _errors(*_ANY, 422, *refusals)
    exposure["parameters"] = [
        _parameter("top", {"type": "integer", "minimum": 0, "maximum": 1000, "default": 20}),
        _parameter("model", {"type": "string", "minLength": 1, "maxLength": 256}),
    ]
    return {
        "/v1/recommend": post(
            "recommend",
            "A list from the catalogue.",
            _body("RecommendBody"),
            _answer("ListedAnswer"),
        ),
        "/v1/rerank": post(
            "rerank",
            "A list from candidates with scores.",
            _body("RerankBody"),
            _answer("ListedAnswer"),
        ),
        "/v1/batch": post(
            "batch",
            "A BatchLine a line, each as of one of the two calls above; answered in order.",
            batch,
            answers,
        ),
        "/v1/shown": post(
            "shown",
            "What users have seen; a request's id is counted once.",
            _body("ShownBody"),
            _answer("ShownAnswer"),
        ),
        "/v1/exposure": {"get": exposure},
    }


def _admin_calls() -> dict[str, Part]:
    """Describe the calls that take the admin token."""

    def post(name: str, text: str, body: Part, answer: Part) -> Part:
        errors = _errors(*_ANY, 401, 403, 413, 415, 422, 429)
        call = _call(name, text, answer, errors)
        return {"post": call | {"security": [{"admin": []}], "requestBody": body}}

    return {
        "/admin/reload": post(
            "reload",
            "Read the models again, and swap them in.",
            _body("ReloadBody") | {"required": False},
            _answer("ReloadAnswer"),
        ),
        "/admin/target": post(
            "target", "Move the target.", _body("TargetBody"), _answer("TargetAnswer")
        ),
    }


def _open_calls() -> dict[str, Part]:
    """Describe the calls that need no token."""

    def get(name: str, text: str, answer: Part) -> Part:
        return {"get": _call(name, text, answer, _errors(*_ANY))}

    def content(kind: str, schema: str) -> Part:
        return {"description": "Done.", "content": {kind: {"schema": {"type": schema}}}}

    return {
        "/health/live": get("live", "Whether the process answers.", _answer("Health")),
        "/health/ready": get("ready", "Whether requests may be sent.", _answer("Health")),
        "/metrics": get("metrics", "Figures for Prometheus.", content("text/plain", "string")),
        "/openapi.json": get("openapi", "This document.", content(_JSON, "object")),
        "/": get("page", "A page that shows the window live.", content("text/html", "string")),
    }


# Parts of calls


def _call(name: str, text: str, answer: Part, errors: Part) -> Part:
    return {"operationId": name, "summary": text, "responses": {"200": answer, **errors}}


def _reference(name: str) -> Part:
    return {_JSON: {"schema": {"$ref": _PREFIX.format(name=name)}}}


def _body(name: str) -> Part:
    return {"required": True, "content": _reference(name)}


def _answer(name: str) -> Part:
    return {"description": "Done.", "content": _reference(name)}


def _errors(*statuses: int) -> Part:
    found: Part = {}
    for status in sorted(statuses):
        found[str(status)] = {
            "description": _MEANINGS[status],
            "content": _reference("ErrorAnswer"),
        }
        if status in {429, 503}:
            after = {"description": "Seconds.", "schema": {"type": "integer"}}
            found[str(status)]["headers"] = {"Retry-After": after}
    return found


def _parameter(name: str, schema: Part) -> Part:
    return {"name": name, "in": "query", "required": False, "schema": schema}
