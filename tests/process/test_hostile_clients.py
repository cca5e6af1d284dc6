"""A service as a process among clients that mean harm: memory stays, and others are answered."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from tests.support.commands import start_limelight
from tests.support.service import JSON, Reply, ask, read_all, small_model
from tests.unit.serve.http.bad_requests import BAD_REQUESTS, content_of

pytestmark = [
    pytest.mark.hypothesis,  # a soak repeats it more often
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to look into"),
]
ROUNDS = max(1, settings.default.max_examples // 100)
MB = 1 << 20
HEAD = b"POST /v1/recommend HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
ADMIN = "of-admins-0123456789"


class HostileTo:
    """A service in a process, and what it takes."""

    def __init__(self, model: Path, ledger: Path) -> None:
        self.process = start_limelight(
            "serve", model, "--port", 0, "--ledger", ledger, "--no-log", LIMELIGHT_ADMIN_TOKEN=ADMIN
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("serving at "):
                break
        self.port = int(re.findall(r":(\d+)/", line)[0])
        self.wanted = self.items()

    def memory(self, what: str = "VmRSS") -> int:
        """Return megabytes, now or at most so far (VmHWM)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(rf"{what}:\s+(\d+) kB", text)[0]) >> 10

    @property
    def most_files(self) -> int:
        return resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[0]

    def call(self, *request: object) -> Reply:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            return ask(link, *request)
        finally:
            link.close()

    def items(self) -> object:
        reply = self.call("POST", "/v1/recommend", {"user": 3}, JSON)
        assert reply.status == 200, reply
        return reply.body["items"]

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def raw(self, *parts: bytes) -> bytes:
        """Send parts until the other side has enough, and return what it says."""
        with self.open() as link:
            with contextlib.suppress(OSError):
                for part in parts:
                    link.sendall(part)
            with contextlib.suppress(OSError):
                return read_all(link)
        return b""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    small_model().save(folder / "model")
    found = HostileTo(folder / "model", folder / "ledger")
    yield found
    found.process.terminate()
    _, said = found.process.communicate(timeout=60)
    assert found.process.returncode == 0
    assert said == "all requests are answered, and the ledger is written\n"


@pytest.fixture(autouse=True)
def unharmed(service):
    """After each test the service answers as before."""
    yield
    assert service.items() == service.wanted


@contextlib.contextmanager
def grows_at_most(service, megabytes):
    Path(f"/proc/{service.process.pid}/clear_refs").write_text("5")  # the peak starts anew
    before = service.memory()
    yield
    peak = service.memory("VmHWM")
    assert peak - before <= megabytes, f"{before} MB before, {peak} MB at most"


def test_bodies_of_100_megabytes(service):
    declared = HEAD + b"content-length: %d\r\n\r\n" % (100 * MB)
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b" " * MB + b"\r\n"
    with grows_at_most(service, 24):
        for _ in range(ROUNDS):
            answer = service.raw(declared, *[b" " * MB] * 100)
            assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
            answer = service.raw(chunked, *[chunk] * 100, b"0\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 413"), answer[:200]


def test_a_body_without_end(service):
    chunk = b"100000\r\n" + b" " * MB + b"\r\n"
    with grows_at_most(service, 24):
        answer = service.raw(HEAD + b"transfer-encoding: chunked\r\n\r\n", *[chunk] * 600)
        assert answer[:12] in (b"HTTP/1.1 413", b"")  # it may be cut off while it sends


def test_heads_and_trailers_without_end(service):
    trailer = HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\na: "
    with grows_at_most(service, 24):
        for begin in (b"GET /", HEAD + b"a: ", HEAD, trailer):
            part = b"a: b\r\n" * 10_000 if begin == HEAD else b"x" * 60_000
            answer = service.raw(begin, *[part] * 1000)
            assert answer[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400", b"")


def test_what_is_no_http(service):
    with grows_at_most(service, 8):
        for _ in range(200 * ROUNDS):
            assert service.raw(b"\x16\x03\x01 no HTTP\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_many_requests_at_once_of_clients_that_do_not_read(service):
    content = b"GET / HTTP/1.1\r\n\r\n" * 50_000
    with grows_at_most(service, 96):
        links = [service.open() for _ in range(50)]
        for link in links:
            link.settimeout(0.05)
            with contextlib.suppress(OSError):
                link.sendall(content)
        assert service.items() == service.wanted
        for link in links:
            link.close()


def test_many_bad_requests_at_once(service):
    def send(name):
        bad = BAD_REQUESTS[name]
        reply = service.call(bad.method, bad.path, content_of(bad), bad.headers)
        return reply.status == bad.status or f"{name}: {reply}"

    names = [name for name in BAD_REQUESTS for _ in range(3 * ROUNDS)]
    with grows_at_most(service, 48), ThreadPoolExecutor(8) as pool:
        wrong = [found for found in pool.map(send, names) if found is not True]
    assert not wrong


def test_many_wrong_tokens(service):
    with grows_at_most(service, 8):
        for number in range(500 * ROUNDS):
            header = {"Authorization": f"Bearer {number:020}"}
            assert service.call("POST", "/admin/reload", None, header).status == 401


def test_batches_that_nobody_reads(service):
    """Four batches have room; others are told to wait, and who leaves makes room again."""
    line = json.dumps({"history": list(range(100))}).encode() + b"\n"
    content = line * (8 * MB // len(line))
    head = b"POST /v1/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
    with grows_at_most(service, 4 * 8 * 3 + 24):
        links = [service.open() for _ in range(12)]
        answers = []
        for link in links:
            with contextlib.suppress(OSError):
                link.sendall(head + b"content-length: %d\r\n\r\n" % len(content) + content)
        for link in links:
            with contextlib.suppress(OSError):
                answers.append(link.recv(12))
        for link in links:
            link.close()
    assert answers.count(b"HTTP/1.1 200") == 4
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b""}
    while True:
        reply = service.call("POST", "/v1/batch", b"{}", {"Content-Type": "application/x-ndjson"})
        if reply.status == 200:
            break
        assert reply.status == 503
        time.sleep(0.05)


def test_many_bodies_without_their_end(service):
    """All clients together may have sent 128 MB that are not worked on yet."""
    content = HEAD + b"content-length: 1000000\r\n\r\n" + b" " * 999_999
    with grows_at_most(service, 320):
        links = [service.open() for _ in range(600)]
        for link in links:
            link.settimeout(5)
            with contextlib.suppress(OSError):
                link.sendall(content)
        assert service.items() == service.wanted
        for link in links:
            link.close()


def test_two_thousand_connections(service):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2500:
        pytest.skip(f"only {hard} files may be open")
    # The service sees to it that it may open enough, whatever the shell lets it.
    assert service.most_files > 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
    links = []
    try:
        with grows_at_most(service, 96):
            friend = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
            assert ask(friend, "GET", "/health/live").status == 200
            for number in range(2000):
                link = service.open()
                links.append(link)
                # Some say nothing, some a part of a head, some a part of a body.
                part = (b"", HEAD, HEAD + b"content-length: 9\r\n\r\n{")[number % 3]
                with contextlib.suppress(OSError):
                    link.sendall(part)
            # Whoever is connected is answered beside them.
            for _ in range(20):
                assert ask(friend, "POST", "/v1/recommend", {"user": 3}, JSON).status == 200
            refused = sum(_is_refused(link) for link in links[1100:])
            assert refused == 900
            friend.close()
    finally:
        for link in links:
            link.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    while _is_full(service):
        time.sleep(0.05)


def _is_refused(link: socket.socket) -> bool:
    try:
        return link.recv(12) in (b"HTTP/1.1 503", b"")
    except ConnectionError:
        return True


def _is_full(service: HostileTo) -> bool:
    try:
        return service.call("GET", "/health/live").status == 503
    except (ConnectionError, http.client.HTTPException):
        return True
