"""Every kind of bad request is refused with a sentence and a hint, and harms nobody else."""

from __future__ import annotations

import pytest
from tests.support.service import serving
from tests.unit.serve.http.bad_requests import ADMIN_TOKEN, BAD_REQUESTS, content_of


@pytest.fixture(scope="module")
def service():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN_TOKEN)
        with serving() as found:
            yield found


def test_there_are_many_kinds():
    assert len(BAD_REQUESTS) >= 60


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request(service, name):
    bad = BAD_REQUESTS[name]
    reply = service.call(bad.method, bad.path, content_of(bad), bad.headers)
    assert reply.status == bad.status, reply.content[:500]
    assert reply.headers["content-type"] == "application/json"
    error = reply.error
    assert error["status"] == bad.status
    assert bad.sentence in error["message"]
    assert bad.hint in (error.get("hint") or "")
    assert len(reply.content) < 2000
    # The service goes on as if nothing had been.
    assert service.post("/v1/recommend", {"user": 3}).status == 200
