"""The arithmetic of races, and their way through JSON."""

from __future__ import annotations

import json
import math

from limelight.lab.bench.records import Entry, Race, Results

RACE = Race(
    "exact",
    "ml-1m",
    (
        Entry("limelight", 0.5, (0.5, 0.75), flops=4e9, objective=1.5, ndcg=0.25),
        Entry("irspack", 2.0, (2.0, 2.5)),
    ),
    factors=64,
    peak=16e9,
)


def test_ratios_rates_and_shares() -> None:
    ours, theirs = RACE.entries
    assert RACE.ratio(theirs) == 0.25
    assert RACE.ratio(ours) == 1
    assert RACE.rate(ours) == 8e9
    assert RACE.share_of_peak(ours) == 0.5
    assert RACE.rate(theirs) is None
    assert RACE.share_of_peak(theirs) is None


def test_memory_is_compared_where_no_time_was_measured() -> None:
    race = Race("memory", "ml-1m", (Entry("limelight", n_bytes=10), Entry("irspack", n_bytes=40)))
    assert race.ratio(race.entries[1]) == 0.25
    assert math.isnan(Entry("nobody").cost)


def test_a_race_takes_the_place_of_an_earlier_one() -> None:
    again = Race("exact", "ml-1m", (Entry("limelight", 0.1),), factors=64)
    other = Race("exact", "ml-1m", (Entry("limelight", 0.1),), factors=128)
    results = Results({}).with_race(RACE).with_race(other).with_race(again)
    assert results.races == (again, other)


def test_results_survive_json() -> None:
    results = Results({"kernel": "avx2"}, {"ml-1m": {"users": 1}}, (RACE,), {"peak_bytes": 1})
    assert Results.from_dict(json.loads(json.dumps(results.to_dict()))) == results
