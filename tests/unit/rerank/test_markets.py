"""Best response, its online form, and mixtures of prices: what they keep and what they reach."""

import numpy as np
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank import (
    GiniWelfare,
    Impact,
    MinimumExposure,
    Power,
    ScoreRelevance,
    TargetShares,
)
from limelight.rerank.market.ledger import knots
from limelight.rerank.market.market import Market, choose
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.frank_wolfe import uniform
from limelight.rerank.relevance import BY_RANK

K = 10


@pytest.fixture(scope="module")
def market():
    data = ll.marketplace(1500, 200, 30_000).interactions
    split = ll.split_users(data, validation=300, test=300)
    model = ll.IALS(factors=16, epochs=8).fit(split.train)
    return model, split


def ranking_of(market, part="test"):
    model, split = market
    return model.ranking(getattr(split, part).history)


def gini_of(market, ids):
    return ll.gini(ll.exposure(ids, n_items=market[0].item_factors.shape[0]))


METHODS = [
    pytest.param(ll.BestResponse, id="best response"),
    pytest.param(ll.Online, id="online"),
    pytest.param(lambda **s: ll.FrankWolfe(steps=20, **s), id="Frank-Wolfe"),
]


@pytest.mark.parametrize("method", METHODS)
def test_without_strength_lists_are_the_plain_ones(market, method):
    ranking = ranking_of(market)
    plain = ranking.top(np.arange(ranking.n_users), K)
    lists = method(strength=0.0).rerank(ranking, K)
    np.testing.assert_array_equal(lists.ids, plain.ids)
    np.testing.assert_array_equal(lists.scores, plain.scores)


@pytest.mark.parametrize("method", METHODS)
def test_more_strength_shares_more(market, method):
    ranking = ranking_of(market)
    ginis = [gini_of(market, method(strength=s).rerank(ranking, K).ids) for s in (0, 0.1, 1.0)]
    assert ginis[0] > ginis[1] > ginis[2]


@pytest.mark.parametrize("method", METHODS)
def test_lists_are_sorted_hold_no_item_twice_and_nothing_seen(market, method):
    _, split = market
    ids, scores = method(strength=0.5).rerank(ranking_of(market), K)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len(set(row)) == K for row in ids.tolist())
    seen = split.test.history
    for user, row in enumerate(ids):
        assert not set(row) & set(seen.indices[seen.indptr[user] : seen.indptr[user + 1]])


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_lists_on_any_number_of_threads(market, method):
    ranking = ranking_of(market)
    one, two = (method(strength=0.3, num_threads=n).rerank(ranking, K).ids for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("method", METHODS)
def test_k_beyond_the_catalogue_is_padded(market, method):
    ids, scores = method(strength=0.3).rerank(ranking_of(market), 250)
    assert ids.shape == (300, 250)
    assert (ids[:, 200:] == -1).all()
    assert np.isneginf(scores[:, 200:]).all()


@pytest.mark.parametrize(
    "welfare",
    ["log", "power", "gini", "impact", "minimum", Power(exponent=0.5), GiniWelfare(smoothing=0.1)],
    ids=str,
)
def test_every_welfare_shares_exposure(market, welfare):
    ranking = ranking_of(market)
    plain = gini_of(market, ranking.top(np.arange(ranking.n_users), K).ids)
    shared = ll.BestResponse(strength=0.5, welfare=welfare).rerank(ranking, K).ids
    assert gini_of(market, shared) < plain - 0.02


def test_target_shares_are_approached(market):
    ranking = ranking_of(market)
    targets = np.where(np.arange(200) < 100, 3.0, 1.0)
    ids = (
        ll.BestResponse(strength=2.0, welfare=TargetShares(targets), sweeps=5)
        .rerank(ranking, K)
        .ids
    )
    exposure = ll.exposure(ids, n_items=200)
    assert exposure[:100].sum() / exposure.sum() == pytest.approx(0.75, abs=0.05)


def test_a_minimum_helps_only_those_below_it(market):
    ranking = ranking_of(market)
    ids = ll.BestResponse(strength=5.0, welfare=MinimumExposure(least=0.3)).rerank(ranking, K).ids
    exposure = ll.exposure(ids, n_items=200)
    plain = ll.exposure(ranking.top(np.arange(300), K).ids, n_items=200)
    low = 0.3 * exposure.sum() / 200
    assert np.mean(exposure < 0.7 * low) < 0.5 * np.mean(plain < 0.7 * low)


def test_impact_prefers_those_who_like_the_item(market):
    ranking = ranking_of(market)
    outcomes = []
    for welfare in (Impact(), Power()):
        method = ll.BestResponse(strength=0.3, welfare=welfare)
        method.rerank(ranking, K)
        outcomes.append(method.outcome_.relevance_loss)
    assert outcomes[0] < outcomes[1]


def test_best_response_settles_and_says_what_it_cost(market):
    method = ll.BestResponse(strength=0.2, sweeps=12)
    method.rerank(ranking_of(market), K)
    assert 0 < method.outcome_.relevance_loss < 0.5
    assert method.outcome_.changed < 30


def test_online_goes_on_where_it_stopped(market):
    model, split = market
    # Strength is in units of the mean relevance of who is served: by rank, all have the same.
    whole, parts = (ll.Online(strength=0.3, relevance=BY_RANK) for _ in range(2))
    expected = whole.rerank(ranking_of(market), K).ids
    halves = split.test.history[:100], split.test.history[100:]
    found = [parts.rerank(model.ranking(histories), K).ids for histories in halves]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    # 300 users, after a head start in which each of 200 items counts as shown 0.3 times.
    assert parts.served_ == pytest.approx(300 + 0.3 * 200 / K)
    head_start = parts.exposure_ - ll.exposure(expected, n_items=200)
    np.testing.assert_allclose(head_start, head_start.mean(), atol=1e-9)


def test_online_refuses_another_catalogue_until_reset(market):
    online = ll.Online(strength=0.3)
    online.rerank(ranking_of(market), K)
    other = ll.Popularity().fit(ll.marketplace(60, 30, 400).interactions)
    with pytest.raises(DataError, match="200 items were served, now there are 30"):
        online.rerank(other.ranking(), 5)
    online.reset()
    assert online.rerank(other.ranking(), 5).ids.shape == (60, 5)


def test_warm_up_counts_for_as_many_users_as_told(market):
    online = ll.Online(strength=0.3).warm_up(ranking_of(market, "validation"), K, users=50)
    assert online.served_ == 50
    weights = (1 / np.log2(np.arange(2, K + 2))).sum()
    assert online.exposure_.sum() == pytest.approx(50 * weights)


def test_prices_are_drawn_by_id_not_by_row(market):
    prices = ll.FrankWolfe(strength=0.5, steps=20).fit(ranking_of(market, "validation"), K)
    model, split = market
    ids = np.array([f"user {u}" for u in range(300)])
    all_at_once = prices.rerank(ranking_of(market), K, user_ids=ids).ids
    order = np.random.default_rng(0).permutation(300)
    shuffled = prices.rerank(model.ranking(split.test.history[order]), K, user_ids=ids[order]).ids
    np.testing.assert_array_equal(shuffled, all_at_once[order])
    with pytest.raises(DataError, match="2 user ids for 300 users"):
        prices.rerank(ranking_of(market), K, user_ids=["a", "b"])


def test_draws_follow_the_mixture(market):
    prices = ll.FrankWolfe(strength=0.5, steps=5).fit(ranking_of(market, "validation"), K)
    counts = np.bincount(prices.draw(np.arange(20_000)), minlength=5) / 20_000
    np.testing.assert_allclose(counts, prices.mixture.chances, atol=0.02)
    np.testing.assert_array_equal(uniform([3], 0), uniform(["3"], 0))
    assert uniform([3], 0) != uniform([3], 1)


def test_prices_serve_from_an_index_of_inner_products(market):
    model, split = market
    method = ll.FrankWolfe(strength=0.5, steps=10, relevance=ScoreRelevance())
    prices = method.fit(ranking_of(market, "validation"), K)
    ranking = model.ranking(split.test.history, filter_seen=False)
    lists = prices.rerank(ranking, K)
    user = 7
    [draw] = prices.draw([user])
    items = prices.item_vectors(model.item_factors, draw)
    query = np.append(model.fold_in(split.test.history[[user]])[0], 1.0)
    best = np.argsort(-(items @ query))[:K]
    assert set(best.tolist()) == set(lists.ids[user].tolist())
    with pytest.raises(ConfigError, match="not the product of vectors"):
        ll.FrankWolfe().fit(ranking_of(market), K).item_vectors(model.item_factors, 0)


def test_settings_are_checked():
    for settings, message in (
        ({"strength": -1}, "strength must be a finite number 0 or more: -1"),
        ({"welfare": "nash"}, "unknown welfare: 'nash'"),
        ({"sweeps": 0}, "sweeps must be at least 1: 0"),
        ({"candidates": 0}, "candidates must be at least 1: 0"),
        ({"strenght": 1}, "unknown hyper-parameter: 'strenght'"),
    ):
        with pytest.raises(ConfigError, match=message):
            ll.BestResponse(**settings)
    with pytest.raises(ConfigError, match="prices cannot follow impact"):
        ll.FrankWolfe(welfare="impact")


def test_users_without_candidates_get_an_empty_list(crowd):
    pool, dense = crowd(40, 8, seed=4, share=0.05)
    ranking = CandidateRanking(pool.candidates).among(np.arange(3, dtype=np.int32))
    ids = ll.BestResponse(strength=0.5).rerank(ranking, 3).ids
    assert (ids[~np.isfinite(dense[:, :3]).any(axis=1)] == -1).all()


def test_online_request_by_request_is_online_at_once(market):
    """Strength keeps its unit, whoever asks: that of the users it was warmed up with."""
    model, split = market
    part = split.validation
    law = ll.calibrate(model.ranking(part.history), part.targets, K)
    one, many = (
        ll.Online(strength=0.3, relevance=law).warm_up(model.ranking(part.history), K)
        for _ in range(2)
    )
    expected = one.rerank(ranking_of(market), K).ids[:40]
    found = [many.rerank(model.ranking(split.test.history[[u]]), K).ids[0] for u in range(40)]
    np.testing.assert_array_equal(found, expected)


def test_items_are_compared_anew_on_the_way(market):
    ranking = ranking_of(market)
    plain = gini_of(market, ranking.top(np.arange(ranking.n_users), K).ids)
    shared = ll.Online(strength=0.5, welfare="gini").rerank(ranking, K).ids
    assert gini_of(market, shared) < plain - 0.02


def test_who_is_entitled_to_nothing_gets_no_help(market):
    ranking = ranking_of(market)
    plain = ll.exposure(ranking.top(np.arange(ranking.n_users), K).ids, n_items=200)
    nobody = np.argsort(plain)[:15]
    targets = np.ones(200)
    targets[nobody] = 0
    for method in (ll.BestResponse, ll.FrankWolfe):
        ids = method(strength=1.0, welfare=TargetShares(targets)).rerank(ranking, K).ids
        assert ll.exposure(ids, n_items=200)[nobody].sum() <= plain[nobody].sum()


def test_what_is_no_ranking_and_no_law_is_refused(market):
    for method in (ll.BestResponse(), ll.Online(), ll.FrankWolfe(), ll.Allocate(), ll.FairRec()):
        with pytest.raises(DataError, match="a ranking or candidates are wanted, not list"):
            method.rerank([[1, 2]], K)
    with pytest.raises(ConfigError, match="relevance must be a law: 'score'"):
        ll.BestResponse(relevance="score")
    ranking = ranking_of(market)
    with pytest.raises(DataError, match="targets have 5 rows, the ranking 300 users"):
        ll.calibrate(ranking, market[1].test.targets[:5])
    with pytest.raises(ConfigError, match="k must be at least 1: 0"):
        ll.Online().warm_up(ranking, 0)


def test_thorough_help_is_what_one_more_place_is_worth(market):
    welfare = Power(exponent=2.0, offset=0.5)
    with Pool(candidates_of(ranking_of(market)), BY_RANK) as pool:
        trade = Market(pool, K, welfare, threads=1, seed=0, by_place=True)
        trade.ledger.open()
        table = trade.support(1.0).table[0] / trade.support(1.0).table[0, 0]
        place = trade.ledger.weights.mean() / (trade.ledger.exposure.sum() / pool.n_items)
    x = knots()[:-1]
    gain = (1 / (x + 0.5) - 1 / (x + 0.5 + place)) / place
    np.testing.assert_allclose(table[:-1], gain / gain[0], rtol=1e-4)


def test_thorough_lists_are_better_for_relevance_and_welfare_together(market):
    ranking, welfare = ranking_of(market), Power(exponent=2.0, offset=0.5)

    def reached(**settings):
        method = ll.BestResponse(strength=0.3, welfare=welfare, **settings)
        ids = method.rerank(ranking, K).ids
        return gini_of(market, ids), method.outcome_.relevance_loss

    quick, thorough = reached(sweeps=12), reached(thorough=True)
    assert thorough != quick
    assert thorough[0] < quick[0] + 0.03
    assert thorough[1] < quick[1] + 0.03


def best_at(pool, k, subsidies, draws):
    """A NumPy twin of the kernel: everybody's best places at the prices that she drew."""
    places = np.full((pool.n_users, k), -1, dtype=np.int32)
    for user, draw in enumerate(draws):
        _, items = pool.candidates.items_of(user, user + 1)
        first = pool.candidates.indptr[user]
        relevance = pool.relevance(slice(0, pool.n_users))[first : first + len(items)]
        worth = relevance.astype(np.float64) + subsidies[draw, items]
        best = np.sort(np.argsort(-worth, kind="stable")[:k])
        places[user, : len(best)] = best
    return places


def test_the_kernel_chooses_what_numpy_chooses(market):
    generator = np.random.default_rng(2)
    with candidates_of(ranking_of(market), 60) as candidates, Pool(candidates, BY_RANK) as pool:
        subsidies = generator.random((3, pool.n_items)).astype(np.float32) * 0.1
        draws = generator.integers(0, 3, pool.n_users).astype(np.int32)
        found = choose(pool, K, subsidies, draws, 2)
        np.testing.assert_array_equal(found, best_at(pool, K, subsidies, draws))


def test_one_index_serves_everybody_and_leaves_out_what_she_has_seen(market):
    model, split = market
    method = ll.FrankWolfe(strength=0.5, steps=10, relevance=ScoreRelevance())
    prices = method.fit(ranking_of(market, "validation"), K)
    lists = prices.rerank(ranking_of(market), K)
    index = prices.item_vectors(model.item_factors)
    vectors, draws = model.fold_in(split.test.history), prices.draw(np.arange(300))
    for user in range(40):
        seen = split.test.history[[user]].indices
        query = np.concatenate([vectors[user], np.arange(10) == draws[user]])
        fetched = np.argsort(-(index @ query))[: K + len(seen)]
        kept = fetched[~np.isin(fetched, seen)][:K]
        ordered = kept[np.argsort(-(model.item_factors[kept] @ vectors[user]))]
        np.testing.assert_array_equal(ordered, lists.ids[user])
