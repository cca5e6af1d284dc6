from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from limelight import ConfigError, DataError
from limelight.data import Interactions, as_interactions
from limelight.data.interactions import csr_rows

DENSE = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
WEIGHTED = np.array([[2.0, 0.0, 0.5], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("family", ["matrix", "array"])
def test_every_sparse_format_is_accepted(kind, family):
    X = getattr(sparse, f"{kind}_{family}")(DENSE)
    data = Interactions.from_matrix(X)
    assert data.matrix.toarray().tolist() == (DENSE > 0).tolist()
    assert (data.shape, data.nnz, data.duplicates, data.order) == ((3, 3), 3, 0, None)
    assert data.user_ids.tolist() == data.item_ids.tolist() == [0, 1, 2]
    assert (data.indptr.dtype, data.indices.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_values_are_weights_only_where_that_is_said(kind):
    X = getattr(sparse, f"{kind}_matrix")(WEIGHTED)
    with pytest.raises(
        DataError, match=r'got: (2.0|0.5)\n\nhint: keep weights with weight="values"'
    ):
        Interactions.from_matrix(X)
    data = Interactions.from_matrix(X, weight="values")
    np.testing.assert_array_equal(data.matrix.toarray(), WEIGHTED)
    assert data.weights.dtype == np.float32
    assert repr(data).endswith("3 interactions, weighted)")
    with pytest.raises(ConfigError, match="no columns to take weights from: weight='rating'"):
        Interactions.from_matrix(X, weight="rating")
    with pytest.raises(ConfigError, match="weight is for a matrix, interactions have their own"):
        as_interactions(data, weight="values")


@pytest.mark.parametrize("bad", [0.0, -2.0, np.nan, np.inf])
def test_weights_must_be_finite_and_positive(bad):
    arrays = np.array([0, 0, 2]), np.array([0, 1], dtype=np.int32), np.arange(2), np.arange(2)
    weights = np.array([1, bad], np.float32)
    with pytest.raises(DataError, match=f"finite number above 0, .* got {bad} in row 1"):
        Interactions(*arrays, weights=weights)
    with pytest.raises(DataError, match="weights must be float32: float64"):
        Interactions(*arrays, weights=np.ones(2))
    with pytest.raises(DataError, match=r"weights of shape \(3,\) for 2 interactions"):
        Interactions(*arrays, weights=np.ones(3, np.float32))


def test_a_fingerprint_knows_of_weights_but_not_of_times():
    plain = Interactions.from_matrix(sparse.csr_matrix(DENSE))
    weighted = Interactions.from_matrix(sparse.csr_matrix(WEIGHTED), weight="values")
    assert plain.fingerprint() != weighted.fingerprint()
    assert replace(weighted, weights=None).fingerprint() == plain.fingerprint()
    assert replace(plain, times=np.zeros(3)).fingerprint() == plain.fingerprint()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_every_real_type_counts_one(dtype):
    X = sparse.csr_matrix((DENSE > 0).astype(dtype))
    assert Interactions.from_matrix(X).matrix.data.tolist() == [1.0, 1.0, 1.0]


def test_what_its_owner_does_to_a_matrix_changes_nothing():
    X = sparse.csr_matrix(DENSE)
    data = Interactions.from_matrix(X)
    before = data.fingerprint()
    for matrix in (X, data.matrix):
        matrix.indices[:] = 0
        matrix.indptr[:] = 0
    assert data.fingerprint() == before
    assert data.matrix is data.matrix
    with pytest.raises(ValueError, match="read-only"):
        data.indices[0] = 1


def test_unsorted_repeated_and_zero_entries_are_put_in_order():
    X = sparse.csr_matrix((2, 4))
    X.indptr, X.indices = np.array([0, 4, 5]), np.array([3, 1, 3, 0, 2])
    X.data = np.array([1.0, 1.0, 1.0, 0.0, 1.0])
    data = Interactions.from_matrix(X)
    assert data.indices.tolist() == [1, 3, 2]
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.duplicates == 1
    X.data = np.array([1.0, 2.0, 4.0, 0.0, 5.0])
    weighted = Interactions.from_matrix(X, weight="values")
    assert weighted.indices.tolist() == [1, 3, 2]
    assert weighted.weights.tolist() == [2.0, 5.0, 5.0]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 1)), max_size=40))
def test_from_matrix_equals_sets(entries):
    rows, columns, values = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    X = sparse.coo_matrix((values, (rows, columns)), shape=(5, 4))
    stored = [(u, i) for u, i, value in entries if value]
    data = Interactions.from_matrix(X)
    found = zip(*data.matrix.nonzero(), strict=True)
    assert sorted((int(u), int(i)) for u, i in found) == sorted(set(stored))
    assert data.duplicates == len(stored) - len(set(stored))


def test_empty_matrix():
    data = Interactions.from_matrix(sparse.csr_matrix((0, 0)))
    assert (data.shape, data.nnz) == ((0, 0), 0)
    assert Interactions.from_matrix(sparse.coo_matrix((3, 2))).nnz == 0


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_matrix])
def test_bad_values_are_refused(value, kind):
    X = kind(([1.0, value], ([0, 1], [0, 1])), shape=(2, 2))
    with pytest.raises(DataError, match=f"finite values from 0 up, got: {value}"):
        Interactions.from_matrix(X)


@pytest.mark.parametrize("X", [DENSE, [[1, 0]], None, "ratings.csv"])
def test_what_is_not_sparse_is_refused(X):
    with pytest.raises(DataError, match=r"sparse matrix, got: \w+\n\nhint: convert a dense"):
        as_interactions(X)


def test_complex_matrix_is_refused():
    with pytest.raises(DataError, match="real numbers, got type: complex128"):
        Interactions.from_matrix(sparse.csr_matrix(DENSE.astype(complex)))


def test_vector_is_refused():
    with pytest.raises(DataError, match=r"got shape: \(3,\)"):
        Interactions.from_matrix(sparse.coo_array(np.array([1, 0, 1])))


@pytest.mark.parametrize("index", [-1, 3])
def test_index_outside_the_matrix_is_refused(index):
    X = sparse.csr_matrix(DENSE)
    X.indices[0] = index
    with pytest.raises(DataError, match=r"index outside 0\.\.2"):
        Interactions.from_matrix(X)


def test_broken_row_pointers_are_refused():
    X = sparse.csr_matrix(DENSE)
    X.indptr = np.array([0, 3, 2, 3], dtype=np.int32)
    with pytest.raises(DataError, match="row pointers must start at 0 and never fall"):
        Interactions.from_matrix(X)


def test_arrays_that_do_not_belong_together_are_refused():
    indptr, indices = np.array([0, 1]), np.array([0], dtype=np.int32)
    ids = np.arange(2)
    with pytest.raises(DataError, match="1 rows and 1 entries, but there are 2 user ids"):
        Interactions(indptr, indices, ids, ids)
    with pytest.raises(DataError, match="must be int64 and int32: int64, int64"):
        Interactions(indptr, indices.astype(np.int64), ids[:1], ids)


def test_as_interactions_passes_through():
    data = Interactions.from_matrix(sparse.csr_matrix(DENSE))
    assert as_interactions(data) is data


def test_matrix_survives_what_users_do_with_it():
    matrix = csr_rows(np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32), (2, 3))
    assert "(0, 2)" in str(matrix)
    assert matrix.T.tocsr()[2].nnz == matrix.tocoo().getcol(2).nnz == 1
    assert matrix.multiply(matrix).sum() == (matrix @ matrix.T).trace() == 3


def test_fingerprint_tells_data_apart():
    X = sparse.csr_matrix(DENSE)
    data = Interactions.from_matrix(X)
    names = [np.array(names, dtype=object) for names in (["ab", "c", "d"], ["a", "bc", "d"])]
    prints = [data.fingerprint(), Interactions.from_matrix(X.T.tocsr()).fingerprint()]
    prints += [
        Interactions(data.indptr, data.indices, ids, data.item_ids).fingerprint() for ids in names
    ]
    assert len(set(prints)) == 4
    assert Interactions.from_matrix(X.tocoo()).fingerprint() == data.fingerprint()


def test_errors_share_a_root():
    assert DataError.__base__ is ConfigError.__base__
