from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.data import Interactions
from limelight.data.filters import drop_rare, drop_unused, k_core, keep
from limelight.data.rows import group, row_numbers, walk

pair_lists = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 6)), min_size=1, max_size=60)
least = st.none() | st.integers(1, 5)


def interactions(pairs):
    users, items = np.array(pairs).T
    rows = group(users, items, 8, 7)
    return Interactions(rows.indptr, rows.indices, np.arange(8), np.arange(7), rows.order)


def pairs_of(data):
    """The pairs as ids, users ascending, each user's items in file order."""
    items = walk(data.indptr, data.indices, data.order, np.arange(data.n_users))[1]
    users = data.user_ids[row_numbers(data.indptr)]
    return list(zip(users.tolist(), data.item_ids[items].tolist(), strict=True))


def in_file_order(pairs):
    return sorted(dict.fromkeys(pairs), key=lambda pair: pair[0])


def naive_keep(pairs, counted, side, minimum):
    counts = Counter(pair[side] for pair in counted)
    return [pair for pair in pairs if counts[pair[side]] >= (minimum or 0)]


@given(pair_lists, least, least)
def test_together_counts_both_before_either(pairs, min_user, min_item):
    distinct = in_file_order(pairs)
    expected = naive_keep(distinct, distinct, 0, min_user)
    expected = naive_keep(expected, distinct, 1, min_item)
    assert pairs_of(drop_rare(interactions(pairs), min_user, min_item, "together")) == expected


@pytest.mark.parametrize(("order", "sides"), [("users-first", (0, 1)), ("items-first", (1, 0))])
@given(pairs=pair_lists, min_user=least, min_item=least)
def test_one_after_the_other_counts_what_is_left(order, sides, pairs, min_user, min_item):
    expected = in_file_order(pairs)
    for side in sides:
        expected = naive_keep(expected, expected, side, (min_user, min_item)[side])
    assert pairs_of(drop_rare(interactions(pairs), min_user, min_item, order)) == expected


@given(pair_lists, st.integers(1, 4))
def test_k_core_repeats_until_nothing_falls(pairs, k):
    expected, before = in_file_order(pairs), None
    while expected != before:
        before = expected
        expected = naive_keep(expected, before, 0, k)
        expected = naive_keep(expected, before, 1, k)
    assert pairs_of(k_core(interactions(pairs), k)) == expected


masks = st.lists(st.booleans(), min_size=8, max_size=8)


@given(pair_lists, masks, masks)
def test_kept_data_is_whole(pairs, users, items):
    data = interactions(pairs)
    kept = keep(data, np.array(users), np.array(items[:7]))
    expected = [(u, i) for u, i in in_file_order(pairs) if users[u] and items[i]]
    assert pairs_of(kept) == expected
    assert np.all(np.diff(kept.indptr) > 0)
    assert set(kept.indices.tolist()) == set(range(kept.n_items))
    assert kept.matrix.has_sorted_indices
    assert (kept.indptr.dtype, kept.indices.dtype, kept.order.dtype) == ("i8", "i4", "i4")


def test_data_without_order_stays_without():
    data = interactions([(0, 1), (0, 0), (1, 1)])
    data = Interactions(data.indptr, data.indices, data.user_ids, data.item_ids)
    assert keep(data, np.arange(8) > 0, np.ones(7, dtype=bool)).order is None


def test_nothing_is_copied_where_everything_is_used():
    used = drop_unused(interactions([(0, 1), (3, 0)]))
    assert used.shape == (2, 2)
    assert drop_unused(used) is used
