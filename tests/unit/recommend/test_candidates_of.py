"""Candidates of a ranking are the same bits whether they pass the sorter or not."""

import numpy as np
import pytest

import limelight as ll
from limelight.data.candidates.sorter import PairSorter
from limelight.metrics.lists import Lists
from limelight.recommend import candidates as making
from limelight.recommend.candidates import candidates_of, leave_out_seen, sample_users

LITTLE = 1 << 14


class Listed:
    """A ranking whose lists are given."""

    def __init__(self, ids, scores):
        self.ids, self.scores = np.asarray(ids, np.int32), np.asarray(scores, np.float32)
        self.n_users, self.n_items = len(ids), int(self.ids.max()) + 1

    def top(self, users, k):
        return Lists(self.ids[users, :k], self.scores[users, :k])

    def among(self, items):
        raise NotImplementedError


@pytest.fixture(scope="module")
def model():
    return ll.IALS(factors=8, epochs=2).fit(ll.marketplace(300, 90, 4000).interactions)


def everything(candidates):
    block = candidates.block(0, candidates.n_users)
    return *block, np.asarray(candidates.user_ids), np.asarray(candidates.item_ids)


def assert_same_bits(one, other):
    for mine, theirs in zip(everything(one), everything(other), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine.view(np.uint8), theirs.view(np.uint8))


def refuse_to_sort(monkeypatch):
    def refuse(*_):
        message = "what is sorted already was sorted again"
        raise AssertionError(message)

    monkeypatch.setattr(making, "PairSorter", refuse)


@pytest.mark.parametrize("width", [1, 7, 90])
def test_what_a_model_ranks_is_not_sorted_again(model, width, monkeypatch):
    through_the_sorter = candidates_of(model.ranking(), width, memory=LITTLE)
    refuse_to_sort(monkeypatch)
    assert_same_bits(candidates_of(model.ranking(), width), through_the_sorter)


def test_neither_is_what_is_left_or_drawn(model, monkeypatch):
    candidates, seen = candidates_of(model.ranking(filter_seen=False)), model.learned.seen
    left = leave_out_seen(candidates, seen, memory=LITTLE)
    refuse_to_sort(monkeypatch)
    assert_same_bits(leave_out_seen(candidates, seen), left)
    drawn = sample_users(candidates, 40, seed=3)
    block = candidates.take(np.asarray(drawn.user_ids))
    for mine, theirs in zip(drawn.block(0, 40), block, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_equal_scores_and_both_zeros_come_in_the_order_of_items():
    ranking = Listed([[3, 1, 2], [0, 2, 1]], [[0.5, 0.5, 0.1], [0.0, -0.0, -1.0]])
    found = candidates_of(ranking).block(0, 2)
    np.testing.assert_array_equal(found.items, [1, 3, 2, 0, 2, 1])
    assert not np.signbit(found.scores[:5]).any()


def test_nobody_has_candidates():
    found = candidates_of(Listed([[-1, -1], [-1, -1]], np.full((2, 2), -np.inf)), 2)
    assert (found.n_users, found.n_pairs) == (2, 0)


def test_the_sorter_agrees_on_zeros_of_ranked_lists():
    ranking = Listed([[0, 2, 1]], [[0.0, -0.0, -1.0]])
    sorter = PairSorter(1 << 20)
    sorter.add(np.zeros(3, np.int32), ranking.ids[0], ranking.scores[0])
    items, scores = sorter.finish()[1].read(0, 3)
    found = candidates_of(ranking).block(0, 1)
    np.testing.assert_array_equal(found.items, items)
    np.testing.assert_array_equal(found.scores.view(np.uint32), scores.view(np.uint32))
