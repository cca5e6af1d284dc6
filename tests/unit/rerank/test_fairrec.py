"""FairRec against a naive twin over all scores, and what it guarantees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support import oracles
from tests.support.examples import examples

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.recommend.ranking import RandomRanking, VectorRanking
from limelight.rerank import FairRec
from limelight.rerank.methods import fairrec as round_robin
from limelight.solve.problem import sparse_rows


def whole_numbers(n_users, n_items, *, seed, spread=3):
    """Vectors of small whole numbers: products are exact, and many are equal."""
    generator = np.random.default_rng(seed)
    shapes = ((n_users, 8), (n_items, 8))
    return [generator.integers(-spread, spread + 1, s).astype(np.float32) for s in shapes]


def hidden_rows(n_users, n_items, *, share, seed):
    if share == 0:
        return None
    generator = np.random.default_rng(seed)
    matrix = sparse.csr_matrix(generator.random((n_users, n_items)) < share)
    return sparse_rows(matrix.indptr, matrix.indices, n_items)


def instance(n_users, n_items, *, seed, hidden_share=0.0, threads=1):
    """Return a ranking and all of its scores, -inf where an item is hidden."""
    users, items = whole_numbers(n_users, n_items, seed=seed)
    hidden = hidden_rows(n_users, n_items, share=hidden_share, seed=seed)
    scores = (users @ items.T).astype(np.float64)
    if hidden is not None:
        rows = np.repeat(np.arange(n_users), np.diff(hidden.indptr))
        scores[rows, hidden.indices] = -np.inf
    made = VectorRanking(items, users.__getitem__, n_users=n_users, hidden=hidden, threads=threads)
    return made, scores


def turns(n_users, seed=0):
    return np.random.default_rng(seed).permutation(n_users)


def rows_of(ids):
    return [[item for item in row if item >= 0] for row in ids.tolist()]


def phase_one(ranking, guarantee, k, width=128):
    order = turns(ranking.n_users).astype(np.int32)
    game = round_robin.RoundRobin(ranking, order, guarantee, k=k, width=min(width, ranking.n_items))
    return game.play()


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(round_robin, "_BATCH", 37)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("hidden_share", [0, 0.1, 0.6])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.77, 1])
@pytest.mark.parametrize("candidates", [2, 30, None])
def test_lists_are_those_of_the_naive_twin(alpha, hidden_share, candidates):
    ranking, scores = instance(500, 300, seed=1, hidden_share=hidden_share)
    found = FairRec(alpha=alpha, candidates=candidates)
    ids, found_scores = found.rerank(ranking, k=10)
    expected = oracles.fairrec(scores, turns(500), int(alpha * 500 * 10 / 300 + 1e-9), 10)
    assert ids.tolist() == expected
    assert (found_scores == np.take_along_axis(scores, ids, axis=1)).all()


def test_real_scores_and_histories_agree_with_the_naive_twin():
    data = ll.marketplace(500, 300, 12_000).interactions
    model = ll.IALS(factors=16, epochs=4).fit(data)
    all_of_them = model.ranking().top(np.arange(500), 300)
    scores = np.full((500, 300), -np.inf)
    listed = all_of_them.ids >= 0
    scores[np.nonzero(listed)[0], all_of_them.ids[listed]] = all_of_them.scores[listed]
    ids, _ = FairRec(alpha=0.9, candidates=12).over(model).recommend(k=10)
    assert ids.tolist() == oracles.fairrec(scores, turns(500), 15, 10)
    assert not data.matrix.toarray()[np.arange(500)[:, None], ids].any()


def test_a_ranking_without_vectors():
    ranking = RandomRanking(np.arange(60), n_items=30, hidden=None, seed=0)
    wide, narrow = (FairRec(candidates=c).rerank(ranking, 5) for c in (None, 2))
    np.testing.assert_array_equal(wide.ids, narrow.ids)
    assert (np.bincount(wide.ids.ravel()) == 10).all()


sizes = st.tuples(st.integers(1, 40), st.integers(1, 30), st.integers(1, 8))


@examples(150)
@given(sizes, st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_items_get_their_lists_if_nothing_is_hidden(size, seed, alpha):
    n_users, n_items, k = size
    ranking, _ = instance(n_users, n_items, seed=seed)
    fair = FairRec(alpha=alpha, candidates=2)
    ids, _ = fair.rerank(ranking, k)
    counts = np.bincount(ids[ids >= 0], minlength=n_items)
    short = (counts < fair.outcome_.guarantee).sum()
    assert short <= min(k, n_items) - 1 or fair.outcome_.guarantee == 0
    if fair.outcome_.kept:
        assert short == 0


@examples(100)
@given(sizes, st.integers(0, 2**32 - 1))
def test_nobody_envies_more_than_one_item(size, seed):
    """Of the items that she does not hold herself, without one of them, nobody's are worth more."""
    n_users, n_items, k = size
    k = min(k, n_items)
    ranking, scores = instance(n_users, n_items, seed=seed)
    values = scores - scores.min(axis=1, keepdims=True)
    bundles = rows_of(phase_one(ranking, n_users * k // n_items, k).lists.ids)
    for user, own in enumerate(bundles):
        for other in bundles:
            envied = values[user, [item for item in other if item not in own]]
            if len(envied):
                assert envied.sum() - envied.max() <= values[user, own].sum()


@examples(60)
@given(sizes, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.9]))
def test_lists_are_full_and_distinct_and_show_nothing_hidden(size, seed, hidden_share):
    n_users, n_items, k = size
    ranking, scores = instance(n_users, n_items, seed=seed, hidden_share=hidden_share)
    by_score, forced = (
        FairRec(order=order).rerank(ranking, k) for order in ("relevance", "forced")
    )
    for row, (ids, other) in enumerate(zip(by_score.ids, forced.ids, strict=True)):
        shown = ids[ids >= 0]
        assert len(set(shown)) == len(shown) == min(k, np.isfinite(scores[row]).sum())
        assert np.isfinite(scores[row, shown]).all()
        assert (ids[len(shown) :] == -1).all()
        assert (by_score.scores[row, len(shown) :] == -np.inf).all()
        assert sorted(ids) == sorted(other)
        assert (np.diff(by_score.scores[row, : len(shown)]) <= 0).all()


def test_what_is_forced_comes_first_on_request():
    ranking, scores = instance(100, 50, seed=3)
    ids, _ = FairRec(alpha=0.5, order="forced").rerank(ranking, k=6)
    picks = oracles.round_robin(scores, turns(100), 6, 6)
    handed = picks >= 0
    assert 2 <= handed.sum(axis=1).min() <= handed.sum(axis=1).max() <= 4
    assert (ids[handed] == picks[handed]).all()


def test_nothing_guaranteed_leaves_the_lists_of_the_model():
    ranking, _ = instance(50, 40, seed=0, hidden_share=0.2)
    for fair in (FairRec(alpha=0), FairRec(guarantee=0), FairRec(alpha=0, envy_free=True)):
        found, own = fair.rerank(ranking, 7), ranking.top(np.arange(50), 7)
        np.testing.assert_array_equal(found.ids, own.ids)
        np.testing.assert_array_equal(found.scores, own.scores)
        assert fair.outcome_.kept


def test_same_seed_same_lists_on_any_number_of_threads():
    one, two = (
        FairRec(alpha=0.9, candidates=12).rerank(instance(400, 90, seed=5, threads=t)[0], 10)
        for t in (1, 3)
    )
    np.testing.assert_array_equal(one.ids, two.ids)
    np.testing.assert_array_equal(one.scores, two.scores)
    other = FairRec(alpha=0.9, random_state=1).rerank(instance(400, 90, seed=5)[0], 10)
    assert (other.ids != one.ids).any()


def test_the_share_is_taken_as_written():
    """0.3 x 100 x 10 / 100 is 3, though the nearest binary number to 0.3 lies below."""
    fair = FairRec(alpha=0.3)
    fair.rerank(instance(100, 100, seed=0)[0], 10)
    assert fair.outcome_.guarantee == 3
    fair = FairRec(alpha=0.29)
    fair.rerank(instance(100, 10, seed=0)[0], 10)
    assert fair.outcome_.guarantee == 29


def test_a_guarantee_by_number_is_one_by_share():
    ranking, _ = instance(100, 50, seed=2)
    share, number = FairRec(alpha=0.5), FairRec(guarantee=10)
    np.testing.assert_array_equal(share.rerank(ranking, 10).ids, number.rerank(ranking, 10).ids)
    assert share.outcome_ == number.outcome_
    assert (share.outcome_.copies, share.outcome_.handed_out) == (500, 500)


@pytest.mark.parametrize("envy_free", [False, True])
def test_a_fraction_is_a_further_list_for_a_part_of_the_items(envy_free):
    ranking, _ = instance(100, 50, seed=2)
    seen = {}
    for guarantee in (2, 2.4, 2.8):
        fair = FairRec(guarantee=guarantee, envy_free=envy_free, order="forced")
        ids, _ = fair.rerank(ranking, 10)
        assert fair.outcome_.copies == fair.outcome_.handed_out == guarantee * 50
        seen[guarantee] = np.bincount(ids.ravel(), minlength=50)
        assert seen[guarantee].min() >= 2
        assert (seen[guarantee] >= 3).sum() >= round(guarantee % 1 * 50)


def test_a_fraction_is_the_naive_twin_with_a_stock_by_item():
    ranking, scores = instance(200, 60, seed=3, hidden_share=0.1)
    generator = np.random.default_rng(0)
    order, stock = generator.permutation(200), np.full(60, 7)
    stock[generator.permutation(60)[:15]] += 1
    ids, _ = FairRec(guarantee=7.25).rerank(ranking, 10)
    assert ids.tolist() == oracles.fairrec(scores, order, stock, 10)


def test_a_whole_number_is_the_same_as_a_float():
    ranking, _ = instance(100, 50, seed=2)
    whole, same = FairRec(guarantee=3), FairRec(guarantee=3.0)
    np.testing.assert_array_equal(whole.rerank(ranking, 10).ids, same.rerank(ranking, 10).ids)
    assert repr(same.outcome_) == "FairRecOutcome(guarantee=3, copies=150, handed_out=150)"
    other = FairRec(guarantee=3.5, random_state=1).rerank(ranking, 10)
    assert (other.ids != FairRec(guarantee=3.5).rerank(ranking, 10).ids).any()


def test_lists_longer_than_the_catalogue():
    ranking, _ = instance(5, 3, seed=0)
    ids, scores = FairRec().rerank(ranking, 6)
    assert (np.sort(ids[:, :3]) == [0, 1, 2]).all()
    assert (ids[:, 3:] == -1).all()
    assert (scores[:, 3:] == -np.inf).all()


@pytest.mark.parametrize("envy_free", [False, True])
def test_users_who_can_be_shown_nothing_do_not_end_the_game(envy_free):
    users, items = whole_numbers(30, 10, seed=0)
    matrix = sparse.csr_matrix(np.repeat([[1], [0]], [2, 28], axis=0) * np.ones(10))
    hidden = sparse_rows(matrix.indptr, matrix.indices, 10)
    ranking = VectorRanking(items, users.__getitem__, n_users=30, hidden=hidden, threads=1)
    fair = FairRec(alpha=0.5, envy_free=envy_free)
    ids, _ = fair.rerank(ranking, 4)
    assert (ids[:2] == -1).all()
    assert (ids[2:] >= 0).all()
    assert fair.outcome_.kept


def test_one_user_and_no_user():
    assert FairRec().rerank(instance(1, 9, seed=0)[0], 3).ids.shape == (1, 3)
    assert FairRec().rerank(instance(0, 9, seed=0)[0], 3).ids.shape == (0, 3)


def test_evaluation_over_a_model():
    market = ll.marketplace(1000, 200, 20_000)
    split = ll.split_users(market.interactions, validation=10, test=300)
    model = ll.IALS(factors=8, epochs=4).fit(split.train)
    plain, fair = (
        ll.evaluate(each, split.test, k=10) for each in (model, ll.FairRec(alpha=0.9).over(model))
    )
    assert fair["gini_uniform@10"] < 0.3 < plain["gini_uniform@10"]
    assert fair["coverage@10"] == 1


def test_it_shows_its_settings():
    assert repr(FairRec(alpha=0.5, order="forced")) == "FairRec(alpha=0.5, order='forced')"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"alpha": 1.5}, "alpha must be at most 1: 1.5"),
        ({"alpha": -0.1}, "alpha must be a finite number 0 or more: -0.1"),
        ({"alpha": "half"}, "alpha must be a number: 'half'"),
        ({"guarantee": -1}, "guarantee must be a finite number 0 or more: -1"),
        ({"guarantee": "2"}, "guarantee must be a number: '2'"),
        ({"guarantee": 2, "alpha": 0.5}, "alpha and guarantee were both given: 0.5, 2"),
        ({"order": "random"}, "order is not a known choice: 'random'"),
        ({"envy_free": 1}, "envy_free must be True or False: 1"),
        ({"candidates": 1}, "candidates must be at least 2: 1"),
        ({"random_state": -1}, "random_state must be at least 0: -1"),
        ({"share": 0.5}, "unknown hyper-parameter: 'share'"),
    ],
)
def test_bad_settings(bad, message):
    with pytest.raises(ConfigError, match=message) as caught:
        FairRec(**bad)
    assert caught.value.hint


def test_a_guarantee_that_does_not_fit():
    message = "guarantee is too large for 10 lists of 4 places and 20 items: 3"
    with pytest.raises(ConfigError, match=message) as caught:
        FairRec(guarantee=3).rerank(instance(10, 20, seed=0)[0], 4)
    assert "at most 2," in caught.value.hint
    with pytest.raises(ConfigError, match=r"30 items: 1\.34") as caught:
        FairRec(guarantee=1.34).rerank(instance(10, 30, seed=0)[0], 4)
    assert "at most 1.33," in caught.value.hint


def test_bad_length():
    with pytest.raises(ConfigError, match="k must be at least 1: 0"):
        FairRec().rerank(instance(10, 20, seed=0)[0], 0)
