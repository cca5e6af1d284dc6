"""The OpenAPI document of the service, written from the types of :mod:`.wire`."""

from __future__ import annotations

from typing import Any

import msgspec

from limelight._base.machine import package_version
from limelight.serve.http import wire
from limelight.serve.http.settings import Limits

_PREFIX = "#/components/schemas/{name}"
_TYPES = (
    wire.RecommendBody,
    wire.RerankBody,
    wire.BatchLine,
    wire.ShownBody,
    wire.TargetBody,
    wire.TargetAnswer,
    wire.ReloadBody,
    wire.ListAnswer,
    wire.ShownAnswer,
    wire.ErrorAnswer,
    wire.Health,
    wire.ReloadAnswer,
    wire.Exposure,
)
_MEANINGS = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    403: "The call needs the admin token.",
    404: "There is nothing at this address.",
    405: "The address does not take this method.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not marked as what it should be.",
    422: "The body, or a parameter, is not as it should be.",
    429: "Too many requests from one address; see Retry-After.",
    503: "Too many requests wait, or one waited too long; see Retry-After.",
}


def document(limits: Limits | None = None, *, needs_token: bool = False) -> dict[str, Any]:
    """Write the document for a service with these limits.

    Examples
    --------
    >>> sorted(document()["paths"])[:3]
    ['/', '/admin/reload', '/admin/target']
    """
    limits = limits or Limits()
    _, schemas = msgspec.json.schema_components(_TYPES, ref_template=_PREFIX)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "limelight",
            "version": package_version(),
            "description": _about(limits),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(needs_token=needs_token),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Of clients."},
                "admin": {"type": "http", "scheme": "bearer", "description": "Of admins."},
            },
        },
    }


def _about(limits: Limits) -> str:
    rate = "not limited" if limits.rate is None else f"at most {limits.rate:g} from one address"
    return (
        "Lists that hold a promise about exposure. Limits: bodies of "
        f"{limits.body_bytes:,} bytes, batches of {limits.batch_bytes:,} bytes, "
        f"{wire.MOST_ITEMS:,} items a request, lists of {wire.MOST_PLACES:,}, ids of "
        f"{wire.LONGEST_ID} characters, {wire.MOST_EVENTS:,} events a report, "
        f"{limits.seconds:g} seconds for a list, {limits.queue:,} requests that wait, "
        f"{limits.connections:,} connections, requests a second: {rate}. Every answer that is "
        "not a success has the body ErrorAnswer: a sentence and a hint."
    )


def _paths(*, needs_token: bool) -> dict[str, Any]:
    client = [{"token": []}, {"admin": []}] if needs_token else []

    def post(
        name: str, body: str, answer: str, text: str, *errors: int, **more: Any
    ) -> dict[str, Any]:
        return {
            "post": {
                "operationId": name,
                "summary": text,
                "requestBody": _body(body, is_required=more.pop("is_required", True)),
                "responses": _answers(answer, 400, 408, 413, 415, 422, 429, 503, *errors),
                **more,
            }
        }

    def get(name: str, answer: str, text: str, *errors: int, **more: Any) -> dict[str, Any]:
        found = {"operationId": name, "summary": text, "responses": _answers(answer, *errors)}
        return {"get": found | more}

    lists = ((401,) if needs_token else ()), {"security": client}
    exposure = get(
        "exposure", "Exposure", "The audit of the window, live.", 422, 429, *lists[0], **lists[1]
    )
    exposure["get"]["parameters"] = [
        _parameter("top", {"type": "integer", "minimum": 0, "maximum": 1000, "default": 20}),
        _parameter("model", {"type": "string", "minLength": 1, "maxLength": 256}),
    ]
    batch = {
        "post": {
            "operationId": "batch",
            "summary": "Lines of JSON, each as of /v1/recommend or /v1/rerank; answered in order.",
            "requestBody": {
                "required": True,
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            },
            "responses": {
                "200": {
                    "description": "A ListAnswer or an ErrorAnswer a line.",
                    "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
                },
                **_errors(408, 413, 415, 422, 429, 503, *lists[0]),
            },
            **lists[1],
        }
    }
    admin = {"security": [{"admin": []}]}
    return {
        "/v1/recommend": post(
            "recommend", "RecommendBody", "ListAnswer", "A list from the catalogue.",
            *lists[0], **lists[1],
        ),
        "/v1/rerank": post(
            "rerank", "RerankBody", "ListAnswer", "A list from candidates with scores.",
            *lists[0], **lists[1],
        ),
        "/v1/batch": batch,
        "/v1/shown": post(
            "shown", "ShownBody", "ShownAnswer",
            "What users have seen; a request's id is counted once.", *lists[0], **lists[1],
        ),
        "/v1/exposure": exposure,
        "/health/live": get("live", "Health", "Whether the process answers."),
        "/health/ready": get("ready", "Health", "Whether requests may be sent.", 503),
        "/metrics": _text("metrics", "Figures for Prometheus.", "text/plain"),
        "/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "This document.",
                "responses": {
                    "200": {
                        "description": "The document.",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            }
        },
        "/": _text("page", "A page that shows the window live.", "text/html"),
        "/admin/reload": post(
            "reload", "ReloadBody", "ReloadAnswer", "Read the models again, and swap them in.",
            401, 403, is_required=False, **admin,
        ),
        "/admin/target": post(
            "target", "TargetBody", "TargetAnswer", "Move the target.", 401, 403, **admin
        ),
    }  # fmt: skip


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _PREFIX.format(name=name)}


def _body(name: str, *, is_required: bool) -> dict[str, Any]:
    return {"required": is_required, "content": {"application/json": {"schema": _reference(name)}}}


def _answers(name: str, *errors: int) -> dict[str, Any]:
    done = {"description": "Done.", "content": {"application/json": {"schema": _reference(name)}}}
    return {"200": done, **_errors(*errors)}


def _errors(*statuses: int) -> dict[str, Any]:
    content = {"application/json": {"schema": _reference("ErrorAnswer")}}
    found: dict[str, Any] = {}
    for status in sorted(set(statuses)):
        found[str(status)] = {"description": _MEANINGS[status], "content": content}
        if status in {429, 503}:
            after = {"description": "Seconds.", "schema": {"type": "integer"}}
            found[str(status)]["headers"] = {"Retry-After": after}
    return found


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _text(name: str, text: str, kind: str) -> dict[str, Any]:
    done = {"description": "Done.", "content": {kind: {"schema": {"type": "string"}}}}
    return {"get": {"operationId": name, "summary": text, "responses": {"200": done}}}
