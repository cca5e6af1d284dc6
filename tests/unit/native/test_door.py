"""What fuzzing found at the door of the kernels: each is refused, or harmless, from now on."""

import numpy as np
import pytest

from limelight._native import kernels

INDPTR, INDICES = np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32)


def refused(message):
    return pytest.raises(ValueError, match=message)


def misaligned(array):
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


@pytest.mark.parametrize("threads", [0, -1])
def test_there_is_at_least_one_thread(threads):
    with refused("at least 1"):
        kernels.column_sums(np.ones((3, 16), np.float32), threads)


def test_numbers_stand_where_the_processor_can_load_them():
    with refused("aligned"):
        kernels.gramian(misaligned(np.ones((3, 16), np.float32)), 1)
    with refused("aligned"):
        kernels.Csr(misaligned(INDPTR), INDICES, 3)


@pytest.mark.parametrize("n_columns", [-1, 2**31 + 1, 2**63 - 1])
def test_columns_are_numbers_of_32_bits(n_columns):
    with refused("between 0 and 2\\^31"):
        kernels.Csr(INDPTR, INDICES, n_columns)


def count(keep_users, keep_items, by_user, by_item):
    kernels.count_pairs(INDPTR, INDICES, keep_users, keep_items, by_user, by_item)


def test_flags_are_true_or_false():
    flags = np.array([1, 2, 0], dtype=np.uint8).view(bool)
    with refused("True or False"):
        count(np.ones(2, bool), flags, np.zeros(2, np.int64), np.zeros(3, np.int64))


def test_counts_do_not_depend_on_what_was_there():
    by_user, by_item = np.full(2, 2**63 - 1), np.full(3, 2**63 - 1)
    count(np.ones(2, bool), np.ones(3, bool), by_user, by_item)
    assert (by_user.tolist(), by_item.tolist()) == ([2, 1], [1, 1, 1])


def test_results_do_not_overwrite_what_they_are_made_of():
    shared = np.zeros(3, dtype=np.int64)
    with refused("share its memory"):
        count(np.ones(2, bool), np.ones(3, bool), shared[:2], shared)
    users = np.zeros(3, dtype=np.int32)
    with refused("share its memory"):
        kernels.group_pairs(users, users.copy(), None, 1, np.empty(2, np.int64), users, users, 1)


def test_what_is_empty_overwrites_nothing():
    numbers = np.zeros(4, dtype=np.int32)
    nothing = numbers[2:2]
    indptr = np.empty(1, np.int64)
    assert kernels.group_pairs(nothing, nothing, None, 1, indptr, nothing, nothing, 1) == 0


def test_lists_and_their_scores_are_two_arrays():
    catalogue = kernels.Catalogue(np.ones((3, 16), np.float32), 1)
    ids = np.empty((2, 3), np.int32)
    with refused("share its memory"):
        catalogue.top_k(np.ones((2, 16), np.float32), None, ids, ids.view(np.float32), 1)


def test_times_can_be_compared():
    # std::sort may leave its array where numbers do not compare.
    times = np.resize([3.0, np.nan, 1.0, -5.0], 100)
    users, indices, order = np.zeros((3, 100), dtype=np.int32)
    with refused("times must be numbers"):
        kernels.group_pairs(users, users, times, 1, np.empty(2, np.int64), indices, order, 1)


@pytest.mark.parametrize("steps", [-1, 2**62])
def test_descent_ends(steps):
    X = np.ones((2, 16), np.float32)
    rows = kernels.Csr(INDPTR, INDICES, 3)
    factors, diagonal = np.ones((3, 16), np.float32), np.ones(16, np.float32)
    with refused("number of steps"):
        kernels.descend_rows(rows, factors, diagonal, np.ones(2, np.float32), None, X, steps, 1)


def respond(*, weight=1.0, batch=1, turns=(0, 1)):
    crowd = kernels.Crowd(INDPTR, INDICES, np.array([2, 1, 1], np.float32), 3)
    lists, exposure = np.full((2, 1), -1, np.int32), np.zeros(1)
    changed = kernels.respond(
        crowd,
        np.array(turns, dtype=np.int32),
        lists,
        np.array([weight]),
        np.zeros(3, np.int32),
        exposure,
        np.ones(1),
        np.ones(1),
        np.ones((2, 5)),
        False,
        batch,
        False,
        1.0,
        1,
    )
    return changed, lists.ravel().tolist(), exposure


def test_a_batch_may_be_larger_than_the_crowd():
    assert respond(batch=2**62)[:2] == (2, [0, 0])


def test_exposure_may_grow_beyond_all_numbers():
    # The place in the table of help was once the number that "not a number" happens to become.
    changed, lists, exposure = respond(weight=1e308, turns=(0, 1, 0, 1))
    assert (changed, lists) == (2, [0, 0])
    assert np.isinf(exposure).all()
