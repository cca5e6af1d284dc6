"""The Gini of another number of lists: exact where it can be, inside its interval where not."""

import itertools
import json

import numpy as np
import pytest

import limelight as ll
from limelight.metrics.lists import Lists

N_ITEMS = 400
KEYS = ("gini", "measured")


def draw_lists(generator, n_users, n_items=N_ITEMS, k=10, skew=1.0):
    """Draw lists of k items without repeats, popular items first (Gumbel top-k)."""
    popularity = -skew * np.log(np.arange(1, n_items + 1))
    scores = popularity + generator.gumbel(size=(n_users, n_items))
    return np.argsort(-scores, axis=1)[:, :k]


def gini_of(ids, n_items=N_ITEMS):
    return ll.gini(ll.exposure(ids, n_items))


@pytest.fixture(scope="module")
def everybody():
    return draw_lists(np.random.default_rng(0), 8000)


def test_as_many_lists_as_there_are_give_the_measured_figure(everybody):
    found = ll.gini_at(everybody[:200], 200, n_items=N_ITEMS)
    assert found.gini == found.measured == pytest.approx(gini_of(everybody[:200]), abs=1e-12)
    assert found.low < found.gini < found.high
    assert (found.users, found.sample, found.k, found.items) == (200, 200, 10, N_ITEMS)


def test_the_interval_of_what_was_measured_is_that_of_an_audit(everybody):
    ids = everybody[:100]
    users, items = np.repeat(np.arange(100), 10), ids.ravel()
    table = {"user_id": users, "item_id": items, "rank": np.tile(np.arange(1, 11), 100)}
    pa = pytest.importorskip("pyarrow")
    bounds = ll.audit(pa.table(table), catalogue=np.arange(N_ITEMS).tolist()).bounds
    found = ll.gini_at(ids, 100, n_items=N_ITEMS)
    assert found.low == pytest.approx(bounds["gini@10_low"])
    assert found.high == pytest.approx(bounds["gini@10_high"])


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_fewer_lists_give_the_mean_over_subsets(n):
    ids = draw_lists(np.random.default_rng(1), 8, n_items=30, k=4)
    subsets = [gini_of(ids[list(some)], 30) for some in itertools.combinations(range(8), n)]
    found = ll.gini_at(ids, n, n_items=30)
    # 64 subsets are drawn, so their mean is off by an eighth of the spread of one, at most thrice.
    assert found.gini == pytest.approx(np.mean(subsets), abs=1e-12 + 3 * np.std(subsets) / 8)
    assert found.low <= np.mean(subsets) <= found.high


@pytest.mark.parametrize(("m", "n"), [(100, 4000), (400, 600), (400, 100), (400, 390)])
@pytest.mark.parametrize("skew", [0.3, 1.2])
def test_the_truth_lies_in_the_interval(m, n, skew):
    generator = np.random.default_rng(2)
    users = draw_lists(generator, 6000, skew=skew)
    truth = np.mean([gini_of(generator.choice(users, n, replace=False)) for _ in range(20)])
    samples = (generator.choice(users, m, replace=False) for _ in range(20))
    found = [ll.gini_at(sample, n, n_items=N_ITEMS) for sample in samples]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.9
    estimate, measured = (np.mean([getattr(one, key) for one in found]) for key in KEYS)
    assert abs(estimate - truth) < 0.003 + 0.25 * abs(measured - truth)


def test_figures_fall_with_the_number_of_lists_to_a_limit(everybody):
    sizes = (10, 50, 200, 400, 1000, 4000, 10**6, 10**9)
    found = [ll.gini_at(everybody[:200], n, n_items=N_ITEMS) for n in sizes]
    figures = [one.gini for one in found]
    assert all(np.diff(figures) < 1e-3)
    assert abs(figures[-1] - figures[-2]) < 0.01
    assert all(one.floor <= one.low <= one.gini <= one.high <= 1.0 for one in found)


def test_neighbouring_sizes_have_neighbouring_figures(everybody):
    ids = everybody[:200]
    low, at, high = (ll.gini_at(ids, n, n_items=N_ITEMS) for n in (199, 200, 201))
    assert low.gini == pytest.approx(at.gini, abs=2e-3)
    assert high.gini == pytest.approx(at.gini, abs=2e-3)
    assert high.high - high.low == pytest.approx(at.high - at.low, rel=0.05)


def test_the_floor_is_that_of_so_many_lists(everybody):
    found = ll.gini_at(everybody[:100], 30, n_items=N_ITEMS)
    assert found.floor == ll.gini_floor(30, 10, N_ITEMS)


def test_lists_that_are_as_even_as_can_be_stay_above_the_floor():
    generator = np.random.default_rng(3)
    even = np.argsort(generator.random((4000, N_ITEMS)), axis=1)[:, :10]
    found = ll.gini_at(even[:100], 4000, n_items=N_ITEMS)
    assert found.floor <= found.low <= gini_of(even) <= found.high
    assert found.measured > 2 * found.gini


def test_one_place_counts_alike():
    ids = draw_lists(np.random.default_rng(4), 3000, k=1)
    found = ll.gini_at(ids[:300], 3000, n_items=N_ITEMS)
    assert found.low <= gini_of(ids) <= found.high


def test_items_that_everybody_is_shown():
    ids = np.tile(np.arange(5), (50, 1))
    for n in (3, 50, 10**6):
        assert ll.gini_at(ids, n, n_items=20).gini == pytest.approx(gini_of(ids, 20), abs=0.01)


def test_padding_the_cutoff_and_lists_with_scores(everybody):
    ids = everybody[:150].copy()
    ids[::3, 5:] = -1
    scores = np.zeros(ids.shape, dtype=np.float32)
    with_scores = Lists(ids, scores)
    for n in (60, 1000):
        assert ll.gini_at(with_scores, n, n_items=N_ITEMS) == ll.gini_at(ids, n, n_items=N_ITEMS)
        cut = ll.gini_at(ids, n, n_items=N_ITEMS, k=4)
        assert cut == ll.gini_at(ids[:, :4], n, n_items=N_ITEMS)
    empty = np.full((10, 10), -1)
    found = ll.gini_at(np.concatenate([ids, empty]), 60, n_items=N_ITEMS)
    assert found == ll.gini_at(ids, 60, n_items=N_ITEMS)


def test_it_says_it_in_a_sentence_and_in_json(everybody):
    found = ll.gini_at(everybody[:100], 20_000, n_items=N_ITEMS)
    text = str(found)
    assert text.startswith("Gini@10 over 20,000 users' lists, estimated from 100: 0.")
    assert "so many lists of 10 cannot go below about 0.0" in text
    assert json.loads(json.dumps(found.to_dict()))["gini"] == found.gini


@pytest.mark.parametrize(
    ("ids", "n", "error", "words"),
    [
        ([[0, 1], [1, 2]], 0, ll.ConfigError, "n must be a whole number of at least 1"),
        ([[0, 1], [1, 2]], 2.5, ll.ConfigError, "n must be a whole number of at least 1"),
        ([[0, 1]], 5, ll.DataError, "too few lists to estimate from: 1"),
        ([[0, 1], [-1, -1]], 5, ll.DataError, "too few lists to estimate from: 1"),
        (np.empty((0, 3), dtype=int), 5, ll.DataError, "too few lists to estimate from: 0"),
        ([[0, 1], [1, 9]], 5, ll.DataError, "outside the catalogue of 4 items: 9"),
        ([[0, 0], [1, 2]], 5, ll.DataError, "listed twice"),
        ([0, 1], 5, ll.DataError, "users x k array"),
    ],
)
def test_what_cannot_be_estimated_is_refused(ids, n, error, words):
    with pytest.raises(error, match=words):
        ll.gini_at(ids, n, n_items=4)
