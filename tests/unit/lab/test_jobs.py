"""Jobs on data so small that their times mean nothing; tests/process runs each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from limelight._base.errors import ConfigError
from limelight.lab.bench import memory
from limelight.lab.bench.jobs import JOBS, BenchPlan, Job, RaceSetup, choose_jobs, run
from limelight.lab.bench.memory import READERS, write_table
from limelight.lab.bench.records import Race
from limelight.lab.bench.timing import held_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from limelight.lab.bench.task import DataSet


def test_work_that_is_the_same_has_the_same_result(tiny: DataSet) -> None:
    setting = RaceSetup(tiny, factors=8, threads=1, rounds=1)
    for name in ("topk", "reading"):
        with held_to(1):
            races = [race for job in choose_jobs([name]) for race in job.run(setting)]
        for race in races:
            objectives = [entry.objective for entry in race.entries]
            assert objectives == pytest.approx([objectives[0]] * len(objectives), rel=1e-5)


def test_shares_of_the_peak(tiny: DataSet) -> None:
    setting = RaceSetup(tiny, factors=8, threads=1, rounds=1)
    for job in choose_jobs(["exact", "exadmm", "dense", "topk"]):
        with held_to(1):
            (race,) = job.run(setting)
        assert race.share_of_peak(race.entries[0])


def test_one_core_cannot_show_what_threads_bring(tiny: DataSet) -> None:
    (job,) = choose_jobs(["threads"])
    assert list(job.run(RaceSetup(tiny, factors=8, threads=1, rounds=1))) == []


def test_unknown_job() -> None:
    with pytest.raises(ConfigError, match="no such job: 'speed'") as caught:
        choose_jobs(["exact", "speed"])
    assert "exact, cg, " in str(caught.value.hint)
    assert choose_jobs([]) == list(JOBS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"rounds": 0}, "rounds must be at least 1: 0"), ({"factors": [8, 0]}, "at least 1: 0")],
)
def test_a_plan_that_measures_nothing(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BenchPlan([], **wrong)  # type: ignore[arg-type]


def test_a_plan_goes_through_jobs_data_and_sizes(
    tiny: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.lab.bench.jobs.resolve_threads", lambda n: n or 4)

    def job(name: str, scope: str, **settings: bool) -> Job:
        def measure(setting: RaceSetup) -> Iterator[Race]:
            yield Race(name, setting.data.name, (), setting.factors, setting.threads)

        return Job(name, name, "", measure, scope, **settings)  # type: ignore[arg-type]

    jobs = [
        job("sizes", "each size"),
        job("sets", "each data set"),
        job("once", "once"),
        job("all", "once", on_all_threads=True),
    ]
    told: list[str] = []
    plan = BenchPlan([tiny, tiny], factors=(32, 50), jobs=jobs, threads=(1, 2))
    races = [race for step in run(plan, told.append) for race in step]
    ran = [(race.job, race.factors, race.threads) for race in races]
    sizes = [("sizes", 32), ("sizes", 50)] * 2 + [("sets", 50)] * 2 + [("once", 50)]
    assert ran == [
        *((*size, 1) for size in sizes),
        ("all", 50, 4),
        *((*size, 2) for size in sizes),
    ]
    assert told[0] == "sizes: tiny, 32 factors, 1 thread"
    assert told[-1] == "once: tiny, 50 factors, 2 threads"


@pytest.mark.parametrize("who", memory.FITS)
def test_peak_of_a_fit(who: str, tiny: DataSet, tmp_path: Path) -> None:
    if who not in memory.installed_of(memory.FITS):
        pytest.skip(f"not installed: {who}")
    data = tiny.interactions
    np.savez(tmp_path / "data.npz", indptr=data.indptr, indices=data.indices, n_items=data.n_items)
    with held_to(1):
        assert memory.main(["fit", who, str(tmp_path / "data.npz"), "8", "1"]) >= 0


@pytest.mark.parametrize("who", READERS)
def test_peak_of_reading(who: str, tiny: DataSet, tmp_path: Path) -> None:
    pytest.importorskip(who, reason=f"{who} is not installed")
    file = write_table(tiny.interactions, tmp_path / "table.csv")
    assert memory.main(["read", who, str(file), "8", "1"]) >= 0


def test_kept_bytes_hold_the_ids(tiny: DataSet) -> None:
    data = tiny.interactions
    arrays = data.indptr.nbytes + data.indices.nbytes
    assert memory.kept_bytes(data) > arrays + 8 * (data.n_users + data.n_items)
