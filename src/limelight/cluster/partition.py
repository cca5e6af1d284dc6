"""The users of a fit over many ranks: what a rank holds of them, and what travels between ranks.

Users stay where they are. For the items' step a shard of users sends the rows that some item of a
rank needs, once, whatever the number of such items; the rank adds them to the normal equations of
its items and lets them go. Of an item that a large part of all users have, a *head*, the shards
send what they contribute to its equations instead: no rank does the work of such an item alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from limelight._base.arrays import factor_matrix
from limelight._native import kernels
from limelight.cluster.collectives import deal
from limelight.solve.population import Cell
from limelight.solve.problem import (
    Eigenbasis,
    eigenbasis,
    gramian,
    largest_entry,
    some_rows,
    sparse_rows,
    stacked,
    unsolvable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.cluster.collectives import Communicator
    from limelight.solve.problem import Problem
    from limelight.solve.state import State
    from limelight.solve.steps import Probe

Thing = TypeVar("Thing")


class Stopwatch:
    """Adds up the seconds of named parts.

    Examples
    --------
    >>> stopwatch = Stopwatch()
    >>> with stopwatch("solve"):
    ...     pass
    >>> [number for number in stopwatch.waiting("rows", [3, 4])], sorted(stopwatch.seconds)
    ([3, 4], ['rows', 'solve'])
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Count the seconds of a block."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - started

    def waiting(self, part: str, things: Iterable[Thing]) -> Iterator[Thing]:
        """Count the seconds until each thing comes, not those in which the caller works on it."""
        source = iter(things)
        while True:
            with self(part):
                try:
                    thing = next(source)
                except StopIteration:
                    return
            yield thing


HEAD = 0.5
"""An item is a head if it has more of a fair shard's interactions than this."""


@dataclass(frozen=True, eq=False)
class Cut:
    """How users and items are cut into shards: the first of each shard, and how many there are."""

    user_bounds: Int64
    item_bounds: Int64
    item_counts: Int64
    """How many interactions each item has."""

    @property
    def n_users(self) -> int:
        """The number of all users."""
        return int(self.user_bounds[-1])

    @property
    def n_items(self) -> int:
        """The number of all items."""
        return int(self.item_bounds[-1])

    @property
    def n_entries(self) -> int:
        """The number of all interactions."""
        return int(self.item_counts.sum())

    @property
    def n_shards(self) -> int:
        """The number of shards."""
        return len(self.user_bounds) - 1

    @cached_property
    def heads(self) -> Int64:
        """The items that too many users have for one rank to do their work alone."""
        return np.flatnonzero(self.item_counts > HEAD * self.n_entries / self.n_shards)

    def user_runs(self, shards: range) -> list[slice]:
        """Return the users of each of a run of shards, counted from the first of them."""
        bounds = self.user_bounds[shards.start : shards.stop + 1] - self.user_bounds[shards.start]
        return [slice(first, stop) for first, stop in pairwise(bounds.tolist())]

    def item_runs(self, size: int) -> list[slice]:
        """Return the items of each of so many ranks."""
        return [run_of(self.item_bounds, shards) for shards in deal(self.n_shards, size)]


class Route(NamedTuple):
    """The users of a shard whose factors a rank needs for its items."""

    users: Int32
    """Which rows of the shard are sent."""
    indptr: Int64
    positions: Int32
    """The histories of the rank's items, heads left out, as places among the rows sent."""

    @property
    def rows(self) -> Csr:
        """The histories, for the kernels."""
        return sparse_rows(self.indptr, self.positions, len(self.users))


def route_users(by_item: Csr, items: slice, heads: Int64) -> Route:
    """Find whose factors a shard has to send for a run of items, and which of them each item needs.

    A user who has several of the items is sent once. So the histories of the items cannot name
    users by their row in the shard: they name the place of a user among those that are sent. For
    heads no rows are sent. ``by_item`` has the shard's interactions: items x its users.
    """
    lengths = np.diff(by_item.indptr[items.start : items.stop + 1])
    entries = by_item.indices[by_item.indptr[items.start] : by_item.indptr[items.stop]]
    ours = _within(heads, items)
    is_head = np.zeros(len(lengths), dtype=bool)
    is_head[ours] = True
    entries = entries[np.repeat(~is_head, lengths)]
    lengths[ours] = 0
    needed = np.zeros(by_item.n_columns, dtype=bool)
    needed[entries] = True
    users = np.flatnonzero(needed).astype(np.int32)
    # The place of a user who is sent: how many users before her are sent, too.
    place = np.cumsum(needed, dtype=np.int32) - 1
    return Route(users, np.concatenate(([0], np.cumsum(lengths))), place[entries])


class Outgoing(NamedTuple):
    """What a shard of users sends in every epoch."""

    users: Sequence[Int32]
    """Which of its rows each rank gets."""
    heads: Csr
    """The histories of the heads among its users."""


def outgoing(by_item: Csr, runs: Sequence[slice], heads: Int64) -> tuple[Outgoing, list[Route]]:
    """Find what a shard has for the items of each rank, and for the heads."""
    routes = [route_users(by_item, run, heads) for run in runs]
    pieces = [by_item.indices[by_item.indptr[j] : by_item.indptr[j + 1]] for j in heads]
    ends = np.cumsum([0, *map(len, pieces)])
    entries = np.concatenate([np.zeros(0, np.int32), *pieces])
    rows = sparse_rows(ends, entries, by_item.n_columns)
    return Outgoing([one.users for one in routes], rows), routes


@dataclass(frozen=True, eq=False)
class Partition:
    """The population of a fit over ranks, as one of them sees it.

    A rank has the users of its shards, solves for the items of its shards, and holds the factors of
    all items. :meth:`of` and :meth:`again` make one.
    """

    comm: Communicator
    cut: Cut
    width: int
    """How wide factors are."""
    rows: Csr
    """The histories of this rank's users."""
    outgoing: Sequence[Outgoing]
    """What each shard of this rank sends."""
    incoming: Sequence[Csr]
    """For each of all shards, the histories of this rank's items among the rows that it sends."""
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    """Where the time of the items' steps goes."""

    @classmethod
    def of(cls, comm: Communicator, cut: Cut, width: int, rows: Csr) -> Partition:
        """Work out, together with the other ranks, which rows each shard sends to each rank."""
        runs, sending = cut.item_runs(comm.size), list[Outgoing]()

        def routes() -> Iterator[list[Route]]:
            for run in cut.user_runs(deal(cut.n_shards, comm.size)[comm.rank]):
                own, found = outgoing(some_rows(rows, run).transpose(), runs, cut.heads)
                sending.append(own)
                yield found

        received = dict(comm.all_to_all(routes()))
        incoming = [Route(*received[shard]).rows for shard in range(cut.n_shards)]
        return cls(comm, cut, width, rows, sending, incoming)

    @classmethod
    def again(
        cls, comm: Communicator, cut: Cut, width: int, all_shards: Iterable[Csr]
    ) -> Partition:
        """Work out the same alone, from the histories of all shards, read one at a time."""
        ours = deal(cut.n_shards, comm.size)[comm.rank]
        runs = cut.item_runs(comm.size)
        own, incoming = [], []
        sending: list[Outgoing] = []
        for shard, rows in enumerate(all_shards):
            by_item = rows.transpose()
            incoming.append(route_users(by_item, runs[comm.rank], cut.heads).rows)
            if shard in ours:
                own.append(rows)
                sending.append(outgoing(by_item, runs, cut.heads)[0])
        return cls(comm, cut, width, stacked(own), sending, incoming)

    @property
    def n_users(self) -> int:
        """The number of users of all ranks."""
        return self.cut.n_users

    @property
    def n_entries(self) -> int:
        """The number of observed pairs of all ranks."""
        return self.cut.n_entries

    total_weight = n_entries  # every pair weighs 1

    @property
    def item_weights(self) -> Int64:
        """The number of observed pairs of each item, on all ranks."""
        return self.cut.item_counts

    @property
    def first_user(self) -> int:
        """The number, among all users, of the first user of this rank."""
        return int(self.cut.user_bounds[self.numbers.start])

    @cached_property
    def items(self) -> slice:
        """The items of this rank."""
        return run_of(self.cut.item_bounds, self.numbers)

    @cached_property
    def numbers(self) -> range:
        """The shards of this rank."""
        return deal(self.cut.n_shards, self.comm.size)[self.comm.rank]

    @cached_property
    def cells(self) -> list[Cell]:
        """The users of each shard of this rank."""
        runs = self.cut.user_runs(self.numbers)
        return [Cell(run, some_rows(self.rows, run)) for run in runs]

    @cached_property
    def item_cells(self) -> list[slice]:
        """The items of each shard of this rank, among all items."""
        return [run_of(self.cut.item_bounds, range(s, s + 1)) for s in self.numbers]

    def total(self, part: Callable[[Cell], Sequence[Float64 | float]]) -> list[Float64]:
        """Add up what each shard contributes to several sums, over all ranks, in one message."""
        parts = [part(cell) for cell in self.cells]
        shapes = [np.shape(one) for one in parts[0]]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        flat = [np.concatenate([np.ravel(one) for one in sums]) for sums in parts]
        pieces = np.split(self.comm.all_reduce(flat), ends[:-1])
        return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def sum_of_ranks(self, number: float) -> float:
        """Add up one number of each rank."""
        parts = [np.array([float(number)]), *(np.zeros(1) for _ in self.cells[1:])]
        return float(self.comm.all_reduce(parts)[0])

    def largest(self, U: Float32) -> float:
        """Return the largest absolute value of all users' factors."""
        parts = np.zeros((len(self.cells), self.cut.n_shards))
        for part, shard, cell in zip(parts, self.numbers, self.cells, strict=True):
            part[shard] = largest_entry(U[cell.users])
        return float(self.comm.all_reduce(list(parts)).max())

    def item_gramian(self, V: Float32, threads: int) -> Float64:
        """Return V^T V; each rank adds up its own items."""
        return self.comm.all_reduce([gramian(V[cell], threads) for cell in self.item_cells])

    def solve_items(
        self, problem: Problem, state: State, shared: Float64, probe: Probe | None = None
    ) -> None:
        """Solve for every item, each on the rank that has it, and give the items to all ranks.

        v_j = (shared + reg_j I + sum_i u_i u_i^T)^-1 sum_i u_i, as on one machine.

        1. All ranks take the first one's eigenbasis of ``shared``, in which it is a diagonal.
        2. A shard rotates its users into that basis, and sends each rank the rows that the rank's
           items need. For a head it sends its own part of the sums instead.
        3. A rank adds up u_i u_i^T and u_i for each of its items as rows come in, shard by shard,
           and lets them go: only the sums stay.
        4. It solves for its items, rotates them back, and all ranks gather all items.

        There is no probe on ranks: a fit with exposure targets runs on one machine.
        """
        assert probe is None
        values, Q = self._basis(problem, shared)
        sums, heads = self._sums, self._head_rows
        sums[:] = 0
        travelling = self.comm.all_to_all(self._rotated(problem, state, Q))
        for shard, (rows, parts) in self.stopwatch.waiting("rows", travelling):
            with self.stopwatch("add"):
                kernels.add_rows(self.incoming[shard], rows, sums, problem.threads)
                sums[heads] += parts
        state.pending = None
        out = factor_matrix(len(sums), self.width)
        with self.stopwatch("solve"):
            ridge = problem.item_regularization[self.items]
            failed = kernels.solve_sums(sums, values, ridge, out=out, threads=problem.threads)
            kernels.rotate(out, np.ascontiguousarray(Q.T), out, problem.threads)
        # All ranks have to raise: the others would wait for ever for one that raises alone.
        if everywhere := int(self.sum_of_ranks(failed)):
            raise unsolvable(everywhere, len(state.V), problem.advice)
        with self.stopwatch("gather"):
            state.V[:] = self.comm.all_gather(out)

    def _basis(self, problem: Problem, shared: Float64) -> Eigenbasis:
        """Return the eigenbasis that the first rank finds.

        Processors may find different bases of the same matrix, by rounding. Rows that were rotated
        into one basis cannot be added to rows in another, so all ranks take the same.
        """
        own = eigenbasis(shared, problem.factors, problem.advice)
        mine = np.vstack(own) if self.comm.rank == 0 else np.zeros((0, self.width), np.float32)
        found = self.comm.all_gather(mine)
        return Eigenbasis(np.ascontiguousarray(found[0]), np.ascontiguousarray(found[1:]))

    @cached_property
    def _sums(self) -> Float32:
        """Room for the equations of this rank's items, kept from epoch to epoch."""
        return factor_matrix(self.items.stop - self.items.start, kernels.sums_width(self.width))

    @cached_property
    def _head_rows(self) -> Int64:
        """Which rows of the sums are those of heads."""
        return _within(self.cut.heads, self.items)

    def _rotated(
        self, problem: Problem, state: State, Q: Float32
    ) -> Iterator[list[tuple[Float32, Float32]]]:
        """Turn the users of each shard into the basis; pick out what each rank is to get."""
        threads = problem.threads
        ends = [run.stop for run in self.cut.item_runs(self.comm.size)[:-1]]
        owners = np.searchsorted(self.cut.heads, ends)
        for (cell, _), sending in zip(self.cells, self.outgoing, strict=True):
            U = state.U[cell]
            rotated = factor_matrix(*U.shape)
            if state.pending is None:
                kernels.rotate(U, Q, rotated, threads)
            else:
                steps, h = state.pending
                kernels.shift_and_rotate(
                    U, steps[cell], h, rotation=Q, out=rotated, threads=threads
                )
            parts = np.zeros((sending.heads.n_rows, kernels.sums_width(self.width)), np.float32)
            kernels.add_rows(sending.heads, rotated, parts, threads)
            yield [
                (rotated[users], head)
                for users, head in zip(sending.users, np.split(parts, owners), strict=True)
            ]


def run_of(bounds: Int64, shards: range) -> slice:
    """Return the rows of a run of shards."""
    return slice(int(bounds[shards.start]), int(bounds[shards.stop]))


def _within(numbers: Int64, run: slice) -> Int64:
    """Return the places of those numbers that are in a run."""
    return np.asarray(numbers[(numbers >= run.start) & (numbers < run.stop)] - run.start)
