"""Laws with curves and factors of items, how they are found, and pools that are in their order."""

import json
import pickle
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.candidates.candidates import Block, read_candidates
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import VectorRanking
from limelight.rerank import Relevance, calibrate
from limelight.rerank.market import pool as pool_module
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import BY_RANK, by_scores, calibration

N_ITEMS = 80
POPULARITY = np.random.default_rng(5).integers(0, 400, N_ITEMS)


def planted(n_users=1500, seed=0, popular=2.0):
    """Items are liked by score, and popular ones more than their scores say."""
    generator = np.random.default_rng(seed)
    items = (0.1 + generator.random((N_ITEMS, 1))).astype(np.float32)
    users = (0.2 + generator.random((n_users, 1))).astype(np.float32)
    chances = np.minimum((users @ items.T) / 6 * np.where(POPULARITY > 200, popular, 1.0), 1)
    targets = csr_matrix(generator.random(chances.shape) < chances)
    ranking = VectorRanking(items, users.__getitem__, n_users=n_users, hidden=None, threads=1)
    return ranking, targets


@pytest.fixture(scope="module")
def law():
    ranking, targets = planted()
    return calibrate(ranking, targets, k=10, popularity=POPULARITY)


def test_calibration_finds_what_popularity_adds(law):
    terms = np.array(law.items)
    above, below = terms[POPULARITY > 250].mean(), terms[POPULARITY < 150].mean()
    assert above - below == pytest.approx(np.log(2), abs=0.2)


def test_relevance_rises_with_the_score_and_falls_with_the_rank(law):
    generator = np.random.default_rng(1)
    for _ in range(20):
        scores = np.sort(generator.gamma(1.0, 0.3, 60).astype(np.float32))[::-1]
        block = Block(np.array([0, 60]), np.full(60, 7, np.int32), scores)  # of one item's factor
        assert (np.diff(law(block)) <= 1e-6 * law(block)[:-1]).all()


def test_few_pairs_give_about_the_powers(law):
    ranking, targets = planted(n_users=100)
    rare = targets.multiply(np.random.default_rng(0).random(targets.shape) < 0.02).tocsr()
    rare.eliminate_zeros()
    assert 0 < rare.nnz < 30
    few = calibrate(ranking, rare, k=10, popularity=POPULARITY)
    bends = [max(map(abs, values)) for _, _, values in few.curves]
    assert max([*bends, *map(abs, few.items)], default=0) < 0.2
    assert max(map(abs, law.items)) > 0.3


def test_popularity_is_counted_among_candidates_unless_given(monkeypatch):
    monkeypatch.setattr(calibration, "_SHOWN", 2)
    block = Block(np.array([0, 3, 5]), np.int32([4, 1, 0, 1, 2]), np.float32([3, 2, 1, 2, 1]))
    assert calibration._popularity(None, block, 6).tolist() == [0, 2, 1, 0, 1, 0]
    ranking, targets = planted(300)
    with pytest.raises(DataError, match="popularity must be 80 numbers"):
        calibrate(ranking, targets, popularity=[1, 2])


@pytest.mark.parametrize("seed", range(3))
def test_an_order_that_others_like_no_better_is_not_taken(seed):
    ranking, targets = planted(600, seed, popular=1.0)
    assert not calibrate(ranking, targets, k=10, popularity=POPULARITY).items


def test_new_items_have_the_factor_1(law):
    block = Block(np.array([0, 2]), np.array([N_ITEMS, 10**6], np.int32), np.float32([0.5, 0.5]))
    without = replace(law, items=())
    np.testing.assert_array_equal(law(block), without(block))


def test_a_law_survives_pickling_and_folders(law):
    assert pickle.loads(pickle.dumps(law)) == law
    assert Relevance(**json.loads(json.dumps(asdict(law)))) == law
    assert len(repr(law)) < 200


def test_a_model_folder_keeps_the_law(law, tmp_path):
    model = ll.Popularity().fit(ll.marketplace(300, N_ITEMS, 4000).interactions)
    ll.BestResponse(strength=0.3, relevance=law).over(model).save(tmp_path / "model")
    assert ll.load(tmp_path / "model").reranker.config.relevance == law


@pytest.mark.parametrize(
    "curve",
    [("score", (0.0,), (0.0,)), ("score", (1, 0), (0, 0)), ("size", (0, 1), (0, 1))],
)
def test_curves_that_cannot_be_are_refused(curve):
    with pytest.raises(ConfigError):
        Relevance(curves=(curve,))


def turning(n_items=12):
    """Give a law that turns some users' candidates around."""
    return Relevance(score=1.0, rank=0.0, items=tuple(np.linspace(-2, 2, n_items).tolist()))


def some_candidates(n_users=30, n_items=12):
    generator = np.random.default_rng(2)
    items = generator.random((n_items, 2)).astype(np.float32)
    users = generator.random((n_users, 2)).astype(np.float32)
    ranking = VectorRanking(items, users.__getitem__, n_users=n_users, hidden=None, threads=1)
    return candidates_of(ranking)


@pytest.mark.parametrize("pairs", [1 << 21, 40, 12])
@pytest.mark.parametrize("memory", [1 << 30, 600 * 4, 0])
def test_a_pool_is_in_the_order_of_relevance(monkeypatch, pairs, memory):
    monkeypatch.setattr(pool_module, "_PAIRS", pairs)
    candidates, law = some_candidates(), turning()
    block = candidates.block(0, 30)
    expected, items = law(block).reshape(30, 12), block.items.reshape(30, 12)
    with Pool(candidates, law, memory=memory) as pool:
        order = np.argsort(-expected, axis=1, kind="stable")
        places = np.tile(np.arange(12, dtype=np.int32), (30, 1))
        ids, scores = pool.lists(places)
        np.testing.assert_array_equal(ids, np.take_along_axis(items, order, 1))
        own_scores = np.take_along_axis(block.scores.reshape(30, 12), order, 1)
        np.testing.assert_array_equal(scores, own_scores)
        found = np.concatenate([pool.relevance(rows) for rows in pool.blocks]).reshape(30, 12)
        np.testing.assert_array_equal(found, np.take_along_axis(expected, order, 1))
        kept = np.concatenate([pool.items_of(rows)[1] for rows in pool.blocks])
        np.testing.assert_array_equal(kept, ids.ravel())
        own = pool.own_places(5)
        np.testing.assert_array_equal(pool.lists(own).ids, items[:, :5])
        np.testing.assert_array_equal(pool.places_of(items[:, :5]), np.sort(own, axis=1))


def test_a_block_that_falls_may_follow_and_precede_one_that_rises(monkeypatch):
    monkeypatch.setattr(pool_module, "_PAIRS", 2)
    rows = {"user_id": [1, 1, 2, 2, 3, 3], "item_id": [0, 1, 1, 0, 0, 1], "score": [5, 4] * 3}
    law = Relevance(score=1.0, rank=0.0, items=(1.0, -1.0))
    with Pool(read_candidates(pa.table(rows)), law) as pool:
        assert pool.lists(np.tile(np.int32([0, 1]), (3, 1))).ids.tolist() == [[0, 1]] * 3
        assert pool.own_places(2).tolist() == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize("method", [ll.BestResponse, ll.Online])
def test_strength_0_gives_the_plain_lists(method):
    candidates = some_candidates()
    lists = method(strength=0.0, relevance=turning()).rerank(candidates, 4)
    np.testing.assert_array_equal(lists.ids, candidates.block(0, 30).items.reshape(30, 12)[:, :4])
    stronger = method(strength=0.3, relevance=turning()).rerank(candidates, 4)
    assert (stronger.ids >= 0).all()


def test_shape_counts_of_positive_scores_in_any_unit_and_order_of_others():
    table = {"user_id": [1, 1, 2, 2], "item_id": [0, 1, 0, 1]}
    scores = np.array([0.9, 0.1, 0.3, 0.2])
    found = {}
    for unit in (1.0, 1e4):
        candidates = read_candidates(pa.table({**table, "score": scores * unit}))
        relevance = by_scores(candidates)(candidates.block(0, 2))
        found[unit] = relevance / relevance.max()
    np.testing.assert_allclose(found[1.0], found[1e4], rtol=1e-4)
    for strange in (scores - 0.5, -scores):
        assert by_scores(read_candidates(pa.table({**table, "score": strange}))) == BY_RANK
    tiny = np.array([0.9, -1e-5, 0.3, 0.2])
    assert by_scores(read_candidates(pa.table({**table, "score": tiny}))).score > 0


def test_the_law_of_a_population_serves_those_who_come_alone(tmp_path):
    model = ll.IALS(factors=8).fit(ll.marketplace(300, N_ITEMS, 4000).interactions)
    method = ll.BestResponse(strength=0.3).settle(model.ranking(), 5)
    found = method.law_
    assert found.score == 1.4
    fair = method.over(model)
    fair.recommend(user_ids=model.user_ids[:1], k=5)
    assert fair.reranker.law_ is found
    fair.save(tmp_path / "model")
    assert ll.load(tmp_path / "model").reranker.config.relevance == found
    assert fair.reranker.get_params()["relevance"] == "auto"


@pytest.mark.parametrize("method", [ll.BestResponse(strength=0.3), ll.Online(strength=0.3)])
def test_another_model_has_its_own_law(method):
    data = ll.marketplace(300, N_ITEMS, 4000).interactions
    model = ll.IALS(factors=8).fit(data)
    items, users = model.item_factors, model.user_factors
    logits = VectorRanking(-items, users.__getitem__, n_users=len(users), hidden=None, threads=1)
    method.rerank(logits, 5)
    assert method.law_ == BY_RANK
    if isinstance(method, ll.Online):
        method.reset()
    method.rerank(model.ranking(), 5)
    assert method.law_.score == 1.4


def test_one_pair_hardly_moves_the_usual_law():
    ranking, targets = planted(200)
    one = csr_matrix(([True], ([3], [targets[3].indices[-1]])), shape=targets.shape)
    law = calibrate(ranking, one, k=10)
    assert (law.score, law.rank) == pytest.approx((1.4, -0.25), abs=0.25)


@pytest.mark.parametrize(
    ("popularity", "reason"),
    [
        (np.full(N_ITEMS, np.nan), "0 or more, and finite: nan"),
        (np.full(N_ITEMS, np.inf), "0 or more, and finite: inf"),
        (["a"] * N_ITEMS, "numbers: list"),
        (csr_matrix((1, N_ITEMS)), "numbers: "),
    ],
)
def test_popularity_that_cannot_be_is_refused(popularity, reason):
    ranking, targets = planted(30)
    with pytest.raises(DataError, match=reason):
        calibrate(ranking, targets, popularity=popularity)
