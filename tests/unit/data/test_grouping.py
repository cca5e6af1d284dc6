import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limelight.data.rows import group, row_numbers, walk

N_USERS, N_ITEMS = 6, 5
pair_lists = st.lists(st.tuples(st.integers(0, N_USERS - 1), st.integers(0, N_ITEMS - 1)))


def grouped(pairs):
    users, items = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    return group(users, items, N_USERS, N_ITEMS)


def naive_rows(pairs):
    """Each user's items in the order of their first appearance."""
    return [list(dict.fromkeys(i for u, i in pairs if u == user)) for user in range(N_USERS)]


@given(pair_lists)
def test_rows_are_sorted_and_unique(pairs):
    rows = grouped(pairs)
    stretches = np.split(rows.indices, rows.indptr[1:-1])
    assert [list(row) for row in stretches] == [sorted(row) for row in naive_rows(pairs)]
    assert rows.duplicates == len(pairs) - len(set(pairs))
    assert (rows.indptr.dtype, rows.indices.dtype, rows.order.dtype) == ("i8", "i4", "i4")


@given(pair_lists)
def test_order_gives_back_the_file(pairs):
    rows = grouped(pairs)
    in_file = walk(*rows[:3], np.arange(N_USERS))[1]
    assert [list(row) for row in np.split(in_file, rows.indptr[1:-1])] == naive_rows(pairs)


@given(pair_lists, st.lists(st.integers(0, N_USERS - 1)))
def test_walk_visits_the_rows_asked_for(pairs, chosen):
    rows = grouped(pairs)
    starts, items = walk(*rows[:3], np.array(chosen, dtype=np.int64))
    expected = [naive_rows(pairs)[user] for user in chosen]
    assert items.tolist() == [item for row in expected for item in row]
    assert np.diff(starts).tolist() == [len(row) for row in expected]


def test_walk_without_order_is_sorted():
    rows = grouped([(0, 3), (0, 1)])
    assert walk(rows.indptr, rows.indices, None, np.array([0]))[1].tolist() == [1, 3]


def test_row_numbers_skip_empty_rows():
    assert row_numbers(np.array([0, 0, 2, 2, 3])).tolist() == [1, 1, 3]
