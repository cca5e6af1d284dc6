"""Races: candidates take turns in one process, so that what disturbs one disturbs all."""

from __future__ import annotations

import math
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from threadpoolctl import threadpool_limits

from limelight._base.machine import SGEMM_SIZE, matrix_product
from limelight.lab.bench.records import ClockName, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Clock: TypeAlias = Callable[[], float]


CLOCKS: dict[ClockName, Clock] = {"cpu": time.process_time, "wall": time.perf_counter}
_LEAST_SECONDS = 0.05  # a shorter round says more about the clock than about the code


@dataclass(frozen=True)
class Candidate:
    """Somebody who does the work once for every call."""

    who: str
    run: Callable[[], object]
    calls: int = 1
    """Calls of one round, whose time is shared among them."""
    flops: float | None = None
    """Operations of one call."""


def clock_for(threads: int) -> ClockName:
    """Choose the clock: processor time for one thread, else the time on the wall.

    Processor time does not count what other processes take away. Of several threads it would add
    up the times, so it could not tell whether they ran side by side.

    Examples
    --------
    >>> clock_for(1), clock_for(2)
    ('cpu', 'wall')
    """
    return "cpu" if threads == 1 else "wall"


def take_turns(candidates: Sequence[Candidate], *, rounds: int, clock: Clock) -> list[Entry]:
    """Let everybody warm up once, then measure so many rounds; the fastest counts.

    The order turns round after every round, so that nobody always follows the same.

    Examples
    --------
    >>> ticks = iter(range(100))
    >>> entries = take_turns([Candidate("a", list)], rounds=2, clock=lambda: next(ticks))
    >>> entries[0].seconds, entries[0].rounds
    (1.0, (1.0, 1.0))
    """
    seconds: list[list[float]] = [[] for _ in candidates]
    for number in range(rounds + 1):
        turn = list(zip(candidates, seconds, strict=True))
        for candidate, measured in turn if number % 2 else turn[::-1]:
            spent = _time(candidate, clock)
            if number:  # the first round warms caches and pools up
                measured.append(spent)
    return [
        Entry(candidate.who, min(measured), tuple(measured), candidate.flops)
        for candidate, measured in zip(candidates, seconds, strict=True)
    ]


def _time(candidate: Candidate, clock: Clock) -> float:
    started = clock()
    for _ in range(candidate.calls):
        candidate.run()
    return (clock() - started) / candidate.calls


def calls_for(run: Callable[[], object]) -> int:
    """Count the calls that make a round long enough to be measured."""
    run()
    started = time.perf_counter()
    run()
    spent = time.perf_counter() - started
    return max(1, math.ceil(_LEAST_SECONDS / max(spent, 1e-6)))


def sgemm(threads: int) -> Candidate:
    """Make the candidate that shows the machine's peak: NumPy's product of large matrices."""
    return Candidate("sgemm", matrix_product(threads), flops=2.0 * SGEMM_SIZE**3)


def against_peak(
    candidates: Sequence[Candidate], *, rounds: int, threads: int
) -> tuple[list[Entry], float]:
    """Let candidates race with a matrix product after each of them, which gives the peak."""
    clock, product = CLOCKS[clock_for(threads)], sgemm(threads)
    turns = [one for candidate in candidates for one in (candidate, product)]
    entries = take_turns(turns, rounds=rounds, clock=clock)
    fastest = min(entry.cost for entry in entries[1::2])
    return entries[::2], (product.flops or 0.0) / fastest


@contextmanager
def held_to(threads: int) -> Iterator[None]:
    """Hold the process to so many threads: one means one core; BLAS never has more than one.

    Nobody here gains by a BLAS with threads of its own: ours and the peers' rows are spread over
    threads already, and pools inside pools are slow. Import all libraries before.
    """
    allowed = _affinity()
    if threads == 1 and allowed:
        os.sched_setaffinity(0, {max(allowed)})
    try:
        with threadpool_limits({"blas": 1, "openmp": threads}):
            yield
    finally:
        if allowed:
            os.sched_setaffinity(0, allowed)


def _affinity() -> set[int]:
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # pragma: no cover - not every platform has affinities
        return set()
