"""Shares of exposure for groups: wishes hold, for the users they were found for and for others."""

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import Groups, as_groups
from limelight.recommend import candidates as making
from limelight.rerank import GroupPrices, ScoreRelevance, read_groups
from limelight.rerank.methods.group_ascent import Ascent
from limelight.rerank.targets.groups import as_bounds, as_target, read_shares

K = 10
N_ITEMS = 200


@pytest.fixture(scope="module")
def market():
    data = ll.marketplace(4000, N_ITEMS, 60_000).interactions
    split = ll.split_users(data, validation=1200, test=1200)
    model = ll.IALS(factors=16, epochs=8).fit(split.train)
    return model, split


@pytest.fixture(scope="module")
def sellers(market):
    """Five sellers of very different success, and some items without one."""
    plain = exposure_of(market, ranking_of(market).top(np.arange(1200), K).ids)
    labels = np.empty(N_ITEMS, dtype=np.int64)
    labels[np.argsort(-plain)] = np.repeat(np.arange(5), N_ITEMS // 5)
    labels[::9] = -1
    return labels


def ranking_of(market, part="validation"):
    model, split = market
    return model.ranking(getattr(split, part).history)


def exposure_of(market, ids):
    return ll.exposure(ids, n_items=N_ITEMS)


def naive_shares(ids, labels, n_groups, *, of_grouped=False):
    """Add up one place after the other."""
    held, total = np.zeros(n_groups), 0.0
    for row in ids.tolist():
        for place, item in enumerate(row):
            weight = 1 / np.log2(place + 2)
            if labels[item] >= 0:
                held[labels[item]] += weight
            total += weight
    return held / (held.sum() if of_grouped else total)


def test_shares_are_those_of_a_naive_count(market, sellers):
    method = ll.GroupShares(at_most=0.3)
    ids = method.rerank(ranking_of(market), K, groups=sellers).ids
    plain = ranking_of(market).top(np.arange(1200), K).ids
    shares = method.outcome_.shares
    np.testing.assert_allclose([s.after for s in shares], naive_shares(ids, sellers, 5))
    np.testing.assert_allclose([s.before for s in shares], naive_shares(plain, sellers, 5))
    method = ll.GroupShares(target="equal")
    ids = method.rerank(ranking_of(market), K, groups=sellers).ids
    expected = naive_shares(ids, sellers, 5, of_grouped=True)
    np.testing.assert_allclose([s.after for s in method.outcome_.shares], expected)


def test_a_cap_holds_for_known_users_and_for_others(market, sellers):
    method = ll.GroupShares(at_most=0.3)
    prices = method.fit(ranking_of(market), K, groups=sellers)
    assert method.outcome_.is_met
    assert str(method.outcome_).startswith("All group targets are met")
    known = prices.rerank(ranking_of(market), K).ids
    assert naive_shares(known, sellers, 5).max() <= 0.301
    plain = ranking_of(market, "test").top(np.arange(1200), K).ids
    assert naive_shares(plain, sellers, 5).max() > 0.45
    others = prices.rerank(ranking_of(market, "test"), K).ids
    assert naive_shares(others, sellers, 5).max() <= 0.32


def test_only_groups_at_their_bounds_have_a_price(market, sellers):
    part = market[1].validation
    law = ll.calibrate(ranking_of(market), part.targets, K)
    method = ll.GroupShares(at_most={0: 0.3}, at_least={4: 0.1}, tolerance=5e-4, relevance=law)
    prices = method.fit(ranking_of(market), K, groups=sellers).prices
    shares = {share.id: share for share in method.outcome_.shares}
    assert shares[0].before > 0.4
    assert shares[4].before < 0.05
    assert shares[0].after == pytest.approx(0.3, abs=5e-4)
    assert shares[4].after == pytest.approx(0.1, abs=5e-4)
    assert prices[0] > 0 > prices[4]
    assert prices[1] == prices[2] == prices[3] == 0


def test_wishes_that_hold_already_change_nothing(market, sellers):
    method = ll.GroupShares(at_most=0.9)
    prices = method.fit(ranking_of(market), K, groups=sellers)
    assert not prices.item_prices.any()
    plain = ranking_of(market).top(np.arange(1200), K)
    np.testing.assert_array_equal(prices.rerank(ranking_of(market), K).ids, plain.ids)
    assert method.outcome_.relevance_loss == 0
    assert method.outcome_.group is None


def test_equal_shares(market, sellers):
    method = ll.GroupShares(target="equal")
    prices = method.fit(ranking_of(market), K, groups=sellers)
    assert method.outcome_.is_met
    ids = prices.rerank(ranking_of(market, "test"), K).ids
    np.testing.assert_allclose(naive_shares(ids, sellers, 5, of_grouped=True), 0.2, atol=0.02)
    # Groups together are neither taxed nor helped against items without one.
    assert sum(prices.prices.values()) == pytest.approx(0, abs=1e-9)


def test_targets_by_catalogue_by_interactions_and_by_name(market, sellers):
    counts = np.asarray(market[1].train.matrix.sum(axis=0)).ravel()
    grouped = sellers >= 0
    by_count = np.bincount(sellers[grouped], counts[grouped])
    wanted = {
        "catalogue": np.bincount(sellers[grouped]) / grouped.sum(),
        "interactions": by_count / by_count.sum(),
    }
    for target, shares in wanted.items():
        method = ll.GroupShares(target=target)
        method.fit(ranking_of(market), K, groups=sellers, counts=counts)
        assert method.outcome_.is_met
        np.testing.assert_allclose([s.after for s in method.outcome_.shares], shares, atol=1e-3)
    method = ll.GroupShares(target={"0": 3, "1": 3, "2": 2, "3": 1, "4": 1})
    method.fit(ranking_of(market), K, groups=sellers)
    expected = [0.3, 0.3, 0.2, 0.1, 0.1]
    np.testing.assert_allclose([s.after for s in method.outcome_.shares], expected, atol=1e-3)
    assert method.outcome_.notes == ("Target shares add up to 10 and were scaled to 1.",)


def test_items_in_several_groups_split_price_and_exposure(market):
    generator = np.random.default_rng(0)
    rows = [
        (item, group, generator.integers(1, 4))
        for item in range(N_ITEMS)
        for group in generator.choice(4, generator.integers(1, 4), replace=False)
    ]
    items, groups, weights = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"item_id": items, "group": [f"g{g}" for g in groups], "weight": weights})
    members = read_groups(table, np.arange(N_ITEMS))
    method = ll.GroupShares(target="equal")
    prices = method.fit(ranking_of(market), K, groups=members)
    assert method.outcome_.is_met
    dense = np.zeros((N_ITEMS, 4))
    for item, group, weight in rows:
        dense[item, members.group_ids.index(f"g{group}")] = weight
    dense /= dense.sum(axis=1, keepdims=True)
    by_group = np.array([prices.prices[group] for group in members.group_ids])
    np.testing.assert_allclose(prices.item_prices, dense @ by_group, rtol=1e-5, atol=1e-7)
    exposure = exposure_of(market, prices.rerank(ranking_of(market), K).ids)
    np.testing.assert_allclose(exposure @ dense / exposure.sum(), 0.25, atol=1e-3)


def test_lists_are_the_best_at_their_prices(crowd):
    """A NumPy twin of what GroupPrices chooses."""
    pool, dense = crowd(40, 12, seed=2, share=1.0)
    method = ll.GroupShares(target="equal", relevance=ScoreRelevance())
    labels = np.arange(12) % 3
    prices = method.fit(pool.candidates, 4, groups=labels)
    ids = prices.rerank(pool.candidates, 4).ids
    by_label = np.array([prices.prices[group] for group in range(3)])
    for row, relevance in zip(ids, dense, strict=True):
        best = np.argsort(by_label[labels] - relevance, kind="stable")[:4]
        assert row.tolist() == best[np.argsort(-relevance[best], kind="stable")].tolist()


def test_prices_stop_where_no_wish_pulls(crowd):
    """Who has a price is at a bound, and nobody is outside: the conditions of Karush and others."""
    pool, _ = crowd(3000, 40, seed=1, share=0.9)
    members = as_groups(np.arange(40) % 4, 40)
    wishes = as_bounds({0: 0.2, 1: 0.22, 2: 0.3}, {3: 0.32}, members, 40)
    found = Ascent(pool, 5, members, wishes, threads=1).climb(1e-3, 200)
    price, share = found.prices, found.shares
    assert (price[:2] > 0).all()
    assert price[2] == 0
    assert price[3] < 0
    np.testing.assert_allclose(share[[0, 1, 3]], [0.2, 0.22, 0.32], atol=1e-3)


def test_the_nearest_is_found_when_wishes_are_out_of_reach(market):
    labels = np.zeros(N_ITEMS, dtype=np.int64)
    labels[100:] = 1
    labels[:3] = 2  # three items cannot fill eight of ten places
    method = ll.GroupShares(at_least={2: 0.8})
    prices = method.fit(ranking_of(market), K, groups=labels)
    outcome = method.outcome_
    assert not outcome.is_met
    assert outcome.group == 2
    share = outcome.shares[2]
    assert outcome.violation == pytest.approx(0.8 - share.after)
    ids = prices.rerank(ranking_of(market), K).ids
    seen = market[1].validation.history[:, :3].sum()
    assert np.sum(labels[ids] == 2) == 3 * 1200 - seen
    assert str(outcome).startswith("The group targets are out of reach: 2 has ")
    assert prices.prices[2] < 0
    assert prices.prices[0] == prices.prices[1] == 0


def test_groups_that_are_nobodys_candidates_leave_the_others_alone(crowd):
    pool, _ = crowd(800, 12, seed=3)
    labels = np.arange(12) % 3
    candidates = making.candidates_of(pool.candidates)
    table = pa.table({"item_id": [*range(12), 12], "group": [*(f"g{g}" for g in labels), "none"]})
    members = read_groups(table, np.arange(13))
    wide = wider(candidates)
    method = ll.GroupShares(target="equal", relevance=ScoreRelevance())
    method.fit(wide, 4, groups=members)
    outcome = method.outcome_
    assert outcome.group == "none"
    assert outcome.violation == pytest.approx(0.25)
    np.testing.assert_allclose([s.after for s in outcome.shares[:3]], 1 / 3, atol=0.03)


def wider(candidates):
    """Add an item to the catalogue that nobody has for a candidate."""
    from limelight.data import read_candidates

    block = candidates.block(0, candidates.n_users)
    users = np.repeat(np.arange(candidates.n_users), np.diff(block.indptr))
    table = pa.table({"user_id": users, "item_id": block.items, "score": block.scores})
    return read_candidates(table, catalogue=list(range(13)))


def test_the_same_on_any_number_of_threads_and_again(market, sellers):
    found = [
        ll.GroupShares(target="equal", num_threads=n).fit(ranking_of(market), K, groups=sellers)
        for n in (1, 2, 2)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.item_prices, found[0].item_prices)
    lists = [prices.rerank(ranking_of(market), K).ids for prices in found]
    np.testing.assert_array_equal(lists[0], lists[1])


def test_many_users_start_from_the_prices_of_some(market, sellers, monkeypatch):
    plain = ll.GroupShares(target="equal")
    plain.fit(ranking_of(market), K, groups=sellers)
    monkeypatch.setattr(making, "_PILOT_PAIRS", 300 * N_ITEMS)
    method = ll.GroupShares(target="equal")
    method.fit(ranking_of(market), K, groups=sellers)
    assert method.outcome_.is_met
    assert method.outcome_.rounds < plain.outcome_.rounds


def test_prices_are_made_again_from_what_they_hold(market, sellers):
    prices = ll.GroupShares(at_most=0.3).fit(ranking_of(market), K, groups=sellers)
    again = GroupPrices(prices.prices, prices.item_prices.copy(), prices.config)
    expected = prices.rerank(ranking_of(market, "test"), 7).ids
    np.testing.assert_array_equal(again.rerank(ranking_of(market, "test"), 7).ids, expected)
    assert repr(again).startswith("GroupPrices(at_most=0.3, relevance=Relevance(")
    metrics = ll.evaluate(again.over(market[0]), market[1].test, k=K)
    assert 0 < metrics[f"gini@{K}"] < 1
    other = ll.Popularity().fit(ll.marketplace(60, 30, 400).interactions)
    with pytest.raises(DataError, match="prices are of 200 items, not 30"):
        prices.rerank(other.ranking(), 5)


def test_labels_may_be_missing():
    members = as_groups(np.array(["x", None, float("nan"), "y"], dtype=object), 4)
    assert members.items.tolist() == [0, 3]
    assert members.group_ids == ["x", "y"]


def test_groups_without_an_item_of_the_catalogue_are_left_out():
    members = Groups(np.array([0, 1]), np.array([2, 0]), np.ones(2), ["a", "b", "c"], 1)
    assert as_groups(members, 2).group_ids == ["a", "c"]


REFUSED = [
    ({}, "no wish was given"),
    ({"at_most": 3}, "at_most must be from 0 to 1: 3"),
    ({"at_least": -0.1}, "at_least must be a finite number 0 or more: -0.1"),
    ({"at_most": {"x": 2}}, "at_most must be from 0 to 1: 2"),
    ({"at_most": 0.5, "target": "equal"}, "a target leaves no room for bounds: 'equal'"),
    ({"target": "fair"}, "target is not a known choice: 'fair'"),
    ({"target": {"x": 0}}, "target shares must add up to more than 0"),
    ({"target": {"x": -1}}, "target must be a finite number 0 or more: -1"),
    ({"at_most": 0.5, "tolerance": 0}, "tolerance must be a finite number above 0: 0"),
    ({"at_most": 0.5, "rounds": 0}, "rounds must be at least 1: 0"),
    ({"at_most": 0.5, "relevance": "score"}, "relevance must be a law: 'score'"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_settings_are_checked(settings, message):
    with pytest.raises(ConfigError, match=message):
        ll.GroupShares(**settings)


def test_wishes_that_nobody_could_meet_are_refused():
    members = as_groups(["x", "y", "y", "z"], 4)
    for at_most, at_least, message in (
        (0.3, None, "caps of 3 groups add up to less than 1: 0.9"),
        (None, 0.4, "floors of 3 groups add up to more than 1: 1.2"),
        (0.4, {"x": 0.5}, "group 'x' must have 0.5, and at most 0.4"),
        ({"w": 0.5}, None, "at_most names a group without an item in the catalogue: 'w'"),
    ):
        with pytest.raises(ConfigError, match=message):
            as_bounds(at_most, at_least, members, 4)
    # Items without a group can take what is left.
    assert as_bounds(0.3, None, as_groups(["x", "y", "y", None], 4), 4).high.sum() == 0.6
    with pytest.raises(ConfigError, match="no target for 1 groups of 3: 'z'"):
        as_target({"x": 1, "y": 1}, members, 4)
    with pytest.raises(ConfigError, match="target names a group without an item"):
        as_target({"x": 1, "y": 1, "z": 1, "w": 1}, members, 4)
    with pytest.raises(ConfigError, match="target='interactions' needs the counts of items"):
        as_target("interactions", members, 4)
    with pytest.raises(DataError, match="counts must be numbers from 0 up, one for each of 4"):
        as_target("interactions", members, 4, [1, 2])
    with pytest.raises(DataError, match="no group has a share above 0"):
        as_target("interactions", members, 4, np.zeros(4))


def test_groups_are_checked(market):
    ranking, method = ranking_of(market), ll.GroupShares(at_most=0.5)
    with pytest.raises(DataError, match="GroupShares needs groups, not None"):
        method.rerank(ranking, K)
    with pytest.raises(DataError, match="groups must have a label for each of 200 items"):
        method.fit(ranking, K, groups=["x", "y"])
    with pytest.raises(DataError, match="no item has a group"):
        method.fit(ranking, K, groups=np.full(N_ITEMS, -1))
    with pytest.raises(DataError, match="groups are not of a catalogue of 200 items: 200"):
        method.fit(ranking, K, groups=as_groups(np.zeros(201, dtype=np.int64), 201))
    with pytest.raises(ConfigError, match="k must be at least 1: 0"):
        method.fit(ranking, 0, groups=np.zeros(N_ITEMS, dtype=np.int64))


def test_a_group_has_one_share():
    with pytest.raises(DataError, match="a group has two shares: 'y'"):
        read_shares(pa.table({"group": ["x", "y", "y"], "share": [0.5, 0.2, 0.3]}))


@pytest.fixture(scope="module")
def tables(market, sellers):
    model, split = market
    ids, scores = model.recommend(split.validation.history, k=100)
    users, columns = np.nonzero(ids >= 0)
    candidates = pa.table(
        {
            "user_id": users,
            "item_id": model.item_ids[ids[users, columns]],
            "score": scores[users, columns],
        }
    )
    items = np.flatnonzero(sellers >= 0)
    names = np.array(["v", "w", "x", "y", "z"])[sellers[items]]
    return candidates, pa.table({"item_id": model.item_ids[items], "group": names})


def test_anybodys_candidates_with_a_cap(tables):
    candidates, groups = tables
    result = ll.rerank(candidates, K, groups=groups, group_cap=0.3)
    assert result.method == "group prices"
    assert result.goal == {"group_cap": 0.3}
    assert result.strength > 0
    assert max(share.after for share in result.groups) <= 0.301
    changes = {change.id: change for change in result.group_changes(groups)}
    for share in result.groups:
        assert share.after == pytest.approx(changes[share.id].after)
        assert share.before == pytest.approx(changes[share.id].before)
    assert result.to_dict()["groups"][0].keys() == {"id", "before", "after", "at_least", "at_most"}
    assert result.notes[-1].startswith("All group targets are met")
    both = ll.rerank(candidates, K, groups=groups, group_cap=0.3, group_floor={"z": 0.1})
    assert min(share.after for share in both.groups if share.id == "z") >= 0.099


def test_group_targets_of_rerank_are_checked(tables, market):
    candidates, groups = tables
    for settings, message in (
        ({"groups": groups}, "groups have no target"),
        ({"group_cap": 0.3}, "group_cap needs groups, and none were given"),
        (
            {"groups": groups, "group_cap": 0.3, "gini": 0.5},
            "give one target, not 2: group_cap, gini",
        ),
        (
            {"groups": groups, "group_floor": 0.1, "group_shares": "equal"},
            "give one target, not 2: group_floor, group_shares",
        ),
        ({"groups": groups, "group_cap": 30}, "group_cap must be from 0 to 1: 30"),
        ({"groups": groups, "group_cap": 0.3, "method": "online"}, "a method of their own"),
    ):
        with pytest.raises(ConfigError, match=message):
            ll.rerank(candidates, K, **settings)
    with pytest.raises(ConfigError, match="groups has ids, and a ranking knows users and items"):
        ll.rerank(ranking_of(market), K, groups=groups, group_cap=0.3)
