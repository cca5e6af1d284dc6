"""What the service tells of itself: figures for Prometheus, a line of JSON a request, rates.

No line names a user unless that was asked for, and no figure has more labels than routes, statuses
and models.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable

_LATENCIES = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0, 5)
_KEPT = 20_000
_MINUTE = 60.0
_MOST_LINES = 100_000
_EVERY = 0.2
_UNSAFE = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
"""Characters that JSON does not escape, though terminals obey them or readers end lines at them."""


class Telemetry:
    """Counters, times and the log of one process."""

    def __init__(self, log: AccessLog | None = None) -> None:
        self.log = log
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "limelight_requests",
            "Requests by route and status.",
            ("route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "limelight_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ("route",),
            buckets=_LATENCIES,
            registry=self.registry,
        )
        self._lists = Counter(
            "limelight_lists",
            "Lists answered by model and by what their scores come from.",
            ("model", "basis"),
            registry=self.registry,
        )
        self._events = Counter(
            "limelight_shown",
            "Events of /v1/shown: counted, known already, or of a request that is not known.",
            ("model", "kind"),
            registry=self.registry,
        )
        self._children: dict[tuple[object, ...], Any] = {}
        self.latencies = LatencyWindow()

    def gauge(self, name: str, text: str, model: str, value: Callable[[], float]) -> None:
        """Add a figure that is looked up when somebody asks."""
        known = self._children.get((name,))
        if known is None:
            known = Gauge(f"limelight_{name}", text, ("model",), registry=self.registry)
            self._children[name,] = known
        known.labels(model).set_function(value)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, status)
        pair = self._children.get(key)
        if pair is None:
            # Labels are looked up once: that takes longer than counting.
            pair = (self._requests.labels(route, str(status)), self._seconds.labels(route))
            self._children[key] = pair
        pair[0].inc()
        pair[1].observe(seconds)

    def refused(self, status: int) -> None:
        """Count and log what was refused before it was a request."""
        self.request("connection", status, 0.0)
        if self.log is not None:
            self.log.write(event="request", route="connection", status=status)

    def list_made(self, model: str, basis: str) -> None:
        """Count a list."""
        key = ("list", model, basis)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._lists.labels(model, basis)
        child.inc()

    def events(self, model: str, kind: str, number: int) -> None:
        """Count events of what was shown."""
        if number:
            self._events.labels(model, kind).inc(number)

    def page(self) -> bytes:
        """Write all figures as Prometheus reads them."""
        return generate_latest(self.registry)


class LatencyWindow:
    """How many lists the last minute had, and how long they took.

    Examples
    --------
    >>> window = LatencyWindow()
    >>> for milliseconds in range(100):
    ...     window.add(milliseconds / 1000, now=5.0)
    >>> window.percentiles(now=5.0)
    (49.5, 98.01)
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._started: float | None = None

    def add(self, seconds: float, now: float) -> None:
        """Remember how long a list took."""
        if self._started is None:
            self._started = now
        self._kept.append((now, seconds))

    def percentiles(self, now: float) -> tuple[float, float] | None:
        """Give the median and the 99th percentile of the last minute, in milliseconds."""
        recent = [seconds for at, seconds in list(self._kept) if now - at < _MINUTE]
        if not recent:
            return None
        p50, p99 = np.percentile(recent, (50, 99))
        return round(1000 * float(p50), 3), round(1000 * float(p99), 3)

    def rate(self, now: float) -> float:
        """Give the lists a second over the last minute, or since the first one."""
        times = [at for at, _ in list(self._kept) if now - at < _MINUTE]
        if not times or self._started is None:
            return 0.0
        full = len(times) == _KEPT
        span = now - times[0] if full else min(_MINUTE, now - self._started)
        return round(len(times) / max(span, 1.0), 3)


class AccessLog:
    """Writes lines of JSON from a thread, so that a slow terminal or pipe delays no answer.

    Where the reader is too slow, the oldest lines are dropped, and it is said how many.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lines: deque[bytes] = deque(maxlen=_MOST_LINES)
        self._added = self._written = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="limelight-log", daemon=True)
        self._thread.start()

    def write(self, **fields: object) -> None:
        """Add a line; fields that are None are left out."""
        kept = {name: value for name, value in fields.items() if value is not None}
        line = msgspec.json.encode({"time": round(time.time(), 3)} | kept)
        self._lines.append(line if line.isascii() else _UNSAFE.sub(_escaped, line))
        self._added += 1

    def close(self) -> None:
        """Write what is left."""
        self._end.set()
        self._thread.join(timeout=5)

    def _work(self) -> None:
        is_open = True
        while is_open:
            is_open = not self._end.wait(_EVERY)
            try:
                self._flush()
            except (OSError, ValueError):
                return  # nobody reads any more; answers go on

    def _flush(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        self._written += len(lines)
        if lost := self._added - self._written - len(self._lines):
            self._written += lost
            lines.append(msgspec.json.encode({"event": "log", "dropped": lost}))
        self._file.write("\n".join(line.decode() for line in lines) + "\n")
        self._file.flush()


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())
