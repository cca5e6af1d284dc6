"""A program that uses every collective, keeps checkpoints, and dies where it is told."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.cluster.collectives import deal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

WIDTH = 4


@dataclass
class Toy:
    """Shards of rows that change from epoch to epoch, by way of what all the others have."""

    folder: Path
    epochs: int = 6
    mishap: Callable[[Any, str, int], None] | None = None
    """Called with the communicator before every verb, named, of every epoch."""
    shards: dict[int, np.ndarray] = field(default_factory=dict)

    def prepare(self, comm: Any) -> None:
        self._come_to(comm, "prepare", 0)
        with (self.folder / "prepared").open("a") as journal:
            journal.write(f"{comm.rank}\n")
        for shard in deal(comm.n_shards, comm.size)[comm.rank]:
            self.shards[shard] = np.random.default_rng(shard).normal(size=(5 + shard, WIDTH))

    def run(self, comm: Any) -> dict[str, Any]:
        manifest = self.folder / "manifest"
        epoch = int(manifest.read_text()) if manifest.exists() else 0
        rows = dict(self.shards)
        if epoch:
            rows = {shard: np.load(self._file(epoch, shard)) for shard in rows}
        is_stopped = False
        while epoch < self.epochs and not is_stopped:
            epoch += 1
            rows = self._step(comm, rows, epoch)
            for shard, values in rows.items():
                np.save(self._file(epoch, shard), values)
            self._come_to(comm, "commit", epoch)
            comm.commit(epoch)
            self._come_to(comm, "tell", epoch)
            is_stopped = comm.tell(epoch, {"sum": float(sum(map(np.sum, rows.values())))})
        self._come_to(comm, "return", epoch)
        return {
            "epoch": epoch,
            "rows": rows,
            "traffic": Counter(comm.traffic),
            "threads": getattr(comm, "threads", 1),
            "pid": os.getpid(),
        }

    def _step(self, comm: Any, rows: dict[int, np.ndarray], epoch: int) -> dict[int, np.ndarray]:
        self._come_to(comm, "sum_small", epoch)
        gramian = comm.all_reduce([values.T @ values for values in rows.values()])
        gramian += 1.0  # it is ours to write to
        self._come_to(comm, "gather_items", epoch)
        table = comm.all_gather(np.concatenate(list(rows.values())))
        table *= 0.5
        drift = table.mean(axis=0) @ gramian / np.trace(gramian)
        pull = {shard: np.zeros(WIDTH) for shard in rows}
        self._come_to(comm, "exchange_rows", epoch)
        outgoing = ([(values, np.array([shard]))] * comm.size for shard, values in rows.items())
        for source, (values, label) in comm.all_to_all(outgoing):
            assert label[0] == source
            for shard in rows:
                pull[shard] += np.cos(values * (shard + 1)).sum(axis=0) / (source + 3.0)
            self._come_to(comm, "inside exchange_rows", epoch)
        return {
            shard: np.tanh(values + drift + 0.01 * pull[shard]) for shard, values in rows.items()
        }

    def _come_to(self, comm: Any, verb: str, epoch: int) -> None:
        if self.mishap:
            self.mishap(comm, verb, epoch)

    def _file(self, epoch: int, shard: int) -> Path:
        return self.folder / f"epoch-{epoch}-shard-{shard}.npy"


@dataclass(frozen=True)
class Kills:
    """SIGKILL for ranks at given points, once each, as far as files in a folder tell."""

    folder: Path
    points: frozenset[tuple[int, str, int]]
    """Rank, verb, epoch."""

    def __call__(self, comm: Any, verb: str, epoch: int) -> None:
        point = (comm.rank, verb, epoch)
        if point in self.points and first_time(self.folder / f"killed at {point}"):
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class NodeKill:
    """SIGKILL for a raylet, the process of a node that all its others depend on, once."""

    folder: Path
    spared: str
    """The node of the driver."""
    epoch: int

    def __call__(self, comm: Any, verb: str, epoch: int) -> None:
        import ray

        if verb != "gather_items" or epoch != self.epoch:
            return
        if ray.get_runtime_context().get_node_id() == self.spared:
            return
        if first_time(self.folder / "killed a node"):
            raylet = os.getppid()
            assert Path(f"/proc/{raylet}/comm").read_text().strip() == "raylet"
            os.kill(raylet, signal.SIGKILL)


def first_time(marker: Path) -> bool:
    """Tell whether nobody has been here before."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Alone:
    """The communicator of a rank that is alone: what all others must agree with."""

    def __init__(self, n_shards: int) -> None:
        self.rank = 0
        self.size = 1
        self.n_shards = n_shards
        self.traffic: Counter[str] = Counter()

    def all_reduce(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return sum(parts[1:], parts[0].copy())

    def all_gather(self, mine: np.ndarray) -> np.ndarray:
        return mine.copy()

    def all_to_all(self, outgoing: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        for shard, (payload,) in enumerate(outgoing):
            yield shard, payload

    def commit(self, epoch: int) -> None:
        pass

    def tell(self, epoch: int, news: dict[str, Any]) -> bool:
        return False
