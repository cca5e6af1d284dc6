"""A log of requests, answered again by the code that serves, under a target."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import as_groups
from limelight.serve import Engine, Ledger, Request, RequestControl
from limelight.serve.replay import RequestLog, _batches, read_requests, replay
from limelight.serve.replay_figure import replay_figure
from limelight.serve.start import start_of
from limelight.serve.targets.goal import ServedGoal
from limelight.serve.targets.holder import TargetHolder

pytestmark = pytest.mark.unit
DAY = 86_400.0
MARKET = ll.marketplace(300, 150, 6000)
MODEL = ll.IALS(factors=8, epochs=6).fit(MARKET.interactions)


def made_up(n_requests=6000, days=4.0, seed=0):
    generator = np.random.default_rng(seed)
    times = np.sort(generator.uniform(0, days * DAY, n_requests)) + 1e9
    return RequestLog(generator.integers(0, 300, n_requests).tolist(), times)


@pytest.fixture(scope="module")
def found():
    return replay(MODEL, made_up(), ServedGoal(gini=0.35), window=DAY, k=10)


def test_a_target_is_held(found):
    assert len(found.settled) > 100
    assert max(abs(point.gini - 0.35) for point in found.settled) <= 0.01
    assert found.status.is_met
    assert found.n_requests == 6000
    assert found.n_failed == 0
    said = str(found)
    assert "6,000 requests from 2001-09-09" in said
    assert "within 0.01 of the target 100 % of the time" in said
    assert said.startswith("With control, the Gini index of exposure falls from 0.")
    assert said.splitlines()[1].startswith("It costs ")


def test_it_is_what_a_service_does(found):
    """One request after the other, with the parts of a service put together by hand."""
    log, start = made_up(), start_of(MODEL, k=10, has_target=True)
    control = RequestControl(start.config, start.strength)
    engine = Engine(MODEL, k=10, control=control)
    ledger = Ledger(150, window=DAY, time=float(log.times[0]))
    holder = TargetHolder(ServedGoal(gini=0.35), control, ledger, window=DAY)
    for user, time in zip(log.users, log.times.tolist(), strict=True):
        ledger.advance(time)
        engine.answer([Request(user=user)], ledger, time=time)
        holder.tick(time)
    # A replay answers a few requests at a time, so the moments of measuring differ.
    assert holder.status().measure.gini == pytest.approx(found.status.measure.gini, abs=0.005)
    assert holder.status().loss == pytest.approx(found.status.loss, rel=0.05)


def test_results_as_a_table_json_and_text(found):
    table = found.table()
    assert table.column_names == ["time", "gini", "coverage", "loss", "strength"]
    assert len(table) == len(found.points)
    read = json.loads(json.dumps(found.to_dict()))
    assert read["asked"] == {"gini": 0.35}
    assert read["window_seconds"] == DAY
    assert read["measured"]["gini"] == found.status.measure.gini
    assert read["history"][0].keys() == {"time", "gini", "coverage", "loss", "strength"}
    assert found.text().splitlines()[-1].startswith("2001-09-")


def test_the_figure_has_what_was_asked(found):
    figure = replay_figure(found).get_figure()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "Gini index",
        "Loss of relevance",
        "Strength",
    ]
    assert figure.axes[0].lines[1].get_ydata()[0] == 0.35
    assert replay_figure(found, title="mine").get_title(loc="left") == "mine"


@pytest.mark.parametrize(
    ("asked", "more", "said"),
    [
        ({"min_coverage": 0.9}, {}, "asked for a coverage of 90 %"),
        ({"max_relevance_loss": 0.03}, {}, "asked for a loss of relevance of 3 %"),
        ({"gini": 0.99}, {}, "The target is met without control."),
        ({"gini": 0.1, "max_relevance_loss": 0.01}, {}, "Out of reach: a Gini index of 0.1"),
        ({"gini": 0.35}, {"half_life": DAY / 3}, "within 0.01 of the target"),
        ({"gini": 0.35}, {"window": 30 * DAY}, "The log is no longer than the window"),
        ({"group_cap": 0.3}, {}, "its bound: "),
    ],
)
def test_other_targets_and_spans(asked, more, said):
    groups = as_groups(np.arange(150) % 5, 150) if "group_cap" in asked else None
    span = more or {"window": DAY}
    result = replay(MODEL, made_up(2400), ServedGoal(**asked), k=10, groups=groups, **span)
    assert said in str(result)
    if "max_relevance_loss" in asked:
        assert result.status.loss <= asked["max_relevance_loss"]
    if "half_life" in more:
        assert result.to_dict()["half_life_seconds"] == DAY / 3
    covers = "min_coverage" in asked
    first = replay_figure(result).get_ylabel()
    assert first == ("Coverage" if covers else "Gini index")


def test_a_fitted_strength_is_where_it_starts():
    settled = ll.BestResponse(strength=0.7, candidates=150).settle(MODEL.ranking(), 10)
    goal = ServedGoal(gini=ll.gini(settled.exposure_))
    result = replay(settled.over(MODEL), made_up(300, days=0.5), goal, window=DAY, k=10)
    assert result.points[0].strength == pytest.approx(0.7, rel=0.2)


def test_users_that_the_model_does_not_know(found):
    log = RequestLog([0, 999, 1, 999], np.array([0.0, 1.0, 2.0, 3.0]), was_sorted=False)
    result = replay(MODEL, log, ServedGoal(gini=0.35), window=DAY, k=10)
    assert "2 requests came from users that the model does not know, such as 999." in str(result)
    assert "The log was out of order and was sorted by time." in str(result)


def test_a_log_of_one_request():
    log = RequestLog([3], np.array([5.0]))
    result = replay(MODEL, log, ServedGoal(gini=0.35), window=DAY, k=10)
    assert "1 request from 1970-01-01 00:00:05" in str(result)


def test_a_span_is_needed():
    with pytest.raises(ConfigError, match="a window or a half-life"):
        replay(MODEL, made_up(10), ServedGoal(gini=0.35), k=10)


def test_no_figure_of_nothing(found):
    empty = replace(found, status=replace(found.status, history=()))
    with pytest.raises(DataError, match="nothing was measured in 6,000 requests") as caught:
        replay_figure(empty)
    assert "longer log" in caught.value.hint


def test_batches_are_short_in_number_and_in_time():
    times = np.concatenate([np.zeros(100), np.linspace(1, 5000, 50)])
    cut = list(_batches(times, window=1000.0))
    assert sum(steps for _, steps in cut) == 100
    assert max(rows.stop - rows.start for rows, _ in cut) == 32
    assert all(times[rows][-1] - times[rows][0] <= 1.0 for rows, _ in cut)
    assert [rows.start for rows, _ in cut[1:]] == [rows.stop for rows, _ in cut[:-1]]


def test_a_progress_bar(capsys):
    replay(MODEL, made_up(50), ServedGoal(gini=0.35), window=DAY, k=10, show_progress=True)
    assert "replay" in capsys.readouterr().err


def test_logs_are_sorted_and_their_columns_found():
    log = read_requests(pa.table({"userId": ["b", "a"], "timestamp": [20, 10], "x": [1, 2]}))
    assert log.users == ["a", "b"]
    assert log.times.tolist() == [10.0, 20.0]
    assert not log.was_sorted
    named = pa.table({"who": ["a"], "when": [dt.datetime(2021, 1, 1, 0, 0, 10)]})
    assert read_requests(named, user="who", timestamp="when").times[0] == 1609459210.0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"x": [1], "time": [2]}, "column not found in the frame: 'user_id'"),
        ({"user": [1], "x": [2]}, "column not found in the frame: 'timestamp'"),
        (
            {"user": [1], "time": [2], "date": [3]},
            "the timestamp column is not clear in the frame: time, date",
        ),
        ({"user": [1, 2], "time": [5, 5]}, "have the same time: 1970-01-01 00:00:05"),
        ({"user": [1, 2], "time": [5.0, float("nan")]}, "row 2: a timestamp must be"),
        ({"user": [1, 2], "time": pa.array([5, None])}, "row 2: a timestamp must be"),
        ({"user": [1, 2], "time": [5, -7]}, "row 2: a timestamp must be"),
        ({"user": ["a", ""], "time": [5, 7]}, "row 2: an id must not be empty"),
        ({"user": pa.array([], pa.int64()), "time": pa.array([], pa.int64())}, "no rows in"),
    ],
)
def test_logs_that_cannot_be_read(table, said):
    with pytest.raises(DataError, match=said) as caught:
        read_requests(pa.table(table))
    assert caught.value.hint
