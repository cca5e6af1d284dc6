"""Where a job runs, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight.benchmarks.records import Race
from limelight.benchmarks.task import Task
from limelight.benchmarks.timing import CLOCKS, against_peak, clock_for, take_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.benchmarks.data import DataSet
    from limelight.benchmarks.records import ClockName, Entry
    from limelight.benchmarks.timing import Candidate


@dataclass(frozen=True, eq=False)
class Setting:
    """A data set, a number of factors and of threads, and how many rounds to measure."""

    data: DataSet
    factors: int
    threads: int
    rounds: int

    def __str__(self) -> str:
        """Name the setting for people who wait."""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.data.name}, {self.factors} factors, {threads}"

    def task(self) -> Task:
        """Pose the learning problem."""
        return Task(self.data, self.factors, self.threads)

    def race(
        self,
        job: str,
        candidates: Sequence[Candidate],
        *,
        part: str = "",
        clock: ClockName | None = None,
    ) -> Race:
        """Let candidates take turns."""
        clock = clock or clock_for(self.threads)
        entries = take_turns(candidates, rounds=self.rounds, clock=CLOCKS[clock])
        return self.record(job, entries, part=part, clock=clock)

    def race_against_peak(self, job: str, candidates: Sequence[Candidate]) -> Race:
        """Let candidates take turns with a matrix product, which shows the machine's peak."""
        outcome = against_peak(candidates, rounds=self.rounds, threads=self.threads)
        return self.record(job, outcome.entries, peak=outcome.peak)

    def record(
        self,
        job: str,
        entries: Sequence[Entry],
        *,
        part: str = "",
        clock: ClockName | None = None,
        peak: float | None = None,
    ) -> Race:
        """Put entries on record."""
        return Race(
            job,
            self.data.name,
            tuple(entries),
            factors=self.factors,
            threads=self.threads,
            clock=clock or clock_for(self.threads),
            part=part,
            peak=peak,
        )
