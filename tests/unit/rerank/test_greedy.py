"""xQuAD and calibrated popularity against a naive twin, one user and one place at a time."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support import oracles
from tests.support.examples import examples

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.candidates.candidates import read_candidates
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank import Greedy
from limelight.rerank.methods import greedy
from limelight.rerank.methods.greedy import popularity_bins

METHODS = ["xquad", "xquad_binary", "calibrated"]


class Table:
    """A ranking by a table of scores; -inf is never listed."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=np.float32)
        self.n_users, self.n_items = self.scores.shape

    def among(self, items):
        raise NotImplementedError

    def top(self, users, k):
        scores = self.scores[users]
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)
        found = np.take_along_axis(scores, order, axis=1)
        lists = greedy.empty_lists(len(users), k)
        lists.ids[:, : order.shape[1]] = np.where(np.isfinite(found), order, -1)
        lists.scores[:, : order.shape[1]] = found
        return lists


def instance(n_users, n_items, *, seed, hidden_share=0.0):
    """Return a table of scores, of which many are equal, the items' counts and histories."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 12, (n_users, n_items)).astype(np.float64)
    scores[generator.random(scores.shape) < hidden_share] = -np.inf
    counts = generator.integers(1, 50, n_items)
    histories = sparse.csr_matrix(generator.random((n_users, n_items)) < 0.3)
    return Table(scores), counts, histories


def tastes(histories, bins, counts, n_bins):
    """Count the bins of every history, as slowly as can be."""
    found = np.zeros((histories.shape[0], n_bins))
    for user, row in enumerate(histories.toarray()):
        for item, weight in enumerate(row if row.any() else counts):
            found[user, bins[item]] += weight
    return found / found.sum(axis=1, keepdims=True)


sizes = st.tuples(st.integers(1, 12), st.integers(1, 30), st.integers(1, 12), st.integers(1, 20))


@examples(150)
@given(
    sizes,
    st.integers(0, 2**32 - 1),
    st.sampled_from(METHODS),
    st.sampled_from([0, 0.2, 0.5, 0.9, 1]),
    st.sampled_from([0, 0.3, 0.95]),
)
def test_every_place_goes_to_the_best_candidate(size, seed, method, strength, hidden_share):
    n_users, n_items, k, candidates = size
    ranking, counts, histories = instance(n_users, n_items, seed=seed, hidden_share=hidden_share)
    made = Greedy(
        popularity=counts,
        profiles=histories,
        method=method,
        strength=strength,
        candidates=candidates,
    )
    lists = made.rerank(ranking, k)
    bins = popularity_bins(counts, made.config.bin_ends)
    liked = tastes(histories, bins, counts, len(made.config.bin_ends) + 1)
    for user in range(n_users):
        ids, scores = (own[0] for own in ranking.top(np.array([user]), max(k, candidates)))
        ids, scores = ids[ids >= 0], scores[ids >= 0]
        found = lists.ids[user]
        shown = found[found >= 0]
        assert len(set(shown)) == len(shown) == min(k, len(ids))
        assert (found[len(shown) :] == -1).all()
        assert (lists.scores[user, len(shown) :] == -np.inf).all()
        assert (lists.scores[user, : len(shown)] == ranking.scores[user, shown]).all()
        places = [ids.tolist().index(item) for item in shown]
        for place, chosen in enumerate(places):
            values = oracles.greedy_values(
                scores.astype(np.float64),
                bins[ids],
                liked[user],
                places[:place],
                (method, strength),
            )
            assert chosen == np.flatnonzero(values >= values.max() - 1e-12)[0]


@pytest.fixture(scope="module")
def market():
    return ll.marketplace(600, 200, 12_000).interactions


@pytest.fixture(scope="module")
def model(market):
    return ll.IALS(factors=8, epochs=4).fit(market)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [7, 150])
def test_without_strength_the_lists_are_the_models(method, k, market, model):
    made = Greedy(popularity=market, method=method, strength=0, candidates=20)
    found, own = made.over(model).recommend(k=k), model.recommend(k=k)
    np.testing.assert_array_equal(found.ids, own.ids)
    np.testing.assert_array_equal(found.scores, own.scores)


@pytest.mark.parametrize("method", METHODS)
def test_more_strength_shows_more_of_the_tail(method, market):
    popular = ll.Popularity().fit(market)
    counts = np.bincount(market.indices, minlength=market.n_items)
    in_tail = popularity_bins(counts, [0.8]) == 1
    shares = []
    for strength in (0, 0.3, 0.6, 1):
        chosen = {"method": method, "strength": strength, "candidates": 200}
        made = Greedy(popularity=counts, profiles=market, **chosen)
        shares.append(in_tail[made.over(popular).recommend(k=10).ids].mean())
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] > 0.05


def test_calibrated_lists_come_close_to_the_profiles(market, model):
    counts = np.bincount(market.indices, minlength=market.n_items)
    bins = popularity_bins(counts, [0.2, 0.8])
    liked = tastes(market.matrix, bins, counts, 3)
    gaps = []
    for strength in (0, 1):
        made = Greedy(
            popularity=counts,
            profiles=market,
            method="calibrated",
            strength=strength,
            candidates=200,
        )
        ids, _ = made.over(model).recommend(k=20)
        shares = np.stack([(bins[ids] == each).mean(axis=1) for each in range(3)], axis=1)
        gaps.append(np.abs(shares - liked).max(axis=1).mean())
    assert gaps[1] < 0.06 < gaps[0] / 2


def test_the_first_places_of_a_long_list_are_the_short_list(market, model):
    made = Greedy(popularity=market, profiles=market, candidates=50)
    long, short = (made.rerank(model.ranking(), k) for k in (20, 5))
    np.testing.assert_array_equal(long.ids[:, :5], short.ids)


def test_blocks_of_users_do_not_matter(market, model, monkeypatch):
    made = Greedy(popularity=market, profiles=market, method="calibrated")
    whole = made.rerank(model.ranking(), 10)
    monkeypatch.setattr(greedy, "_ROWS", 37)
    np.testing.assert_array_equal(made.rerank(model.ranking(), 10).ids, whole.ids)


def test_users_without_a_history_like_what_all_like():
    ranking, counts, _ = instance(9, 30, seed=1)
    nobody = sparse.csr_matrix((9, 30))
    for method in METHODS:
        known = Greedy(popularity=counts, profiles=nobody, method=method).rerank(ranking, 8)
        assert (Greedy(popularity=counts, method=method).rerank(ranking, 8).ids == known.ids).all()


def test_candidates_of_anybodys_recommender():
    rows = {"user_id": [1] * 4 + [2], "item_id": [*"abcd", "b"], "score": [4, 3, 2.5, 2, 1]}
    ranking = CandidateRanking(read_candidates(pa.table(rows)))
    ids, scores = Greedy(popularity=[8, 2, 1, 1], method="xquad_binary").rerank(ranking, 3)
    assert ids.tolist() == [[0, 1, 2], [1, -1, -1]]
    assert scores.tolist() == [[4, 3, 2.5], [1, -np.inf, -np.inf]]


def test_interactions_are_counted(market):
    counts = np.bincount(market.indices, minlength=market.n_items)
    ranking = ll.Popularity().fit(market).ranking()
    by_counts, by_data, by_matrix = (
        Greedy(popularity=each).rerank(ranking, 5).ids for each in (counts, market, market.matrix)
    )
    assert (by_counts == by_data).all()
    assert (by_counts == by_matrix).all()


def test_bins_end_where_they_say():
    """0.7 of 10 is 7, though 0.7 * 10 in binary may be a little more or less."""
    counts = np.array([4, 3, 2, 1, 0])
    assert popularity_bins(counts, [0.7]).tolist() == [0, 0, 1, 1, 1]
    assert popularity_bins(counts, [0.4, 0.9]).tolist() == [0, 1, 1, 2, 2]
    assert popularity_bins(counts, [0.71]).tolist() == [0, 0, 0, 1, 1]
    assert popularity_bins(np.ones(10), [0.3]).tolist() == [0] * 3 + [1] * 7


def test_equal_scores_of_a_user_and_nobody_at_all():
    ids, _ = Greedy(popularity=[3, 2, 1], cuts=(0.5,)).rerank(Table(np.ones((1, 3))), 3)
    assert sorted(ids[0]) == [0, 1, 2]
    assert Greedy(popularity=[3, 2, 1]).rerank(Table(np.ones((0, 3))), 2).ids.shape == (0, 2)


def test_evaluation_over_a_model():
    market = ll.marketplace(1000, 200, 20_000)
    split = ll.split_users(market.interactions, validation=10, test=300)
    model = ll.IALS(factors=8, epochs=4).fit(split.train)
    made = ll.Greedy(popularity=split.train, profiles=split.test.history, strength=1)
    plain, fair = (ll.evaluate(each, split.test, k=10) for each in (model, made.over(model)))
    assert fair["gini@10"] < plain["gini@10"]


def test_it_shows_its_settings():
    made = Greedy(popularity=[1, 2], method="calibrated", strength=0.3)
    assert repr(made) == "Greedy(method='calibrated', strength=0.3)"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"strength": 1.5}, "strength must be at most 1: 1.5"),
        ({"strength": -0.1}, "strength must be a finite number 0 or more: -0.1"),
        ({"method": "mmr"}, "method is not a known choice: 'mmr'"),
        ({"candidates": 0}, "candidates must be at least 1: 0"),
        ({"cuts": (0.8, 0.2)}, r"cuts must ascend and stay below 1: \(0.8, 0.2\)"),
        ({"cuts": (1,)}, r"cuts must ascend and stay below 1: \(1,\)"),
        ({"cuts": 0.8}, "cuts must be a tuple of numbers: 0.8"),
        ({"cuts": (0,)}, "cuts must be a finite number above 0: 0"),
        ({"lam": 0.5}, "unknown hyper-parameter: 'lam'"),
    ],
)
def test_bad_settings(bad, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Greedy(popularity=[1, 2], **bad)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("popularity", "message"),
    [
        ([[1, 2]], r"popularity must be one number an item, got int64\(1, 2\)"),
        (["a"], r"popularity must be one number an item, got <U1\(1,\)"),
        ([1, -2], "popularity must be finite numbers from 0 up, some above 0: -2"),
        ([1, np.nan], "popularity must be finite numbers from 0 up, some above 0: nan"),
        ([0, 0], "popularity must be finite numbers from 0 up, some above 0: no item has any"),
        (sparse.csr_matrix((3, 2)), "some above 0: no item has any"),
    ],
)
def test_bad_popularity(popularity, message):
    with pytest.raises(DataError, match=message) as caught:
        Greedy(popularity=popularity)
    assert caught.value.hint


def test_sizes_that_do_not_fit():
    ranking, counts, histories = instance(5, 8, seed=0)
    with pytest.raises(DataError, match="popularity is of 7 items, not of 8"):
        Greedy(popularity=counts[:7]).rerank(ranking, 3)
    with pytest.raises(DataError, match="profiles are of 4 users, not of 5"):
        Greedy(popularity=counts, profiles=histories[:4]).rerank(ranking, 3)
    with pytest.raises(DataError, match="profiles have 7 columns, popularity has 8 items"):
        Greedy(popularity=counts, profiles=histories[:, :7])
    with pytest.raises(ConfigError, match="k must be at least 1: 0"):
        Greedy(popularity=counts).rerank(ranking, 0)
