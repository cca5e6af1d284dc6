"""Control of single requests is what Online does, and costs what candidates cost."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.data.groups import Groups, as_groups
from limelight.serve import Engine, Ledger, Request, RequestControl
from limelight.serve.control import ControlConfig, Memberships
from limelight.serve.start import start_of

pytestmark = pytest.mark.unit
MARKET = ll.marketplace(500, 120, 9000).interactions
MODEL = ll.IALS(factors=8, epochs=6).fit(MARKET)
SELLERS = np.arange(120) % 7


def served_live(recommender, k=10, **more):
    """Answer all training users in their order; return the lists, and the ledger."""
    start = start_of(recommender, k=k, n_candidates=120, **more)
    control = RequestControl(start.config, start.strength)
    accounts = start.config.accounts
    groups = start.config.groups if accounts is None else accounts.members
    ledger = Ledger(120, window=1e9, groups=groups)
    if start.exposure is not None:
        ledger.start_from(start.exposure, start.lists, time=0.0)
    engine = Engine(recommender, k=k, n_candidates=120, control=control)
    answers = [engine.answer([Request(user=user)], ledger, time=1.0)[0] for user in range(500)]
    return np.array([answer.numbers for answer in answers]), ledger


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"welfare": "power"},
        {"welfare": "minimum"},
        {"order": "subsidised"},
        {"per_user": True},
    ],
)
def test_it_serves_as_online_does(settings):
    method = ll.Online(strength=0.4, candidates=120, **settings)
    live, _ = served_live(method.over(MODEL))
    stream = method.over(MODEL).recommend(k=10).ids
    # Online reads help from a table, so that near ties may fall otherwise, and what follows too.
    assert (live == stream).mean() > 0.97
    spread = [ll.gini(ll.exposure(ids, n_items=120)) for ids in (live, stream)]
    assert spread[0] == pytest.approx(spread[1], abs=0.003)


def test_it_helps_groups_as_online_does():
    method = ll.Online(strength=0.5, candidates=120, items=0.2).of(SELLERS)
    live, ledger = served_live(method.over(MODEL))
    stream = method.over(MODEL).recommend(k=10).ids
    assert (live == stream).mean() > 0.9
    shares = [np.bincount(SELLERS, ll.exposure(ids, n_items=120)) for ids in (live, stream)]
    np.testing.assert_allclose(*shares, rtol=0.03)
    np.testing.assert_allclose(ledger.group_totals / (1 << 20), shares[0], rtol=1e-5)


def test_items_compared_with_each_other():
    method = ll.Online(strength=0.5, candidates=120, welfare="gini")
    live, _ = served_live(method.over(MODEL))
    stream = method.over(MODEL).recommend(k=10).ids
    spread = [ll.gini(ll.exposure(ids, n_items=120)) for ids in (live, stream)]
    assert spread[0] == pytest.approx(spread[1], abs=0.03)


def test_it_goes_on_from_what_a_fit_saved():
    settled = ll.BestResponse(strength=0.3, candidates=120).settle(MODEL.ranking(), 10)
    start = start_of(settled.over(MODEL), k=10)
    assert start.strength == 0.3
    assert start.lists == 500
    np.testing.assert_allclose(start.exposure, settled.exposure_)
    longer = start_of(settled.over(MODEL), k=20)
    assert longer.exposure.sum() > 1.4 * start.exposure.sum()


def test_prices_of_users_and_of_groups():
    prices = ll.FrankWolfe(strength=0.3, steps=8, candidates=120).fit(MODEL.ranking(), 10)
    live, _ = served_live(prices.over(MODEL))
    expected = prices.over(MODEL).recommend(k=10).ids
    assert (np.sort(live) == np.sort(expected)).mean() > 0.99
    bounds = ll.GroupShares(at_most=0.16, candidates=120)
    capped = bounds.fit(MODEL.ranking(), 10, groups=SELLERS)
    live, _ = served_live(capped.over(MODEL))
    np.testing.assert_array_equal(np.sort(live), np.sort(capped.over(MODEL).recommend(k=10).ids))


def test_prices_give_way_to_a_target():
    prices = ll.FrankWolfe(strength=0.3, steps=4, candidates=120).fit(MODEL.ranking(), 10)
    assert start_of(prices.over(MODEL), k=10, has_target=True).config.offsets_of is None


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (ll.FairRec(alpha=0.5), "makes the lists of many users together"),
        (ll.Online(welfare="impact"), "counts exposure, and not impact"),
        (ll.Online(places="uniform"), "counts places by their discount"),
    ],
)
def test_what_cannot_answer_single_requests(method, said):
    with pytest.raises(ConfigError, match=said) as caught:
        start_of(method.over(MODEL), k=10)
    assert caught.value.hint


def test_the_price_of_a_group():
    members = as_groups(SELLERS, 120)
    start = start_of(MODEL, k=10, groups=members)
    control, ledger = RequestControl(start.config), Ledger(120, window=9.0, groups=members)
    engine = Engine(MODEL, k=10, control=control)
    shares = []
    for price in (0.0, 1e6):
        control.prices = np.where(np.arange(7) == 2, price, 0.0)
        answers = engine.answer([Request(user=user) for user in range(50)], ledger, count=False)
        shown = np.concatenate([answer.numbers for answer in answers])
        shares.append(np.mean(SELLERS[shown] == 2))
    assert shares[0] > 0.03
    assert shares[1] == 0


def test_control_of_another_catalogue_keeps_prices_by_name():
    members = as_groups(["a", "b", "b"], 3)
    config = ControlConfig(n_items=3, law=start_of(MODEL).config.law, unit=1.0, groups=members)
    control = RequestControl(config, 0.7)
    control.prices = np.array([1.0, 2.0])
    other = as_groups(["b", "c"], 2)
    moved = control.over(ControlConfig(n_items=2, law=config.law, unit=1.0, groups=other))
    assert moved.strength == 0.7
    assert dict(zip(other.group_ids, moved.prices, strict=True)) == {"b": 2.0, "c": 0.0}


def test_sums_over_groups_of_items_in_several():
    generator = np.random.default_rng(0)
    dense = generator.random((9, 4)) * (generator.random((9, 4)) < 0.5)
    items, groups = dense.nonzero()
    members = Groups(items, groups, dense[items, groups], list("abcd"), 0)
    values, some = generator.random(4), np.array([3, 3, 0, -1, 8])
    expected = np.vstack([dense, np.zeros(4)])[some] @ values
    np.testing.assert_allclose(Memberships(members, 9).sums(some, values), expected)


def test_candidates_that_the_catalogue_does_not_have_get_no_help():
    start = start_of(MODEL, k=2)
    control, ledger = RequestControl(start.config, 5.0), Ledger(120, window=9.0)
    items, scores = np.array([-1, 4, -1], np.int32), np.array([3.0, 2.0, 1.0], np.float32)
    choice = control.choose(items, scores, 3, ledger, own_scores=True)
    assert choice.places.tolist() == [0, 1, 2]
    assert choice.subsidy[[0, 2]].tolist() == [0.0, 0.0]
    assert choice.subsidy[1] > 0
