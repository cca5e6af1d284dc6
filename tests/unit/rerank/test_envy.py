"""FairRec+: after the swaps there are no cycles of envy, and items still get their lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support.examples import examples

from limelight._base.errors import ConfigError
from limelight.recommend.ranking import VectorRanking
from limelight.rerank import FairRec
from limelight.rerank.methods.fairrec_plus import play_envy_free, swap_along_cycles
from limelight.solve.problem import sparse_rows

sizes = st.tuples(st.integers(1, 25), st.integers(1, 20), st.integers(1, 6))


def instance(n_users, n_items, *, seed, hidden=None):
    """Return a ranking and all of its scores, which are whole numbers."""
    generator = np.random.default_rng(seed)
    users, items = (
        generator.integers(-3, 4, (n, 6)).astype(np.float32) for n in (n_users, n_items)
    )
    ranking = VectorRanking(items, users.__getitem__, n_users=n_users, hidden=hidden, threads=1)
    return ranking, (users @ items.T).astype(float)


def has_cycle(envies):
    """Take away those who envy nobody left, until nobody is left or nobody can be taken away."""
    left = np.ones(len(envies), dtype=bool)
    while left.any():
        content = left & ~envies[:, left].any(axis=1)
        if not content.any():
            return True
        left &= ~content
    return False


@examples(100)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_swaps_end_cycles_and_make_nobody_poorer(n_users, seed):
    worth = np.random.default_rng(seed).integers(0, 6, (n_users, n_users)).astype(float)
    sources, served = swap_along_cycles(worth, np.arange(n_users, dtype=np.int32))
    assert sorted(sources) == sorted(served) == list(range(n_users))
    after = worth[:, sources]
    assert (np.diag(after) >= np.diag(worth)).all()
    envies = after > np.diag(after)[:, None]
    assert not has_cycle(envies)
    # Envy goes to those who were served earlier, and to nobody else.
    assert not np.triu(envies[np.ix_(served, served)]).any()


def test_a_swap_takes_part_only_among_those_named():
    worth = np.array([[0.0, 1.0], [1.0, 0.0]])
    sources, served = swap_along_cycles(worth, np.array([1], dtype=np.int32))
    assert (sources.tolist(), served.tolist()) == ([0, 1], [1])


@examples(100)
@given(sizes, st.integers(0, 2**32 - 1))
def test_no_cycles_of_envy_are_left(size, seed):
    n_users, n_items, k = size
    k = min(k, n_items)
    ranking, scores = instance(n_users, n_items, seed=seed)
    order = np.random.default_rng(seed).permutation(n_users).astype(np.int32)
    copies = n_users * k // n_items
    bundles = play_envy_free(ranking, order, copies, k=k)[0].ids
    values = scores - scores.min(axis=1, keepdims=True)
    worth = np.stack([values[:, row[row >= 0]].sum(axis=1) for row in bundles], axis=1)
    assert not has_cycle(worth > np.diag(worth)[:, None])


@examples(100)
@given(sizes, st.integers(0, 2**32 - 1))
def test_items_get_their_lists(size, seed):
    n_users, n_items, k = size
    ranking, scores = instance(n_users, n_items, seed=seed)
    fair = FairRec(envy_free=True)
    ids, found = fair.rerank(ranking, k)
    counts = np.bincount(ids[ids >= 0], minlength=n_items)
    short = (counts < fair.outcome_.guarantee).sum()
    assert short <= (0 if fair.outcome_.kept else min(k, n_items) - 1)
    shown = ids[:, : min(k, n_items)]
    assert (found[:, : min(k, n_items)] == np.take_along_axis(scores, shown, axis=1)).all()
    assert all(len(set(row)) == len(row) for row in shown.tolist())


def test_a_swap_never_shows_what_is_hidden():
    generator = np.random.default_rng(0)
    matrix = sparse.csr_matrix(generator.random((40, 30)) < 0.3)
    hidden = sparse_rows(matrix.indptr, matrix.indices, 30)
    ranking, _ = instance(40, 30, seed=0, hidden=hidden)
    ids, _ = FairRec(envy_free=True).rerank(ranking, 6)
    assert (ids >= 0).all()
    assert not matrix.toarray()[np.arange(40)[:, None], ids].any()


def test_too_many_to_compare():
    ranking = VectorRanking(
        np.ones((3, 16), np.float32),
        np.ones((6000, 16), np.float32).__getitem__,
        n_users=6000,
        hidden=None,
        threads=1,
    )
    with pytest.raises(ConfigError, match="6,000 users x 6,000") as caught:
        FairRec(envy_free=True).rerank(ranking, 2)
    assert "use envy_free=False" in caught.value.hint
