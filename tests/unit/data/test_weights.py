"""Weights and times: read, merged, decayed, filtered, split and saved."""

import datetime as dt
import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from tests.unit.data.test_read import write

import limelight as ll
from limelight._base.errors import ConfigError, DataError, LimelightWarning
from limelight.data import Interactions
from limelight.data.times import LEAST_DECAY, duration, moment

DAY = 86_400
TABLE = {
    "user": ["a", "b", "a", "a", "b"],
    "item": [2, 1, 1, 2, 2],
    "plays": [1.0, 2.0, 3.0, 4.0, 5.0],
    "day": [0, 10, 20, 30, 30],
}


def table(**more):
    return pa.table(TABLE | more)


def by_pair(data, values):
    rows = np.repeat(data.user_ids, np.diff(data.indptr))
    items = data.item_ids[data.indices]
    return dict(zip(zip(rows.tolist(), items.tolist(), strict=True), values.tolist(), strict=True))


@pytest.mark.parametrize("source", ["frame", "ratings.csv", "ratings.parquet"])
def test_weights_of_repeated_pairs_are_added_up(tmp_path, source):
    where = table() if source == "frame" else write(table(), tmp_path / source)
    data = ll.read(where, weight="plays")
    expected = {("a", 1): 3.0, ("a", 2): 5.0, ("b", 1): 2.0, ("b", 2): 5.0}
    assert by_pair(data, data.weights) == expected
    assert (data.duplicates, data.weights.dtype, data.times) == (1, np.float32, None)
    assert ll.read(where).weights is None


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, 1e-60, 1e60])
def test_a_weight_that_is_none_is_refused_with_its_row(bad):
    with pytest.raises(DataError, match=r"column 'plays', row 2: a weight must be a finite number"):
        ll.read(table(plays=[1.0, bad, 1.0, 1.0, 1.0]), weight="plays")


SECONDS = [day * DAY for day in TABLE["day"]]
NEW_YEAR = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "times",
    [
        pa.array(SECONDS),
        pa.array([1_600_000_000 + s for s in SECONDS], pa.float64()),
        pa.array([1_600_000_000_000 + 1000 * s for s in SECONDS]),
        pa.array(TABLE["day"], pa.date32()),
        pa.array([1000 * s for s in SECONDS], pa.date64()),
        *(
            pa.array([n * s for s in SECONDS], pa.timestamp(unit))
            for n, unit in ((1, "s"), (1000, "ms"))
        ),
        pa.array([NEW_YEAR + dt.timedelta(seconds=s) for s in SECONDS], pa.timestamp("us", "UTC")),
        pa.array([(NEW_YEAR + dt.timedelta(seconds=s)).isoformat()[:19] for s in SECONDS]),
    ],
    ids=str,
)
def test_weights_halve_with_age_whatever_times_are_written_in(tmp_path, times):
    frame = table(day=times)
    if pa.types.is_string(times.type):
        frame = write(frame, tmp_path / "ratings.csv")
    data = ll.read(frame, weight="plays", timestamp="day", half_life="10d")
    expected = {
        ("a", 1): 3.0 / 2,
        ("a", 2): 1.0 / 8 + 4.0,
        ("b", 1): 2.0 / 4,
        ("b", 2): 5.0,
    }
    found = by_pair(data, data.weights)
    assert found == pytest.approx(expected, rel=1e-5)
    alone = ll.read(frame, timestamp="day", half_life=10 * DAY)
    assert by_pair(alone, alone.weights)["a", 1] == pytest.approx(0.5, rel=1e-5)


def test_times_are_kept_of_the_first_row_of_a_pair():
    data = ll.read(table(day=SECONDS), timestamp="day")
    expected = {("a", 1): 20, ("a", 2): 0, ("b", 1): 10, ("b", 2): 30}
    assert by_pair(data, data.times / DAY) == expected
    assert data.weights is None


def test_old_pairs_stay_in_the_history():
    data = ll.read(table(day=SECONDS), timestamp="day", half_life="1s")
    assert data.nnz == 4
    assert by_pair(data, data.weights)["b", 1] == np.float32(LEAST_DECAY)


@pytest.mark.parametrize(
    "filters", [{"min_user": 2}, {"core": 2}, {"rating": "plays", "min_rating": 2}]
)
def test_filters_keep_weights_and_times_beside_their_pairs(filters):
    generator = np.random.default_rng(0)
    users, items = (generator.integers(n, size=200) for n in (40, 30))
    frame = pa.table({"user": users, "item": items, "plays": users + items / 100 + 1, "t": items})
    frame = pa.table({name: frame[name].to_numpy()[::-1] for name in frame.column_names})
    distinct = np.unique(users * 30 + items, return_index=True)[1]
    frame = frame.take(pa.array(199 - distinct))
    data = ll.read(frame, weight="plays", timestamp="t", **filters)
    assert 0 < data.nnz < len(distinct)
    rows = np.repeat(data.user_ids, np.diff(data.indptr))
    np.testing.assert_allclose(
        data.weights, rows + data.item_ids[data.indices] / 100 + 1, rtol=1e-6
    )
    np.testing.assert_array_equal(data.times, data.item_ids[data.indices])


def weighted_market():
    data = ll.marketplace(100, 50, 2000).interactions
    weights = np.random.default_rng(0).lognormal(size=data.nnz).astype(np.float32)
    return Interactions(
        data.indptr, data.indices, data.user_ids, data.item_ids, data.order, weights=weights
    )


def test_a_split_keeps_weights_and_targets_stay_binary(tmp_path):
    data = weighted_market()
    weights = by_pair(data, data.weights)
    split = ll.split_users(data, validation=10, test=10)
    train = by_pair(split.train, split.train.weights)
    assert all(weights[pair] == weight for pair, weight in train.items())
    assert set(split.test.targets.data.tolist()) == {1.0}
    for part in (split.validation, split.test):
        for matrix in (part.history, part.weighted_targets):
            found = matrix.tocoo()
            pairs = zip(
                part.user_ids[found.row].tolist(),
                split.train.item_ids[found.col].tolist(),
                strict=True,
            )
            assert [weights[pair] for pair in pairs] == found.data.tolist()
    split.save(tmp_path / "split")
    loaded = ll.Split.load(tmp_path / "split")
    assert loaded.everybody().fingerprint() == split.everybody().fingerprint()
    np.testing.assert_array_equal(loaded.train.weights, split.train.weights)


def test_a_bad_weight_of_a_saved_split_is_refused(tmp_path):
    ll.split_users(weighted_market(), validation=10, test=10).save(tmp_path / "split")
    with (tmp_path / "split" / "train.csv").open("a") as file:
        file.write("0,0,-1\n")
    with pytest.raises(DataError, match=r"train.csv, row \d+: a weight must be finite and above 0"):
        ll.Split.load(tmp_path / "split")


def test_folds_of_weighted_users_keep_their_weights():
    from limelight.data.held_out import refolded

    part = ll.split_users(weighted_market(), validation=10, test=10).test
    whole = part.everything().toarray()
    for fold in refolded(part, folds=3)[1:]:
        assert set(fold.targets.data.tolist()) <= {1.0}
        shown = fold.history.toarray()
        np.testing.assert_array_equal(shown + whole * fold.targets.toarray(), whole)
    taken = part.take(np.array([3, 1]))
    np.testing.assert_array_equal(taken.everything().toarray(), whole[[3, 1]])


@pytest.mark.parametrize("bad", ["", "d", "-1d", 0, "0h", "3 months", "nan", True, None, "1e999d"])
def test_durations_that_are_none(bad):
    with pytest.raises(ConfigError, match="half_life must be a positive duration: "):
        duration(bad)


def test_durations_and_moments():
    assert [duration(text) for text in ("1.5 h", "2w", "10min", "7s", "3e2")] == [
        5400,
        14 * DAY,
        600,
        7,
        300,
    ]
    expected = moment("2021-03-04")
    for same in (dt.date(2021, 3, 4), dt.datetime(2021, 3, 4), "2021-03-04T01:00+01:00", expected):
        assert moment(same) == expected
    for bad in ("yesterday", True, None, np.nan, [1]):
        with pytest.raises(ConfigError, match="at must be a time"):
            moment(bad)


def test_half_life_needs_times():
    with pytest.raises(ConfigError, match="half_life needs a column of times: half_life='9d'"):
        ll.read(table(), half_life="9d")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_beyond_32_bits():
    rule = r"above 0, in 32 bits \(1.2e-38 to 3.4e\+38\), got"
    for value in (1e-300, 1e300):
        with pytest.raises(DataError, match=rule):
            ll.read(table(plays=[value, 1.0, 1.0, 1.0, 1.0]), weight="plays")
        with pytest.raises(DataError, match=rule):
            ll.Interactions.from_matrix(csr_matrix([[value, 1.0]]), weight="values")
    with pytest.raises(DataError, match=rule):  # both are of the same pair
        ll.read(table(plays=[3e38, 1.0, 1.0, 3e38, 1.0]), weight="plays")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (2e9, "the newest time is 2033-05-18 03:33:20, and nearly all others are up to 2023-1"),
        (1.7e12, "the newest time is 2023-11-14 22:13:20, and nearly all others are up to 1970"),
    ],
)
def test_one_wrong_time_is_said(wrong, message):
    draw = np.random.default_rng(0)
    times = 1.7e9 - draw.integers(0, 90 * DAY, 2000)
    columns = {"user": draw.integers(50, size=2000), "item": draw.integers(30, size=2000)}
    with warnings.catch_warnings(action="error"):
        ll.read(pa.table({**columns, "time": times}), timestamp="time", half_life="30d")
    times[5] = wrong
    with pytest.warns(LimelightWarning, match=message):
        ll.read(pa.table({**columns, "time": times}), timestamp="time", half_life="30d")


def test_a_half_life_that_leaves_nothing_is_said():
    columns = {"user": np.arange(200) % 20, "item": np.arange(200) % 11, "time": np.arange(200)}
    data = ll.read(pa.table(columns), timestamp="time")
    with pytest.warns(LimelightWarning, match="most rows are more than 40 half-lives older"):
        ll.read(pa.table(columns), timestamp="time", half_life=1)
    with pytest.warns(LimelightWarning, match="newest time is 1970-01-01 00:02:30, and most rows"):
        ll.split_time(data, at=150, validation=0, half_life=1)
