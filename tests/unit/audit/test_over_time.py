"""Exposure over time: periods, several lists of a user, and times that are none."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from limelight._base.errors import ConfigError, DataError
from limelight.audit.audit import audit
from limelight.audit.tables import MOST_OVER_TIME
from limelight.metrics.exposure import gini

MOMENTS = [
    datetime(2024, 1, 1, 9),
    datetime(2024, 1, 1, 9),
    datetime(2024, 1, 7, 23),
    datetime(2024, 1, 8, 0),
    datetime(2024, 2, 1, 12),
]
TABLE = {
    "user_id": ["u", "u", "u", "v", "v"],
    "item_id": ["a", "b", "a", "c", "a"],
    "rank": [1, 2, 1, 1, 1],
}
CATALOGUE = list("abcd")


def lists(moments=MOMENTS, **columns):
    return pa.table({**TABLE, **columns, "shown_at": moments})


def over_time(moments=MOMENTS, every=None, **options):
    return audit(lists(moments), catalogue=CATALOGUE, timestamp="shown_at", every=every, **options)


def test_a_user_has_a_list_for_each_time():
    with pytest.raises(DataError, match=r"user 'u' has rank 1 twice \(1 such rows\)") as error:
        audit(lists(item_id=["a", "b", "c", "c", "a"])[:3])
    assert "timestamp='...'" in error.value.hint
    result = over_time()
    assert (result.users, result.lists) == (2, 4)
    assert result.exposure.tolist() == pytest.approx([3, 1 / np.log2(3), 1, 0])
    assert "over 2 users' 4 lists and 4 items" in str(result)


def test_weeks_by_hand():
    periods = over_time(every="week").periods
    assert [period.start for period in periods] == ["2024-01-01", "2024-01-08", "2024-01-29"]
    assert [period.lists for period in periods] == [2, 1, 1]
    second = 1 / np.log2(3)
    assert periods[0].gini == pytest.approx(gini([2, second, 0, 0]))
    assert periods[0].coverage == 0.5
    assert periods[0].top_share == pytest.approx(2 / (2 + second))
    assert periods[1].gini == 0.75
    assert periods[1].gini_floor == 0.75
    assert periods[1].cumulative_coverage == 0.75
    assert periods[1].cumulative_gini == pytest.approx(gini([2, second, 1, 0]))
    last, whole = periods[-1], over_time(every="week").metrics
    assert last.cumulative_gini == pytest.approx(whole["gini@2"])
    assert last.cumulative_coverage == whole["coverage@2"]
    assert last.cumulative_top_share == pytest.approx(whole["top_share@2"])


def test_days_and_months():
    days = [period.start for period in over_time(every="day").periods]
    assert days == ["2024-01-01", "2024-01-07", "2024-01-08", "2024-02-01"]
    months = [period.start for period in over_time(every="month").periods]
    assert months == ["2024-01-01", "2024-02-01"]


@pytest.mark.parametrize(("days", "starts"), [(7, 4), (100, 4), (400, 4)])
def test_the_span_chooses_the_period(days, starts):
    moments = [datetime(2024, 1, 3) + timedelta(days=days * i / 4) for i in (0, 0, 1, 2, 4)]
    periods = over_time(moments).periods
    assert len(periods) == starts
    weekday = date.fromisoformat(periods[1].start).weekday()
    assert {7: periods[0].start == "2024-01-03", 100: weekday == 0}.get(
        days, periods[1].start.endswith("-01")
    )


SECONDS = [int(moment.replace(tzinfo=UTC).timestamp()) for moment in MOMENTS]


@pytest.mark.parametrize(
    "moments",
    [
        SECONDS,
        [float(second) for second in SECONDS],
        [1000 * second for second in SECONDS],
        [1_000_000 * second for second in SECONDS],
        [1_000_000_000 * second for second in SECONDS],
        pa.array(MOMENTS, pa.timestamp("ns")),
        pa.array(MOMENTS, pa.timestamp("s")),
        [moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=9))) for moment in MOMENTS],
    ],
    ids=["s", "float", "ms", "us", "ns", "arrow ns", "arrow s", "zone"],
)
def test_every_way_to_write_times(moments):
    assert over_time(moments, every="day") == over_time(every="day")


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates(kind):
    days = pa.array([moment.date() for moment in MOMENTS], kind)
    assert over_time(days, every="day").periods == over_time(every="day").periods


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%s"])
def test_text(tmp_path, form):
    written = [
        str(second) if form == "%s" else moment.strftime(form)
        for moment, second in zip(MOMENTS, SECONDS, strict=True)
    ]
    file = tmp_path / "lists.csv"
    lists(written).to_pandas().to_csv(file, index=False)
    found = audit(file, catalogue=CATALOGUE, timestamp="shown_at", every="day")
    assert found == over_time(every="day")


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        (["soon"] * 5, "column 'shown_at': a timestamp must be .*, got type: string"),
        ([20240101] * 5, "row 1: a timestamp must be a time, or a number of seconds .*: 20240101"),
        ([1, 2, 3, 4, 5], "row 1: a timestamp must be a time, or a number of seconds since 1970"),
        ([*SECONDS[:4], None], "row 5: a timestamp must be .*, got: null"),
        ([*map(float, SECONDS[:4]), np.nan], "row 5: a timestamp must be .*, got: nan"),
    ],
)
def test_times_that_are_none(moments, message):
    with pytest.raises(DataError, match=message):
        over_time(moments)


def test_repeats_within_a_list():
    with pytest.raises(DataError, match="user 'u' has rank 1 twice at 2024-01-01T09:00:00"):
        audit(lists(rank=[1, 1, 1, 1, 1]), timestamp="shown_at")
    with pytest.raises(DataError, match="user 'u' has item 'a' twice at 2024-01-01T09:00:00"):
        audit(lists(item_id=["a", "a", "a", "c", "a"]), timestamp="shown_at")


def test_wrong_settings():
    with pytest.raises(ConfigError, match="periods need a column of times: every='day'"):
        audit(lists(), every="day")
    with pytest.raises(ConfigError, match="unknown period: every='year'"):
        audit(lists(), timestamp="shown_at", every="year")
    with pytest.raises(DataError, match="column not found in the frame: 'when'"):
        audit(lists(), timestamp="when")


def test_scores_rank_within_each_list():
    table = lists().drop_columns("rank").append_column("score", pa.array([2.0, 1.0, 1.0, 1.0, 1.0]))
    found = audit(table, catalogue=CATALOGUE, timestamp="shown_at", every="week")
    assert found == over_time(every="week")


def test_cut_at_k():
    found = over_time(every="week", k=1)
    assert found.periods[0].coverage == 0.25


def test_comparison_counts_an_item_of_a_user_once():
    result = audit(
        lists(), against=lists()[2:], catalogue=CATALOGUE, timestamp="shown_at", k=1, top=0
    )
    assert result.comparison.metrics["overlap@1"] == 1
    assert result.comparison.lists == 3


def test_report():
    text = str(over_time(every="month"))
    assert "Over time" in text
    assert "2024-02-01" in text
    many = pa.table(
        {
            "user_id": np.arange(40),
            "item_id": np.arange(40),
            "rank": np.ones(40, int),
            "shown_at": 1_700_000_000 + 86_400 * np.arange(40),
        }
    )
    text = str(audit(many, timestamp="shown_at", every="day"))
    assert "(20 periods in between are left out)" in text


def test_each_period_says_the_shares_of_the_groups():
    groups = pa.table({"item_id": list("abc"), "group": ["x", "x", "y"]})
    result = over_time(every="week", groups=groups)
    assert [period.groups for period in result.periods] == [
        {"x": 1.0, "y": 0.0},
        {"x": 0.0, "y": 1.0},
        {"x": 1.0, "y": 0.0},
    ]
    assert result.to_dict()["periods"][1]["groups"] == {"x": 0.0, "y": 1.0}
    text = str(result)
    assert "Groups over time (share of each period's exposure)" in text
    assert "  2024-01-08    0.00 %  100.00 %" in text
    assert over_time(every="week").periods[0].groups == {}


def test_many_groups_over_time_are_the_first_of_them():
    n_items = MOST_OVER_TIME + 50
    catalogue = [f"i{number}" for number in range(n_items)]
    table = pa.table(
        {
            "user_id": [1, 1],
            "item_id": ["i7", "i9"],
            "rank": [1, 2],
            "shown_at": [datetime(2024, 1, 1)] * 2,
        }
    )
    groups = pa.table({"item_id": catalogue, "group": catalogue})
    result = audit(table, catalogue=catalogue, groups=groups, timestamp="shown_at")
    assert len(result.periods[0].groups) == MOST_OVER_TIME
    assert list(result.periods[0].groups)[:2] == ["i7", "i9"]
    assert "(244 other groups left out)" in str(result)
