"""The calls of the service, asked as a client asks them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from functools import partial

import pyarrow as pa
import pytest
from tests.support.service import JSON, K, ask, holding, make_arm, serving, small_model

import limelight as ll
from limelight.serve.http.settings import ServiceLimits


@pytest.fixture(scope="module")
def service():
    with serving() as found:
        yield found


@pytest.fixture
def fresh():
    """A service of its own, whose ledger is empty."""
    with serving() as found:
        yield found


def shown(service, *events):
    return service.post("/v1/shown", {"events": events}).body


# Lists


def test_a_known_user_gets_the_list_of_the_model(service):
    reply = service.post("/v1/recommend", {"id": "mine", "user": 3})
    assert reply.status == 200
    body = reply.body
    lists = small_model().recommend(user_ids=[3], k=K)
    assert [item["id"] for item in body["items"]] == lists.ids[0].tolist()
    assert [item["rank"] for item in body["items"]] == [1, 2, 3, 4, 5]
    assert body["id"] == "mine"
    assert body["model"] == "demo"
    assert body["basis"] == "user"
    assert body["took_ms"] >= 0
    assert "unknown" not in body


def test_every_answer_has_an_id_of_its_own(service):
    ids = {service.post("/v1/recommend", {"user": 3}).body["id"] for _ in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize(
    ("asked", "basis"),
    [
        ({}, "everybody"),
        ({"user": "nobody knows her"}, "everybody"),
        ({"history": [1, 2]}, "history"),
        ({"user": 3, "history": [1]}, "history"),
        ({"user": "3"}, "user"),
        ({"user": None, "k": None, "history": None}, "everybody"),
    ],
)
def test_what_scores_come_from(service, asked, basis):
    body = service.post("/v1/recommend", asked).body
    assert len(body["items"]) == K
    assert body["basis"] == basis


def test_what_may_be_shown(service):
    body = service.post("/v1/recommend", {"user": 3, "allow": [1, 2, 3, 4], "exclude": [2]}).body
    assert {item["id"] for item in body["items"]} <= {1, 3, 4}
    assert service.post("/v1/recommend", {"user": 3, "allow": []}).body["items"] == []


def test_a_list_is_never_longer_than_the_catalogue(service):
    assert len(service.post("/v1/recommend", {"k": 1000}).body["items"]) == 120


def test_unknown_items_are_named_and_do_no_harm(service):
    asked = {"history": [1, "none"], "exclude": [10**9], "allow": [1, 2, "neither"]}
    reply = service.post("/v1/recommend", asked)
    assert reply.status == 200
    assert set(reply.body["unknown"]) == {"none", 10**9, "neither"}


def test_candidates_come_back_best_first(service):
    items = [{"id": 1, "score": 0.5}, {"id": "new", "score": 2}, {"id": 3, "score": 1}]
    body = service.post("/v1/rerank", {"k": 2, "items": items}).body
    assert [item["id"] for item in body["items"]] == ["new", 3]
    assert body["basis"] == "candidates"
    assert body["unknown"] == ["new"]


def test_of_a_key_that_comes_twice_the_last_counts(service):
    assert len(service.post("/v1/recommend", b'{"k": 3, "k": 2}').body["items"]) == 2


@pytest.mark.parametrize("text", ["a\0b", "\0", "ä" * 256, "😀", "\u202e", "\ufeff", "\uffff"])
def test_ids_of_any_characters(service, text):
    asked = {"id": text, "user": text, "history": [text], "exclude": [text]}
    reply = service.post("/v1/recommend", asked)
    assert reply.status == 200
    assert reply.body["id"] == text
    assert set(reply.body["unknown"]) == {text}


def test_a_connection_is_used_again(service):
    link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    link.connect()
    own = link.sock.getsockname()
    for _ in range(3):
        assert ask(link, "POST", "/v1/recommend", {"user": 3}, JSON).status == 200
        assert ask(link, "POST", "/v1/recommend", {"usr": 3}, JSON).status == 422
        assert ask(link, "GET", "/none").status == 404
    assert link.sock.getsockname() == own
    link.close()


# What was shown


def test_a_list_is_counted_once_by_its_id(fresh):
    id_ = fresh.post("/v1/recommend", {"user": 3}).body["id"]
    assert shown(fresh, {"id": id_}) == {"accepted": 1, "known": 0, "late": 0, "unknown": []}
    assert shown(fresh, {"id": id_}) == {"accepted": 0, "known": 1, "late": 0, "unknown": []}
    assert shown(fresh, {"id": id_}, {"id": id_})["known"] == 2
    assert fresh.arms["demo"].ledger.lists == 1


def test_the_same_id_twice_in_a_report_counts_once(fresh):
    event = {"id": "page-7", "items": [1, 2]}
    found = shown(fresh, event, event)
    assert (found["accepted"], found["known"]) == (1, 1)


def test_an_id_that_nobody_remembers_is_named(fresh):
    assert shown(fresh, {"id": "gone"}, {"id": "named", "items": [4]}) == {
        "accepted": 1,
        "known": 0,
        "late": 0,
        "unknown": ["gone"],
    }


def test_items_count_without_an_id_each_time(fresh):
    event = {"user": 3, "items": [1, 2]}
    assert shown(fresh, event, event)["accepted"] == 2


def test_what_is_older_than_the_window_is_not_counted(fresh):
    assert shown(fresh, {"id": "old", "items": [1], "time": 86_400.0})["late"] == 1
    assert fresh.arms["demo"].ledger.lists == 0


def test_unknown_items_of_a_report_do_no_harm(fresh):
    found = shown(fresh, {"id": "a", "items": ["none", 1, "none"]}, {"id": "b", "items": [-7]})
    assert found["accepted"] == 2
    assert found["unknown_items"] == ["none", -7]
    most = fresh.call("GET", "/v1/exposure?top=1").body["most"]
    assert most[0]["id"] == 1
    # The first place was that of the unknown item.
    assert most[0]["exposure"] == pytest.approx(0.6309, abs=1e-4)


def test_so_many_unknown_items_are_named(fresh):
    found = shown(fresh, {"id": "a", "items": [f"none-{n}" for n in range(500)]})
    assert found["unknown_items"] == [f"none-{n}" for n in range(100)]


def test_a_list_that_was_counted_and_forgotten_is_known(fresh):
    id_ = fresh.post("/v1/recommend", {"user": 3}).body["id"]
    assert shown(fresh, {"id": id_})["accepted"] == 1
    fresh.arms["demo"].recent._lists.clear()
    found = shown(fresh, {"id": id_}, {"id": id_, "items": [1]}, {"id": "x"})
    assert (found["known"], found["unknown"]) == (2, ["x"])


def test_a_list_is_counted_for_one_model_only():
    arms = make_arm("old"), make_arm("new")
    with serving(*arms) as service:
        ids = [service.post("/v1/recommend", {"user": user}).body["id"] for user in range(20)]
        assert shown(service, *({"id": id_} for id_ in ids))["accepted"] == 20
        for arm in arms:
            arm.recent._lists.clear()
        assert shown(service, *({"id": id_, "items": [1]} for id_ in ids))["known"] == 20


def test_lists_are_remembered_when_a_model_is_read_again(fresh):
    """Exposure follows items by their ids, also that of lists that are reported later."""
    arm = fresh.arms["demo"]
    reply = fresh.post("/v1/rerank", {"items": [{"id": id_, "score": 1} for id_ in (7, "new", 3)]})
    ids = small_model().item_ids
    keep = ids[ids != 3][::-1]
    other = ll.IALS(factors=4, epochs=1).fit(
        ll.read(pa.table({"user_id": [1] * len(keep), "item_id": keep}))
    )
    arm.batcher._loop.call_soon_threadsafe(
        arm.batcher.run, partial(arm.swap, make_arm(model=other).loaded)
    )
    assert shown(fresh, {"id": reply.body["id"]})["accepted"] == 1
    most = fresh.call("GET", "/v1/exposure?top=2").body["most"]
    assert most[0] == {"id": 7, "exposure": 1.0}
    assert most[1]["exposure"] == 0


def test_where_answers_count_nothing_need_be_reported():
    with serving(make_arm(counts_served=True), count="served") as service:
        service.post("/v1/recommend", {"id": "a", "user": 3})
        assert service.call("GET", "/v1/exposure").body["lists"] == 1
        assert shown(service, {"id": "a", "items": [1]})["known"] == 1


# The window


def test_exposure_of_nothing(fresh):
    body = fresh.call("GET", "/v1/exposure").body
    assert body["lists"] == 0
    assert body["gini"] is None
    assert body["lorenz"] == []
    assert len(body["most"]) == len(body["least"]) == 20


def test_exposure_tells_what_was_shown(fresh):
    shown(fresh, {"id": "a", "items": [5, 6]}, {"id": "b", "items": [5]})
    body = fresh.call("GET", "/v1/exposure?top=2&model=demo").body
    assert body["model"] == "demo"
    assert [item["id"] for item in body["most"]] == [5, 6]
    assert body["most"][0]["exposure"] == 2
    assert body["coverage"] == pytest.approx(2 / 120)
    assert 0.9 < body["gini"] < 1
    assert body["lorenz"][-1] == [1.0, 1.0]
    assert body["window_seconds"] == 7 * 86_400
    assert fresh.call("GET", "/v1/exposure?top=0").body["most"] == []


def test_a_service_that_hears_of_nothing_says_so(fresh):
    fresh.batch(*[{}] * 100)
    [note] = fresh.call("GET", "/v1/exposure").body["notes"]
    assert note.startswith("100 lists were answered, and nothing was reported")


# The service


def test_health(service):
    assert service.call("GET", "/health/live").body == {"status": "live"}
    assert service.call("GET", "/health/ready").body == {
        "status": "ready",
        "models": {"demo": "abc"},
    }


def test_head_has_no_body(service):
    reply = service.call("HEAD", "/health/live")
    assert reply.status == 200
    assert reply.content == b""


def test_the_page(service):
    reply = service.call("GET", "/")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/html")


def test_two_models_share_the_users():
    arms = make_arm("old"), make_arm("new")
    with serving(*arms, split={"old": 50, "new": 50}) as service:
        names = {
            user: service.post("/v1/recommend", {"user": user}).body["model"] for user in range(40)
        }
        assert set(names.values()) == {"old", "new"}
        for user, name in names.items():
            reply = service.post("/v1/rerank", {"user": user, "items": [{"id": 1, "score": 1}]})
            assert reply.body["model"] == name
            found = shown(service, {"id": reply.body["id"]})
            assert found["accepted"] == 1
        counted = {name: arm.ledger.lists for name, arm in service.arms.items()}
        assert counted == {name: list(names.values()).count(name) for name in ("old", "new")}
        for name in ("old", "new"):
            assert service.call("GET", f"/v1/exposure?model={name}").body["lists"] == counted[name]
        page = service.call("GET", "/metrics").content.decode()
        assert 'limelight_lists_total{basis="user",model="new"}' in page
        assert 'limelight_lists_total{basis="user",model="old"}' in page


# Load


def test_too_many_that_wait_are_refused_at_once():
    arm = make_arm(waiting=1)
    with serving(arm, limits=ServiceLimits(queue=1)) as service:
        arm.batcher.waiting = 1  # as if one waited for ever
        for path, body in {
            "/v1/recommend": {},
            "/v1/rerank": {"items": [{"id": 1, "score": 1}]},
            "/v1/shown": {"events": [{"id": "a"}]},
        }.items():
            reply = service.post(path, body)
            assert reply.status == 503
            assert reply.error["message"] == "too many requests wait: 1"
            assert reply.error["hint"] == "come back later, or start more replicas"
            assert reply.headers["retry-after"] == "1"
        assert service.call("GET", "/health/live").status == 200
        arm.batcher.waiting = 0
        assert service.post("/v1/recommend", {}).status == 200


def test_a_list_that_takes_too_long_is_refused():
    arm = make_arm()
    with serving(arm, limits=ServiceLimits(seconds=0.05)) as service:
        with holding(arm):
            reply = service.post("/v1/recommend", {"id": "late"})
        assert reply.status == 503
        assert reply.error["message"] == "no list could be made within 0.05 seconds"
        assert reply.error["id"] == "late"
        assert service.post("/v1/recommend", {}).status == 200


def test_a_fault_of_the_service_says_so_and_nothing_else(caplog):
    arm = make_arm()
    arm.engine.answer = lambda *_, **__: 1 / 0
    with serving(arm) as service, caplog.at_level("ERROR", logger="limelight.serve"):
        reply = service.post("/v1/recommend", {"user": "secret"})
        assert reply.status == 500
        assert reply.error["message"] == "the service has failed: an internal error"
        assert "ZeroDivisionError" not in reply.content.decode()
        [line] = service.batch({"id": "x"}).lines
        assert line["error"]["status"] == 500
        assert line["error"]["id"] == "x"
    assert "division by zero" in caplog.text


def test_what_was_asked_is_answered_when_the_service_ends():
    arm, replies = make_arm(), []
    with serving(arm) as service, holding(arm):
        asking = threading.Thread(
            target=lambda: replies.append(service.post("/v1/recommend", {"user": 3}))
        )
        asking.start()
        while arm.batcher.waiting < 2:
            time.sleep(0.005)
        service.server.should_exit = True
    asking.join(30)
    assert [reply.status for reply in replies] == [200]
    assert json.loads(replies[0].content)["basis"] == "user"
