"""Lists of a network in pieces are those of one machine."""

import numpy as np
import pyarrow.parquet as pq
from tests.support.executors import Elsewhere

import limelight as ll
from limelight.jobs import recommend


def test_lists_of_a_network(tmp_path):
    split = ll.split_users(ll.marketplace(500, 80, 6000).interactions, validation=40, test=100)
    model = ll.MultVAE(latent=4, hidden=8, epochs=1).fit(split.train, validation=split.validation)
    model.save(tmp_path / "model")
    lists = tmp_path / "lists"
    recommend(tmp_path / "model", lists, k=5, executor=Elsewhere(), per_piece=37)
    ids, scores = model.recommend(k=5)
    found = pq.read_table(tmp_path / "lists")
    assert found["user_id"].to_pylist() == np.repeat(model.user_ids, 5).tolist()
    assert found["item_id"].to_pylist() == np.asarray(model.item_ids)[ids.ravel()].tolist()
    np.testing.assert_array_equal(found["score"], scores.ravel())
