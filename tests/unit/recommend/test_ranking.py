"""Rankings of the whole catalogue and of parts of it."""

import numpy as np
import pytest

from limelight.data.synthetic import marketplace
from limelight.models import IALS, Popularity, Random
from limelight.recommend.index import LEAST_ITEMS, ItemIndex


@pytest.fixture(scope="module")
def data():
    return marketplace(200, 80, 3000).interactions


@pytest.mark.parametrize("make", [lambda: IALS(factors=8, epochs=2), Popularity, Random])
def test_a_part_of_the_catalogue_is_ranked_as_in_the_whole(data, make) -> None:
    ranking = make().fit(data).ranking(users=[3, 150, 9])
    users, items = np.array([2, 0]), np.arange(5, 60, 2, dtype=np.int32)
    whole, part = ranking.top(users, 80), ranking.among(items).top(users, 40)
    assert ranking.n_users == 3
    for row in range(2):
        kept = np.isin(whole.ids[row], items)
        n = kept.sum()
        assert 0 < n < 40
        np.testing.assert_array_equal(part.ids[row, :n], whole.ids[row, kept])
        np.testing.assert_array_equal(part.ids[row, n:], -1)
        np.testing.assert_array_equal(part.scores[row, n:], -np.inf)
        np.testing.assert_allclose(part.scores[row, :n], whole.scores[row, kept], rtol=1e-6)


def test_nothing_is_hidden_on_request(data) -> None:
    ranking = Popularity().fit(data).ranking(data.matrix[:4], filter_seen=False)
    assert (np.sort(ranking.top(np.arange(4), 80).ids) == np.arange(80)).all()


def test_a_first_pass_finds_the_same() -> None:
    generator = np.random.default_rng(0)
    items = generator.standard_normal((2 * LEAST_ITEMS, 20)).astype(np.float32)
    users = generator.standard_normal((3, 20)).astype(np.float32)
    chosen = np.arange(0, len(items), 3, dtype=np.int32)
    for index in (ItemIndex(items, 1), ItemIndex(items, 1, chosen)):
        plain, quick = index.search(users, 9), index.with_first_pass().search(users, 9)
        np.testing.assert_array_equal(quick.ids, plain.ids)
        np.testing.assert_array_equal(quick.scores, plain.scores)


def test_small_catalogues_have_no_first_pass() -> None:
    index = ItemIndex(np.ones((LEAST_ITEMS - 1, 4), np.float32), 1)
    assert index.with_first_pass() is index
