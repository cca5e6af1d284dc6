"""Bounds on lists: kept, near the optimum of the linear program, and certified."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.support.examples import examples

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data import read_candidates
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank import ScoreRelevance


def optimum(dense, k, low, high):
    """Solve the assignment over all lists; its matrix is totally unimodular."""
    n_users, n_items = dense.shape
    per_user = np.kron(np.eye(n_users), np.ones(n_items))
    per_item = np.kron(np.ones(n_users), np.eye(n_items))
    found = linprog(
        -dense.ravel(),
        A_ub=np.vstack([per_item, -per_item]),
        b_ub=np.concatenate([np.full(n_items, high), np.full(n_items, -low)]),
        A_eq=per_user,
        b_eq=np.full(n_users, k),
        bounds=(0, 1),
    )
    assert found.status == 0
    return -found.fun / n_users


@examples(25)
@given(
    seed=st.integers(0, 10_000), low=st.integers(0, 4), room=st.integers(1, 6), k=st.integers(2, 4)
)
def test_lists_are_near_the_optimum_and_the_gap_says_how_near(crowd, seed, low, room, k):
    n_users, n_items = 24, 12
    low = min(low, n_users * k // n_items)
    high = max(low, -(-n_users * k // n_items)) + room
    pool, dense = crowd(n_users, n_items, seed=seed, share=1.0)
    method = ll.Allocate(at_least=low, at_most=high, relevance=ScoreRelevance())
    ids, scores = method.rerank(CandidateRanking(pool.candidates), k)
    counts = np.bincount(ids.ravel(), minlength=n_items)
    outcome = method.outcome_
    assert outcome.short == np.sum(counts < low)
    assert outcome.over == np.sum(counts > high)
    best = optimum(dense.astype(np.float64), k, low, high)
    own = np.sort(dense, axis=1)[:, -k:].sum(axis=1).mean()
    value = scores.sum(axis=1).mean()
    if outcome.short == outcome.over == 0:
        assert value <= best + 1e-5
    # The certificate: nothing within the bounds is worth more than value + gap * own.
    assert value + outcome.gap * own >= best - 1e-4
    assert outcome.relevance_loss == pytest.approx(1 - value / own, abs=1e-4)


def test_floors_are_kept_and_near_the_optimum(crowd):
    pool, dense = crowd(120, 30, seed=1, share=1.0)
    method = ll.Allocate(at_least=12, relevance=ScoreRelevance())
    ids, scores = method.rerank(CandidateRanking(pool.candidates), 4)
    assert np.bincount(ids.ravel(), minlength=30).min() >= 12
    best = optimum(dense.astype(np.float64), 4, 12, 120)
    assert scores.sum(axis=1).mean() == pytest.approx(best, rel=0.02)
    assert method.outcome_.gap < 0.05


def test_repair_gives_items_what_no_price_could():
    """All users like the same items in the same order, so that prices move everybody at once."""
    rows = [(u, j, 1.0 / (j + 1)) for u in range(20) for j in range(10)]
    users, items, scores = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"user_id": users, "item_id": items, "score": scores})
    method = ll.Allocate(at_least=6, relevance=ScoreRelevance())
    ids, _ = method.rerank(CandidateRanking(read_candidates(table)), 3)
    assert np.bincount(ids.ravel(), minlength=10).tolist() == [6] * 10
    assert method.outcome_.short == 0


def test_what_nobody_has_for_a_candidate_stays_short():
    table = pa.table({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "score": [3.0, 2, 1]})
    candidates = read_candidates(table, catalogue=["a", "b", "c"])
    method = ll.Allocate(at_least=1)
    ids, _ = method.rerank(CandidateRanking(candidates), 2)
    assert ids.tolist() == [[0, 1], [0, -1]]
    assert method.outcome_.short == 1


def test_bounds_of_groups():
    data = ll.marketplace(400, 60, 6000).interactions
    ranking = ll.IALS(factors=8, epochs=5).fit(data).ranking()
    groups = np.where(np.arange(60) < 50, np.arange(60) // 10, -1)
    method = ll.Allocate(at_least=300, at_most=900)
    ids, _ = method.rerank(ranking, 10, groups=groups)
    counts = np.bincount(groups[ids.ravel()] + 1, minlength=6)[1:]
    assert counts.min() >= 300
    assert counts.max() <= 900
    assert method.outcome_.short == method.outcome_.over == 0


def test_bounds_that_cannot_be_are_refused():
    ranking = ll.Popularity().fit(ll.marketplace(60, 30, 400).interactions).ranking()
    with pytest.raises(ConfigError, match="at_least is too large for 300 places and 30 items: 11"):
        ll.Allocate(at_least=11).rerank(ranking, 5)
    with pytest.raises(ConfigError, match="at_most must be at least 5: 4"):
        ll.Allocate(at_least=5, at_most=4)


@pytest.mark.parametrize("bounds", [{"at_least": 1000}, {"at_most": 1000}])
def test_large_bounds_are_as_near_to_the_optimum(crowd, bounds):
    _, dense = crowd(2000, 8, seed=2, share=1.0)
    dense[:, :3] += 0.5
    table = pa.table(
        {
            "user_id": np.repeat(np.arange(2000), 8),
            "item_id": np.tile(np.arange(8), 2000),
            "score": dense.ravel(),
        }
    )
    method = ll.Allocate(**({"at_least": 0} | bounds), relevance=ScoreRelevance())
    ids, _ = method.rerank(read_candidates(table, catalogue=list(range(8))), 4)
    counts = np.bincount(ids.ravel(), minlength=8)
    assert counts.min() >= bounds.get("at_least", 0)
    assert counts.max() <= bounds.get("at_most", 2000)
    assert method.outcome_.gap < 0.01


def test_a_broken_bound_has_no_certificate():
    table = pa.table({"user_id": [1, 2], "item_id": ["a", "a"], "score": [3.0, 2]})
    method = ll.Allocate(at_least=1)
    method.rerank(read_candidates(table, catalogue=["a", "b"]), 1)
    assert method.outcome_.short == 1
    assert np.isnan(method.outcome_.gap)


def test_groups_are_checked():
    ranking = ll.Popularity().fit(ll.marketplace(60, 30, 400).interactions).ranking()
    for groups in (np.zeros(3, int), np.full(30, 0.5), ["x"] * 30, np.full(30, -7)):
        with pytest.raises(DataError, match="groups must be whole numbers from -1 up"):
            ll.Allocate(at_least=1).rerank(ranking, 5, groups=groups)
    with pytest.raises(ConfigError, match="at_most is too small for 300 places and 30 items: 9"):
        ll.Allocate(at_least=1, at_most=9).rerank(ranking, 5)
