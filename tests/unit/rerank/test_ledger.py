"""The kernel in which users choose, against its dense twin."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import oracles
from tests.support.examples import examples

from limelight._native import kernels
from limelight.metrics.lists import position_weights
from limelight.rerank.market.ledger import Help, Ledger, knots
from limelight.rerank.welfare import Power


def support(ledger, strength, welfare):
    n = ledger.n_accounts
    entitlement = np.full(n, ledger.weights.sum() / n)
    return Help(entitlement, np.full(n, strength), np.tile(welfare.marginal(knots()), (2, 1)))


def item_lists(pool, places):
    return [[int(j) for j in row if j >= 0] for row in pool.lists(places).ids]


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 6),
    strength=st.sampled_from([0.0, 0.01, 0.3, 5.0]),
    share=st.sampled_from([0.2, 0.7, 1.0]),
    # How much offsets differ, and what they are on average.
    spread=st.none() | st.tuples(st.sampled_from([0.0, 0.2, 3.0]), st.sampled_from([-5, 0, 5])),
    by_impact=st.booleans(),
)
def test_choices_are_those_of_the_dense_twin(crowd, seed, k, strength, share, **kinds):
    spread, by_impact = kinds["spread"], kinds["by_impact"]
    pool, dense = crowd(12, 9, seed=seed, share=share)
    welfare = Power(exponent=1, offset=0.3)
    offsets = None
    if spread is not None:
        offsets = spread[1] + spread[0] * np.random.default_rng(seed).standard_normal(9)
    ledger = Ledger(pool, position_weights(k), by_impact=by_impact, threads=1, seed=0)
    ledger.open()
    lists = item_lists(pool, ledger.places)
    order = np.random.default_rng(seed).permutation(pool.n_users).astype(np.int32)
    given_help = support(ledger, strength, welfare)
    table = given_help.table[0]

    def help_at(exposure):
        share_of = given_help.entitlement * ledger.served
        y = exposure / (exposure + share_of)
        return strength * np.interp(y, np.linspace(0, 1, len(table)), table)

    turn = oracles.Turn(ledger.exposure, help_at, ledger.weights, offsets, by_impact)
    expected = oracles.respond(dense.astype(np.float64), order.tolist(), lists, turn)
    [rows] = pool.blocks
    kernels.respond(
        pool.ranked(rows),
        order,
        ledger.places,
        weights=ledger.weights,
        accounts=ledger.accounts,
        exposure=ledger.exposure,
        entitlement=given_help.entitlement,
        pull=given_help.pull,
        marginal=given_help.table,
        by_impact=by_impact,
        batch=1,
        newcomers=False,
        served=ledger.served,
        offsets=offsets,
        threads=1,
    )
    assert item_lists(pool, ledger.places) == lists
    np.testing.assert_allclose(ledger.exposure, expected, atol=1e-9)


def test_offsets_of_nothing_change_nothing(crowd):
    pool, _ = crowd(300, 30, seed=4)
    found = []
    for offsets in (None, np.zeros(30), np.full(30, -0.25)):
        ledger = Ledger(pool, position_weights(5), offsets=offsets, threads=2, seed=0)
        ledger.open()
        ledger.sweep(partial(support, ledger, 0.3, Power()))
        found.append(ledger.places)
    np.testing.assert_array_equal(found[0], found[1])
    # The same for all items, it moves nobody.
    np.testing.assert_array_equal(found[0], found[2])


def test_a_dear_item_is_left_to_nobody_and_a_cheap_one_goes_to_all(crowd):
    pool, _ = crowd(200, 12, seed=6, share=1.0)
    offsets = np.zeros(12)
    offsets[3], offsets[7] = -100, 100
    ledger = Ledger(pool, np.ones(4), offsets=offsets, threads=1, seed=0)
    ledger.open()
    ledger.sweep(partial(support, ledger, 0.3, Power()))
    assert (ledger.exposure[3], ledger.exposure[7]) == (0, 200)


def test_exposure_is_what_the_lists_give(crowd):
    pool, _ = crowd(200, 30, seed=3)
    ledger = Ledger(pool, position_weights(5), threads=1, seed=0)
    ledger.open()
    for _ in range(3):
        ledger.sweep(lambda: support(ledger, 0.2, Power()))
        np.testing.assert_allclose(ledger.exposure, ledger.exposure_of(ledger.places), atol=1e-9)


@pytest.mark.parametrize("batch", [1, 7, 100, 1000])
def test_threads_do_not_matter(crowd, batch):
    pool, _ = crowd(600, 40, seed=5)
    found = []
    for threads in (1, 3):
        ledger = Ledger(pool, position_weights(5), threads=threads, seed=1)
        ledger.open()
        for _ in range(2):
            ledger.sweep(partial(support, ledger, 0.3, Power()), batch=batch)
        found.append((ledger.places, ledger.exposure))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_choices_raise_relevance_plus_welfare_and_settle(crowd):
    pool, _ = crowd(150, 20, seed=2)
    welfare, strength, k = Power(), 0.3, 4
    ledger = Ledger(pool, np.ones(k), threads=1, seed=0)
    ledger.open()
    helping = support(ledger, strength, welfare)
    share = helping.entitlement * ledger.served

    def potential():
        # The derivative of share * psi(exposure / share) is psi'.
        worth = strength * float(np.sum(share * np.log(ledger.exposure / share + welfare.offset)))
        return ledger.relevance() * pool.n_users + worth

    # Help is paid at the exposure before a list is added, so a move may overshoot by its own size;
    # summed over a sweep it climbs until nobody moves.
    before = potential()
    moved = [ledger.sweep(lambda: helping, batch=1) for _ in range(30)]
    assert potential() > before
    assert moved[-1] <= 0.05 * pool.n_users


def test_accounts_can_be_shared(crowd):
    pool, _ = crowd(50, 10, seed=1, share=1.0)
    accounts = (np.arange(10) % 2).astype(np.int32)
    ledger = Ledger(pool, np.ones(3), accounts=accounts, threads=1, seed=0)
    ledger.open()
    ids = pool.lists(ledger.places).ids
    np.testing.assert_array_equal(ledger.exposure, np.bincount(accounts[ids].ravel()))


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_what_a_user_holds_does_not_win_a_tie_against_what_stands_before_it(crowd, strength):
    _, dense = crowd(40, 12, seed=2, share=1.0)
    dense = np.sort(np.round(dense, 1), axis=1)[:, ::-1].copy()
    rows = kernels.RankedCandidates(
        np.arange(41) * 12, np.tile(np.arange(12, dtype=np.int32), 40), dense.ravel(), 12
    )
    prices = strength * np.random.default_rng(0).integers(0, 2, 12)
    starts = [np.tile(np.arange(first, first + 4, dtype=np.int32), (40, 1)) for first in (0, 8)]
    for places in starts:
        kernels.respond(
            rows,
            np.arange(40, dtype=np.int32),
            places,
            weights=np.ones(4),
            accounts=np.arange(12, dtype=np.int32),
            exposure=np.full(12, 1e6),
            entitlement=np.ones(12),
            pull=np.zeros(12),
            marginal=np.ones((2, 2)),
            by_impact=False,
            batch=7,
            newcomers=False,
            served=40.0,
            offsets=prices,
            threads=1,
        )
        worth = dense.astype(np.float64) + prices
        expected = np.sort(np.argsort(-worth, axis=1, kind="stable")[:, :4], axis=1)
        np.testing.assert_array_equal(places, expected)


def arrays(**changes):
    values = {
        "indptr": np.array([0, 2, 3]),
        "items": np.array([0, 1, 1], np.int32),
        "relevance": np.array([0.5, 0.25, 0.1], np.float32),
        "n_items": 2,
    }
    return values | changes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"indptr": np.array([0, 2, 4])}, "indptr must end at the pairs"),
        ({"indptr": np.array([0, 4, 3])}, "indptr must not fall"),
        ({"items": np.array([0, 2, 1], np.int32)}, "an item is out of range"),
        ({"items": np.array([0, -1, 1], np.int32)}, "an item is out of range"),
        ({"relevance": np.array([0.2, 0.5, 0.1], np.float32)}, "relevance must not rise"),
        ({"relevance": np.array([np.nan, 0.5, 0.1], np.float32)}, "relevance must be finite"),
        ({"relevance": np.array([0.5], np.float32)}, "one length"),
    ],
)
def test_wrong_candidates_are_refused(changes, reason):
    values = arrays(**changes)
    with pytest.raises(ValueError, match=reason):
        kernels.RankedCandidates(**values)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("order", np.array([5], np.int32), "order must hold users"),
        ("lists", np.array([[1, 1], [-1, -1]], np.int32), "none twice"),
        ("lists", np.array([[0, 9], [-1, -1]], np.int32), "none twice"),
        ("lists", np.array([[-1, 0], [-1, -1]], np.int32), "none twice"),
        ("weights", np.ones(3), "one weight a place"),
        ("accounts", np.array([0, 7], np.int32), "an account is out of range"),
        ("pull", np.ones(3), "one entry an account"),
        ("pull", np.array([np.nan, 1]), "finite"),
        ("marginal", np.ones((1, 5)), "two rows"),
        ("marginal", np.ones((2, 1)), "no knots or at least two"),
        ("batch", 0, "batch must be at least 1"),
        ("offsets", np.zeros(3), "one offset an item"),
        ("offsets", np.array([np.inf, 0]), "finite"),
    ],
)
def test_wrong_settings_are_refused(name, value, reason):
    settings_of = {
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
    } | {name: value}
    with pytest.raises(ValueError, match=reason):
        kernels.respond(kernels.RankedCandidates(**arrays()), **settings_of)
