import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

import limelight as ll
from limelight.recommend.fold_in import history_rows, match_items, take_rows
from limelight.recommend.index import ItemIndex
from limelight.solve.problem import sparse_rows
from limelight.testing.planted import random_interactions


@examples(30)
@given(st.lists(st.integers(0, 19), max_size=40))
def test_take_rows(chosen):
    R = random_interactions(20, 30, seed=1)
    taken = take_rows(sparse_rows(R.indptr, R.indices, 30), np.array(chosen, dtype=np.int64))
    expected = R[chosen] if chosen else R[:0]
    np.testing.assert_array_equal(taken.indptr, expected.indptr)
    np.testing.assert_array_equal(taken.indices, expected.indices)


def test_interactions_are_matched_by_item_id():
    import pyarrow as pa

    data = ll.read(pa.table({"user": [1, 1, 1, 2], "item": ["c", "a", "x", "x"]}))
    rows = history_rows(data, np.array(["c", "b", "a"], dtype=object))
    assert rows.indptr.tolist() == [0, 2, 2]
    assert rows.indices.tolist() == [0, 2]


def test_histories_of_other_ids_are_refused():
    import pyarrow as pa

    data = ll.read(pa.table({"user": [1], "item": ["07"]}))
    with pytest.raises(ll.DataError, match="is in the catalogue, such as '07'"):
        history_rows(data, np.array([7, 8]))


def test_integers_meet_strings():
    import pyarrow as pa

    data = ll.read(pa.table({"user": [1, 1], "item": ["8", "07"]}))
    assert history_rows(data, np.array([7, 8])).indices.tolist() == [1]


def test_invented_ids_are_numbers_of_columns():
    R = random_interactions(20, 3, seed=1)
    rows = history_rows(ll.Interactions.from_matrix(R), np.array([5, 7, 9]))
    np.testing.assert_array_equal(rows.indices, R.indices)


def test_matching_keeps_the_users():
    import pyarrow as pa

    data = ll.read(pa.table({"user": [5, 7], "item": [1, 2]}))
    matched = match_items(data, np.array([2, 3]))
    assert matched.user_ids.tolist() == [5, 7]
    assert matched.shape == (2, 2)


def test_k_must_be_positive():
    with pytest.raises(ll.ConfigError, match="k must be at least 1: 0"):
        ItemIndex(np.eye(3, dtype=np.float32), 1).search(np.eye(3, dtype=np.float32), 0)


def test_no_users_no_lists():
    model = ll.IALS(factors=4, epochs=2).fit(random_interactions(20, 30))
    assert model.recommend(users=[], k=3).ids.shape == (0, 3)
    assert model.recommend(random_interactions(20, 30)[:0], k=3).ids.shape == (0, 3)
