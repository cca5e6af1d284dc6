"""Candidates of many users, cut into shards: files from which any worker can go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from limelight.data.candidates.candidates import Candidates, read_candidates
from limelight.data.candidates.storage import MemoryArray, PairRows
from limelight.data.columns import scan
from limelight.data.ids import IdColumn, ids_to_arrow
from limelight.data.read_columns import choose_columns
from limelight.data.sources import open_parts
from limelight.jobs.service import Service, UserPiece
from limelight.metrics.lists import position_weights
from limelight.recommend.candidates import candidates_of, usual_width
from limelight.rerank.market.ledger import Ledger
from limelight.rerank.market.pool import Law, Pool
from limelight.store.arrays import load_arrays, map_arrays, read_ids, save_arrays, write_ids

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from limelight._base.arrays import Float64, Int32
    from limelight.data.interactions import Ids

OWN = "own"
"""The name of everybody's own lists: her first k candidates. They are in no file."""


@dataclass(frozen=True)
class Shards:
    """The files of all shards, and the settings by which a worker reads them."""

    folder: Path
    """Holds the files of all shards."""
    n_items: int
    """Size of the catalogue."""
    k: int
    """Length of the lists."""
    law: Law
    """Gives candidates their relevance."""
    memory: int
    """How many bytes of relevance a worker may hold."""
    threads: int
    """How many threads a worker may use."""

    def candidates_file(self, number: int) -> Path:
        """Name the file of a shard's candidates."""
        return self.folder / f"shard-{number:05}.safetensors"

    def users_file(self, number: int) -> Path:
        """Name the file of the ids of a shard's users."""
        return self.folder / f"users-{number:05}.parquet"

    def places_file(self, name: str, number: int) -> Path:
        """Name the file of lists of a shard's users: places among their candidates."""
        return self.folder / f"places-{name}-{number:05}.safetensors"

    def keep(self, number: int, candidates: Candidates) -> None:
        """Write the candidates of a shard."""
        write_ids(self.users_file(number), "user_id", candidates.user_ids)
        block = candidates.block(0, candidates.n_users)
        save_arrays(self.candidates_file(number), block._asdict())

    def candidates(self, number: int) -> Candidates:
        """Open the candidates of a shard; users and items have numbers instead of ids."""
        arrays = map_arrays(self.candidates_file(number))
        indptr = np.array(arrays["indptr"])
        rows = PairRows(MemoryArray(arrays["items"]), MemoryArray(arrays["scores"]))
        numbers = np.arange(len(indptr) - 1), np.arange(self.n_items)
        return Candidates(indptr, rows, *numbers)

    def pool(self, number: int) -> Pool:
        """Open the candidates of a shard, with their relevance."""
        return Pool(self.candidates(number), self.law, memory=self.memory)

    def user_ids(self, number: int) -> Ids:
        """Return the ids of a shard's users."""
        return read_ids(self.users_file(number), "user_id")

    def places(self, pool: Pool, name: str, number: int) -> Int32:
        """Read lists of a shard's users."""
        if name == OWN:
            return pool.own_places(self.k)
        return np.asarray(load_arrays(self.places_file(name, number))["places"], dtype=np.int32)

    def sums(self, pool: Pool, places: Int32) -> Sums:
        """Add up the exposure that lists of a shard give, and their relevance."""
        ledger = Ledger(pool, position_weights(self.k), threads=self.threads, seed=0)
        ledger.places = places
        return Sums(ledger.exposure_of(places), ledger.relevance() * pool.n_users)


class Sums(NamedTuple):
    """The exposure and the relevance of lists; those of shards add up to those of all users."""

    exposure: Float64
    relevance: float

    def plus(self, other: Sums) -> Sums:
        """Add those of other users."""
        return Sums(self.exposure + other.exposure, self.relevance + other.relevance)


class Facts(NamedTuple):
    """How many users a shard has, with how many candidates, and the sums of their own lists."""

    n_users: int
    longest: int
    """The most candidates that a user has."""
    users: tuple[Any, Any]
    """The first and the last id."""
    own: Sums
    """Of everybody's own lists."""
    places: float
    """What the weights of all places of these lists add up to."""


@dataclass(frozen=True)
class Origin(ABC):
    """Where candidates come from, in how many shards, of what items."""

    n_shards: int
    item_ids: Ids

    @abstractmethod
    def open(self, number: int, memory: int) -> Candidates:
        """Make the candidates of a shard."""


@dataclass(frozen=True)
class FromFiles(Origin):
    """Candidates from a folder of tables: every file is a shard."""

    files: tuple[Path, ...]

    def open(self, number: int, memory: int) -> Candidates:
        """Read a file."""
        items = np.asarray(self.item_ids).tolist()
        return read_candidates(
            self.files[number], catalogue=items, memory=memory, show_progress=False
        )


@dataclass(frozen=True)
class FromModel(Origin):
    """Candidates from a model, for the users of its training: so many of them are a shard."""

    service: Service
    per_shard: int

    def open(self, number: int, memory: int) -> Candidates:
        """Rank the catalogue for the users of a shard."""
        found = self.service.open()
        model = found.model
        start = number * self.per_shard
        stop = min(start + self.per_shard, self.service.n_users)
        piece = UserPiece(number, start, stop)
        ids = self.service.user_ids(piece), model.item_ids
        ranking = self.service.ranking(model, piece)
        return candidates_of(ranking, usual_width(self.service.n_users), memory=memory, ids=ids)


@dataclass(frozen=True)
class Stage:
    """Makes the candidates of a shard and writes them, unless an earlier run has done so."""

    shards: Shards
    origin: Origin
    name = "rerank: candidates"

    def __call__(self, number: int) -> Facts:
        """Make the candidates of a shard, and return their facts."""
        self.make(number)
        ends = pc.min_max(ids_to_arrow(self.shards.user_ids(number))).as_py()
        with self.shards.pool(number) as pool:
            counts, k = pool.candidates.counts, self.shards.k
            own = self.shards.sums(pool, pool.own_places(k))
            reached = np.bincount(np.minimum(counts, k), minlength=k + 1)
            weights = np.append(0.0, np.cumsum(position_weights(k)))
            return Facts(
                n_users=pool.n_users,
                longest=int(counts.max(initial=0)),
                users=(ends["min"], ends["max"]),
                own=own,
                places=float(reached @ weights),
            )

    def make(self, number: int) -> None:
        """Make the candidates of a shard."""
        if not self.shards.candidates_file(number).exists():
            with self.origin.open(number, self.shards.memory) as candidates:
                self.shards.keep(number, candidates)


@dataclass(frozen=True)
class ListItems:
    """Lists the items of a file of candidates, in the order in which they come."""

    name = "rerank: items"

    def __call__(self, file: Path) -> pa.Array:
        """List the items of a file."""
        parts = open_parts(file)
        _, item = choose_columns(file, parts[0], None, None)
        column = IdColumn(item)
        for _ in scan(parts, [column]):
            pass
        return column.ids()
