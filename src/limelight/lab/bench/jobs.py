"""The jobs that there are, what a job runs on, and the run that goes through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from limelight._base.errors import ConfigError
from limelight._base.text import count
from limelight._native import resolve_threads
from limelight.lab import growth
from limelight.lab.bench import epochs, memory
from limelight.lab.bench.records import Race
from limelight.lab.bench.task import Task
from limelight.lab.bench.timing import CLOCKS, against_peak, clock_for, held_to, take_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limelight.lab.bench.records import ClockName, Entry
    from limelight.lab.bench.task import DataSet
    from limelight.lab.bench.timing import Candidate


@dataclass(frozen=True, eq=False)
class RaceSetup:
    """A data set, a number of factors and of threads, and how many rounds to measure."""

    data: DataSet
    factors: int
    threads: int
    rounds: int

    def __str__(self) -> str:
        """Name the data and the sizes for people who wait."""
        return f"{self.data.name}, {self.factors} factors, {count(self.threads, 'thread')}"

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
        entries, peak = against_peak(candidates, rounds=self.rounds, threads=self.threads)
        return self.record(job, entries, peak=peak)

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


Scope: TypeAlias = Literal["each size", "each data set", "once"]
_USUAL_FACTORS = 64


@dataclass(frozen=True)
class Job:
    """Something to measure."""

    name: str
    title: str
    about: str
    """What is measured and how, for readers of the results."""
    run: Callable[[RaceSetup], Iterator[Race]]
    scope: Scope = "each size"
    on_all_threads: bool = False
    """Whether it uses every thread whatever the plan says."""


JOBS = (
    Job("exact", "Exact iALS epoch", epochs.ABOUT_EXACT, epochs.exact),
    Job("cg", "iALS epoch by conjugate gradients", epochs.ABOUT_CG, epochs.cg),
    Job("exadmm", "exADMM epoch", epochs.ABOUT_EXADMM, epochs.exadmm),
    Job("user-step", "User step of exADMM", epochs.ABOUT_USER_STEP, epochs.user_step),
    Job("agreement", "Descent against exact solves", epochs.ABOUT_AGREEMENT, epochs.agreement),
    Job("dense", "Long rows at 256 factors", epochs.ABOUT_DENSE, epochs.dense, "once"),
    Job("topk", "Top-k", epochs.ABOUT_TOP_K, epochs.top_k),
    Job("growth", "Growth", growth.ABOUT, growth.race_growth, "each data set"),
    Job(
        "threads",
        "Threads",
        epochs.ABOUT_THREADS,
        epochs.threads,
        "each data set",
        on_all_threads=True,
    ),
    Job("memory", "Peak memory of a fit", memory.ABOUT_FIT, memory.fits, "each data set"),
    Job("reading", "Reading a table", memory.ABOUT_READING, memory.reading, "each data set"),
    Job(
        "reading-memory", "Peak memory of reading", memory.ABOUT_READ, memory.reads, "each data set"
    ),
)


@dataclass(frozen=True)
class BenchPlan:
    """Which jobs to run on what."""

    data: Sequence[DataSet]
    factors: Sequence[int] = (32, 64, 128, 256)
    jobs: Sequence[Job] = JOBS
    threads: Sequence[int] = (1,)
    rounds: int = 3

    def __post_init__(self) -> None:
        """Refuse numbers of rounds, factors and threads that cannot be run."""
        if self.rounds < 1:
            message = f"rounds must be at least 1: {self.rounds}"
            raise ConfigError(message, hint="3 or more, so that the fastest is not disturbed")
        for factors in self.factors:
            if factors < 1:
                message = f"factors must be at least 1: {factors}"
                raise ConfigError(message, hint="such as 64")
        for threads in self.threads:
            resolve_threads(threads)


def choose_jobs(names: Sequence[str]) -> list[Job]:
    """Find jobs by name; none named means all.

    Examples
    --------
    >>> [job.name for job in choose_jobs(["topk", "cg"])]
    ['cg', 'topk']
    """
    known = [job.name for job in JOBS]
    for name in names:
        if name not in known:
            message = f"no such job: {name!r}"
            raise ConfigError(message, hint=f"choose from: {', '.join(known)}")
    return [job for job in JOBS if not names or job.name in names]


def run(plan: BenchPlan, tell: Callable[[str], None]) -> Iterator[list[Race]]:
    """Run a plan; yield the races of each step as soon as it is done; tell before what it is."""
    for number, given in enumerate(plan.threads):
        for job in plan.jobs:
            if job.on_all_threads and number:
                continue
            threads = resolve_threads(0 if job.on_all_threads else given)
            for setup in _setups(plan, job, threads):
                tell(f"{job.title}: {setup}")
                with held_to(threads):
                    races = list(job.run(setup))
                yield races


def _setups(plan: BenchPlan, job: Job, threads: int) -> Iterator[RaceSetup]:
    usual = min(plan.factors, key=lambda factors: abs(factors - _USUAL_FACTORS))
    data = plan.data[:1] if job.scope == "once" else plan.data
    for one in data:
        for factors in plan.factors if job.scope == "each size" else (usual,):
            yield RaceSetup(one, factors, threads, plan.rounds)
