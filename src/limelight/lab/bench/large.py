"""The large run: a marketplace of a million users and items, from nothing to an audit."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from limelight._base.documents import Table
from limelight._base.machine import peak
from limelight._base.text import percent
from limelight._native import resolve_threads
from limelight.audit.audit import audit
from limelight.data import marketplace
from limelight.lab.bench.memory import peak_bytes, resident_bytes
from limelight.lab.bench.task import FIXED, K, Shape, exadmm_epoch_flops
from limelight.lab.tables import duration, giga, mebibytes
from limelight.metrics.lists import ListCount
from limelight.models import ExADMM
from limelight.store.lists import ListWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PEAK_ROUNDS = 5


@dataclass(frozen=True)
class LargeRunSize:
    """How large the large run is."""

    users: int = 1_000_000
    items: int = 1_000_000
    interactions: int = 100_000_000
    factors: int = 64
    epochs: int = 5
    lists: int = 100_000
    threads: int = 0
    """0 means all that the process may use."""


@dataclass
class _Parts:
    """Seconds of each part of the run, and the peak memory of the process after it."""

    tell: Callable[[str], None]
    parts: dict[str, dict[str, float]] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self.tell(f"{name} ...")
        started = time.perf_counter()
        yield
        seconds, held = time.perf_counter() - started, peak_bytes()
        self.parts[name] = {"seconds": seconds, "peak_bytes": held}
        self.tell(f"{name}: {duration(seconds)}, peak memory so far {mebibytes(held)}")


def run_large(size: LargeRunSize, tell: Callable[[str], None]) -> dict[str, Any]:
    """Generate, fit exADMM, recommend, audit; return what each part took, and tell in between."""
    threads = resolve_threads(size.threads)
    clock, at_first = _Parts(tell), resident_bytes()
    with clock.part("generate"):
        data = marketplace(size.users, size.items, size.interactions).interactions
    before = peak(threads, _PEAK_ROUNDS)
    with clock.part("fit"):
        model = ExADMM(
            factors=size.factors,
            epochs=size.epochs,
            exposure_strength=0.1,
            solver="admm",
            num_threads=size.threads,
            trace_every=0,
            **FIXED,
        ).fit(data)
    fastest = max(before, peak(threads, _PEAK_ROUNDS))
    with TemporaryDirectory() as folder:
        lists = Path(folder) / "lists.parquet"
        with clock.part("recommend"):
            _recommend(model, size.lists, lists)
        with clock.part("audit"):
            found = audit(lists, catalogue=pa.table({"item_id": data.item_ids}))
    seconds = model.trace_[-1].seconds / size.epochs
    taken = max(0, clock.parts["generate"]["peak_bytes"] - at_first)
    flops = exadmm_epoch_flops(Shape.of(data, size.factors))
    return {
        "size": {**asdict(size), "threads": threads},
        "parts": clock.parts,
        "peak_bytes": max(part["peak_bytes"] for part in clock.parts.values()),
        "generator_bytes_per_interaction": taken / size.interactions,
        "seconds_per_epoch": seconds,
        "flops_per_epoch": flops,
        "sgemm_flops_per_second": fastest,
        "share_of_peak": flops / seconds / fastest,
        "objective": model.trace_[-1].objective,
        "audit": {name: value for name, value in found.metrics.items() if name.startswith("gini")},
    }


def _recommend(model: ExADMM, n_users: int, file: Path) -> None:
    users = np.arange(min(n_users, len(model.user_ids)))
    with ListWriter(file) as writer:
        for batch in model.recommend_batches(k=K, users=users):
            writer.write(model.user_ids[users[batch.rows]], model.item_ids, *batch.lists)


def describe(record: Mapping[str, Any]) -> str:
    """Write the large run for people."""
    size = record["size"]
    lines = [
        (name, duration(part["seconds"]), mebibytes(part["peak_bytes"]))
        for name, part in record["parts"].items()
    ]
    market = " x ".join(f"{size[name]:,} {name}" for name in ("users", "items", "interactions"))
    flops = f"{record['flops_per_epoch'] / 1e9:,.0f} GFLOP"
    peak_rate = f"{giga(record['sgemm_flops_per_second'])} GFLOP/s"
    gini, counted = f"{record['audit'][f'gini@{K}']:.4f}", ListCount(size["lists"], size["items"])
    generator = f"{record['generator_bytes_per_interaction']:.0f} bytes"
    return "\n\n".join(
        [
            f"A marketplace of {market}; exADMM with {size['factors']} factors, {size['epochs']} "
            f"epochs and {size['threads']} threads; lists of {K} for {size['lists']:,} users, "
            "streamed to Parquet; an audit of them.",
            Table(["part", "time", "peak memory so far"], lines).markdown(),
            f"An epoch takes {duration(record['seconds_per_epoch'])} for {flops}: that is "
            f"{percent(record['share_of_peak'], 0)} of the {peak_rate} of a matrix product on as "
            f"many threads, measured before and after the fit. The generator takes {generator} an "
            f"interaction at its peak. The Gini over {counted} is {gini}: the marketplace has few "
            "tastes for so many items, and people of one taste are shown the same ones.",
        ]
    )
