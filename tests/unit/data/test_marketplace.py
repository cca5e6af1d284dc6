import numpy as np
import pytest
from scipy.sparse.linalg import svds

from limelight import ConfigError
from limelight.data import marketplace, split_users
from limelight.data.synthetic import BLOCK


def ndcg(scores, part, k=20):
    """Binary nDCG of the users that have targets, their history masked."""
    scores = scores.astype(np.float64)
    scores[part.history.nonzero()] = -np.inf
    top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    targets = part.targets.toarray()
    n = targets.sum(axis=1).astype(int)
    weight = 1 / np.log2(np.arange(2, k + 2))
    found = np.take_along_axis(targets, top, axis=1) @ weight
    return float((found[n > 0] / np.cumsum(weight)[np.minimum(n[n > 0], k) - 1]).mean())


def gini(counts):
    n = len(counts)
    return float((2 * np.arange(1, n + 1) - n - 1) @ np.sort(counts) / (n * counts.sum()))


@pytest.fixture(scope="module")
def market():
    return marketplace()


def test_default_suits_a_demo(market):
    data = market.interactions
    assert (data.n_users, data.n_items, data.nnz) == (6000, 3000, 200_000)
    assert len(market.groups) == 3000
    assert market.providers.max() + 1 == 100


@pytest.mark.parametrize("seed", [0, 1])
def test_better_models_score_visibly_better(seed):
    market = marketplace(seed=seed)
    split = split_users(market.interactions, validation=500, test=500)
    part, items = split.test, split.train.item_ids
    popularity = np.tile(np.asarray(split.train.matrix.sum(axis=0)), (part.n_users, 1))
    relevance = market.relevance(part.user_ids[:, None], items)
    X = split.train.matrix.astype(np.float64)
    factors = svds(X, 16, v0=np.ones(min(X.shape)))[2]
    popular, learnt = ndcg(popularity, part), ndcg(part.history @ factors.T @ factors, part)
    assert learnt > 1.5 * popular
    assert ndcg(relevance, part) > 1.7 * popular
    assert ndcg(relevance * market.visibility[items], part) > 1.2 * learnt


def test_tails_are_long(market):
    data = market.interactions
    items = np.bincount(data.indices, minlength=data.n_items)
    users = np.diff(data.indptr)
    assert gini(items) > 0.55
    assert users.min() >= 5
    assert users.max() > 8 * np.median(users)
    sizes = np.bincount(market.providers)
    assert sizes.min() >= 1
    assert sizes.max() > 10 * np.median(sizes)


def test_popularity_holds_more_than_relevance(market):
    items = np.bincount(market.interactions.indices, minlength=3000)
    relevance = market.relevance(np.arange(6000)[:, None], np.arange(3000)).sum(axis=0)
    seen, hidden = market.visibility > 1.5, market.visibility < 0.7
    assert (items / relevance)[seen].mean() > 2 * (items / relevance)[hidden].mean()


def test_rows_are_sorted_unique_and_ordered(market):
    data = market.interactions
    inner = np.ones(data.nnz, dtype=bool)
    inner[data.indptr[:-1]] = False
    assert np.all(np.diff(data.indices)[inner[1:]] > 0)
    assert data.order is not None
    for row in range(0, 6000, 500):
        order = data.order[data.indptr[row] : data.indptr[row + 1]]
        assert sorted(order) == list(range(len(order)))


def test_same_seed_same_data():
    sizes = {"n_users": BLOCK + 10, "n_items": 200, "n_interactions": 60_000}
    first, same, other = (marketplace(**sizes, seed=seed) for seed in (3, 3, 4))
    assert first.interactions.fingerprint() == same.interactions.fingerprint()
    assert np.array_equal(first.interactions.order, same.interactions.order)
    assert np.array_equal(first.user_tastes, same.user_tastes)
    assert first.interactions.fingerprint() != other.interactions.fingerprint()


@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 1, 1), (50, 20, 500, 5), (50, 20, 250, 5), (400, 100, 20_000, 1), (3, 9, 27, 9)],
)
def test_dense_and_tiny_markets(sizes):
    n_users, n_items, n_interactions, min_items = sizes
    data = marketplace(n_users, n_items, n_interactions, min_items=min_items).interactions
    assert (data.shape, data.nnz) == ((n_users, n_items), n_interactions)
    assert np.diff(data.indptr).min() >= min_items


def test_relevance_is_what_it_says(market):
    users, items = np.array([3, 5]), np.array([7, 11])
    table = market.relevance(users[:, None], items)
    expected = (market.user_tastes[users] @ market.item_tastes[items].T) * market.quality[items]
    assert np.allclose(table, expected)
    assert np.allclose(market.relevance(users, items), np.diag(table))
    assert market.relevance(3, 7).shape == ()
    assert 0 < table.min() <= table.max() <= 1


def test_groups_name_providers():
    market = marketplace(100, 60, 1000, n_providers=12)
    names = market.groups["group"].to_pylist()
    assert names == [f"provider-{provider:02}" for provider in market.providers]
    assert market.groups["item_id"].to_pylist() == list(range(60))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_users": 0}, "n_users must be a whole number from 1 to .*: 0"),
        ({"n_users": 1e3}, r"n_users must be a whole number .*: 1000\.0"),
        ({"n_tastes": 0}, "n_tastes must be a whole number from 1 .*: 0"),
        ({"n_providers": 3001}, "n_providers must be a whole number from 1 to 3,000: 3001"),
        ({"min_items": 3001}, "n_items must be a whole number from 3,001 to 2,147,483,647: 3000"),
        ({"n_interactions": 10}, "n_interactions must be .* from 30,000 to 9,000,000: 10"),
        ({"n_interactions": 10**8}, "n_interactions must be .* to 9,000,000: 100000000"),
        ({"seed": -1}, "random_state must be a whole number from 0 .*: -1"),
    ],
)
def test_impossible_sizes_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        marketplace(**options)
