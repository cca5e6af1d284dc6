"""Arguments that kernels once took wrongly, found by fuzzing: each is refused, or harmless."""

import ast

import numpy as np
import pytest
from tests.support.places import ROOT

from limelight._native import kernels

INDPTR, INDICES = np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32)


def test_at_most_four_arguments_go_without_a_name():
    stub = ROOT / "src/limelight/_native/_kernels.pyi"
    kernels_of = ast.walk(ast.parse(stub.read_text("utf-8")))
    for kernel in (node for node in kernels_of if isinstance(node, ast.FunctionDef)):
        unnamed = [argument.arg for argument in kernel.args.args if argument.arg != "self"]
        assert len(unnamed) <= 4, (kernel.name, unnamed)


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
    kept = {"keep_users": keep_users, "keep_items": keep_items}
    kernels.count_pairs(INDPTR, INDICES, **kept, by_user=by_user, by_item=by_item)


def group(users, items, times, **rows):
    return kernels.group_pairs(users, items, times, n_items=1, **rows, threads=1)


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
        group(users, users.copy(), None, indptr=np.empty(2, np.int64), indices=users, order=users)


def test_what_is_empty_overwrites_nothing():
    numbers = np.zeros(4, dtype=np.int32)
    nothing = numbers[2:2]
    rows = {"indptr": np.empty(1, np.int64), "indices": nothing, "order": nothing}
    assert group(nothing, nothing, None, **rows) == 0


def test_lists_and_their_scores_are_two_arrays():
    catalogue = kernels.Catalogue(np.ones((3, 16), np.float32), 1)
    ids = np.empty((2, 3), np.int32)
    with refused("share its memory"):
        catalogue.top_k(
            np.ones((2, 16), np.float32), None, ids=ids, scores=ids.view(np.float32), threads=1
        )


def test_times_can_be_compared():
    # std::sort may leave its array where numbers do not compare.
    times = np.resize([3.0, np.nan, 1.0, -5.0], 100)
    users, indices, order = np.zeros((3, 100), dtype=np.int32)
    with refused("times must be numbers"):
        group(users, users, times, indptr=np.empty(2, np.int64), indices=indices, order=order)


@pytest.mark.parametrize("steps", [-1, 2**62])
def test_descent_ends(steps):
    X = np.ones((2, 16), np.float32)
    rows = kernels.Csr(INDPTR, INDICES, 3)
    factors, diagonal = np.ones((3, 16), np.float32), np.ones(16, np.float32)
    system = (rows, factors, diagonal, np.ones(2, np.float32))
    with refused("number of steps"):
        kernels.descend_rows(*system, shift=None, out=X, steps=steps, threads=1)


def respond(*, weight=1.0, batch=1, turns=(0, 1)):
    candidates = kernels.RankedCandidates(INDPTR, INDICES, np.array([2, 1, 1], np.float32), 3)
    lists, exposure = np.full((2, 1), -1, np.int32), np.zeros(1)
    changed = kernels.respond(
        candidates,
        np.array(turns, dtype=np.int32),
        lists,
        weights=np.array([weight]),
        accounts=np.zeros(3, np.int32),
        exposure=exposure,
        entitlement=np.ones(1),
        pull=np.ones(1),
        marginal=np.ones((2, 5)),
        by_impact=False,
        batch=batch,
        newcomers=False,
        served=1.0,
        threads=1,
    )
    return changed, lists.ravel().tolist(), exposure


def test_a_batch_may_be_larger_than_the_number_of_users():
    assert respond(batch=2**62)[:2] == (2, [0, 0])


def test_exposure_may_grow_beyond_all_numbers():
    # The place in the table of help was once the number that "not a number" happens to become.
    changed, lists, exposure = respond(weight=1e308, turns=(0, 1, 0, 1))
    assert (changed, lists) == (2, [0, 0])
    assert np.isinf(exposure).all()
