"""The first pass over bytes: every variant finds what a search without it finds, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import oracles
from tests.support.examples import examples

from limelight._native import kernels, use_variant
from limelight.solve.problem import sparse_rows

WITHIN_TILES = 17
"""So many queries at once are scored in tiles, and never by a first pass."""


@pytest.fixture(params=kernels.variants(), autouse=True)
def each_variant(request):
    with use_variant(request.param):
        yield request.param


def search(catalogue, queries, history, k, threads=1):
    ids = np.empty((len(queries), k), dtype=np.int32)
    scores = np.empty((len(queries), k), dtype=np.float32)
    of_use = catalogue.top_k(queries, history, ids=ids, scores=scores, threads=threads)
    return ids, scores.view(np.int32), of_use


def same_lists(items, queries, k, hidden=None, threads=1):
    """Search with and without a first pass; returns to how many queries it was of use."""
    n_queries, n_items = len(queries), len(items)
    plain = kernels.Catalogue(items, 1)
    history, among = None, None
    if hidden is not None:
        history = csr(hidden)
        among = csr(np.resize(hidden, (WITHIN_TILES, n_items)))
    tiled = np.resize(queries, (WITHIN_TILES, queries.shape[1]))
    ids, scores, _ = search(plain, tiled, among, k)
    quick = search(plain.with_first_pass(threads), queries, history, k, threads)
    for found in (search(plain, queries, history, k), quick):
        np.testing.assert_array_equal(found[0], ids[:n_queries])
        np.testing.assert_array_equal(found[1], scores[:n_queries])
    return quick[2]


def csr(hidden):
    indptr = np.concatenate([[0], np.cumsum(hidden.sum(axis=1))])
    return sparse_rows(indptr, np.nonzero(hidden)[1], hidden.shape[1])


def factors(generator, n_rows, width, scale=1.0):
    return (scale * generator.standard_normal((n_rows, width))).astype(np.float32)


@examples(40)
@given(
    n_items=st.integers(1, 9000),
    width=st.sampled_from([16, 32, 64, 112]),
    k=st.integers(1, 40),
    n_queries=st.integers(1, 9),
    levels=st.sampled_from([0, 1, 2, 7]),
    seed=st.integers(0, 2**31),
)
def test_lists_are_those_of_a_plain_search(n_items, width, k, n_queries, levels, seed):
    generator = np.random.default_rng(seed)
    share_hidden = generator.choice([0.0, 0.01, 0.3, 1.0])
    items, queries = factors(generator, n_items, width), factors(generator, n_queries, width)
    if levels:  # coarse numbers: many items have the same score
        items, queries = (np.rint(levels * X) / levels for X in (items, queries))
    items *= generator.lognormal(sigma=generator.uniform(0, 2), size=(n_items, 1))
    items = items[generator.integers(0, n_items, n_items)]  # some items are there twice
    items, queries = items.astype(np.float32), queries.astype(np.float32)
    hidden = generator.random((n_queries, n_items)) < share_hidden
    same_lists(items, queries, min(k, n_items), hidden if share_hidden else None)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 20, 500])
def test_it_is_of_use_to_every_query(k, threads):
    generator = np.random.default_rng(0)
    items, queries = factors(generator, 60_000, 64), factors(generator, 8, 64)
    assert same_lists(items, queries, k, threads=threads) == len(queries)


def test_many_queries_at_once_are_searched_for_without_it():
    generator = np.random.default_rng(0)
    items, queries = factors(generator, 9000, 16), factors(generator, 9, 16)
    catalogue = kernels.Catalogue(items, 1).with_first_pass(1)
    assert search(catalogue, queries, None, 3, threads=1)[2] == 0
    assert search(catalogue, queries, None, 3, threads=2)[2] == len(queries)


def test_long_lists_are_searched_for_without_it():
    generator = np.random.default_rng(0)
    items, queries = factors(generator, 9600, 16), factors(generator, 2, 16)
    assert same_lists(items, queries, 100) > 0
    assert same_lists(items, queries, 101) == 0


def test_its_twin_keeps_the_best_and_little_else():
    generator = np.random.default_rng(3)
    items, queries = factors(generator, 20_000, 32), factors(generator, 4, 32)
    ids, _, of_use = search(kernels.Catalogue(items, 1).with_first_pass(1), queries, None, 10)
    assert of_use == len(queries)
    for query, best in zip(queries, ids, strict=True):
        kept = oracles.first_pass(query.astype(float), items.astype(float), 10)
        assert kept[best].all()
        assert kept.sum() < 40


@pytest.mark.parametrize("scale", [0.0, 1e-44, 1e-38, 1e-30, 1e-12, 1e-6, 1.0, 1e6, 1e12, 1e18])
@pytest.mark.parametrize("query_scale", [1e-44, 1e-38, 1e-12, 1.0, 1e12, 1e18])
def test_very_small_and_very_large_numbers(scale, query_scale):
    generator = np.random.default_rng(1)
    items, queries = factors(generator, 5000, 16, scale), factors(generator, 3, 16, query_scale)
    items[::7] *= np.float32(1e-20)
    items[::11] = 0
    queries[2] = 0
    same_lists(items, queries, 12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_numbers_that_bounds_do_not_hold_for(bad):
    generator = np.random.default_rng(2)
    items, queries = factors(generator, 9000, 16), factors(generator, 2, 16)
    assert same_lists(items, queries, 5) == 2
    queries[1, 3] = bad
    assert same_lists(items, queries, 5) == 1
    items[17, 4] = bad
    assert same_lists(items, queries, 5) == 0


def test_items_that_are_all_alike():
    items = np.ones((9000, 16), dtype=np.float32)
    assert same_lists(items, items[:1], 7) == 0
    assert same_lists(0 * items, items[:1], 7) == 0


def test_lists_longer_than_what_may_be_shown():
    generator = np.random.default_rng(4)
    items, queries = factors(generator, 9000, 16), factors(generator, 2, 16)
    hidden = np.ones((2, 9000), dtype=bool)
    hidden[:, [5, 8000]] = False
    assert same_lists(items, queries, 4, hidden) == 0


def test_wide_factors():
    generator = np.random.default_rng(5)
    assert same_lists(factors(generator, 6000, 2048), factors(generator, 1, 2048), 3) == 1


def test_threads_are_counted_from_one():
    items = np.ones((20, 16), dtype=np.float32)
    catalogue = kernels.Catalogue(items, 1).with_first_pass(1)
    with pytest.raises(ValueError, match="number of threads"):
        search(catalogue, items[:0], None, 3, threads=0)
