"""The OpenAPI document says what every call takes and answers."""

from __future__ import annotations

import jsonschema
import pytest
from tests.support.service import JSON, NDJSON, make_arm, serving
from tests.unit.serve.http.bad_requests import ADMIN, ADMIN_TOKEN, BAD_REQUESTS, content_of

from limelight.serve.http import wire
from limelight.serve.http.openapi import document
from limelight.serve.http.settings import ServiceLimits

NOT_FOUND = {404, 405}
"""Of addresses and methods that the document does not have."""
GOOD = [
    ("POST", "/v1/recommend", {"user": 3}),
    ("POST", "/v1/recommend", {"history": [1, "none"], "k": 2}),
    ("POST", "/v1/rerank", {"items": [{"id": "new", "score": 1}, {"id": 3, "score": -1.5}]}),
    ("POST", "/v1/shown", {"events": [{"id": "a", "items": [1]}, {"id": "gone"}]}),
    ("GET", "/v1/exposure", None),
    ("GET", "/health/live", None),
    ("GET", "/health/ready", None),
    ("GET", "/metrics", None),
    ("GET", "/openapi.json", None),
    ("GET", "/", None),
    ("POST", "/admin/target", {"gini": 0.5}),
    ("POST", "/admin/reload", None),
    ("POST", "/v1/recommend", {"user": 3}),
    ("GET", "/v1/exposure?top=3", None),
]


@pytest.fixture(scope="module")
def service():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN_TOKEN)
        loaded = make_arm().loaded
        patch.setattr("limelight.serve.service.load_arm", lambda *_: loaded)
        with serving() as found:
            yield found


@pytest.fixture(scope="module")
def described(service):
    return service.call("GET", "/openapi.json").body


def check(described, method, path, reply):
    """Hold an answer against the document."""
    call = described["paths"][path.partition("?")[0]][method.lower()]
    answer = call["responses"][str(reply.status)]
    kind = reply.headers["content-type"].partition(";")[0]
    schema = answer["content"][kind]["schema"]
    if kind == "application/json":
        jsonschema.Draft202012Validator(described | schema).validate(reply.body)
    for name in answer.get("headers", ()):
        assert reply.headers[name.lower()].isdigit()


@pytest.mark.parametrize(("method", "path", "body"), GOOD)
def test_good_answers_are_as_it_says(service, described, method, path, body):
    reply = service.call(method, path, body, ADMIN if body is not None else auth())
    assert reply.status == 200, reply.content
    check(described, method, path, reply)


def auth():
    return {"Authorization": ADMIN["Authorization"]}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_refusals_are_as_it_says(service, described, name):
    bad = BAD_REQUESTS[name]
    reply = service.call(bad.method, bad.path, content_of(bad), bad.headers)
    if reply.status in NOT_FOUND:
        schema = {"$ref": "#/components/schemas/ErrorAnswer"}
        jsonschema.Draft202012Validator(described | schema).validate(reply.body)
    else:
        check(described, bad.method, bad.path, reply)


def test_lines_of_a_batch_are_as_it_says(service, described):
    reply = service.batch({"user": 3}, {"items": [{"id": 1, "score": 1}]}, b"?", {"k": 0})
    check(described, "POST", "/v1/batch", reply)
    for line, name in zip(reply.lines, ["ListedAnswer"] * 2 + ["ErrorAnswer"] * 2, strict=True):
        schema = {"$ref": f"#/components/schemas/{name}"}
        jsonschema.Draft202012Validator(described | schema).validate(line)


def test_a_held_target_is_as_it_says():
    arm = make_arm(target={"gini": 0.4}, counts_served=True)
    with serving(arm, count="served") as service:
        service.batch(*[{"user": n % 300} for n in range(600)])
        reply = service.call("GET", "/v1/exposure")
        check(service.call("GET", "/openapi.json").body, "GET", "/v1/exposure", reply)
        body = reply.body
        assert body["target"] == {"gini": 0.4}
        assert body["strength"] > 0
        assert body["history"]
        assert 0 < body["relevance_loss"] < 1
        listed = service.post("/v1/recommend", {"user": 3})
        check(service.call("GET", "/openapi.json").body, "POST", "/v1/recommend", listed)
        assert {"relevance", "subsidy"} <= set(listed.body["items"][0])


def test_every_route_is_described(service):
    assert {route.path for route in service.app.routes} == set(document()["paths"])


def test_limits_are_stated():
    limits = ServiceLimits(rate=5.0, body_bytes=12_345, batch_bytes=23_456, header_bytes=4321)
    text = document(limits)["info"]["description"]
    for value in ("12,345", "23,456", "4,321", "at most 5 from one address", "10,000 items"):
        assert value in text
    schemas = document()["components"]["schemas"]
    longest = schemas["RecommendBody"]["properties"]["history"]["anyOf"][0]["maxItems"]
    assert longest == wire.MOST_ITEMS


def test_tokens_are_stated_where_they_are_needed():
    for is_needed in (False, True):
        paths = document(needs_token=is_needed)["paths"]
        call = paths["/v1/recommend"]["post"]
        assert bool(call["security"]) == is_needed
        assert ("401" in call["responses"]) == is_needed
        assert paths["/admin/reload"]["post"]["security"] == [{"admin": []}]
        assert "security" not in paths["/health/live"]["get"]


def test_refusals_by_load_are_as_it_says():
    arm = make_arm(waiting=1)
    with serving(arm, limits=ServiceLimits(queue=1, rate=1.0)) as service:
        described = service.call("GET", "/openapi.json").body
        arm.batcher.waiting = 1
        reply = service.call("POST", "/v1/recommend", {}, JSON)
        assert reply.status == 503
        check(described, "POST", "/v1/recommend", reply)
        while reply.status != 429:
            reply = service.call("POST", "/v1/batch", b"", NDJSON)
        check(described, "POST", "/v1/batch", reply)
        arm.batcher.waiting = 0
