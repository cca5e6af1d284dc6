"""nDCG and recall against loops written for reading, and against numbers worked out by hand."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from limelight._base.errors import ConfigError, DataError
from limelight.metrics.accuracy import match, ndcg, recall


@st.composite
def lists_and_targets(draw):
    n_users, n_items = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    k = draw(st.integers(1, n_items))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = np.stack([generator.permutation(n_items)[:k] for _ in range(n_users)])
    ids[np.arange(k) >= generator.integers(0, k + 1, size=(n_users, 1))] = -1
    dense = generator.random((n_users, n_items)) < draw(st.floats(0, 1))
    return ids, dense, k


def naive_ndcg(ranked, relevant, k):
    gain = sum(1 / log2(r + 2) for r, item in enumerate(ranked[:k]) if item in relevant)
    return gain / sum(1 / log2(r + 2) for r in range(min(k, len(relevant))))


def naive_recall(ranked, relevant, k):
    return sum(item in relevant for item in ranked[:k]) / min(k, len(relevant))


@given(lists_and_targets(), st.sampled_from([sparse.csr_matrix, sparse.csr_array]))
def test_metrics_equal_a_loop_over_users(problem, container):
    ids, dense, k = problem
    targets = container(dense.astype(np.float32))
    for metric, naive in ((ndcg, naive_ndcg), (recall, naive_recall)):
        values = metric(ids, targets, per_user=True)
        for ranked, row, value in zip(ids, dense, values, strict=True):
            relevant = set(np.flatnonzero(row))
            if relevant:
                assert value == pytest.approx(naive(list(ranked), relevant, k), abs=1e-12)
            else:
                assert np.isnan(value)
        if dense.any():
            assert metric(ids, targets) == pytest.approx(np.nanmean(values))


def test_ndcg_by_hand():
    targets = sparse.csr_matrix([[0, 1, 1, 0]])
    assert ndcg([[2, 0, 1]], targets) == pytest.approx(1.5 / (1 + 1 / log2(3)))
    assert ndcg([[2, 0, 1]], targets, k=1) == 1


def test_recall_divides_by_what_the_list_can_hold():
    targets = sparse.csr_matrix(np.ones((1, 5)))
    assert recall([[4, 2]], targets) == 1


def test_padding_is_never_a_hit():
    targets = sparse.csr_matrix([[1, 1], [1, 1]])
    assert match([[-1, -1], [1, -1]], targets).found.tolist() == [[False, False], [True, False]]


def test_stored_zeros_duplicates_and_disorder_do_not_matter():
    untidy = sparse.csr_matrix(
        (np.array([1.0, 0.0, 2.0, 1.0]), np.array([3, 1, 0, 3]), np.array([0, 4])), shape=(1, 4)
    )
    assert recall([[1, 3]], untidy, per_user=True).tolist() == [0.5]
    assert untidy.nnz == 4, "the input must not be changed"


def test_row_numbers_beyond_32_bits():
    n_items = 2**31 - 1
    targets = sparse.csr_matrix(([1.0], ([2], [n_items - 1])), shape=(3, n_items))
    assert match([[n_items - 1], [n_items - 1], [n_items - 1]], targets).found[:, 0].tolist() == [
        False,
        False,
        True,
    ]


def test_users_without_targets_do_not_count():
    targets = sparse.csr_matrix([[1, 0], [0, 0]])
    assert ndcg([[0], [1]], targets) == 1


def test_no_user_has_a_target():
    with pytest.raises(DataError, match="no user has a target: 2 users"):
        recall([[0], [1]], sparse.csr_matrix((2, 2)))


def test_rows_must_agree():
    with pytest.raises(DataError, match="lists for 1 users, but targets for 2"):
        match([[0]], sparse.csr_matrix((2, 2)))


@pytest.mark.parametrize("ids", [[0, 1], [[0.5]], [["a"]]])
def test_lists_must_be_a_table_of_integers(ids):
    with pytest.raises(DataError, match="lists must be a users x k array of integers"):
        match(ids, sparse.csr_matrix((1, 2)))


@pytest.mark.parametrize("wrong", [-2, 2])
def test_item_outside_the_catalogue(wrong):
    with pytest.raises(DataError, match=f"outside the catalogue of 2 items: {wrong}"):
        match([[wrong]], sparse.csr_matrix((1, 2)))


def test_item_listed_twice():
    with pytest.raises(DataError, match="item 1 is listed twice for the user in row 1"):
        match([[0, 1], [1, 1]], sparse.csr_matrix((2, 2)))


def test_k_beyond_the_lists():
    with pytest.raises(ConfigError, match="k is larger than the lists are long: 3 > 2"):
        ndcg([[0, 1]], sparse.csr_matrix([[1, 0]]), k=3)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2"])
def test_k_must_be_a_positive_whole_number(k):
    with pytest.raises(ConfigError, match="k must be a whole number of at least 1, got"):
        ndcg([[0, 1]], sparse.csr_matrix([[1, 0]]), k=k)
