"""Candidates as a ranking: alone, among some items, and under a re-ranker."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.data.candidates import sorter as pair_sorter
from limelight.data.candidates.candidates import read_candidates
from limelight.recommend import ranking as candidate_ranking
from limelight.recommend.ranking import CandidateRanking, VectorRanking


def read(scores, *, capacity=None):
    """Make candidates of a users x items table of scores; NaN is no candidate."""
    users, items = np.nonzero(~np.isnan(scores))
    table = pa.table({"user_id": users, "item_id": items, "score": scores[users, items]})
    with pytest.MonkeyPatch.context() as patch:
        if capacity is not None:
            patch.setattr(pair_sorter, "BUFFER_BYTES", (1 << 20) // capacity)
            patch.setattr(pair_sorter, "PAIR_BYTES", 1 << 20)
        return read_candidates(table, catalogue=range(scores.shape[1]), memory=1 << 20)


def naive(scores, users, k, items):
    ids = np.full((len(users), k), -1)
    found = np.full((len(users), k), -np.inf)
    for row, user in enumerate(users):
        mine = [i for i in items if not np.isnan(scores[user, i])]
        best = sorted(mine, key=lambda i: (-scores[user, i], i))[:k]
        ids[row, : len(best)], found[row, : len(best)] = best, scores[user, best]
    return ids, found


@given(st.data(), st.integers(0, 2**31), st.sampled_from([None, 5]))
def test_lists_of_a_naive_twin(data, seed, capacity):
    generator = np.random.default_rng(seed)
    scores = generator.integers(-3, 4, (6, 8)).astype(np.float32)
    scores[generator.random((6, 8)) < 0.3] = np.nan
    scores[np.isnan(scores).all(axis=1), 0] = 1
    users = np.array(data.draw(st.lists(st.integers(0, 5))), dtype=np.int64)
    items = np.array(data.draw(st.sets(st.integers(0, 7)).map(sorted)), dtype=np.int32)
    k = data.draw(st.integers(1, 10))
    with read(scores, capacity=capacity) as candidates:
        ranking = CandidateRanking(candidates)
        assert (ranking.n_users, ranking.n_items) == (6, 8)
        for part, among in ((ranking, range(8)), (ranking.among(items), items)):
            assert part.n_items == 8
            found = part.top(users, k)
            assert (found.ids.dtype, found.scores.dtype) == (np.int32, np.float32)
            for values, expected in zip(found, naive(scores, users, k, among), strict=True):
                np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("pairs", [1, 25, 1000])
def test_any_number_of_candidates_at_a_time(monkeypatch, pairs):
    monkeypatch.setattr(candidate_ranking, "_PAIRS", pairs)
    scores = np.random.default_rng(0).random((7, 10)).astype(np.float32)
    ranking = CandidateRanking(read(scores))
    np.testing.assert_array_equal(ranking.top(np.arange(7), 10).ids, np.argsort(-scores, axis=1))


def test_only_the_rows_of_the_users_asked_for_are_read(monkeypatch):
    candidates = read(np.random.default_rng(0).random((9, 10)).astype(np.float32))
    taken = []
    take = candidates.take
    monkeypatch.setattr(candidates, "take", lambda users: taken.extend(users) or take(users))
    CandidateRanking(candidates).top(np.array([7, 2]), 3)
    assert taken == [7, 2]


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.5}, {"envy_free": True}, {"candidates": 8}])
@pytest.mark.parametrize("capacity", [None, 100])
def test_fairrec_over_candidates_is_fairrec_over_their_model(settings, capacity):
    generator = np.random.default_rng(3)
    users, items = (generator.integers(-3, 4, (n, 8)).astype(np.float32) for n in (60, 40))
    model = VectorRanking(items, users.__getitem__, n_users=60, hidden=None, threads=1)
    expected = ll.FairRec(**settings).rerank(model, 5)
    with read(users @ items.T, capacity=capacity) as candidates:
        found = ll.FairRec(**settings).rerank(CandidateRanking(candidates), 5)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)
