"""Batches hold what the sparse rows hold, in few shapes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limelight.models.neural.train import batch_of, padded_length, shuffled_batches
from limelight.solve.problem import sparse_rows
from limelight.testing.planted import random_interactions


def dense(batch, n_items):
    rows = np.zeros((len(batch.lengths) + 1, n_items))
    np.add.at(rows, (batch.users, batch.items), 1)
    return rows[:-1]


def test_equal_to_the_dense_rows():
    R = random_interactions(30, 20, seed=1)
    rows = sparse_rows(R.indptr, R.indices, 20)
    chosen = np.array([4, 0, 29, 4])
    batch = batch_of(rows, chosen, size=6)
    np.testing.assert_array_equal(dense(batch, 20)[:4], R[chosen].toarray())
    np.testing.assert_array_equal(batch.lengths[:4], R[chosen].getnnz(axis=1))
    assert not batch.lengths[4:].any()


def test_an_epoch_visits_every_user_with_a_history_once():
    R = random_interactions(50, 20, seed=1).tolil()
    R[7, :] = 0
    R = R.tocsr()
    rows = sparse_rows(R.indptr, R.indices, 20)
    batches = list(shuffled_batches(rows, 8, (0, 1)))
    assert len({(batch.users.shape, batch.lengths.shape) for batch in batches}) == 1
    found = np.concatenate([dense(batch, 20) for batch in batches])
    found = found[found.any(axis=1)]
    wanted = R.toarray()[R.getnnz(axis=1) > 0]
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(wanted, axis=0))
    assert sorted(map(tuple, found)) == sorted(map(tuple, wanted))


def test_every_epoch_has_an_order_of_its_own():
    R = random_interactions(50, 20, seed=1)
    rows = sparse_rows(R.indptr, R.indices, 20)
    one, again, two = (
        next(iter(shuffled_batches(rows, 16, seed))).items for seed in ((0, 1), (0, 1), (0, 2))
    )
    np.testing.assert_array_equal(one, again)
    assert one.shape != two.shape or (one != two).any()


@given(st.integers(0, 10**9))
def test_few_sizes_and_never_too_small(n):
    length = padded_length(n)
    assert n <= length <= max(256, 2 * n)
    assert length.bit_count() == 1
