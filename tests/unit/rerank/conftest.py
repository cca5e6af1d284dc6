"""Small crowds of users with candidates, whose every choice can be checked."""

import numpy as np
import pyarrow as pa
import pytest

from limelight.data import read_candidates
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import ScoreRelevance


@pytest.fixture(scope="session")
def crowd():
    """Make candidates, relevance being the score, and the same as a dense matrix."""

    def make(n_users=30, n_items=12, *, seed=0, share=0.8, law=None):
        generator = np.random.default_rng(seed)
        dense = np.round(generator.random((n_users, n_items)), 3).astype(np.float32)
        dense[generator.random(dense.shape) > share] = -np.inf
        users, items = np.nonzero(np.isfinite(dense))
        table = pa.table({"user_id": users, "item_id": items, "score": dense[users, items]})
        candidates = read_candidates(table, catalogue=list(range(n_items)))
        return Pool(candidates, law or ScoreRelevance()), dense[candidates.user_ids]

    return make
