"""Many requests in one call."""

from __future__ import annotations

import json
import threading
import time

import pytest
from tests.support.service import NDJSON, holding, make_arm, read_until, serving

from limelight.serve.http import batches, wire
from limelight.serve.http.settings import ServiceLimits


@pytest.fixture(scope="module")
def service():
    with serving() as found:
        yield found


def test_lines_are_answered_in_order(service):
    asked = [{"id": f"r{n}", "user": n % 300} for n in range(500)]
    reply = service.batch(*asked)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [line["id"] for line in reply.lines] == [line["id"] for line in asked]
    alone = service.post("/v1/recommend", {"user": 17}).body["items"]
    assert reply.lines[17]["items"] == alone


def test_both_kinds_of_lines(service):
    items = [{"id": 1, "score": 1}, {"id": 2, "score": 3}]
    first, second = service.batch({"user": 3, "k": 1}, {"user": 3, "items": items}).lines
    assert (first["basis"], len(first["items"])) == ("user", 1)
    assert [item["id"] for item in second["items"]] == [2, 1]


BAD_LINES = {
    b"{": (400, "line 2 is not JSON: Input data was truncated", "one object a line"),
    b"[" * 5000: (422, "line 2: the body is not as it should be", "see /openapi.json"),
    b'{"k": 0}': (422, "line 2: the body is not as it should be: Expected `int` >= 1", "see"),
    b'{"k": NaN}': (400, "line 2 is not JSON", "one object a line"),
    b'{"usr": 1}': (422, "line 2: the body is not as it should be: Object contains", "see"),
    b'{"items": []}': (422, "line 2: the body is not as it should be", "see"),
    b'{"items": [{"id": 1, "score": 1e39}]}': (422, "line 2: the score of item 1", "leave out"),
    b'{"items": [{"id": 1, "score": 1}], "history": [1]}': (
        422,
        "line 2: a line with items takes no history",
        "candidates are chosen",
    ),
    b'{"user": "' + b"x" * (1 << 20) + b'"}': (413, "line 2: a line has at most", "fewer items"),
}


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:20].decode())
def test_an_error_stands_in_its_place(service, line):
    status, sentence, hint = BAD_LINES[line]
    before, found, after = service.batch({"id": "a"}, line, {"id": "b"}).lines
    assert (before["id"], after["id"]) == ("a", "b")
    assert found["error"]["status"] == status
    assert found["error"]["message"].startswith(sentence)
    assert hint in found["error"]["hint"]


def test_lines_are_numbered_as_they_are_sent(service):
    _, found = service.batch({}, b"", b"\r", b"  ", b"?").lines
    assert found["error"]["message"].startswith("line 5 is not JSON")


def test_a_batch_of_nothing(service):
    assert service.batch().content == b""
    assert service.batch(b"\n\n \n").content == b""


def test_as_many_lines_as_there_may_be(service, monkeypatch):
    monkeypatch.setattr(wire, "MOST_LINES", 10)
    assert len(service.batch(*[{}] * 10).lines) == 10
    assert len(service.batch(*[{}] * 10, b"").lines) == 10
    assert service.batch(*[{}] * 12).status == 413


def test_a_line_waits_for_room(monkeypatch):
    arm = make_arm(waiting=1)
    with serving(arm, limits=ServiceLimits(queue=1)) as service:
        assert [
            line["id"] for line in service.batch(*[{"id": str(n)} for n in range(40)]).lines
        ] == [str(n) for n in range(40)]
        monkeypatch.setattr(batches, "_PATIENCE", 0.0)
        arm.batcher.waiting = 1
        [line] = service.batch({"id": "a"}).lines
        arm.batcher.waiting = 0
        assert line["error"]["status"] == 503
        assert line["error"]["id"] == "a"


def test_other_requests_have_room_beside_a_batch():
    arm = make_arm()
    with serving(arm) as service:
        with holding(arm):
            sending = threading.Thread(target=service.batch, args=[{}] * 1000)
            sending.start()
            while arm.batcher.waiting < 33:  # the lines, and what is held
                time.sleep(0.005)
            time.sleep(0.05)
            assert arm.batcher.waiting <= 34  # and what is due
        sending.join(30)


def test_only_some_batches_are_held_at_a_time():
    with serving() as service:
        head = b"POST /v1/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
        links = [service.open() for _ in range(4)]
        for link in links:
            link.sendall(head + b"content-length: 3\r\n\r\n{")
        while len(service.server.server_state.tasks) < 4:
            time.sleep(0.005)
        reply = service.batch({})
        assert reply.status == 503
        assert reply.error["message"] == "too many batches are being answered"
        assert reply.error["hint"] == "send one batch after the other"
        links[0].sendall(b"}\n")
        read_until(links[0], b'"basis":"everybody"')
        for link in links:
            link.close()
        while service.server.server_state.tasks:
            time.sleep(0.005)
        assert service.batch({}).status == 200


def test_a_client_that_leaves_ends_its_batch():
    arm = make_arm()
    with serving(arm) as service:
        content = b"{}\n" * 100_000
        with service.open(buffer=4096) as link:
            head = b"POST /v1/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
            link.sendall(head + b"content-length: %d\r\n\r\n" % len(content) + content)
            assert link.recv(100).startswith(b"HTTP/1.1 200")
        while service.server.server_state.tasks:
            time.sleep(0.005)
        assert arm.answered < 100_000
    [line] = service.log_lines
    assert line["status"] == 499
    assert line["lines"] < 100_000


def test_an_answer_comes_before_the_last_line_is_made():
    arm = make_arm()
    with serving(arm) as service, service.open() as link:
        content = b"\n".join(json.dumps({"id": f"r{n}"}).encode() for n in range(100_000))
        head = f"POST /v1/batch HTTP/1.1\r\nhost: x\r\ncontent-type: {NDJSON['Content-Type']}\r\n"
        link.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        read_until(link, b'"id":"r0"')
        assert arm.answered < 100_000
