"""Targets for the exposure of providers: met, measured, and refused where they make no sense."""

import numpy as np
import pyarrow as pa
import pytest
from tests.support.models import FIXED

import limelight as ll
from limelight._base.errors import ConfigError, DataError, SolveError
from limelight.data.groups import exposure_of, read_groups
from limelight.metrics.exposure import gini, mmf
from limelight.recommend.candidates import candidates_of
from limelight.rerank.market.grouped import item_prices
from limelight.rerank.market.market import GroupAccounts, Market
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import BY_RANK
from limelight.rerank.targets.search import Goal, JointGoal, Measure
from limelight.rerank.welfare import LOG, Impact, Power

K = 10


@pytest.fixture(scope="module")
def model():
    data = ll.marketplace(900, 120, 16_000).interactions
    return ll.IALS(factors=8, epochs=6, **FIXED).fit(data)


@pytest.fixture(scope="module")
def sellers(model):
    """Twelve sellers of unlike size; some items have two, some none."""
    generator = np.random.default_rng(3)
    rows = []
    for item in model.item_ids.tolist():
        mine = generator.choice(12, size=generator.integers(0, 3), replace=False)
        rows += [(item, f"s{int(seller) ** 2 // 12}", float(1 + seller % 3)) for seller in mine]
    distinct = {(item, seller): weight for item, seller, weight in rows}
    items, names = zip(*distinct, strict=True)
    return pa.table({"item_id": items, "group": names, "weight": list(distinct.values())})


def held(result, sellers):
    members = read_groups(sellers, pa.array(result.item_ids))
    return exposure_of(members, result.exposure), exposure_of(members, result.exposure_before)


@pytest.mark.parametrize("method", ["auto", "best-response", "online", "prices"])
def test_a_gini_of_providers_is_met(model, sellers, method):
    result = ll.rerank(model, K, gini=0.2, of=sellers, method=method)
    now, before = held(result, sellers)
    assert gini(before) > 0.3
    assert result.metrics[f"group_gini@{K}"] == pytest.approx(gini(now))
    assert gini(now) == pytest.approx(0.2, abs=0.01)
    assert result.n_groups == len(now)
    assert result.goal == {"gini": 0.2, "of": f"{len(now)} groups"}
    assert "(groups, exponent" in result.method
    assert 0 < result.relevance_loss < 0.2


def test_a_max_min_fairness_is_met(model, sellers):
    result = ll.rerank(model, K, min_mmf=0.35, of=sellers)
    now, before = held(result, sellers)
    assert mmf(before) < 0.3
    assert result.metrics[f"group_mmf@{K}"] == pytest.approx(mmf(now))
    assert 0.35 <= mmf(now) < 0.37


def test_a_loss_is_spent_on_evenness_among_providers(model, sellers):
    result = ll.rerank(model, K, max_relevance_loss=0.02, of=sellers)
    assert 0.015 < result.relevance_loss <= 0.02
    now, before = held(result, sellers)
    by_items = held(ll.rerank(model, K, max_relevance_loss=0.02), sellers)[0]
    assert gini(now) < gini(before)
    assert gini(now) < gini(by_items)


def test_coverage_is_of_providers(model):
    # A seller whose item nobody likes is shown only where that is asked for.
    plain = ll.rerank(model, K, max_relevance_loss=0.0)
    least = int(np.argmin(plain.exposure_before))
    assert plain.exposure_before[least] == 0
    names = ["rare" if item == least else f"s{item % 3}" for item in range(len(model.item_ids))]
    sellers = pa.table({"item_id": model.item_ids, "group": names})
    result = ll.rerank(model, K, min_coverage=1.0, of=sellers)
    assert result.metrics[f"group_coverage@{K}_before"] == 0.75
    assert result.metrics[f"group_coverage@{K}"] == 1


def test_the_summary_says_what_groups_and_their_items_get(model, sellers):
    result = ll.rerank(model, K, gini=0.2, of=sellers)
    text = str(result)
    for label in (f"Gini of {result.n_groups} groups", "MMF of groups", "Gini within groups"):
        assert label in text
    assert "Gini of items" in text
    record = result.to_dict()
    assert record[f"gini_within_groups@{K}"] == result.metrics[f"gini_within_groups@{K}"]
    assert record["groups"] == []


def test_a_search_for_providers_goes_on_from_its_checkpoint(model, sellers, tmp_path):
    candidates = candidates_of(model.ranking(), ids=(model.user_ids, model.item_ids))
    made = [
        ll.rerank(candidates, K, gini=0.25, of=sellers, checkpoint=tmp_path / "kept")
        for _ in range(2)
    ]
    assert np.array_equal(made[0].lists.ids, made[1].lists.ids)


ONE = pa.table({"item_id": [0, 1], "group": ["x", "x"]})
OTHERS = pa.table({"item_id": ["zzz"], "group": ["x"]})
PAIR = pa.table({"item_id": [0, 1], "group": ["x", "y"]})


@pytest.mark.parametrize(
    ("wishes", "kind", "message"),
    [
        ({"min_mmf": 0.3}, ConfigError, "an MMF needs groups of items, and none were given"),
        ({"gini": 0.3, "of": ONE}, DataError, "shared among groups, and there is one: 'x'"),
        ({"gini": 0.3, "of": OTHERS}, DataError, "is in the catalogue, e.g. 'zzz'"),
        ({"gini": 0.3, "of": "missing.csv"}, DataError, "no such file or folder: missing.csv"),
        ({"of": PAIR}, ConfigError, "give one target, not 0"),
        ({"gini": 0.3, "of": PAIR, "method": "fairrec"}, ConfigError, "fairrec shares exposure"),
        ({"gini": 0.3, "min_mmf": 0.3, "of": PAIR}, ConfigError, "give one target, not 2"),
        ({"min_mmf": 0.7, "of": PAIR}, SolveError, "with equal exposure, 2 groups have 0.500"),
        (
            {"of": PAIR, "groups": PAIR, "group_cap": 0.6},
            ConfigError,
            "give one target, not 2: group_cap, evenness of groups",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(model, wishes, kind, message):
    with pytest.raises(kind, match=message) as caught:
        ll.rerank(model, K, **wishes)
    assert caught.value.hint


def test_a_target_out_of_reach_says_what_is_possible(model):
    # One item of the second seller cannot fill half of all places, as each list shows it once.
    names = ["small" if item == 0 else "large" for item in range(len(model.item_ids))]
    sellers = pa.table({"item_id": model.item_ids, "group": names})
    with pytest.raises(
        SolveError, match="out of reach: a Gini index of 0 among 2 groups"
    ) as caught:
        ll.rerank(model, K, gini=0.0, of=sellers)
    assert "and an MMF of" in str(caught.value)


def test_goals_among_groups_are_asked_for_together():
    goals = [Goal("gini", 0.3), Goal("min_mmf", 0.35), Goal("max_ndcg_loss", 0.05)]
    joint = JointGoal.of(goals).among(43)
    assert joint.asked["of"] == "43 groups"
    assert str(joint).count("among 43 groups") == 2
    assert not joint.is_met(Measure(0.3, 1.0, 0.0, mmf=0.3))
    assert joint.is_met(Measure(0.3, 1.0, 0.0, mmf=0.36))
    assert joint.lack(Measure(0.3, 1.0, 0.0, mmf=0.3)) == pytest.approx(0.05)


def test_prices_of_items_are_those_of_their_groups(model, sellers):
    candidates = candidates_of(model.ranking(), ids=(model.user_ids, model.item_ids))
    members = read_groups(sellers, pa.array(model.item_ids))
    n_groups, n_items = len(members.group_ids), len(model.item_ids)
    shares = np.full(n_groups, 1 / n_groups)
    accounts = GroupAccounts(members, Power(exponent=2.0), shares, items=0.25)
    with Pool(candidates, BY_RANK) as pool:
        market = Market(pool, K, LOG, threads=1, seed=0, groups=accounts)
        market.ledger.open()
        given, n_users = market.ledger.exposure, pool.n_users
        found = market.subsidies(0.5, given)
    total = market.survey.total * n_users
    of_items = LOG.marginal(given / (total / n_items))
    of_groups = Power(exponent=2.0).marginal(exposure_of(members, given) / (total / n_groups))
    expected = 0.25 * of_items + item_prices(members, of_groups, n_items)
    assert found == pytest.approx(0.5 * market.survey.unit * expected)


def test_prices_of_groups_serve_others_without_state(model):
    sellers = np.arange(len(model.item_ids)) % 5 * (np.arange(len(model.item_ids)) % 2)
    method = ll.FrankWolfe(strength=1.0, steps=30).of(sellers)
    prices = method.fit(model.ranking(users=np.arange(450)), K)
    others = model.ranking(users=np.arange(450, 900))
    spreads = []
    for lists in (others.top(np.arange(450), K), prices.rerank(others, K)):
        given = ll.exposure(lists.ids, n_items=len(model.item_ids))
        spreads.append(gini(np.bincount(sellers, given)))
    assert spreads[1] < spreads[0] / 2


def test_prices_cannot_follow_the_impact_of_groups():
    with pytest.raises(ConfigError, match="prices cannot follow impact"):
        ll.FrankWolfe(group_welfare=Impact())
