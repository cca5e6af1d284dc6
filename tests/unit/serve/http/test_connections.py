"""Clients that do not play along: slow, large, broken or many; they are refused, others go on."""

from __future__ import annotations

import contextlib
import json
import socket
import time

import pytest
from tests.support.service import holding, make_arm, read_all, read_until, serving

from limelight.serve.http.settings import ServiceLimits

GET = b"GET /health/live HTTP/1.1\r\nhost: x\r\n"
POST = b"POST /v1/recommend HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
CLOSE = b"connection: close\r\n"
WHOLE = POST + CLOSE + b"content-length: 2\r\n\r\n{}"
IMPATIENT = ServiceLimits(header_seconds=0.2, body_seconds=0.3, idle_seconds=1.0)


@pytest.fixture(scope="module")
def service():
    with serving() as found:
        yield found
        assert found.post("/v1/recommend", {}).status == 200


@pytest.fixture(scope="module")
def impatient():
    with serving(limits=IMPATIENT) as found:
        yield found
        assert found.post("/v1/recommend", {}).status == 200


def statuses(content):
    """Return the statuses of all answers of a connection."""
    return [int(part[:3]) for part in content.split(b"HTTP/1.1 ")[1:]]


def last_error(content):
    return json.loads(content.rpartition(b"\r\n\r\n")[2])["error"]


def refusal(content, status, sentence):
    assert statuses(content) == [status], content[:300]
    assert b"connection: close" in content
    error = last_error(content)
    assert error["status"] == status
    assert sentence in error["message"]
    assert error["hint"]


def without_connections(service):
    """Wait until the service has let go of all connections."""
    while service.n_connections:
        time.sleep(0.005)


# No HTTP

BROKEN = {
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/3": b"GET / HTTP/3.0\r\n\r\n",
    "no method": b" / HTTP/1.1\r\n\r\n",
    "unknown method": b"BREW / HTTP/1.1\r\nhost: x\r\n\r\n",
    "NUL in the path": b"GET /\x00 HTTP/1.1\r\nhost: x\r\n\r\n",
    "bytes in the path": b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
    "a space in the path": b"GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
    "CONNECT": b"CONNECT elsewhere:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    "NUL in a header": GET + b"a: b\x00c\r\n\r\n",
    "a header without a colon": GET + b"abc\r\n\r\n",
    "a space before a colon": GET + b"content-length : 5\r\n\r\nhello",
    "a bare line feed": b"GET / HTTP/1.1\nhost: x\n\n",
    "a bare return": GET + b"a: b\rc: d\r\n\r\n",
    # request smuggling: two readers must not see different requests
    "length and chunks": POST + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "the same length twice": POST + b"content-length: 2\r\ncontent-length: 2\r\n\r\n{}",
    "two lengths in one": POST + b"content-length: 2, 3\r\n\r\n{}",
    "a length below 0": POST + b"content-length: -2\r\n\r\n{}",
    "a length with a sign": POST + b"content-length: +2\r\n\r\n{}",
    "a length of 30 digits": POST + b"content-length: " + b"9" * 30 + b"\r\n\r\n{}",
    "a hexadecimal length": POST + b"content-length: 0x2\r\n\r\n{}",
    "an unknown coding": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks, then another": POST + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunks in a folded line": POST + b"transfer-encoding:\r\n chunked\r\nx: y\r\n\r\n0\r\n\r\n",
    "a chunk of no number": POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk below 0": POST + b"transfer-encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "a chunk of 2^64": POST + b"transfer-encoding: chunked\r\n\r\n1" + b"0" * 16 + b"\r\n{}",
    "a chunk that is longer": POST + b"transfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_request_is_refused(service, name):
    refusal(service.raw(BROKEN[name]), 400, "this is not an HTTP request")


def test_a_request_before_a_broken_one_is_answered_first(service):
    begun = POST + b"content-length: 2\r\n\r\n{}"
    content = service.raw(begun + begun + b"\x00\x01\x02\r\n\r\n")
    assert statuses(content) == [200, 200]
    content = service.raw(begun + POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n")
    assert statuses(content) in ([200], [])


# Large


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n\r\n",
        GET + b"a: " + b"x" * 40_000,
        GET + b"a" * 40_000,
        GET + b"a: b\r\n" * 10_000,
        b"G" * 40_000,
        b"\r\n" * 20_000,
    ],
    ids=["path", "value", "name", "many", "method", "lines"],
)
def test_a_large_head_is_refused(service, head):
    content = service.raw(head)
    assert statuses(content) in ([431], [400])
    assert last_error(content)["hint"]


def test_a_head_that_is_just_small_enough(service):
    head = GET + CLOSE + b"a: "
    assert statuses(service.raw(head + b"x" * (32_760 - len(head)) + b"\r\n\r\n")) == [200]


def chunks(size, total):
    part = b"%x\r\n" % size + b" " * size + b"\r\n"
    return part * (total // size)


LARGE = 2 << 20
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        (POST + b"content-length: %d\r\n\r\n" % LARGE, b" " * LARGE),
        (CHUNKED, chunks(1 << 16, LARGE), b"0\r\n\r\n"),
        (CHUNKED, chunks(100, LARGE), b"0\r\n\r\n"),
    ],
    ids=["length", "chunks", "small chunks"],
)
def test_a_large_body_is_refused(service, parts):
    refusal(service.raw(*parts), 413, "a body has at most 1,048,576 bytes")


def test_a_large_body_that_waits_for_leave_is_not_sent(service):
    head = POST + b"content-length: 99999999999\r\nexpect: 100-continue\r\n\r\n"
    refusal(service.raw(head), 413, "a body has at most 1,048,576 bytes")


def test_a_body_that_waits_for_leave_gets_it(service):
    with service.open() as link:
        link.sendall(POST + CLOSE + b"content-length: 2\r\nexpect: 100-continue\r\n\r\n")
        assert link.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(b"{}")
        assert statuses(read_all(link)) == [200]


def test_a_body_of_single_bytes(service):
    content = b'{"user": 3, "k": 2}'
    single = b"".join(b"1\r\n%c\r\n" % byte for byte in content)
    head = POST + CLOSE + b"transfer-encoding: chunked\r\n\r\n"
    assert statuses(service.raw(head, single, b"0\r\n\r\n")) == [200]


@pytest.mark.parametrize(
    "tail",
    [b"0\r\na: " + b"x" * LARGE, b"0\r\n" + b"a: b\r\n" * 400_000, b"1;" + b"x" * LARGE],
    ids=["a trailer", "trailers", "an extension"],
)
def test_what_comes_with_chunks_has_a_bound(service, tail):
    with service.open() as link:
        link.sendall(CHUNKED + b"1\r\n{\r\n")
        with contextlib.suppress(OSError):
            link.sendall(tail)
        assert statuses(read_all(link)) in ([431], [400], [])  # the last if it was still sending
    without_connections(service)


def test_a_trailer_is_no_header(monkeypatch):
    monkeypatch.setenv("LIMELIGHT_TOKEN", "of-clients-0123456789")
    with serving() as service:
        tail = b"2\r\n{}\r\n0\r\nauthorization: Bearer of-clients-0123456789\r\n\r\n"
        head = POST + CLOSE + b"transfer-encoding: chunked\r\n\r\n"
        assert statuses(service.raw(head + tail)) == [401]


# Slow


def test_who_says_nothing_is_let_go(impatient):
    refusal(impatient.raw(), 408, "the head of the request took more than 0.2 seconds")


@pytest.mark.parametrize("first", [b"G", GET, GET + b"a: b", b"\r\n"])
def test_a_head_that_does_not_end(impatient, first):
    refusal(impatient.raw(first), 408, "the head of the request took more than")


def test_a_head_byte_by_byte(impatient):
    with impatient.open() as link:
        try:
            for byte in GET * 1000:
                link.sendall(bytes([byte]))
                time.sleep(0.01)
        except OSError:
            pass
        else:
            pytest.fail("the connection did not end")


def test_a_second_head_that_does_not_end(impatient):
    content = impatient.raw(GET + b"\r\n" + GET)
    assert statuses(content) == [200, 408]


@pytest.mark.parametrize(
    "head",
    [
        POST + b"content-length: 100\r\n\r\n",
        POST + b"content-length: 100\r\n\r\n{",
        CHUNKED,
        CHUNKED + b"1\r\n{\r\n",
        CHUNKED + b"1\r\n{\r\n0\r\na: b\r\n",
    ],
)
def test_a_body_that_does_not_end(impatient, head):
    refusal(impatient.raw(head), 408, "the body took more than 0.3 seconds")


def test_a_large_body_that_does_not_end(impatient):
    content = impatient.raw(POST + b"content-length: 99999999999\r\n\r\n{")
    refusal(content, 413, "a body has at most")


def test_a_body_that_does_not_end_after_its_answer(impatient):
    """Nobody waits for the rest of a body that was refused by its head."""
    for head in (b"POST /none HTTP/1.1\r\nhost: x\r\n", GET):
        content = impatient.raw(head + b"content-length: 100\r\n\r\n{")
        assert len(statuses(content)) == 1
    without_connections(impatient)


def test_a_body_that_ends_after_its_answer(impatient):
    with impatient.open() as link:
        link.sendall(b"POST /none HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n")
        read_until(link, b"}}")
        link.sendall(b"12345" + GET + b"\r\n")
        read_until(link, b'"live"')
        # Then it is as idle as any other.
        assert read_all(link) == b""
    with impatient.open() as link:
        link.sendall(b"POST /none HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n")
        read_until(link, b"}}")
        link.sendall(b"12345")
        assert read_all(link) == b""


def test_a_connection_that_is_not_used(impatient):
    assert statuses(impatient.raw(GET + b"\r\n")) == [200]


def test_a_client_that_does_not_read_a_batch(impatient):
    content = b'{"k": 120}\n' * 20_000
    head = b"POST /v1/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
    with impatient.open(buffer=4096) as link:
        link.sendall(head + b"content-length: %d\r\n\r\n" % len(content) + content)
        without_tasks(impatient)
        without_connections(impatient)


def test_a_client_that_reads_slowly_gets_it_all(impatient):
    content = b'{"k": 120}\n' * 150
    head = b"POST /v1/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
    with impatient.open(buffer=4096) as link:
        link.sendall(head + CLOSE + b"content-length: %d\r\n\r\n" % len(content) + content)
        got = b""
        while part := link.recv(1 << 17):
            got += part
            time.sleep(0.0005)
    assert got.count(b'"basis":"everybody"') == 150


def test_a_head_may_wait_for_the_answer_before_it():
    arm, limits = make_arm(), ServiceLimits(header_seconds=1.5)
    with serving(arm, limits=limits) as service, service.open() as link:
        with holding(arm):
            link.sendall(POST + b"content-length: 2\r\n\r\n{}" + GET)
            time.sleep(limits.header_seconds + 0.25)
        read_until(link, b'"basis":"everybody"')
        link.sendall(CLOSE + b"\r\n")
        assert statuses(read_all(link)) == [200]


def without_tasks(service):
    while not service.n_connections:
        time.sleep(0.005)
    while service.server.server_state.tasks:
        time.sleep(0.005)


def test_a_client_that_does_not_read_many_answers(impatient):
    head = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    with impatient.open(buffer=4096) as link:
        with contextlib.suppress(OSError):
            for _ in range(100_000):
                link.sendall(head)
        without_connections(impatient)


def test_bodies_without_their_end_have_room_together():
    head = POST + b"content-length: 150000\r\n\r\n"
    with serving() as service, service.open() as first, service.open() as second:
        service.calls._room.left = 200_000
        first.sendall(head + b" " * 149_998)
        while service.calls._room.left > 100_000:
            time.sleep(0.005)
        second.sendall(head + b" " * 149_998)
        refusal(read_all(second), 503, "too many bodies are being sent")
        # Who was first is answered, and so is who sends little.
        assert service.post("/v1/recommend", {}).status == 200
        first.sendall(b"{}")
        assert statuses(read_until(first, b'"basis"')) == [200]
        assert service.calls._room.left == 200_000


# One after the other


def test_requests_that_come_at_once_are_answered_in_order(service):
    parts = []
    for n in range(50):
        body = json.dumps({"id": f"r{n}", "user": n}).encode()
        parts.append(POST + b"content-length: %d\r\n\r\n" % len(body) + body)
    content = service.raw(b"".join(parts) + WHOLE)
    assert statuses(content) == [200] * 51
    places = [content.index(b'"id":"r%d"' % n) for n in range(50)]
    assert places == sorted(places)


def test_only_so_many_requests_may_come_at_once(service):
    found = statuses(service.raw((GET + b"\r\n") * 5000))
    assert set(found) == {200}
    assert 100 <= len(found) < 5000


def test_who_leaves_before_many_answers_is_no_fault(service, caplog):
    for _ in range(5):
        with service.open(buffer=4096) as link:
            link.sendall(b"GET / HTTP/1.1\r\n\r\n" * 50)
            link.recv(1000)
    without_connections(service)
    while service.server.server_state.tasks:
        time.sleep(0.005)
    assert not caplog.records


def test_what_follows_the_last_request_is_not_answered(service):
    assert statuses(service.raw(WHOLE + WHOLE + b"garbage")) == [200]


@pytest.mark.parametrize("to", [b"websocket", b"h2c", b"TLS/1.0"])
def test_nothing_else_is_spoken_here(service, to):
    head = b"upgrade: " + to + b"\r\nconnection: upgrade\r\n"
    assert statuses(service.raw(GET + head + b"\r\n")) == [200]
    assert statuses(service.raw(GET + head + b"\r\n" + b"\x00garbage")) == [200]
    content = service.raw(POST + head + b"content-length: 2\r\n\r\n{}")
    refusal(content, 400, "a request with a body cannot ask for another protocol")


def test_an_old_client(service):
    assert statuses(service.raw(b"GET /health/live HTTP/1.0\r\n\r\n")) == [200]


@pytest.mark.parametrize("target", [b"*", b"http://elsewhere/health/live", b"?x", b"#a", b"x"])
def test_other_targets(service, target):
    content = service.raw(b"GET " + target + b" HTTP/1.1\r\nhost: x\r\n" + CLOSE + b"\r\n")
    assert statuses(content)[0] in (200, 400, 404)


# Many


def test_too_many_connections_are_refused():
    with serving(limits=ServiceLimits(connections=20)) as service:
        links = [service.open() for _ in range(20)]
        for link in links:
            link.sendall(GET + b"\r\n")
            read_until(link, b'"live"')
        content = service.raw()
        refusal(content, 503, "too many connections are open: 20")
        assert b"retry-after: 1" in content
        # Those that are open go on, and one that is closed makes room.
        links[0].sendall(GET + b"\r\n")
        read_until(links[0], b'"live"')
        links.pop().close()
        while service.n_connections >= 20:
            time.sleep(0.005)
        assert service.call("GET", "/health/live").status == 200
        for link in links:
            link.close()


def test_connections_that_are_cut(service):
    for part in (b"", GET, POST + b"content-length: 9\r\n\r\n{", WHOLE):
        with service.open() as link:
            # Without a farewell: as when a machine is gone.
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            link.sendall(part)
    without_connections(service)


def test_a_client_that_is_gone_is_no_fault():
    with serving(make_arm()) as service:
        with service.open() as link:
            link.sendall(POST + b"content-length: 9\r\n\r\n{")
            while not service.server.server_state.tasks:
                time.sleep(0.005)
        without_connections(service)
        while service.server.server_state.tasks:
            time.sleep(0.005)
    [line] = service.log_lines
    assert line["status"] == 499


def test_the_end_waits_for_nobody_who_is_idle():
    with serving() as service, service.open() as idle, service.open() as half:
        idle.sendall(GET + b"\r\n")
        read_until(idle, b'"live"')
        half.sendall(GET)
        service.server.should_exit = True
        assert read_all(idle) == b""
        assert read_all(half) == b""
