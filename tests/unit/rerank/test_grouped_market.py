"""A market in which groups have prices: even exposure and shares of groups hold together."""

import numpy as np
import pytest
from tests.support.models import FIXED

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.data.groups import Groups, as_groups
from limelight.recommend.candidates import candidates_of
from limelight.rerank.market.grouped import TOLERANCE, GroupedMarket
from limelight.rerank.market.market import Market
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import BY_RANK, ScoreRelevance
from limelight.rerank.targets.groups import as_bounds, as_target
from limelight.rerank.welfare import LOG, as_welfare

K, ITEMS = 10, 200
EVEN = np.arange(ITEMS) % 8
SKEWED = (12 * np.sqrt(np.arange(ITEMS) / ITEMS)).astype(int)
"""From 2 items in the first group to 31 in the last."""


@pytest.fixture(scope="module")
def rankings():
    data = ll.marketplace(2400, ITEMS, 48_000).interactions
    split = ll.split_users(data, validation=900, test=700)
    model = ll.IALS(factors=16, epochs=8, **FIXED).fit(split.train)
    return [model.ranking(part.history) for part in (split.validation, split.test)]


@pytest.fixture(scope="module")
def pool(rankings):
    return Pool(candidates_of(rankings[0]), BY_RANK)


def market_of(pool, *, welfare=LOG, threads=2, **settings):
    return Market(pool, K, welfare, threads=threads, seed=0, **settings)


def grouped(pool, labels, *, target=None, at_most=None, at_least=None, **settings):
    members = as_groups(labels, ITEMS)
    if target is not None:
        wishes = as_target(target, members, ITEMS)
    else:
        wishes = as_bounds(at_most, at_least, members, ITEMS)
    return GroupedMarket(market_of(pool, **settings), members, wishes)


WISHES = [
    pytest.param(EVEN, {"at_most": 0.135}, id="caps"),
    pytest.param(SKEWED, {"at_most": 0.11}, id="caps of skewed groups"),
    pytest.param(SKEWED, {"at_most": 0.12, "at_least": 0.05}, id="caps and floors"),
    pytest.param(EVEN, {"at_least": {3: 0.2}}, id="a floor"),
    pytest.param(SKEWED, {"target": "equal"}, id="targets"),
]


@pytest.mark.parametrize(("labels", "wishes"), WISHES)
@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0])
def test_wishes_hold_after_five_sweeps_and_three_more(pool, labels, wishes, strength):
    market = grouped(pool, labels, **wishes)
    for now, sweeps in ((strength, 5), (1.5 * strength + 0.02, 3)):
        market.settle(now, sweeps)
        assert market.missed == []
        assert market.violation <= TOLERANCE
        exposure = market.ledger.exposure_of(market.ledger.places)
        np.testing.assert_allclose(market.ledger.exposure, exposure, atol=1e-6)
        held = market.wishes.shares(market.members, exposure)
        np.testing.assert_allclose(market.shares, held, atol=1e-9)


def test_an_even_exposure_and_caps_hold_together(pool):
    plain = market_of(pool)
    plain.ledger.open()
    for _ in range(5):
        plain.sweep(0.3)
    market = grouped(pool, SKEWED, at_most=0.11)
    market.settle(0.3, 5)
    alone, together = (ll.gini(m.ledger.exposure) for m in (plain, market))
    assert together == pytest.approx(alone, abs=0.02)
    assert market.wishes.shares(market.members, plain.ledger.exposure).max() > 0.125
    assert market.shares.max() <= 0.11 + TOLERANCE


@pytest.mark.parametrize("name", ["power", "gini", "minimum"])
def test_any_welfare_of_exposure_will_do(pool, name):
    market = grouped(pool, SKEWED, at_most=0.11, at_least=0.03, welfare=as_welfare(name))
    market.settle(0.5, 6)
    assert market.missed == []


def flat(block):
    return (0.9 + 0.1 * BY_RANK(block)).astype(np.float32)


@pytest.mark.parametrize("law", [ScoreRelevance(), flat], ids=["score", "nearly the same"])
def test_steps_are_in_units_of_how_relevance_differs(rankings, law):
    with Pool(candidates_of(rankings[0]), law) as pool:
        market = grouped(pool, SKEWED, at_most=0.11, at_least=0.03)
        market.settle(0.1, 6)
        assert market.missed == []


@pytest.mark.parametrize("name", ["log", "gini"])
def test_without_wishes_it_is_a_market(pool, name):
    plain = market_of(pool, welfare=as_welfare(name))
    plain.ledger.open()
    changed = [plain.sweep(0.3) for _ in range(3)][-1]
    market = grouped(pool, EVEN, welfare=as_welfare(name))
    assert market.settle(0.3, 3) == changed
    np.testing.assert_array_equal(market.ledger.places, plain.ledger.places)
    assert not market.prices.any()
    assert not market.offsets.any()


def test_wishes_that_hold_anyway_have_no_price(pool):
    plain, market = grouped(pool, EVEN), grouped(pool, EVEN, at_most=0.5, at_least=0.01)
    for each in (plain, market):
        each.settle(0.3, 3)
    assert not market.prices.any()
    # Users who choose at the same exposure are cut off where prices are looked at.
    np.testing.assert_allclose(market.shares, plain.shares, atol=0.002)


@pytest.mark.parametrize(("labels", "cap"), [(EVEN, 0.14), (SKEWED, 0.12)], ids=["even", "skewed"])
def test_without_strength_it_finds_what_group_shares_find(pool, labels, cap):
    method = ll.GroupShares(at_most=cap)
    prices, found = method.solve(pool, K, labels)
    market = grouped(pool, labels, at_most=cap)
    market.ledger.open()
    own = market.ledger.relevance()
    market.settle(0.0, 6)
    np.testing.assert_allclose(market.shares, found.shares, atol=0.002)
    loss = 1 - market.ledger.relevance() / own
    assert loss == pytest.approx(found.relevance_loss, abs=0.002)
    dearest = max(prices.prices.values())
    np.testing.assert_allclose(market.prices, list(prices.prices.values()), atol=0.1 * dearest)


def test_signs_of_prices(pool):
    market = grouped(pool, SKEWED, at_most=0.11, at_least=0.03)
    market.settle(0.3, 5)
    assert market.prices.max() > 0 > market.prices.min()
    only_caps = grouped(pool, SKEWED, at_most=0.11)
    only_caps.settle(0.3, 5)
    assert (only_caps.prices >= 0).all()
    only_floors = grouped(pool, SKEWED, at_least=0.05)
    only_floors.settle(0.3, 5)
    assert (only_floors.prices <= 0).all()


def test_threads_do_not_matter(pool):
    found = []
    for threads in (1, 3):
        market = grouped(pool, SKEWED, at_most=0.11, threads=threads)
        market.settle(0.3, 2)
        found.append((market.ledger.places, market.prices))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_items_may_be_in_several_groups_or_in_none(pool):
    items = np.r_[np.arange(150), np.arange(50)]
    groups = np.r_[np.arange(150) % 3, np.full(50, 3)]
    weights = np.r_[np.full(50, 0.5), np.ones(100), np.full(50, 0.5)]
    members = Groups(items, groups, weights, ["a", "b", "c", "d"], 0)
    wishes = as_bounds({"a": 0.15}, {"d": 0.2}, members, ITEMS)
    market = GroupedMarket(market_of(pool), members, wishes)
    market.settle(0.3, 6)
    assert market.missed == []
    np.testing.assert_allclose(
        market.offsets[[0, 60, 199]],
        [-(market.prices[0] + market.prices[3]) / 2, -market.prices[0], 0],
    )


def test_later_users_are_served_at_its_offsets(rankings, pool):
    market = grouped(pool, SKEWED, at_most=0.11)
    market.settle(0.3, 5)
    with Pool(candidates_of(rankings[1]), BY_RANK) as others:
        shares = []
        for offsets in (None, market.offsets):
            later = market_of(others, survey=market.market.survey, offsets=offsets)
            later.resume(market.ledger.exposure, market.ledger.served)
            later.serve(0.3)
            given = later.ledger.exposure - market.ledger.exposure
            shares.append(market.wishes.shares(market.members, given).max())
    assert shares[0] > 0.125
    assert shares[1] < 0.12


def test_everybody_who_chooses_again_at_its_offsets_keeps_the_shares(pool):
    market = grouped(pool, SKEWED, at_most=0.11)
    market.settle(0.3, 5)
    fixed = market_of(pool, offsets=market.offsets)
    fixed.ledger.restore(market.ledger.places, market.ledger.state())
    fixed.sweep(0.3)
    shares = market.wishes.shares(market.members, fixed.ledger.exposure)
    assert market.wishes.violations(shares).max() <= 2 * TOLERANCE


def test_it_goes_on_from_prices_and_lists(pool):
    first = grouped(pool, SKEWED, at_most=0.11)
    first.settle(0.3, 4)
    again = grouped(pool, SKEWED, at_most=0.11)
    again.ledger.restore(first.ledger.places, first.ledger.state())
    again.prices = first.prices.copy()
    for market in (first, again):
        market.settle(0.4, 2)
    np.testing.assert_array_equal(first.ledger.places, again.ledger.places)
    np.testing.assert_array_equal(first.prices, again.prices)


def test_impossible_wishes_are_told_and_the_others_hold(crowd):
    # Users choose 5 of about 8 items, and half of the items are of the first group.
    pool, dense = crowd(600, 10, seed=1)
    members = as_groups(["x"] * 5 + ["y", "y", "z", "z", "z"], 10)
    wishes = as_bounds({"x": 0.1}, {"y": 0.25}, members, 10)
    market = GroupedMarket(Market(pool, 5, LOG, threads=1, seed=0), members, wishes)
    market.settle(0.1, 6)
    assert market.missed == ["x"]
    assert market.violation == pytest.approx(market.shares[0] - 0.1)
    # Nobody takes more of it than she must.
    for ids, dense_row in zip(pool.lists(market.ledger.places).ids, dense, strict=True):
        others = np.isfinite(dense_row[5:]).sum()
        assert np.sum((ids >= 0) & (ids < 5)) <= max(5 - others, 0)


def test_no_sweeps_are_own_lists(pool):
    market = grouped(pool, EVEN, at_most=0.15)
    assert market.settle(0.3, 0) == 0
    np.testing.assert_array_equal(market.ledger.places, pool.own_places(K))


def test_impact_is_refused(pool):
    with pytest.raises(ConfigError, match="shares of groups are of exposure, not of impact"):
        grouped(pool, EVEN, at_most=0.15, welfare=as_welfare("impact"))
