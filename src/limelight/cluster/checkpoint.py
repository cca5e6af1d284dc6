"""The state of a fit that runs on many ranks, on disk: every shard a file, a manifest on top.

    manifest.json           which epoch counts, and what the fit is of; replaced last
    epoch-12/users-003.safetensors    the users of a shard: factors, curvature, step sizes
    epoch-12/items-003.safetensors    its items
    epoch-12/common.safetensors, common.json    what all ranks know alike

A rank writes its shards while the next epoch is already under way, and then commits. When all have,
the manifest is replaced; the epoch before it is kept, too. Shards are dealt anew to any number of
ranks.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import LimelightError
from limelight._base.files import atomic_file, delete_folder
from limelight._base.text import first_words
from limelight.solve.state import arrays_by_user
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.checkpoint import Snapshot, described, read_record
from limelight.store.json import read_json
from limelight.store.snapshot_fields import refuse_damaged, stored_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from limelight.cluster.partition import Partition

MANIFEST = "manifest.json"
_KEPT = 2


class ShardCheckpoint:
    """A rank's part of the checkpoint of a fit, in a folder that all ranks can reach.

    There are ``every`` seconds between two saves; 0 saves after every epoch.
    """

    partition: Partition
    """Whose state is kept; it may change, and what is kept in memory stays."""

    def __init__(self, folder: Path, every: float) -> None:
        self._folder, self._every = folder, every
        self._saved = time.monotonic()
        self._memory: tuple[int, Snapshot] | None = None
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None
        self.is_stopped = False
        """Whether the fit was asked to stop, and did."""

    def load(self, about: Mapping[str, Any]) -> Snapshot | None:
        """Return the snapshot of the last epoch that all ranks have committed."""
        epoch = 0
        if (self._folder / MANIFEST).exists():
            record = read_record(self._folder / MANIFEST, described(about))
            epoch = stored_count(record, "epoch")
        self._require_same(epoch)
        if not epoch:
            return None
        if self._memory and self._memory[0] == epoch:
            # A rank that was not lost still has the snapshot in memory, so it reads no file.
            return _copied(self._memory[1])
        return read_snapshot(self._folder / f"epoch-{epoch}", self.partition)

    def _require_same(self, epoch: int) -> None:
        """Refuse to go on from different epochs: some disks show what is old for a while."""
        found = self.partition.comm.all_gather(np.array([epoch]))
        if len(set(found.tolist())) > 1:
            message = f"workers see checkpoints of different epochs: {sorted(set(found.tolist()))}"
            hint = "give the command again with --resume, when the disk shows all of them the same"
            raise LimelightError(message, hint=hint)

    @contextmanager
    def keeping(self) -> Iterator[Callable[..., bool]]:
        """Save when it is time, and before the fit is stopped."""

        def save(take: Callable[..., Snapshot], trace: Sequence[Any], seconds: float) -> bool:
            snapshot = take(trace, seconds)
            epoch = int(snapshot.record["epoch"])
            news = news_of(self.partition, trace, seconds)
            self.is_stopped = self.partition.comm.tell(epoch, news)
            if self.is_stopped or self._is_due():
                self._save(_copied(snapshot), epoch)
            if self.is_stopped:
                self._finish()
            return self.is_stopped

        try:
            yield save
        finally:
            self._finish()

    def _is_due(self) -> bool:
        """Ask the first rank's clock, so that all ranks save the same epoch."""
        due = self.partition.comm.rank == 0 and time.monotonic() - self._saved >= self._every
        return bool(self.partition.sum_of_ranks(due))

    def _save(self, snapshot: Snapshot, epoch: int) -> None:
        """Write beside the epoch that follows."""
        self._finish()
        self._memory = epoch, snapshot
        self._saved = time.monotonic()
        self._writer = threading.Thread(target=self._write, args=(epoch, snapshot, self.partition))
        self._writer.start()

    def _write(self, epoch: int, snapshot: Snapshot, partition: Partition) -> None:
        try:
            write_snapshot(self._folder / f"epoch-{epoch}", snapshot, partition)
            partition.comm.commit(epoch)
        except BaseException as error:
            self._failure = error

    def _finish(self) -> None:
        """Wait for what is being written."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure


def news_of(partition: Partition, trace: Sequence[Any], seconds: float) -> dict[str, Any]:
    """Say how the fit goes, on this rank: its time and bytes so far, and what was last traced."""
    return {
        "seconds": seconds,
        "objective": trace[-1].objective if trace else None,
        "phases": dict(partition.stopwatch.seconds),
        "traffic": dict(partition.comm.traffic),
    }


def flip(folder: Path, epoch: int, about: Mapping[str, Any]) -> None:
    """Make a committed epoch the one to resume from; keep the one before it, delete older ones."""
    with atomic_file(folder / MANIFEST) as temporary:
        record = {"about": described(about), "record": {"epoch": epoch}}
        temporary.write_text(json.dumps(record) + "\n", encoding="utf-8")
    epochs = sorted(int(one.name.removeprefix("epoch-")) for one in folder.glob("epoch-*"))
    for old in [one for one in epochs if one <= epoch][:-_KEPT]:
        delete_folder(folder / f"epoch-{old}")


def write_snapshot(folder: Path, snapshot: Snapshot, partition: Partition) -> None:
    """Write what a rank has of a snapshot: its users, its items, and on the first rank the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    by_user = {name: snapshot.arrays[name] for name in arrays_by_user() if name in snapshot.arrays}
    items = snapshot.arrays["V"]
    for shard, cell, run in zip(
        partition.numbers, partition.cells, partition.item_cells, strict=True
    ):
        parts = {name: array[cell.users] for name, array in by_user.items()}
        save_arrays(folder / f"users-{shard:03d}.safetensors", parts)
        save_arrays(folder / f"items-{shard:03d}.safetensors", {"V": items[run]})
    if partition.comm.rank == 0:
        rest = {
            name: array
            for name, array in snapshot.arrays.items()
            if name not in by_user and name != "V"
        }
        save_arrays(folder / "common.safetensors", rest)
        with atomic_file(folder / "common.json") as temporary:
            temporary.write_text(json.dumps(snapshot.record), encoding="utf-8")


def read_snapshot(folder: Path, partition: Partition) -> Snapshot:
    """Read what a rank needs of a snapshot: its users, all items, and what all know alike."""
    arrays = load_arrays(folder / "common.safetensors")
    own = [load_arrays(folder / f"users-{shard:03d}.safetensors") for shard in partition.numbers]
    items = (folder / f"items-{shard:03d}.safetensors" for shard in range(partition.cut.n_shards))
    try:
        arrays |= {name: np.concatenate([part[name] for part in own]) for name in own[0]}
        arrays["V"] = np.concatenate([load_arrays(file)["V"] for file in items])
        return Snapshot(read_json(folder / "common.json"), arrays)
    except (OSError, ValueError, LookupError) as error:
        refuse_damaged(f"cannot be read: {first_words(error)}")


def _copied(snapshot: Snapshot) -> Snapshot:
    """Copy what an epoch will overwrite."""
    return Snapshot(
        snapshot.record, {name: array.copy() for name, array in snapshot.arrays.items()}
    )
