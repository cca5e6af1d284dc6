"""Pairs to rows, against lists and sets; the filters' own tests are in tests/data."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from limelight._native import kernels


def group(users, items, n_users, n_items, *, times=None, threads=2):
    indptr = np.empty(n_users + 1, dtype=np.int64)
    indices, order = np.empty(len(users), dtype=np.int32), np.empty(len(users), dtype=np.int32)
    rows = {"indptr": indptr, "indices": indices, "order": order}
    kept = kernels.group_pairs(users, items, times, n_items=n_items, **rows, threads=threads)
    return indptr, indices[:kept], order[:kept]


def naive_rows(users, items, n_users):
    """Each user's distinct items in the order of their first appearance."""
    rows = [{} for _ in range(n_users)]
    for user, item in zip(users.tolist(), items.tolist(), strict=True):
        rows[user].setdefault(item)
    return [list(row) for row in rows]


# More users than stretches, one user less, one more, and few who share all pairs.
@examples(60)
@given(
    st.sampled_from([1, 2, 5, 511, 512, 513, 1023, 1024, 3000]),
    st.sampled_from([1, 3, 50, 100_000]),
    st.integers(0, 3000),
    st.sampled_from([None, np.int32, np.int64, np.float64]),
    st.integers(0, 2**32 - 1),
)
def test_rows_are_those_of_lists_and_sets(n_users, n_items, n_pairs, time, seed):
    generator = np.random.default_rng(seed)
    users = (n_users * generator.random(n_pairs) ** 3).astype(np.int32)
    items = (n_items * generator.random(n_pairs) ** 2).astype(np.int32)
    times = None if time is None else (generator.integers(-9, 9, n_pairs) * 0.5).astype(time)
    indptr, indices, order = group(users, items, n_users, n_items, times=times)
    in_time = np.arange(n_pairs) if time is None else np.argsort(times, kind="stable")
    expected = naive_rows(users[in_time], items[in_time], n_users)
    assert np.diff(indptr).tolist() == [len(row) for row in expected]
    assert indptr[0] == 0
    rows, orders = (np.split(array, indptr[1:-1]) for array in (indices, order))
    assert [row.tolist() for row in rows] == [sorted(row) for row in expected]
    in_file = [row[places].tolist() for row, places in zip(rows, orders, strict=True)]
    assert in_file == expected


def test_threads_do_not_change_a_bit():
    generator = np.random.default_rng(0)
    users = generator.integers(0, 4000, 100_000, dtype=np.int32)
    items = generator.integers(0, 50, 100_000, dtype=np.int32)
    one, many = (group(users, items, 4000, 50, threads=n) for n in (1, 7))
    for left, right in zip(one, many, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("pair", [(-1, 0), (3, 0), (0, -1), (0, 2)])
def test_pairs_out_of_range_are_refused(pair):
    users, items = (np.array([number], dtype=np.int32) for number in pair)
    with pytest.raises(ValueError, match="out of range"):
        group(users, items, 3, 2)


def test_arrays_of_other_lengths_are_refused():
    pairs = np.zeros(2, dtype=np.int32)
    rows = {"indptr": np.empty(2, np.int64), "indices": pairs.copy(), "order": pairs.copy()}
    call = partial(kernels.group_pairs, pairs, pairs, None, n_items=1, threads=1)
    with pytest.raises(ValueError, match="one entry a pair"):
        call(**rows | {"indices": pairs[:1].copy()})
    with pytest.raises(ValueError, match="one entry a pair"):
        group(pairs, pairs, 1, 1, times=np.zeros(1))
    with pytest.raises(ValueError, match="indptr must not be empty"):
        call(**rows | {"indptr": np.empty(0, np.int64)})


INDPTR, INDICES = np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32)
ORDER, ALL_USERS = np.array([1, 0, 0], dtype=np.int32), np.ones(2, dtype=bool)
NUMBERS = np.array([0, -1, 1], dtype=np.int32)


def keep(order=ORDER, size=2, indices=INDICES):
    out = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    kept = {"keep_users": ALL_USERS, "item_numbers": NUMBERS}
    kernels.keep_pairs(INDPTR, indices, order, **kept, out_indices=out[0], out_order=out[1])
    return [array.tolist() for array in out]


def test_kept_pairs():
    assert keep() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 1}, "more pairs are kept than there is room for"),
        ({"size": 3}, "fewer pairs are kept than there is room for"),
        ({"order": np.array([1, 2, 0], dtype=np.int32)}, "order must hold places in its row"),
        ({"order": np.array([0, 0, 0], dtype=np.int32)}, "every place of its row once"),
        ({"order": ORDER[:2]}, "indices and order must be equally long"),
        ({"order": None}, "order goes in and out, or neither"),
        ({"indices": np.array([0, 3, 1], dtype=np.int32)}, "column out of range: 3"),
    ],
)
def test_rows_that_cannot_be_kept(wrong, message):
    with pytest.raises(ValueError, match=message):
        keep(**wrong)


def test_counts_need_room():
    room = {"by_user": np.zeros(1, dtype=np.int64), "by_item": np.zeros(3, dtype=np.int64)}
    count = partial(kernels.count_pairs, INDPTR, INDICES, keep_items=np.ones(3, dtype=bool), **room)
    with pytest.raises(ValueError, match="one count a user and one an item"):
        count(keep_users=ALL_USERS)
    with pytest.raises(ValueError, match="one entry more than there are users"):
        count(keep_users=ALL_USERS[:1])


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_sorted_as_numpy_sorts_them(threads):
    generator = np.random.default_rng(3)
    sizes = np.append(generator.integers(0, 40, 300), 5000)
    indptr = np.append(0, np.cumsum(sizes))
    # Few different values, so that many are equal and must stay as they stood.
    values = (generator.integers(-5, 20, indptr[-1]) / 7).astype(np.float32)
    found, order = values.copy(), np.empty(len(values), dtype=np.int32)
    kernels.sort_rows(indptr, found, order=order, threads=threads)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    twin = np.lexsort((-values, rows))
    np.testing.assert_array_equal(found, values[twin])
    np.testing.assert_array_equal(order, twin - indptr[rows])


@pytest.mark.parametrize(
    ("indptr", "places", "message"),
    [
        ([], 2, "indptr must not be empty"),
        ([0, 2], 1, "values and order must be equally long"),
        ([0, 1], 2, "indptr must rise from 0 to the number of values"),
        ([0, 3, 2], 2, "indptr must rise from 0 to the number of values"),
    ],
)
def test_rows_that_cannot_be_sorted_are_refused(indptr, places, message):
    order = np.empty(places, dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        kernels.sort_rows(
            np.array(indptr, dtype=np.int64), np.zeros(2, np.float32), order=order, threads=1
        )
