"""What the service tells of itself: figures and the log."""

from __future__ import annotations

import io
import json
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.service import make_arm, serving

from limelight.serve.http.telemetry import AccessLog, LatencyWindow, Telemetry


def figures(service):
    """Return all figures by name and labels, as Prometheus reads them."""
    reply = service.call("GET", "/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.content.decode())
        for sample in family.samples
    }


def test_figures_of_all_that_was_asked():
    with serving() as service:
        id_ = service.post("/v1/recommend", {"user": 3}).body["id"]
        service.post("/v1/recommend", {"usr": 3})
        service.post("/v1/shown", {"events": [{"id": id_}, {"id": id_}, {"id": "x"}]})
        service.batch({}, {"items": [{"id": 1, "score": 1}]}, b"?")
        for path in ("/none", "/" + "x" * 500, "/v1/recommend?x=1"):
            service.call("GET", path)
        found = figures(service)
    for name, route, status, value in [
        ("limelight_requests_total", "/v1/recommend", "200", 1),
        ("limelight_requests_total", "/v1/recommend", "422", 1),
        ("limelight_requests_total", "/v1/recommend", "405", 1),
        ("limelight_requests_total", "/v1/batch", "200", 1),
        ("limelight_requests_total", "other", "404", 2),
    ]:
        assert found[name, ("route", route), ("status", status)] == value
    assert found["limelight_request_seconds_count", ("route", "/v1/recommend")] == 3
    for basis in ("user", "everybody", "candidates"):
        assert found["limelight_lists_total", ("basis", basis), ("model", "demo")] == 1
    for kind in ("accepted", "known", "unknown"):
        assert found["limelight_shown_total", ("kind", kind), ("model", "demo")] == 1
    assert found["limelight_window_lists", ("model", "demo")] == 1
    assert found["limelight_waiting", ("model", "demo")] == 0


def test_what_is_refused_before_it_is_a_request_is_counted_too():
    with serving() as service:
        service.raw(b"no HTTP\r\n\r\n")
        service.raw(b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n\r\n")
        found = figures(service)
    for status in ("400", "431"):
        key = ("limelight_requests_total", ("route", "connection"), ("status", status))
        assert found[key] == 1
    assert [line["status"] for line in service.log_lines] == [400, 431, 200]


def test_a_line_for_every_request_without_users():
    with serving() as service:
        service.post("/v1/recommend", {"id": "a", "user": "secret-user", "history": [1]})
        service.post("/v1/rerank", {"user": "secret-user", "items": [{"id": 1, "score": 1}]})
        service.post("/v1/shown", {"events": [{"user": "secret-user", "items": [1]}]})
        service.batch({"user": "secret-user"}, {"user": "secret-user", "k": 0})
        service.post("/v1/recommend", {"user": {"secret-user": 1}})
        service.call("GET", "/secret-user")
        service.call("GET", "/v1/exposure?top=3&x=secret-user")
    lines = service.log_lines
    assert [line["status"] for line in lines] == [200, 200, 200, 200, 422, 404, 200]
    assert "secret" not in service.written.getvalue()
    first = lines[0]
    assert first["event"] == "request"
    assert first["route"] == "/v1/recommend"
    assert first["method"] == "POST"
    assert (first["id"], first["model"], first["items"], first["basis"]) == (
        "a",
        "demo",
        5,
        "history",
    )
    assert first["ms"] > 0
    assert first["time"] > 1.7e9
    assert (lines[2]["accepted"], lines[3]["lines"]) == (1, 2)


def test_users_are_logged_where_that_was_asked_for():
    with serving(log_users=True) as service:
        service.post("/v1/recommend", {"user": "ann"})
        service.post("/v1/recommend", {})
    known, unknown = service.log_lines
    assert known["user"] == "ann"
    assert "user" not in unknown


@pytest.mark.parametrize(
    "text", ["\n", '"', "\x1b[2J", "\u2028", "\x85", "\x9b2J", "}{", "\0", "ä😀"]
)
def test_nothing_in_an_id_breaks_a_line(text):
    with serving() as service:
        service.post("/v1/recommend", {"id": text})
    [line] = service.written.getvalue().splitlines()
    assert text.isprintable() or text not in line
    assert json.loads(line)["id"] == text


class Slow(io.StringIO):
    """A pipe that nobody reads until it is let go."""

    def __init__(self):
        super().__init__()
        self.go, self.reached = threading.Event(), threading.Event()

    def write(self, text):
        self.reached.set()
        self.go.wait(30)
        return super().write(text)


def test_a_slow_reader_of_the_log_loses_lines_and_is_told(monkeypatch):
    monkeypatch.setattr("limelight.serve.http.telemetry._MOST_LINES", 10)
    file = Slow()
    log = AccessLog(file)
    log.write(n=-1)
    assert file.reached.wait(30)
    for n in range(25):
        log.write(n=n)
    file.go.set()
    log.close()
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["n"] for line in lines if "n" in line] == [-1, *range(15, 25)]
    assert {"event": "log", "dropped": 15} in lines


def test_a_reader_of_the_log_that_ends_stops_no_answer():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    log = AccessLog(Closed())
    log.write(n=1)
    log.close()
    log.write(n=2)


def test_a_figure_has_few_labels():
    telemetry = Telemetry()
    for status in (200, 404, 422):
        for _ in range(1000):
            telemetry.request("other", status, 0.001)
    assert telemetry.page().count(b"\nlimelight_requests_total{") == 3


def test_rates_and_latencies_are_those_of_the_last_minute():
    window = LatencyWindow()
    assert window.percentiles(now=0.0) is None
    assert window.rate(now=0.0) == 0.0
    for second in range(100):
        window.add(0.01 if second < 50 else 0.02, now=float(second))
    assert window.rate(now=100.0) == pytest.approx(59 / 60, abs=0.02)
    assert window.percentiles(now=100.0) == (20.0, 20.0)
    assert window.percentiles(now=1000.0) is None


def test_figures_of_a_window_follow_control(monkeypatch):
    arm = make_arm(target={"gini": 0.3}, counts_served=True)
    with serving(arm, count="served") as service:
        service.batch(*[{"user": n % 300} for n in range(600)])
        found = figures(service)
    assert found["limelight_strength", ("model", "demo")] > 0
    assert found["limelight_window_lists", ("model", "demo")] == 600
    assert 0 < found["limelight_relevance_loss", ("model", "demo")] < 1
