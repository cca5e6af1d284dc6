import numpy as np
import pytest

import limelight as ll
from limelight.recommend import similar
from limelight.recommend.similar import cosines, similar_items

VECTORS = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
IDS = np.array([f"item {number}" for number in range(30)], dtype=object)


@pytest.mark.parametrize("at_once", [1, 1 << 24])
def test_the_nearest_by_cosine(monkeypatch, at_once):
    monkeypatch.setattr(similar, "_SCORES", at_once)
    units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    every = units @ units.T
    np.fill_diagonal(every, -np.inf)
    ids, scores = similar_items(lambda items: cosines(VECTORS, items), IDS, IDS[[7, 2]], 5)
    for row, item in enumerate((7, 2)):
        order = np.argsort(-every[item])[:5]
        assert ids[row].tolist() == IDS[order].tolist()
        np.testing.assert_allclose(scores[row], every[item, order], rtol=1e-5)


def test_one_item_has_no_other():
    ids, scores = similar_items(lambda items: np.ones((1, 1)), IDS[:1], "item 0", 5)
    assert ids.shape == scores.shape == (1, 0)


def test_ids_are_the_own_ones_whatever_their_type():
    data = ll.marketplace(200, 50, 3000).interactions
    model = ll.IALS(factors=4, epochs=3).fit(data)
    numbers = model.similar_items([7, 2], k=3)
    texts = model.similar_items(["7", "2"], k=3)
    np.testing.assert_array_equal(numbers.ids, texts.ids)
    assert ll.BestResponse().over(model).similar_items(7, k=3).ids.tolist() == [
        numbers.ids[0].tolist()
    ]
