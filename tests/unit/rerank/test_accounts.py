"""Accounts of groups beside those of items, the order of lists, and who chooses again."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import sklearn.base
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

import limelight as ll
from limelight import LimelightError
from limelight._native import kernels
from limelight.data.groups import as_groups, exposure_of, read_groups
from limelight.metrics.lists import position_weights
from limelight.recommend.candidates import candidates_of
from limelight.rerank.market.ledger import Help, Ledger, knots
from limelight.rerank.market.market import GroupAccounts, Market
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.best_response import MarketState
from limelight.rerank.methods.market_config import AccountsConfig
from limelight.rerank.relevance import BY_RANK, ScoreRelevance
from limelight.rerank.welfare import LOG, Power

K = 10


def random_groups(n_items, n_groups, seed):
    """Some items in two groups, some in none."""
    generator = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        mine = generator.choice(n_groups, size=generator.integers(0, 3), replace=False)
        rows += [(item, int(group), float(generator.integers(1, 4))) for group in mine]
    rows = rows or [(0, 0, 1.0)]
    items, groups, weights = zip(*rows, strict=True)
    table = pa.table({"item_id": items, "group": groups, "weight": weights})
    return read_groups(table, pa.array(list(range(n_items))))


def help_of(n, strength, per_user, groups=None):
    table = np.tile(Power(exponent=2, offset=0.3).marginal(knots()), (2, 1))
    return Help(np.full(n, per_user / n), np.full(n, strength), table, groups)


class Twin(NamedTuple):
    """A market as dense matrices: what a user chooses, without looking where to stop."""

    relevance: np.ndarray
    shares: np.ndarray
    """Items x groups."""
    weights: np.ndarray
    support: Help
    served: float
    by_impact: bool
    order: float
    scale: np.ndarray

    def subsidies(self, exposure, support):
        share = support.entitlement * self.served
        y = exposure / (exposure + share)
        at = np.linspace(0, 1, support.table.shape[1])
        return support.pull * np.interp(y, at, support.table[0])

    def gifts(self, user, items):
        gifts = np.zeros(self.relevance.shape[1])
        amounts = self.weights[: len(items)]
        gifts[items] = amounts * self.relevance[user, items] if self.by_impact else amounts
        return gifts

    def choose(self, user, held, exposure):
        exposure = np.maximum(exposure - self.gifts(user, held), 0)
        own = self.relevance[user].astype(np.float64)
        help_now = self.subsidies(exposure, self.support)
        if self.support.groups is not None:
            of_groups = np.maximum(exposure @ self.shares, 0)
            help_now = help_now + self.shares @ self.subsidies(of_groups, self.support.groups)
        help_now = help_now * self.scale[user]
        worth = own * (1 + help_now) if self.by_impact else own + help_now
        candidates = np.flatnonzero(np.isfinite(own))
        best = candidates[np.argsort(-worth[candidates], kind="stable")][: len(self.weights)]
        key = own[best] + self.order * (worth[best] - own[best])
        chosen = best[np.argsort(-key, kind="stable")]
        return chosen.tolist(), exposure + self.gifts(user, chosen)


@examples(80)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 6),
    strengths=st.tuples(st.sampled_from([0.0, 0.1, 2.0]), st.sampled_from([0.0, 0.1, 2.0])),
    order=st.sampled_from([0.0, 0.5, 1.0]),
    by_impact=st.booleans(),
    is_scaled=st.booleans(),
)
def test_choices_are_those_of_the_dense_twin(crowd, seed, k, strengths, **kinds):
    order, by_impact = kinds["order"], kinds["by_impact"]
    n_users, n_items, n_groups = 12, 9, 4
    pool, dense = crowd(n_users, n_items, seed=seed, share=0.7)
    generator = np.random.default_rng(seed)
    # Scores of three digits are often equal; then the twin and the kernel may differ in order.
    members = random_groups(n_items, n_groups, seed)
    n_groups = len(members.group_ids)
    shares = np.zeros((n_items, n_groups))
    shares[members.items, members.groups] = members.weights
    scale = generator.uniform(0.5, 2, pool.n_users) if kinds["is_scaled"] else None
    ledger = Ledger(
        pool,
        position_weights(k),
        by_impact=by_impact,
        groups=members,
        scale=scale,
        order=order,
        threads=1,
        seed=0,
    )
    ledger.open()
    total = float(ledger.weights.sum())
    support = help_of(n_items, strengths[0], total, help_of(n_groups, strengths[1], total))
    factors = np.ones(pool.n_users) if scale is None else scale
    twin = Twin(dense, shares, ledger.weights, support, ledger.served, by_impact, order, factors)
    exposure = ledger.exposure.copy()
    [rows] = pool.blocks
    for user in generator.permutation(np.repeat(np.arange(pool.n_users), 2)):
        held = [int(j) for j in pool.lists(ledger.places).ids[user] if j >= 0]
        expected, exposure = twin.choose(user, held, exposure)
        ledger._visit(rows, np.array([user]), support, 1, newcomers=False)
        found = [int(j) for j in pool.lists(ledger.places).ids[user] if j >= 0]
        if len(set(dense[user][np.isfinite(dense[user])])) == np.isfinite(dense[user]).sum():
            assert found == expected
        exposure = ledger.exposure.copy()
        np.testing.assert_allclose(exposure, ledger.exposure_of(ledger.places), atol=1e-9)


@pytest.mark.parametrize("batch", [1, 100, 1000])
def test_threads_do_not_matter(crowd, batch):
    pool, _ = crowd(600, 40, seed=5)
    members = random_groups(40, 5, 1)
    found = []
    for threads in (1, 3):
        ledger = Ledger(
            pool, position_weights(5), groups=members, order=1.0, threads=threads, seed=1
        )
        ledger.open()
        groups = help_of(len(members.group_ids), 0.2, 3.0)
        for _ in range(2):
            ledger.sweep(lambda: help_of(40, 0.1, 3.0, groups), batch=batch)  # noqa: B023
        found.append((ledger.places, ledger.exposure))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_every_move_raises_relevance_plus_welfare(crowd):
    # Help is what one more list is worth, and a user's items are in her list once.
    pool, _ = crowd(120, 20, seed=2)
    market = Market(pool, 4, LOG, threads=1, seed=0, by_place=True, uniform=True)
    ledger, strength = market.ledger, 3.0
    ledger.open()
    support = market.support(strength)
    share = support.entitlement * ledger.served

    def potential():
        welfare = float(np.sum(share * np.log(ledger.exposure / share + LOG.offset)))
        return ledger.relevance() * pool.n_users + support.pull[0] * welfare

    [rows] = pool.blocks
    before, moves = potential(), 0
    for user in np.random.default_rng(0).permutation(np.tile(np.arange(120), 5)):
        moves += ledger._visit(rows, np.array([user]), support, 1, newcomers=False)
        now = potential()
        assert now > before - 1e-5
        before = now
    assert moves > 50


def test_lists_in_the_order_of_subsidies_give_the_cheap_the_first_places(crowd):
    pool, _ = crowd(300, 30, seed=3, share=1.0)
    by_order = {}
    for order in (0.0, 1.0):
        ledger = Ledger(pool, position_weights(5), order=order, threads=1, seed=0)
        ledger.open()
        for _ in range(3):
            ledger.sweep(partial(help_of, 30, 0.3, 3.0))
        by_order[order] = ledger
        np.testing.assert_allclose(ledger.exposure, ledger.exposure_of(ledger.places), atol=1e-9)
    assert (np.diff(by_order[0.0].places, axis=1) > 0).all()
    assert not (np.diff(by_order[1.0].places, axis=1) > 0).all()
    assert np.ptp(by_order[1.0].exposure) < np.ptp(by_order[0.0].exposure)


def test_only_those_who_moved_choose_again(crowd):
    pool, _ = crowd(400, 30, seed=3)
    ledger = Ledger(pool, position_weights(5), threads=1, seed=0)
    ledger.open()
    support = partial(help_of, 30, 0.05, 3.0)
    changed = ledger.sweep(support)
    assert ledger.turns == 400
    assert ledger.moved.sum() == changed
    while changed:
        turns, waiting = ledger.turns, ledger.moved.sum()
        changed = ledger.sweep(support, only_moved=True)
        assert ledger.turns - turns == waiting
    np.testing.assert_allclose(ledger.exposure, ledger.exposure_of(ledger.places), atol=1e-9)
    ledger.open()
    assert ledger.moved.all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"indptr": np.array([0, 2])}, "must end at the members"),
        ({"indptr": np.array([0, 2, 1])}, "must not fall|end at the members"),
        ({"groups": np.array([5], np.int32)}, "group is out of range"),
        ({"groups": np.array([-1], np.int32)}, "group is out of range"),
        ({"weights": np.array([-1.0])}, "weights must be numbers from 0"),
        ({"weights": np.array([np.nan])}, "weights must be numbers from 0"),
        ({"weights": np.ones(2)}, "one length"),
        ({"n_groups": -1}, "number of groups"),
    ],
)
def test_wrong_groups_are_refused(changes, reason):
    values = {
        "indptr": np.array([0, 1, 1]),
        "groups": np.array([0], np.int32),
        "weights": np.ones(1),
        "n_groups": 1,
    }
    with pytest.raises(ValueError, match=reason):
        kernels.ItemGroups(**values | changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"group_pull": None}, "groups need accounts"),
        ({"group_exposure": np.zeros(3)}, "every group needs an account"),
        ({"group_pull": np.array([np.inf, 0])}, "finite"),
        ({"scale": np.ones(3)}, "one scale a user"),
        ({"scale": np.array([-1.0, 1])}, "scale must be"),
        ({"subsidised_order": 1.5}, "from 0 to 1"),
        ({"subsidised_order": np.nan}, "from 0 to 1"),
        ({"groups": ([0], [], [], 2)}, "groups for every item"),
    ],
)
def test_wrong_accounts_are_refused(changes, reason):
    candidates = kernels.RankedCandidates(
        indptr=np.array([0, 2, 3]),
        items=np.array([0, 1, 1], np.int32),
        relevance=np.array([0.5, 0.25, 0.1], np.float32),
        n_items=2,
    )
    settings = {
        "order": np.array([0, 1], np.int32),
        "lists": np.array([[0, 1], [0, -1]], np.int32),
        "weights": np.ones(2),
        "accounts": np.arange(2, dtype=np.int32),
        "exposure": np.zeros(2),
        "entitlement": np.ones(2),
        "pull": np.ones(2),
        "marginal": np.ones((2, 5)),
        "by_impact": False,
        "batch": 1,
        "newcomers": False,
        "served": 2.0,
        "threads": 1,
        "groups": ([0, 1, 2], [0, 1], [1, 1], 2),
        "group_exposure": np.zeros(2),
        "group_entitlement": np.ones(2),
        "group_pull": np.ones(2),
        "group_marginal": np.ones((2, 5)),
    } | changes
    indptr, groups, weights, n_groups = settings["groups"]
    settings["groups"] = kernels.ItemGroups(
        np.array(indptr), np.array(groups, np.int32), np.array(weights, np.float64), n_groups
    )
    with pytest.raises(ValueError, match=reason):
        kernels.respond(candidates, **settings)


@pytest.fixture(scope="module")
def market():
    data = ll.marketplace(1200, 200, 24_000).interactions
    split = ll.split_users(data, validation=100, test=300)
    model = ll.IALS(factors=16, epochs=8).fit(split.train)
    return model, split


SELLERS = np.minimum(np.arange(200) // 4, 9)
"""Nine sellers of four items, and one of all others."""


def held_by_sellers(ids, groups=SELLERS):
    exposure = ll.exposure(ids, n_items=200)
    has_group = groups >= 0
    return np.bincount(groups[has_group], exposure[has_group])


@pytest.mark.parametrize("kind", [ll.BestResponse, ll.Online])
def test_groups_share_more_evenly_with_more_strength(market, kind):
    model, split = market
    ranking = model.ranking(split.test.history)
    shares = []
    for strength in (0.0, 0.3, 3.0):
        ids = kind(strength=strength).of(SELLERS).rerank(ranking, K).ids
        held = held_by_sellers(ids)
        shares.append(held.min() / held.sum())
    assert shares[0] < shares[1] < shares[2]
    plain = model.ranking(split.test.history).top(np.arange(300), K)[0]
    np.testing.assert_array_equal(kind(strength=0.0).of(SELLERS).rerank(ranking, K).ids, plain)


def test_items_within_groups_share_as_well_where_that_is_asked(market):
    model, split = market
    ranking = model.ranking(split.test.history)
    alone, both = (
        ll.BestResponse(strength=0.5, items=items).of(SELLERS).rerank(ranking, K).ids
        for items in (0.0, 1.0)
    )
    rest = SELLERS == 9
    spread = [np.std(ll.exposure(ids, n_items=200)[rest]) for ids in (alone, both)]
    assert spread[1] < spread[0]
    held = held_by_sellers(both)
    assert held.min() / held.sum() > 0.05


def test_groups_may_overlap_and_leave_items_out(market):
    model, split = market
    table = pa.table(
        {
            "item_id": np.asarray(model.item_ids)[[0, 0, 1, 2, 3]],
            "group": ["x", "y", "y", "x", "z"],
            "weight": [3.0, 1.0, 1.0, 1.0, 1.0],
        }
    )
    members = read_groups(table, pa.array(model.item_ids))
    ranking = model.ranking(split.test.history)
    plain, fair = (
        ll.BestResponse(strength=s).of(members).rerank(ranking, K).ids for s in (0.0, 1.0)
    )
    before, after = (exposure_of(members, ll.exposure(ids, n_items=200)) for ids in (plain, fair))
    assert (after > before).all()


def test_groups_may_be_entitled_to_unequal_shares(market):
    model, split = market
    ranking = model.ranking(split.test.history)
    halves = np.arange(200) % 2
    wished = ll.BestResponse(strength=3.0, group_shares={0: 0.8, 1: 0.2}).of(halves)
    held = held_by_sellers(wished.rerank(ranking, K).ids, halves)
    assert held[0] / held.sum() > 0.7
    owned = ll.BestResponse(strength=3.0, group_shares="catalogue").of(SELLERS)
    held = held_by_sellers(owned.rerank(ranking, K).ids)
    assert held.argmax() == 9
    assert held[9] / held.sum() > 0.5


def test_strength_is_in_units_of_each_users_own_list(crowd):
    # Who has larger scores for everything gets the same lists.
    _, dense = crowd(60, 20, seed=8, share=1.0)
    lists = []
    for factor in (1.0, 8.0):
        scores = dense.copy()
        scores[::3] *= factor
        users, items = np.nonzero(np.isfinite(scores))
        table = pa.table({"user_id": users, "item_id": items, "score": scores[users, items]})
        method = ll.BestResponse(strength=0.2, per_user=True, relevance=ScoreRelevance())
        lists.append(method.rerank(ll.read_candidates(table), 5).ids)
    assert (lists[0] == lists[1]).mean() > 0.99


def test_places_count_alike_where_that_is_asked(crowd):
    pool, _ = crowd(50, 10, seed=1, share=1.0)
    market = Market(pool, 4, LOG, threads=1, seed=0, uniform=True)
    market.ledger.open()
    ids = pool.lists(market.ledger.places).ids
    np.testing.assert_array_equal(market.ledger.exposure, np.bincount(ids.ravel(), minlength=10))


def test_the_first_user_of_a_cold_stream_gets_her_plain_list(crowd):
    pool, _ = crowd(40, 12, seed=7)
    for members in (None, as_groups(np.arange(12) % 3, 12)):
        groups = None if members is None else GroupAccounts(members, LOG, np.full(3, 1 / 3))
        market = Market(pool, 4, LOG, threads=1, seed=0, groups=groups)
        market.start_even(4)
        market.serve(1.0)
        np.testing.assert_array_equal(market.ledger.places[0], pool.own_places(4)[0])
        assert (market.ledger.places != pool.own_places(4)).any()


def test_groups_are_saved_with_a_stream_and_go_on(market, tmp_path):
    model, split = market
    first, second = split.test.history[:150], split.test.history[150:]
    online = ll.Online(strength=0.5, items=0.5, order="subsidised").of(SELLERS)
    online.rerank(model.ranking(first), K)
    online.over(model).save(tmp_path / "model")
    loaded = ll.load(tmp_path / "model").reranker
    assert loaded.groups_.group_ids == list(range(10))
    expected = online.rerank(model.ranking(second), K).ids
    np.testing.assert_array_equal(loaded.rerank(model.ranking(second), K).ids, expected)


def test_groups_are_saved_before_anybody_is_served(market, tmp_path):
    model, split = market
    fair = ll.BestResponse(strength=0.5).of(SELLERS)
    fair.over(model).save(tmp_path / "model")
    loaded = ll.load(tmp_path / "model").reranker
    assert not loaded.is_settled
    ranking = model.ranking(split.test.history)
    np.testing.assert_array_equal(loaded.rerank(ranking, K).ids, fair.rerank(ranking, K).ids)


def test_states_without_groups_load_as_before():
    old = {"served": 5.0, "unit": 0.5, "total": 2.0, "exposure": np.ones(3), "merit": np.zeros(3)}
    online = ll.Online()
    online.restore(MarketState.of(old), 3)
    assert (online.served_, online.groups_) == (5.0, None)
    fresh = ll.Online()
    fresh.restore(MarketState.of({}), 3)
    assert not fresh.is_settled


def test_damaged_groups_are_refused():
    for members in ([[9.0, 0.0, 1.0]], [[0.0, 4.0, 1.0]], [[0.0, 0.0, -1.0]], [[0.0, np.nan, 1.0]]):
        state = MarketState.of({"groups": {"x": 0.0}, "members": np.array(members)})
        with pytest.raises(LimelightError, match="members"):
            ll.Online().restore(state, 3)


def test_groups_of_another_catalogue_are_refused(market):
    model, split = market
    for wrong in (300, 100):
        with pytest.raises(LimelightError, match=f"{wrong} items have a label"):
            ll.BestResponse().of(np.arange(wrong)).rerank(model.ranking(split.test.history), K)
    for nothing in (None, "sellers.csv"):
        with pytest.raises(LimelightError, match="groups must be labels"):
            ll.BestResponse().of(nothing)


def test_groups_are_kept_at_another_strength_and_in_clones():
    method = ll.BestResponse(strength=0.2).of(np.arange(200) % 7)
    assert repr(method) == "BestResponse(strength=0.2).of(7 groups)"
    for other in (method.at(0.3), sklearn.base.clone(method)):
        assert other.groups_ is method.groups_


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"order": "price"}, "order"),
        ({"places": "first"}, "places"),
        ({"items": -1.0}, "items"),
        ({"group_shares": "interactions"}, "group_shares"),
        ({"group_shares": "most"}, "target|group_shares"),
        ({"group_welfare": "wealth"}, "unknown welfare"),
    ],
)
def test_settings_are_checked(settings, reason):
    with pytest.raises(LimelightError, match=reason):
        AccountsConfig(**settings)


def test_items_and_groups_do_not_differ_in_impact(market):
    model, split = market
    method = ll.BestResponse(items=1.0, group_welfare="impact").of(SELLERS)
    with pytest.raises(LimelightError, match="cannot differ in impact"):
        method.rerank(model.ranking(split.test.history), K)
    alone = ll.BestResponse(group_welfare="impact").of(SELLERS)
    assert alone.rerank(model.ranking(split.test.history), K).ids.shape == (300, K)


def test_a_stream_of_groups_has_no_worse_start_on_pools(market):
    model, split = market
    with Pool(candidates_of(model.ranking(split.test.history)), BY_RANK) as pool:
        online = ll.Online(strength=0.5).of(SELLERS)
        assert online.places_from(pool, K).shape == (300, K)
        assert online.served_ == pytest.approx(300 + 10 * 10 / K)
