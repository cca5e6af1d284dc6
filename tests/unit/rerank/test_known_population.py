"""Re-rankers that know a population serve any part of it, at any length, once each."""

import numpy as np
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import as_groups
from limelight.metrics import exposure
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import empty_lists
from limelight.rerank.folder import control_of
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.best_response import MarketState
from limelight.rerank.relevance import BY_RANK
from limelight.rerank.targets.controls import SearchContext
from limelight.rerank.targets.groups import as_bounds
from limelight.rerank.targets.serving import Served

K, N_USERS, N_ITEMS = 10, 600, 80


@pytest.fixture(scope="module")
def model():
    data = ll.marketplace(N_USERS, N_ITEMS, 12_000, seed=7).interactions
    return ll.IALS(factors=8, epochs=5, num_threads=1).fit(data)


@pytest.fixture(scope="module")
def settled(model):
    return ll.BestResponse(strength=0.4, num_threads=1).settle(model.ranking(), K)


def gini_of(ids):
    return exposure.gini(exposure.exposure(ids, N_ITEMS))


def in_parts(reranker, model, k, seed, sizes):
    order = np.random.default_rng(seed).permutation(N_USERS)
    found = np.empty((N_USERS, k), dtype=np.int32)
    for rows in np.split(order, sizes):
        found[rows] = reranker.rerank(model.ranking(users=rows), k).ids
    return found


def test_settling_is_what_the_lists_of_all_give(model, settled):
    lists = ll.BestResponse(strength=0.4, num_threads=1).rerank(model.ranking(), K)
    np.testing.assert_allclose(settled.exposure_, exposure.exposure(lists.ids, N_ITEMS))
    assert (settled.served_, settled.length_, settled.is_settled) == (N_USERS, K, True)


def test_serving_leaves_the_population_as_it_is(model, settled):
    before = settled.exposure_.copy()
    first = settled.rerank(model.ranking(users=np.arange(50)), K)
    again = settled.rerank(model.ranking(users=np.arange(50)), K)
    np.testing.assert_array_equal(first.ids, again.ids)
    np.testing.assert_array_equal(settled.exposure_, before)
    assert settled.served_ == N_USERS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [range(60, N_USERS, 60), range(1, 40), [1]], ids=str)
def test_parts_give_together_what_all_give(model, settled, seed, sizes):
    whole = gini_of(settled.rerank(model.ranking(), K).ids)
    assert gini_of(in_parts(settled, model, K, seed, list(sizes))) == pytest.approx(whole, abs=0.02)


@pytest.mark.parametrize("k", [5, 20])
def test_other_lengths_are_served_beside_the_population(model, settled, k):
    plain = gini_of(model.recommend(k=k).ids)
    ids = in_parts(settled, model, k, 0, list(range(60, N_USERS, 60)))
    assert ids.shape == (N_USERS, k)
    assert gini_of(ids) < plain - 0.05
    assert settled.length_ == K


def test_a_sample_stands_for_more(model):
    some = np.random.default_rng(0).permutation(N_USERS)[:300]
    found = ll.BestResponse(strength=0.4, num_threads=1).settle(
        model.ranking(users=some), K, users=N_USERS
    )
    assert found.served_ == N_USERS
    weights = 1 / np.log2(np.arange(K) + 2)
    assert found.exposure_.sum() == pytest.approx(N_USERS * weights.sum())
    whole = gini_of(in_parts(found, model, K, 0, list(range(60, N_USERS, 60))))
    exact = ll.BestResponse(strength=0.4, num_threads=1).rerank(model.ranking(), K)
    assert whole == pytest.approx(gini_of(exact.ids), abs=0.03)


def test_settling_again_forgets_who_was_known(model, settled):
    other = ll.BestResponse(strength=0.4, num_threads=1)
    other.settle(model.ranking(users=np.arange(100)), K)
    other.settle(model.ranking(), K)
    np.testing.assert_array_equal(other.exposure_, settled.exposure_)
    other.reset()
    assert not other.is_settled
    assert other.state().is_empty


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_a_length_is_a_whole_number(model, k):
    with pytest.raises(ConfigError):
        ll.BestResponse().settle(model.ranking(), k)


def saved(reranker):
    """Return what a folder would keep, and read back."""
    arrays = control_of(reranker).arrays
    values = {name: value if value.ndim else value.item() for name, value in arrays.items()}
    return MarketState.of(values)


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("kind", [ll.BestResponse, ll.Online])
def test_the_state_comes_back(model, kind, with_offsets):
    first = kind(strength=0.4, num_threads=1)
    if with_offsets:
        first.offsets_ = np.where(np.arange(N_ITEMS) % 2, 0.05, -0.05)
    if kind is ll.Online:
        first.warm_up(model.ranking(), K)
    else:
        first.settle(model.ranking(), K)
    second = kind(strength=0.4, num_threads=1)
    second.restore(saved(first), N_ITEMS)
    assert (second.served_, second.length_) == (first.served_, K)
    assert second.survey_[:2] == first.survey_[:2]
    if with_offsets:
        np.testing.assert_array_equal(second.offsets_, first.offsets_)
    else:
        assert second.offsets_ is None
    some = np.arange(100)
    for k in (K, 5):
        lists = [one.rerank(model.ranking(users=some), k).ids for one in (first, second)]
        np.testing.assert_array_equal(*lists)


def test_offsets_move_exposure(model):
    favoured = np.arange(N_ITEMS) % 2 == 0
    found = ll.BestResponse(strength=0.4, num_threads=1)
    before = exposure.exposure(found.rerank(model.ranking(), K).ids, N_ITEMS)
    found.offsets_ = np.where(favoured, 0.05, -0.05)
    found.settle(model.ranking(), K)
    after = exposure.exposure(in_parts(found, model, K, 0, list(range(60, N_USERS, 60))), N_ITEMS)
    assert after[favoured].sum() > 1.05 * before[favoured].sum()


def test_a_stream_counts_whom_it_serves(model):
    online = ll.Online(strength=0.4, num_threads=1).warm_up(model.ranking(), K)
    warm = online.served_
    assert warm == N_ITEMS / K
    online.rerank(model.ranking(users=np.arange(50)), K)
    assert online.served_ == warm + 50
    online.rerank(model.ranking(users=np.arange(50, 150)), 5)
    assert online.served_ == warm + 150


def test_a_stream_of_other_lengths_shares_exposure_too(model):
    for k in (5, 20):
        online = ll.Online(strength=0.4, num_threads=1).warm_up(model.ranking(), K)
        ids = in_parts(online, model, k, 1, list(range(60, N_USERS, 60)))
        assert gini_of(ids) < gini_of(model.recommend(k=k).ids) - 0.05


def state(**changes):
    arrays = {"exposure": np.ones(N_ITEMS), "merit": np.ones(N_ITEMS)}
    numbers = {"served": 3.0, "unit": 0.1, "total": 2.0, "length": 10.0}
    return MarketState.of(arrays | numbers | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": np.ones(3)},
        {"offsets": np.full(N_ITEMS, np.nan)},
        {"exposure": np.ones(N_ITEMS, dtype=np.int64)},
        {"length": -1.0},
        {"length": 0.0},
        {"length": float("inf")},
        {"served": "x"},
        {"total": None},
    ],
    ids=str,
)
def test_a_state_that_cannot_be_is_refused(changes):
    with pytest.raises((ConfigError, DataError)):
        ll.BestResponse().restore(state(**changes), N_ITEMS)


def test_the_length_of_an_older_state_follows_from_its_exposure(model):
    """Folders of the first schema do not say how long the lists were that the exposure is of."""
    online = ll.Online(strength=0.4, num_threads=1).warm_up(model.ranking(), K)
    old = saved(online).saved() | {"length": None, "offsets": None}
    found = ll.Online(strength=0.4, num_threads=1)
    found.restore(MarketState.of(old), N_ITEMS)
    lists = [one.rerank(model.ranking(), K).ids for one in (found, online)]
    np.testing.assert_array_equal(*lists)


class TestReranked:
    """Lists that were decided before are shown again."""

    @pytest.fixture
    def served(self, model, settled):
        lists = settled.rerank(model.ranking(), K)
        lists.ids[100:] = -1
        lists.scores[100:] = -np.inf
        found = settled.over(model)
        found.lists = lists
        return found

    def test_who_has_a_list_keeps_it(self, served):
        kept = served.lists.ids[:100].copy()
        np.testing.assert_array_equal(served.recommend(users=np.arange(100), k=K).ids, kept)
        np.testing.assert_array_equal(served.recommend(k=K).ids[:100], kept)
        np.testing.assert_array_equal(served.recommend(users=[7, 3, 7], k=K).ids, kept[[7, 3, 7]])

    def test_who_has_none_gets_one(self, served):
        ids = served.recommend(users=[150, 5, 160, 150], k=K).ids
        assert (ids >= 0).all()
        np.testing.assert_array_equal(ids[0], ids[3])
        assert (served.lists.ids[100:] == -1).all()  # a batch does not remember

    def test_a_stream_remembers_and_counts_once(self, model):
        online = ll.Online(strength=0.4, num_threads=1).warm_up(model.ranking(), K)
        found = online.over(model)
        found.lists = empty_lists(N_USERS, K)
        warm = online.served_
        first = found.recommend(users=[9, 4, 9], k=K).ids
        np.testing.assert_array_equal(first[0], first[2])
        assert found.reranker.served_ == warm + 2
        np.testing.assert_array_equal(found.recommend(users=[4, 9], k=K).ids, first[[1, 0]])
        assert found.reranker.served_ == warm + 2
        found.recommend(k=K)
        assert found.reranker.served_ == warm + N_USERS
        assert (found.lists.ids >= 0).all()

    def test_a_copy_has_a_memory_of_its_own(self, model):
        online = ll.Online(strength=0.4, num_threads=1).warm_up(model.ranking(), K)
        found = online.over(model)
        found.lists, found.promise = empty_lists(N_USERS, K), {"target": {}}
        copy = found.fresh()
        copy.recommend(users=np.arange(30), k=K)
        assert (found.lists.ids == -1).all()
        assert found.reranker.served_ == copy.reranker.served_ - 30
        assert copy.promise == found.promise

    @pytest.mark.parametrize("asked", [{"k": 5}, {"k": K, "filter_seen": False}], ids=str)
    def test_other_lists_are_made_anew(self, served, asked):
        assert not served.keeps_lists(**asked)
        found = served.recommend(users=np.arange(20), **asked).ids
        assert found.shape == (20, asked["k"])
        assert (found >= 0).all()

    def test_unseen_users_are_not_taken_for_known_ones(self, served):
        matrix = ll.marketplace(5, N_ITEMS, 60, seed=1).interactions.matrix
        found = served.recommend(matrix, k=K).ids
        assert found.shape == (5, K)
        seen = matrix.toarray()
        assert not seen[np.arange(5)[:, None], found].any()


def test_prices_of_groups_are_those_of_the_strength_that_is_served(model):
    """A search may take a strength that it tried before the last one."""

    def groups(item_ids):
        members = as_groups(np.arange(len(item_ids)) % 5, len(item_ids))
        return members, as_bounds(0.21, None, members, len(item_ids))

    with Pool(candidates_of(model.ranking()), BY_RANK) as pool:
        served = Served("batch", BY_RANK, groups=groups)
        control = served.control(SearchContext(pool, 10, threads=1, seed=0))
        first = control.try_at(0.05)
        then = control.reranker(0.05, first.lists, 600.0).offsets_.copy()
        last = control.try_at(1.0)
        assert np.array_equal(control.reranker(0.05, first.lists, 600.0).offsets_, then)
        assert not np.array_equal(control.reranker(1.0, last.lists, 600.0).offsets_, then)
