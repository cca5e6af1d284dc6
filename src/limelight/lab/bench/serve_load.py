"""How fast a service answers: requests at a fixed rate, whatever became of those before.

Latency counts from the moment at which a request was due, so that a service that stands still is
charged for all that waited. The service runs as a process of its own, beside the client. Run it
with ``python -m limelight.lab.bench.serve_load``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import numpy as np

from limelight.data.synthetic import marketplace
from limelight.models import IALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_LONGEST = 10.0
"""Seconds after which a request counts as lost."""
_BISECTIONS = 6


@dataclass
class LoadResult:
    """What a load came to."""

    kind: str
    rate: float
    """Requests a second that were due."""
    seconds: float
    requests: int
    lost: int
    """Without an answer, or with one that is not a list."""
    p50_ms: float
    p99_ms: float
    p999_ms: float
    largest_ms: float
    cpu_ms: float
    """Of the service, a request."""
    resident_mb: list[float] = field(default_factory=list)
    """Of the service, twenty times in the course of the load."""


class Server:
    """A service as a process, on a port that is free."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = [
            sys.executable,
            "-m",
            "limelight",
            "serve",
            str(model),
            "--port",
            "0",
            "--no-log",
        ]
        self._process = subprocess.Popen(
            [*command, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self.pid, self.port = self._process.pid, 0
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith("serving at "):
                self.port = int(line.split("/")[2].rpartition(":")[2])
                return
        message = "the service did not start"
        raise RuntimeError(message)

    def cpu(self) -> float:
        """Return the seconds of processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / _TICKS

    def resident(self) -> float:
        """Return the memory that it holds, in MB."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * _PAGE / 1e6

    def figures(self) -> dict[str, Any]:
        """Return the audit of the window."""
        with urlopen(f"http://127.0.0.1:{self.port}/v1/exposure?top=0", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(60)


def made_up_model(folder: Path, n_items: int, factors: int) -> Path:
    """Fit a model to a market; how good it is does not matter here."""
    data = marketplace(20_000, n_items, 1_500_000, seed=0).interactions
    IALS(factors=factors, epochs=2, regularization=0.01, unobserved_weight=0.1).fit(data).save(
        folder
    )
    return folder


def bodies(kind: str, users: list[Any], items: list[Any], seed: int) -> Iterator[bytes]:
    """Draw requests: known users and unseen ones with 50 items by turns, or own candidates."""
    draw = np.random.default_rng(seed)
    while True:
        if kind == "rerank":
            some = draw.choice(len(items), 500, replace=False).tolist()
            scores = np.sort(draw.gamma(0.3, size=500))[::-1].tolist()
            pairs = [{"id": items[i], "score": s} for i, s in zip(some, scores, strict=True)]
            yield json.dumps(
                {"user": users[int(draw.integers(len(users)))], "items": pairs}
            ).encode()
        elif draw.random() < 0.5:
            yield json.dumps({"user": users[int(draw.integers(len(users)))]}).encode()
        else:
            some = draw.choice(len(items), 50, replace=False).tolist()
            yield json.dumps({"history": [items[i] for i in some]}).encode()


class Client:
    """Sends requests when they are due, each on a connection that is free."""

    def __init__(self, port: int, path: str) -> None:
        self._port, self._path = port, path
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.latencies: list[float] = []
        self.answered = 0

    async def run(
        self, made: list[bytes], rate: float, seconds: float, look: Callable[[], None]
    ) -> None:
        """Send requests at Poisson times; ``look`` is called twenty times meanwhile."""
        draw = np.random.default_rng(1)
        times = np.cumsum(draw.exponential(1 / rate, int(rate * seconds))).tolist()
        heads = [self._framed(body) for body in made]
        looks = [seconds * step / 20 for step in range(1, 21)]
        start, under_way = time.perf_counter() + 0.1, set[asyncio.Task[None]]()
        for number, at in enumerate(times):
            while looks and at >= looks[0]:
                looks.pop(0)
                look()
            due = start + at
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(self._send(heads[number % len(heads)], due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way, timeout=_LONGEST)
        for _, writer in self._free:
            writer.close()

    def _framed(self, body: bytes) -> bytes:
        head = (
            f"POST {self._path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def _send(self, content: bytes, due: float) -> None:
        try:
            async with asyncio.timeout(_LONGEST):
                head = await self._ask(content)
        except (OSError, ValueError, EOFError, TimeoutError):
            return
        self.latencies.append(time.perf_counter() - due)
        self.answered += head.startswith(b"HTTP/1.1 200")

    async def _ask(self, content: bytes) -> bytes:
        """Ask on a connection that is free; one that has been idle for long may have ended."""
        while self._free:
            pair = self._free.pop()
            with contextlib.suppress(OSError, EOFError):
                return await self._exchange(pair, content)
        return await self._exchange(await self._connect(), content)

    async def _exchange(
        self, pair: tuple[asyncio.StreamReader, asyncio.StreamWriter], content: bytes
    ) -> bytes:
        reader, writer = pair
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        self._free.append(pair)
        return head

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)


def load(server: Server, kind: str, made: list[bytes], rate: float, seconds: float) -> LoadResult:
    """Put a service under load and measure it."""
    client = Client(server.port, "/v1/rerank" if kind == "rerank" else "/v1/recommend")
    resident: list[float] = []
    before = server.cpu()
    asyncio.run(client.run(made, rate, seconds, lambda: resident.append(server.resident())))
    used, found = server.cpu() - before, 1000 * np.array(client.latencies or [np.inf])
    p50, p99, p999 = np.percentile(found, (50, 99, 99.9))
    n_sent = int(rate * seconds)
    return LoadResult(
        kind, rate, seconds, n_sent, n_sent - client.answered,
        round(float(p50), 2), round(float(p99), 2), round(float(p999), 2),
        round(float(found.max()), 2), round(1000 * used / n_sent, 3),
        [round(one, 1) for one in resident],
    )  # fmt: skip


def highest_rate(
    server: Server, kind: str, made: list[bytes], bound_ms: float
) -> LoadResult | None:
    """Find about the highest rate at which the 99th percentile stays below a bound."""
    low, high, best = 50.0, 3200.0, None
    for _ in range(_BISECTIONS):
        rate = float(np.sqrt(low * high))
        found = load(server, kind, made, rate, 10.0)
        if found.p99_ms < bound_ms and not found.lost:
            low, best = rate, found
        else:
            high = rate
    return best


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("recommend", "rerank"), default="recommend")
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--model", type=Path, help="a model folder; otherwise one is made up")
    parser.add_argument("--limit-ms", type=float, help="also find the highest rate with this p99")
    parser.add_argument(
        "--most-growth", type=float, help="fail if memory grows by more MB after the first quarter"
    )
    parser.add_argument("flags", nargs="*", help="of `limelight serve`, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = given.model or made_up_model(Path(scratch) / "model", given.items, given.factors)
        server = Server(model, "--ledger", f"{scratch}/ledger", *given.flags)
        try:
            import pyarrow.parquet as pq

            users = pq.read_table(model / "users.parquet")["user_id"].to_pylist()
            items = pq.read_table(model / "items.parquet")["item_id"].to_pylist()
            source = bodies(given.kind, users, items, seed=2)
            made = [next(source) for _ in range(2000)]
            load(server, given.kind, made, min(given.rate, 100.0), 3.0)  # warms up
            found: dict[str, Any] = {
                "load": asdict(load(server, given.kind, made, given.rate, given.seconds))
            }
            if given.limit_ms is not None:
                best = highest_rate(server, given.kind, made, given.limit_ms)
                found["highest"] = None if best is None else asdict(best)
            window = server.figures()
            found["window"] = {name: window[name] for name in ("lists", "gini", "strength")}
        finally:
            server.stop()
    print(json.dumps(found, indent=1))  # noqa: T201
    if failure := _failure(found["load"], given.most_growth):
        sys.exit(failure)


def _failure(load: dict[str, Any], most_growth: float | None) -> str | None:
    """Say what a service must not do under load: lose requests, or grow without end."""
    if load["lost"]:
        return f"{load['lost']:,} requests were lost"
    resident = load["resident_mb"]
    grown = resident[-1] - resident[len(resident) // 4]
    if most_growth is not None and grown > most_growth:
        return f"memory grew by {grown:,.1f} MB after the first quarter of the load"
    return None


if __name__ == "__main__":
    main()
