"""Who runs when, and what counts."""

from __future__ import annotations

import os
from itertools import count

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from limelight._base.machine import peak
from limelight.lab.bench.timing import (
    Candidate,
    against_peak,
    calls_for,
    held_to,
    sgemm,
    take_turns,
)


def test_candidates_take_turns_there_and_back() -> None:
    ran: list[str] = []
    candidates = [Candidate(who, lambda who=who: ran.append(who)) for who in "ab"]
    take_turns(candidates, rounds=2, clock=count().__next__)
    assert "".join(ran) == "ba" + "ab" + "ba"


def test_the_fastest_round_counts_and_the_first_does_not() -> None:
    # Each run takes what is next: 9 seconds to warm up, then 5, 3 and 4.
    now, costs = [0.0], iter([1.0, 5.0, 3.0, 4.0])

    def run() -> None:
        now[0] += next(costs)

    (entry,) = take_turns([Candidate("a", run, flops=6.0)], rounds=3, clock=lambda: now[0])
    assert entry.rounds == (5.0, 3.0, 4.0)
    assert entry.seconds == 3.0
    assert entry.flops == 6.0


def test_calls_share_the_time_of_a_round() -> None:
    now = [0.0]

    def run() -> None:
        now[0] += 2.0

    (entry,) = take_turns([Candidate("a", run, calls=5)], rounds=1, clock=lambda: now[0])
    assert entry.seconds == 2.0
    assert now[0] == 20.0


def test_calls_fill_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.lab.bench.timing._LEAST_SECONDS", 1e-2)
    assert calls_for(list) > 10
    monkeypatch.setattr("limelight.lab.bench.timing._LEAST_SECONDS", 0.0)
    assert calls_for(list) == 1


def test_the_peak_is_measured_between_the_turns() -> None:
    racers = [Candidate("a", list), Candidate("b", list)]
    entries, rate = against_peak(racers, rounds=1, threads=1)
    assert [entry.who for entry in entries] == ["a", "b"]
    assert rate > 0
    assert peak(threads=1, rounds=1) > 0


def test_the_product_is_one() -> None:
    product = sgemm(threads=1)
    assert product.flops == 2 * 64**3
    product.run()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinities here")
def test_one_thread_is_one_core_until_the_end() -> None:
    before = os.sched_getaffinity(0)
    np.ones((2, 2)) @ np.ones((2, 2))
    with held_to(1):
        assert len(os.sched_getaffinity(0)) == 1
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert all(pool["num_threads"] == 1 for pool in pools)
    assert os.sched_getaffinity(0) == before
    with held_to(2):
        assert os.sched_getaffinity(0) == before
