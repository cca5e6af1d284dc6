"""A split by time against the same written as sets."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

import limelight as ll
from limelight._base.errors import ConfigError, DataError


def drawn(seed, n=200):
    generator = np.random.default_rng(seed)
    columns = {"user": generator.integers(12, size=n), "item": generator.integers(25, size=n)}
    return pa.table({**columns, "time": generator.integers(60, size=n)})


def first_times(frame):
    found = {}
    for row in frame.to_pylist():
        pair = row["user"], row["item"]
        found[pair] = min(row["time"], found.get(pair, 1000))
    return found


def pairs_of(matrix, users, items):
    found = matrix.tocoo()
    return set(zip(users[found.row].tolist(), items[found.col].tolist(), strict=True))


@examples(40)
@given(st.integers(0, 2**16), st.integers(2, 40), st.sampled_from([0.0, 0.05, 0.2]))
def test_equals_sets(seed, at, validation):
    frame = drawn(seed)
    times = first_times(frame)
    ordered = sorted(times.values())
    before = sum(time < at for time in ordered)
    held_out = round(len(ordered) * validation)
    cut = ordered[max(0, before - held_out)] if held_out else at
    data = ll.read(frame, timestamp="time")
    if not ordered[0] < cut:
        with pytest.raises(ConfigError, match="no pair is left before validation and test"):
            ll.split_time(data, at=at, validation=validation)
        return
    split = ll.split_time(data, at=at, validation=validation)
    items = split.train.item_ids
    train = {pair for pair, time in times.items() if time < cut}
    assert pairs_of(split.train.matrix, split.train.user_ids, items) == train
    known, left_out = {item for _, item in train}, 0
    for part, first, last in ((split.validation, cut, at), (split.test, at, 1000)):
        history = {p for p, time in times.items() if time < first and p[1] in known}
        targets = {p for p, time in times.items() if first <= time < last and p[1] in known}
        users = {user for user, _ in targets}
        with_history = users & {user for user, _ in history}
        left_out += len(users) - len(with_history)
        assert set(part.user_ids.tolist()) == with_history
        for matrix, expected in ((part.history, history), (part.targets, targets)):
            found = pairs_of(matrix, part.user_ids, items)
            assert found == {pair for pair in expected if pair[0] in with_history}
    assert split.users_without_history == left_out
    assert split.dropped_items == 25 - len(known) - (25 - data.n_items)
    assert split.dropped_interactions == sum(item not in known for _, item in times)


def test_rows_stay_in_the_order_of_time():
    data = ll.read(drawn(1), timestamp="time")
    train = ll.split_time(data, test=0.3).train
    for row in range(train.n_users):
        own = slice(train.indptr[row], train.indptr[row + 1])
        assert (np.diff(train.times[own][train.order[own]]) >= 0).all()


def test_shares_are_those_of_the_latest_pairs():
    frame = drawn(2)
    frame = frame.set_column(2, "time", pa.array(np.arange(len(frame))))
    data = ll.read(frame, timestamp="time")
    split = ll.split_time(data, validation=0.2, test=0.1)
    assert abs(split.train.nnz - 0.7 * data.nnz) <= 1
    assert split.validation.history.nnz <= split.train.nnz
    assert split.test.n_users <= data.n_users
    assert ll.split_time(data, validation=0, test=0.1).validation.n_users == 0


def summed(frame, until, weigh):
    """Add up what the rows of each pair weigh that came before a time."""
    found = {}
    for row in frame.to_pylist():
        if row["time"] < until:
            pair = row["user"], row["item"]
            found[pair] = found.get(pair, 0) + weigh(row)
    return found


def weights_of(matrix, users, items):
    found = matrix.tocoo()
    pairs = zip(users[found.row].tolist(), items[found.col].tolist(), strict=True)
    return dict(zip(pairs, found.data.tolist(), strict=True))


def test_weights_fall_with_the_age_at_each_cut():
    frame = drawn(3)
    split = ll.split_time(ll.read(frame, timestamp="time"), at=40, validation=0, half_life=10)
    expected = summed(frame, 40, lambda row: 2 ** ((row["time"] - 40) / 10))
    found = weights_of(split.train.matrix, split.train.user_ids, split.train.item_ids)
    assert found == pytest.approx(expected)
    assert split.train.times.max() < 40
    model = ll.IALS(factors=4, epochs=2).fit(split.train)
    assert 0 <= ll.evaluate(model, split.test, k=5)["ndcg@5"] <= 1


@examples(20)
@given(st.integers(0, 2**16), st.integers(10, 50), st.sampled_from([None, 2]))
def test_rows_of_the_time_to_come_weigh_nothing(seed, at, least):
    frame = drawn(seed)
    frame = frame.append_column("plays", pa.array(np.random.default_rng(seed).integers(1, 99, 200)))
    data = ll.read(frame, timestamp="time", weight="plays", min_item=least)
    split = ll.split_time(data, at=at, validation=0)
    expected = summed(frame, at, lambda row: row["plays"])
    items = split.train.item_ids
    for matrix, users in (
        (split.train.matrix, split.train.user_ids),
        (split.test.history, split.test.user_ids),
    ):
        found = weights_of(matrix, users, items)
        assert found == {pair: expected[pair] for pair in found}
    assert split.train.repeats is None


def test_weights_fall_once():
    aged = ll.read(drawn(3), timestamp="time", half_life=10)
    assert ll.split_time(aged, at=40).train.is_aged
    with pytest.raises(ConfigError, match="have fallen with age when they were read") as error:
        ll.split_time(aged, at=40, half_life=10)
    assert "split_time alone" in error.value.hint


def test_a_time_before_or_after_all_pairs():
    data = ll.read(drawn(1), timestamp="time")
    with pytest.raises(DataError, match=r"empty: it begins at 2030-01-01 00:00:00, .* 1970-01-01"):
        ll.split_time(data, at="2030-01-01")
    with pytest.raises(ConfigError, match="which begin at 1960-01-01 00:00:00"):
        ll.split_time(data, at="1960-01-01", validation=0)


def test_times_and_durations_of_numpy_and_the_standard_library():
    data = ll.read(drawn(1), timestamp="time")
    expected = ll.split_time(data, at=40, half_life=10).train
    for at, half_life in (
        (np.datetime64("1970-01-01T00:00:40"), np.timedelta64(10, "s")),
        (dt.datetime(1970, 1, 1, 0, 0, 40), dt.timedelta(seconds=10)),
    ):
        found = ll.split_time(data, at=at, half_life=half_life).train
        assert found.fingerprint() == expected.fingerprint()
    for wrong in (np.datetime64("NaT"), "someday"):
        with pytest.raises(ConfigError, match="at must be a time"):
            ll.split_time(data, at=wrong)
    with pytest.raises(ConfigError, match="half_life must be a positive duration"):
        ll.split_time(data, at=40, half_life=np.timedelta64("NaT"))


def test_a_split_by_time_is_saved_but_not_put_together(tmp_path):
    split = ll.split_time(ll.read(drawn(4), timestamp="time"), at=40)
    split.save(tmp_path / "split")
    loaded = ll.Split.load(tmp_path / "split")
    assert loaded.has_shared_users
    np.testing.assert_array_equal(loaded.test.history.toarray(), split.test.history.toarray())
    np.testing.assert_array_equal(loaded.test.targets.toarray(), split.test.targets.toarray())
    for refuses in (loaded.everybody, lambda: ll.fit_to(loaded, gini=0.6)):
        with pytest.raises(DataError, match="some users are in several parts of this split"):
            refuses()


def test_it_says_who_is_left_out():
    table = pa.table({"user": [1, 1, 2, 3], "item": [5, 6, 5, 6], "day": [1, 1, 1, 2]})
    split = ll.split_time(ll.read(table, timestamp="day"), at=2, validation=0)
    assert "left out: 1 user without a history" in repr(split)
    assert split.test.n_users == 0


def test_data_without_times_are_refused():
    data = ll.marketplace(100, 50, 1000).interactions
    for given_data in (data, data.matrix):
        with pytest.raises(DataError, match="needs interactions with times"):
            ll.split_time(given_data)


@pytest.mark.parametrize("share", [-0.1, 1, 5, True])
def test_shares_that_are_none(share):
    data = ll.read(drawn(1), timestamp="time")
    with pytest.raises(ConfigError, match="must be a share of the interactions"):
        ll.split_time(data, test=share)
    with pytest.raises(ConfigError, match="must be a share of the interactions"):
        ll.split_time(data, validation=share)
