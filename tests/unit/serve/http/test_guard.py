"""Who may ask, and how often."""

from __future__ import annotations

import pytest
from tests.support.service import JSON, make_arm, serving

from limelight._base.errors import DataError
from limelight.serve.http.guard import RateLimit
from limelight.serve.http.settings import ServiceLimits

CLIENT, OTHER_CLIENT = "of-clients-0123456789", "of-more-clients-0123456789"
ADMIN = "of-admins-0123456789"
PRIVATE = {
    "/v1/recommend": {},
    "/v1/rerank": {"items": [{"id": 1, "score": 1}]},
    "/v1/shown": {"events": [{"id": "a"}]},
}
OPEN = ["/", "/health/live", "/health/ready", "/metrics", "/openapi.json"]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"{CLIENT}\n\n  {OTHER_CLIENT}  \n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN)
        with serving(token_file=str(file)) as found:
            yield found


# Tokens


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize("token", [CLIENT, OTHER_CLIENT, ADMIN])
def test_whoever_has_a_token_may_ask(service, path, token):
    assert service.call("POST", path, PRIVATE[path], JSON | bearer(token)).status == 200


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({}, "the token is missing"),
        ({"Authorization": ""}, "the token is missing"),
        ({"Authorization": "Bearer"}, "the token is missing"),
        ({"Authorization": CLIENT}, "the token is missing"),
        ({"Authorization": f"Basic {CLIENT}"}, "the token is missing"),
        (bearer("x"), "the token is wrong"),
        (bearer(CLIENT[:-1]), "the token is wrong"),
        (bearer(CLIENT + "x"), "the token is wrong"),
        (bearer(CLIENT.upper()), "the token is wrong"),
        (bearer("\xe4" * 20), "the token is wrong"),
        (bearer("x" * 20_000), "the token is wrong"),
        (bearer(f"{CLIENT}, Bearer {ADMIN}"), "the token is wrong"),
    ],
)
def test_a_wrong_token(service, header, sentence):
    for path, body in PRIVATE.items():
        reply = service.call("POST", path, body, JSON | header)
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.error["message"] == sentence
        assert reply.error["hint"] == "send the header 'Authorization: Bearer TOKEN'"
    assert service.call("GET", "/v1/exposure", headers=header).status == 401
    assert service.call("POST", "/admin/reload", headers=header).status == 401


def test_the_word_bearer_in_any_case(service):
    header = {"Authorization": f"bEARER   {CLIENT} "}
    assert service.call("GET", "/v1/exposure", headers=header).status == 200


def test_of_two_headers_the_first_counts(service):
    head = b"GET /v1/exposure HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    good, bad = f"authorization: Bearer {CLIENT}\r\n".encode(), b"authorization: Bearer x\r\n"
    assert service.raw(head + bad + good + b"\r\n").startswith(b"HTTP/1.1 401")
    assert service.raw(head + good + bad + b"\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", OPEN)
def test_some_calls_need_no_token(service, path):
    assert service.call("GET", path).status == 200


@pytest.mark.parametrize("path", ["/none", "/v1/none", "/admin/none", "//", "/health/live/"])
def test_without_a_token_nobody_learns_what_there_is(service, path):
    assert service.call("GET", path).status == 401


def test_admins_have_a_token_of_their_own(service):
    reply = service.call("POST", "/admin/target", {"gini": 0.5}, JSON | bearer(CLIENT))
    assert reply.status == 403
    assert reply.error["message"] == "this call needs the admin token"
    assert reply.error["hint"] == "the token sent is a client's"
    assert service.call("POST", "/admin/%74arget", {}, JSON | bearer(CLIENT)).status == 403
    reply = service.call("POST", "/admin/target", {"gini": 0.5}, JSON | bearer(ADMIN))
    assert reply.body == {"targets": {"demo": {"gini": 0.5}}}


def test_without_an_admin_token_admin_calls_are_closed(monkeypatch):
    monkeypatch.delenv("LIMELIGHT_ADMIN_TOKEN", raising=False)
    with serving() as service:
        for header in ({}, bearer(""), bearer("x"), bearer(ADMIN)):
            reply = service.call("POST", "/admin/reload", headers=header)
            assert reply.status == 403
            assert "has no admin token" in reply.error["message"]
            assert "LIMELIGHT_ADMIN_TOKEN" in reply.error["hint"]
        assert service.post("/v1/recommend", {}).status == 200


def test_a_token_stands_in_no_answer(service):
    service.call("POST", "/v1/recommend", {}, JSON | bearer("guess-0123456789"))
    texts = [service.call("GET", path).content for path in OPEN]
    service.call("GET", "/v1/exposure", headers=bearer(CLIENT))
    assert not [text for text in texts if CLIENT.encode() in text or ADMIN.encode() in text]
    assert "guess" not in service.written.getvalue()
    assert CLIENT not in service.written.getvalue()


# Rate


def test_an_address_may_ask_so_often():
    with serving(limits=ServiceLimits(rate=3.0)) as service:
        statuses = [service.post("/v1/recommend", {}).status for _ in range(10)]
        assert statuses[:3] == [200, 200, 200]
        assert 429 in statuses[3:]
        while (reply := service.post("/v1/recommend", {})).status != 429:
            pass
        assert reply.error["message"] == "too many requests from this address"
        assert reply.error["hint"] == "come back after the seconds of the header Retry-After"
        assert reply.headers["retry-after"] == "1"
        # Whoever watches the service is not counted.
        assert {service.call("GET", path).status for path in OPEN * 3} == {200}


def test_who_guesses_tokens_is_slowed_down(monkeypatch):
    monkeypatch.setenv("LIMELIGHT_TOKEN", CLIENT)
    with serving(limits=ServiceLimits(rate=2.0)) as service:
        statuses = [service.post("/v1/recommend", {}).status for _ in range(8)]
        assert 429 in statuses
        assert set(statuses) == {401, 429}


def test_a_slow_rate_has_its_time_to_wait():
    limit = RateLimit(0.1)
    assert limit.wait("a", now=0.0) == 0.0
    assert limit.wait("a", now=0.0) == pytest.approx(10.0)
    assert limit.wait("a", now=9.0) == pytest.approx(1.0)
    assert limit.wait("a", now=10.01) == 0.0


def test_rates_of_many_addresses_take_bounded_memory():
    limit = RateLimit(5.0)
    for number in range(30_000):
        assert limit.wait(f"10.0.{number}", now=number / 1000) == 0.0
    assert len(limit._left) == 10_000


# Admin calls


def test_a_model_is_read_again(monkeypatch):
    monkeypatch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN)
    read = []

    def load(_, name):
        read.append(name)
        return make_arm().loaded

    monkeypatch.setattr("limelight.serve.service.load_arm", load)
    with serving() as service:
        reply = service.call("POST", "/admin/reload", headers=bearer(ADMIN))
        assert reply.body == {"models": {"demo": "abc"}, "items": {"demo": 120}}
        named = service.call("POST", "/admin/reload", {"model": "demo"}, JSON | bearer(ADMIN))
        assert named.status == 200
        assert read == ["demo", "demo"]


def test_of_two_models_none_is_swapped_in_alone(monkeypatch):
    monkeypatch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN)

    def load(_, name):
        if name == "new":
            message = "the folder is damaged: new"
            raise DataError(message, hint="fit it again")
        return make_arm().loaded

    monkeypatch.setattr("limelight.serve.service.load_arm", load)
    with serving(make_arm("old"), make_arm("new")) as service:
        before = {name: arm.loaded for name, arm in service.arms.items()}
        reply = service.call("POST", "/admin/reload", headers=bearer(ADMIN))
        assert reply.status == 422
        assert reply.error["message"].endswith("cannot be used: the folder is damaged: new")
        assert reply.error["hint"] == "fit it again"
        assert {name: arm.loaded for name, arm in service.arms.items()} == before


def test_a_target_is_moved_and_ended(monkeypatch):
    monkeypatch.setenv("LIMELIGHT_ADMIN_TOKEN", ADMIN)
    with serving() as service:

        def move(**target):
            reply = service.call("POST", "/admin/target", target, JSON | bearer(ADMIN))
            assert reply.status == 200, reply.content
            return reply.body["targets"]["demo"]

        assert move(gini=0.5) == {"gini": 0.5}
        assert move(max_relevance_loss=0.1) == {"gini": 0.5, "max_relevance_loss": 0.1}
        assert service.call("GET", "/v1/exposure").body["target"] == {
            "gini": 0.5,
            "max_relevance_loss": 0.1,
        }
        assert move(gini=None, max_relevance_loss=None) is None
