"""Laws of relevance, and how they are found from held-out pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.candidates.candidates import Block
from limelight.recommend.ranking import VectorRanking
from limelight.rerank import Relevance, calibrate


def block_of(rows):
    counts = [len(row) for row in rows]
    scores = np.concatenate([np.sort(np.asarray(row, np.float32))[::-1] for row in rows])
    return Block(np.append(0, np.cumsum(counts)), np.zeros(len(scores), np.int32), scores)


@given(
    rows=st.lists(st.lists(st.floats(-5, 5, width=32), max_size=40), min_size=1, max_size=5),
    score=st.floats(0, 3),
    head=st.floats(-2, 2),
    rank=st.floats(-2, 0),
    scale=st.sampled_from(["log", "logit"]),
)
def test_relevance_never_rises_along_a_row(rows, score, head, rank, scale):
    block = block_of(rows)
    law = Relevance(score=score, head=head, rank=rank, scale=scale)
    relevance = law(block)
    for first, last in zip(block.indptr, block.indptr[1:], strict=False):
        assert (np.diff(relevance[first:last]) <= 0).all()
    assert np.isfinite(relevance).all()


def test_the_law_is_a_product_of_powers():
    block = block_of([[4.0, 1.0], [9.0]])
    law = Relevance(score=0.5, head=-1.0, rank=-1.0, constant=np.log(6))
    # The head of the first user is the geometric mean of 4 and 1.
    expected = [6 * 2 / 2 / 2, 6 * 1 / 2 / 3, 6 * 3 / 9 / 2]
    np.testing.assert_allclose(law(block), expected, rtol=1e-6)


def test_a_law_that_would_turn_lists_around_is_refused():
    for law in ({"score": -1.0}, {"rank": 1.0}):
        with pytest.raises(ConfigError, match="relevance would rise"):
            Relevance(**law)


def planted(n_users=1500, n_items=60, power=1.5, seed=0):
    """Held-out items that are liked with a chance of (score / 2)^power, one dimension."""
    generator = np.random.default_rng(seed)
    items = np.sort(generator.random((n_items, 1)).astype(np.float32))
    users = (0.2 + generator.random((n_users, 1))).astype(np.float32)
    chances = ((users @ items.T) / 2) ** power
    targets = csr_matrix(generator.random(chances.shape) < chances)
    ranking = VectorRanking(items, users.__getitem__, n_users=n_users, hidden=None, threads=1)
    return ranking, targets


def test_calibration_finds_how_relevance_grows_with_scores():
    ranking, targets = planted()
    law = calibrate(ranking, targets, k=10)
    assert law.scale == "log"
    # Gains are chances over the nDCG's norm, which grows with the user: her level counts against.
    assert law.score == pytest.approx(1.5, abs=0.5)
    assert law.head < 0.5
    assert law.rank <= 0


def test_calibration_takes_negative_scores_for_logits():
    ranking, targets = planted()
    logits = VectorRanking(
        np.column_stack([np.ones(60), np.log(np.linspace(0.01, 0.9, 60))]).astype(np.float32),
        lambda users: np.tile(np.float32([-3, 1]), (len(users), 1)),
        n_users=ranking.n_users,
        hidden=None,
        threads=1,
    )
    law = calibrate(logits, targets)
    assert law.scale == "logit"


def test_calibration_needs_pairs_that_are_candidates():
    ranking, targets = planted(n_users=20)
    with pytest.raises(DataError, match="no held-out pair"):
        calibrate(ranking, csr_matrix(targets.shape))
    few = VectorRanking(
        np.ones((60, 1), np.float32),
        lambda users: np.ones((len(users), 1), np.float32),
        n_users=20,
        hidden=None,
        threads=1,
    ).among(np.array([0], np.int32))
    only_last = csr_matrix((np.ones(20), (np.arange(20), np.full(20, 59))), shape=(20, 60))
    with pytest.raises(DataError, match="none of the held-out pairs of 20 users"):
        calibrate(few, only_last)


def test_calibration_is_the_same_every_time():
    market = ll.marketplace(900, 100, 20_000)
    split = ll.split_users(market.interactions, validation=200, test=200)
    model = ll.IALS(factors=8).fit(split.train)
    ranking = model.ranking(split.validation.history)
    assert calibrate(ranking, split.validation.targets) == calibrate(
        ranking, split.validation.targets
    )
