import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support.examples import examples
from tests.support.published_script import published

from limelight import ConfigError, DataError
from limelight.data import HeldOut, Interactions, marketplace, read, split_users
from limelight.data.rows import walk


@pytest.fixture(scope="module")
def data():
    return marketplace(n_users=300, n_items=120, n_interactions=4000).interactions


def written(matrix, order, ids, first):
    """The pairs of a part as its file lists them."""
    by_id = np.argsort(ids)
    starts, items = walk(matrix.indptr.astype(np.int64), matrix.indices, order, by_id)
    users = np.repeat(first + by_id, np.diff(starts))
    return list(zip(users.tolist(), items.tolist(), strict=True))


@examples(30)
@given(st.integers(0, 2**16))
def test_equals_the_published_script(seed):
    rows = np.random.default_rng(seed).integers(0, (12, 40), size=(150, 2)).tolist()
    rows = list(dict.fromkeys(map(tuple, rows)))
    users, items = zip(*rows, strict=True)
    split = split_users(
        read(pa.table({"user": users, "item": items})), validation=3, test=4, seed=seed
    )
    tables, item_ids = published(rows, 3, 4, seed)
    train, n_train = split.train, split.train.n_users
    assert train.item_ids.tolist() == item_ids
    assert written(train.matrix, train.order, train.user_ids, 0) == tables[0]
    for part, first, table in ((split.validation, n_train, 1), (split.test, n_train + 3, 3)):
        ids = part.user_ids
        assert written(part.history, part.history_order, ids, first) == tables[table]
        assert written(part.targets, part.targets_order, ids, first) == tables[table + 1]


def test_parts_share_no_user_and_lose_none(data):
    split = split_users(data, validation=30, test=40)
    ids = np.concatenate([split.train.user_ids, split.validation.user_ids, split.test.user_ids])
    assert sorted(ids) == data.user_ids.tolist()
    kept = split.train.nnz + split.dropped_interactions
    kept += sum(part.history.nnz + part.targets.nnz for part in (split.validation, split.test))
    assert kept == data.nnz
    assert split.dropped_items == data.n_items - split.train.n_items


def test_history_and_targets_are_the_users_own(data):
    split = split_users(data, validation=30, test=40)
    for part in (split.validation, split.test):
        assert part.history.multiply(part.targets).nnz == 0
        own = data.matrix[part.user_ids][:, split.train.item_ids]
        assert (own != part.history + part.targets).nnz == 0
        n = np.diff(own.indptr)
        expected = np.where(n >= 5, (0.2 * n).astype(int), 0)
        assert np.diff(part.targets.indptr).tolist() == expected.tolist()


def test_items_that_no_training_user_has_are_dropped_and_counted():
    X = np.zeros((40, 12))
    X[:, :10] = 1
    last = np.random.RandomState(98765).permutation(40)[-1]
    X[last, 10:] = 1
    split = split_users(sparse.csr_matrix(X), validation=1, test=1)
    assert (split.dropped_interactions, split.dropped_items, split.train.n_items) == (2, 2, 10)
    assert split.test.user_ids.tolist() == [last]
    assert split.test.targets.nnz == 2  # of the ten that remain, not of twelve


def test_order_of_rows_inside_a_user_matters_and_that_of_users_does_not(data):
    order = np.concatenate([np.arange(n - 1, -1, -1) for n in np.diff(data.indptr)])
    turned = Interactions(
        data.indptr, data.indices, data.user_ids, data.item_ids, order.astype(np.int32)
    )
    split, other = (split_users(X, validation=30, test=30) for X in (data, turned))
    assert split.test.user_ids.tolist() == other.test.user_ids.tolist()
    assert split.train.item_ids.tolist() != other.train.item_ids.tolist()

    backwards = np.arange(data.n_users)[::-1]
    starts, items = walk(data.indptr, data.indices, data.order, backwards)
    users = np.repeat(backwards, np.diff(starts))
    again = read(pa.table({"user": users, "item": items}))
    assert split_users(again, validation=30, test=30).train.fingerprint() == (
        split.train.fingerprint()
    )


def test_users_are_sorted_by_id_before_the_shuffle(data):
    shuffled = split_users(data, validation=0, test=0).train
    first, second = (split_users(X, validation=20, test=20) for X in (data, shuffled))
    assert first.test.user_ids.tolist() == second.test.user_ids.tolist()
    assert first.train.fingerprint() == second.train.fingerprint()


def test_shares_and_counts(data):
    split = split_users(data, validation=0.1, test=0.29)
    assert (split.validation.n_users, split.test.n_users) == (30, 87)
    split = split_users(data, validation=0, test=np.int64(5))
    assert (split.validation.n_users, split.validation.history.shape) == (
        0,
        (0, split.train.n_items),
    )


def test_string_ids_and_other_settings(data):
    names = np.array([f"user-{i:03}" for i in range(300)], dtype=object)
    named = Interactions(data.indptr, data.indices, names, data.item_ids, data.order)
    options = {"validation": 30, "test": 30, "seed": 1, "target_share": 0.5, "min_items": 1}
    split, plain = split_users(named, **options), split_users(data, **options)
    assert split.test.user_ids.tolist() == names[plain.test.user_ids].tolist()
    assert split.test.targets.nnz > split_users(data, validation=30, test=30).test.targets.nnz
    assert "HeldOut(30 users" in repr(split)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation": 200, "test": 100}, r"cannot hold out 200 \+ 100 of 300 users"),
        ({"validation": 0.5, "test": 0.5}, r"cannot hold out 150 \+ 150 of 300 users"),
        ({"validation": -1, "test": 5}, "validation must be a count from 0 up .*: -1"),
        ({"validation": 5, "test": 1.0}, r"test must be a count .*: 1\.0"),
        ({"validation": True, "test": 5}, "validation must be a count .*: True"),
        ({"validation": 0.001, "test": 5}, r"validation=0\.001 of 300 users is less than one"),
        ({"validation": 5, "test": 5, "seed": -3}, r"random_state must be a whole number .*: -3"),
        ({"validation": 5, "test": 5, "target_share": 1.0}, r"target_share must lie .*: 1\.0"),
        ({"validation": 5, "test": 5, "target_share": "x"}, "target_share must lie .*: 'x'"),
        (
            {"validation": 5, "test": 5, "min_items": 0},
            "min_items must be a whole number of at least 1: 0",
        ),
    ],
)
def test_wrong_settings_are_refused(data, options, message):
    with pytest.raises(ConfigError, match=f"(?s){message}.*hint: "):
        split_users(data, **options)


def test_no_users_are_refused():
    with pytest.raises(DataError, match="there are no users to split: 0 users"):
        split_users(sparse.csr_matrix((0, 3)), validation=1, test=1)


def test_training_users_without_interactions_are_refused():
    with pytest.raises(DataError, match="none of the 3 training users has an interaction"):
        split_users(sparse.csr_matrix((5, 3)), validation=1, test=1)


def test_held_out_parts_must_fit_together():
    X = sparse.csr_matrix((2, 3))
    with pytest.raises(DataError, match=r"history \(2, 3\), targets \(2, 3\) and 1 user id do not"):
        HeldOut(X, X, np.arange(1))
