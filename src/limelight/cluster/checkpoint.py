"""The state of a fit that many ranks share, on disk: every shard a file, a manifest on top.

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
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.checkpoint import Stand, described, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from limelight.cluster.partition import Share

MANIFEST = "manifest.json"
_BY_USER = ("U", "curvature", "pending_steps")
_KEPT = 2


class ShardCheckpoint:
    """A rank's part of the checkpoint of a fit.

    Parameters
    ----------
    folder
        A place that all ranks can reach.
    every
        Seconds between two saves; 0 saves after every epoch.
    """

    def __init__(self, folder: Path, every: float) -> None:
        self._folder, self._every = folder, every
        self._share: Share | None = None
        self._saved = time.monotonic()
        self._memory: tuple[int, Stand] | None = None
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None
        self.is_stopped = False
        """Whether the fit was asked to stop, and did."""

    def of(self, share: Share) -> ShardCheckpoint:
        """Take up the work for a share; what was kept in memory stays."""
        self._share = share
        return self

    @property
    def share(self) -> Share:
        """The share that is kept."""
        assert self._share is not None
        return self._share

    def load(self, about: Mapping[str, Any]) -> Stand | None:
        """Return where the fit stood when all ranks last had committed."""
        epoch = 0
        if (self._folder / MANIFEST).exists():
            epoch = int(read_record(self._folder / MANIFEST, described(about))["epoch"])
        self._require_same(epoch)
        if not epoch:
            return None
        if self._memory and self._memory[0] == epoch:
            # A rank that was not lost need not read anything.
            return _copied(self._memory[1])
        return read_stand(self._folder / f"epoch-{epoch}", self.share)

    def _require_same(self, epoch: int) -> None:
        """Refuse to go on from different epochs: some disks show what is old for a while."""
        found = self.share.exchange.gather_items(np.array([epoch]))
        if len(set(found.tolist())) > 1:
            message = f"workers see checkpoints of different epochs: {sorted(set(found.tolist()))}"
            hint = "give the command again with --resume, when the disk shows all of them the same"
            raise LimelightError(message, hint=hint)

    @contextmanager
    def keeping(self) -> Iterator[Callable[..., bool]]:
        """Save when it is time, and before the fit is stopped."""

        def keep(stand: Callable[..., Stand], state: Any, *parts: Any) -> bool:
            self.is_stopped = self.share.exchange.tell(state.epoch, news_of(self.share, parts))
            if self.is_stopped or self._is_due():
                self._save(_copied(stand(state, *parts)), state.epoch)
            if self.is_stopped:
                self._finish()
            return self.is_stopped

        try:
            yield keep
        finally:
            self._finish()

    def _is_due(self) -> bool:
        """Ask the first rank's clock, so that all ranks save the same epoch."""
        due = self.share.exchange.rank == 0 and time.monotonic() - self._saved >= self._every
        return bool(self.share.sum_of_ranks(due))

    def _save(self, stand: Stand, epoch: int) -> None:
        """Write beside the epoch that follows."""
        self._finish()
        self._memory = epoch, stand
        self._saved = time.monotonic()
        self._writer = threading.Thread(target=self._write, args=(epoch, stand, self.share))
        self._writer.start()

    def _write(self, epoch: int, stand: Stand, share: Share) -> None:
        try:
            write_stand(self._folder / f"epoch-{epoch}", stand, share)
            share.exchange.commit(epoch)
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


def news_of(share: Share, parts: Sequence[Any]) -> dict[str, Any]:
    """Say how the fit goes, on this rank: its time and bytes so far, and what was last traced."""
    trace, seconds = parts
    return {
        "seconds": seconds,
        "objective": trace[-1].objective if trace else None,
        "phases": dict(share.clock.seconds),
        "traffic": dict(share.exchange.traffic),
    }


def flip(folder: Path, epoch: int, about: Mapping[str, Any]) -> None:
    """Let an epoch count that all ranks have committed; of the older ones the last is kept."""
    with atomic_file(folder / MANIFEST) as temporary:
        record = {"about": described(about), "record": {"epoch": epoch}}
        temporary.write_text(json.dumps(record) + "\n", encoding="utf-8")
    epochs = sorted(int(one.name.removeprefix("epoch-")) for one in folder.glob("epoch-*"))
    for old in [one for one in epochs if one <= epoch][:-_KEPT]:
        delete_folder(folder / f"epoch-{old}")


def write_stand(folder: Path, stand: Stand, share: Share) -> None:
    """Write what a rank has of a stand: its users and items and, if it is the first, the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    by_user = {name: stand.arrays[name] for name in _BY_USER if name in stand.arrays}
    items = stand.arrays["V"]
    for shard, cell, run in zip(share.numbers, share.cells, share.item_cells, strict=True):
        parts = {name: array[cell] for name, array in by_user.items()}
        save_arrays(folder / f"users-{shard:03d}.safetensors", parts)
        save_arrays(folder / f"items-{shard:03d}.safetensors", {"V": items[run]})
    if share.exchange.rank == 0:
        rest = {
            name: array
            for name, array in stand.arrays.items()
            if name not in by_user and name != "V"
        }
        save_arrays(folder / "common.safetensors", rest)
        with atomic_file(folder / "common.json") as temporary:
            temporary.write_text(json.dumps(stand.record), encoding="utf-8")


def read_stand(folder: Path, share: Share) -> Stand:
    """Read what a rank needs of a stand: its users, all items, and what all know alike."""
    arrays = load_arrays(folder / "common.safetensors")
    own = [load_arrays(folder / f"users-{shard:03d}.safetensors") for shard in share.numbers]
    arrays |= {name: np.concatenate([part[name] for part in own]) for name in own[0]}
    items = (folder / f"items-{shard:03d}.safetensors" for shard in range(share.cut.n_shards))
    arrays["V"] = np.concatenate([load_arrays(file)["V"] for file in items])
    return Stand(json.loads((folder / "common.json").read_text(encoding="utf-8")), arrays)


def _copied(stand: Stand) -> Stand:
    """Copy what an epoch will overwrite."""
    return Stand(stand.record, {name: array.copy() for name, array in stand.arrays.items()})
