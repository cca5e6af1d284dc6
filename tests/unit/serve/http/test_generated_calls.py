"""Thousands of calls made from the OpenAPI document, good and bad: each is answered as it says."""

from __future__ import annotations

import json

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from tests.support.examples import examples
from tests.support.service import NDJSON, make_arm, serving

from limelight.serve.http.openapi import document

ADMIN = "of-admins-0123456789"
SCHEMA = schemathesis.openapi.from_dict(document())
MODES = {"good": GenerationMode.POSITIVE, "bad": GenerationMode.NEGATIVE}
CALLS = {
    "recommend": ("POST", "/v1/recommend"),
    "rerank": ("POST", "/v1/rerank"),
    "shown": ("POST", "/v1/shown"),
    "exposure": ("GET", "/v1/exposure"),
    "target": ("POST", "/admin/target"),
    "reload": ("POST", "/admin/reload"),
}
NO_SCHEMA_SAYS = (
    "got `float` - at",  # 7.0 is a whole number to JSON Schema, and no id
    "an event needs the id of a request",
    "no model has this name",
    "is a candidate twice",
    "must be finite, from -1e30 to 1e30",
    "caps and floors need groups",
    "Number out of range",
    "a body has at most",
)
"""Why a request may be refused though it is as the document says."""


@pytest.fixture(scope="module")
def service():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN)
        loaded = make_arm().loaded
        patch.setattr("limelight.serve.service.load_arm", lambda *_: loaded)
        with serving() as found:
            yield found


@pytest.fixture(scope="module")
def session():
    with requests.Session() as found:
        found.trust_env = False
        yield found


def many(in_the_gate):
    """Return settings for so many examples in the gate, and twenty times as many in a soak."""
    return examples(in_the_gate, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.hypothesis
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_made_up(service, session, call, mode):
    method, path = CALLS[call]

    @given(case=SCHEMA[path][method].as_strategy(generation_mode=MODES[mode]))
    @many(75)
    def ask(case):
        reply = case.call(
            base_url=f"http://127.0.0.1:{service.port}",
            session=session,
            headers={"Authorization": f"Bearer {ADMIN}"},
        )
        excluded = [positive_data_acceptance]
        if reply.status_code == 413:
            excluded.append(negative_data_rejection)  # to schemathesis that is no refusal
        case.validate_response(reply, excluded_checks=excluded)
        assert reply.status_code < 500
        if mode == "good" and reply.status_code != 200:
            message = reply.json()["error"]["message"]
            assert any(words in message for words in NO_SCHEMA_SAYS), message

    ask()


def bodies(path, mode):
    return SCHEMA[path]["POST"].as_strategy(generation_mode=MODES[mode]).map(lambda case: case.body)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
GOOD = bodies("/v1/recommend", "good") | bodies("/v1/rerank", "good")
LINES = st.one_of(
    GOOD.map(json.dumps).map(str.encode),
    ANYTHING.map(json.dumps).map(str.encode),
    st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")),
)


@given(lines=st.lists(LINES, max_size=6))
@many(100)
def test_a_batch_that_is_made_up(service, session, lines):
    reply = session.post(
        f"http://127.0.0.1:{service.port}/v1/batch",
        data=b"\n".join(lines),
        headers=NDJSON,
    )
    assert reply.status_code == 200
    answers = [json.loads(line) for line in reply.content.splitlines()]
    assert len(answers) == sum(bool(line.strip()) for line in lines)
    for answer in answers:
        assert "items" in answer or answer["error"]["status"] in (400, 422), answer
