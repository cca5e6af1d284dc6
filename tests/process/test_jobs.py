"""Every job of the benchmark runs, on data so small that its times mean nothing.

Some measure the memory of processes that they start.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from limelight._base.errors import LimelightError
from limelight.lab.bench import memory
from limelight.lab.bench.jobs import JOBS, Job, RaceSetup
from limelight.lab.bench.timing import held_to

if TYPE_CHECKING:
    from pathlib import Path

    from limelight.lab.bench.task import DataSet

pytestmark = pytest.mark.usefixtures("small_peak")

FIRST = {
    "exact": "limelight iALS",
    "cg": "limelight iALS, CG",
    "exadmm": "limelight exADMM",
    "user-step": "limelight exADMM",
    "agreement": "limelight iALS, CG",
    "dense": "limelight",
    "topk": "limelight",
    "growth": "doubled",
    "threads": "1 thread",
    "memory": "limelight exADMM",
    "reading": "limelight",
    "reading-memory": "limelight",
}


def test_every_job_has_its_test() -> None:
    assert [job.name for job in JOBS] == list(FIRST)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_job(job: Job, tiny: DataSet) -> None:
    threads = 2 if job.on_all_threads else 1
    with held_to(threads):
        races = list(job.run(RaceSetup(tiny, factors=8, threads=threads, rounds=1)))
    assert races
    assert len({race.key for race in races}) == len(races)
    for race in races:
        assert race.job == job.name
        assert race.entries[0].who == FIRST[job.name]
        assert all(entry.cost > 0 for entry in race.entries)
        assert all(math.isfinite(race.ratio(entry)) for entry in race.entries)


def test_a_candidate_that_fails(tiny: DataSet, tmp_path: Path) -> None:
    setting = RaceSetup(tiny, factors=8, threads=1, rounds=1)
    with pytest.raises(LimelightError, match=r"limelight failed to read: .*Error") as caught:
        memory._measure("read", "limelight", tmp_path / "none.csv", setting)
    assert "--jobs" in str(caught.value.hint)
