import json

import numpy as np
import pytest
from scipy import sparse

import limelight as ll
from limelight.models.recommender import Recommender
from limelight.store.arrays import load_arrays, save_arrays


@pytest.fixture(scope="module")
def model():
    return ll.IALS(factors=8, epochs=4).fit(ll.marketplace(300, 50, 4000).interactions)


@pytest.fixture(scope="module")
def histories(model):
    """Some users, of whom the second and the last have done nothing."""
    seen = model.learned.seen
    matrix = sparse.csr_matrix(
        (np.ones(seen.n_entries, dtype=np.float32), seen.indices, seen.indptr), shape=(300, 50)
    )[:5].tolil()
    matrix[[1, 4]] = 0
    return matrix.tocsr()


def test_others_keep_their_lists(model, histories):
    with pytest.warns(
        ll.LimelightWarning, match="^2 of 5 users have no history that the model knows: they get"
    ) as told:
        found = model.recommend(histories, k=7)
    assert len(told) == 1
    assert told[0].filename == __file__
    alone = model.recommend(histories[[0, 2, 3]], k=7)
    for mine, theirs in zip(found, alone, strict=True):
        np.testing.assert_array_equal(mine[[0, 2, 3]], theirs)
    shares = model.learned.item_shares()
    np.testing.assert_array_equal(found.ids[1], np.argsort(-shares, kind="stable")[:7])
    np.testing.assert_array_equal(found.ids[1], found.ids[4])


def test_what_is_hidden_is_not_popular_either(model, histories):
    popular = int(model.learned.counts().argmax())
    hidden = sparse.csr_matrix(([1.0], ([1], [popular])), shape=(5, 50))
    with pytest.warns(ll.LimelightWarning):
        ids = model.ranking(histories, hidden=hidden).top(np.array([1, 4]), 3).ids
    assert popular not in ids[0]
    assert ids[1, 0] == popular


def test_only_some_items(model, histories):
    with pytest.warns(ll.LimelightWarning):
        ids = model.recommend(histories, k=3, allow=[3, 4, 5]).ids
    shares = model.learned.item_shares()[[3, 4, 5]]
    np.testing.assert_array_equal(ids[1], 3 + np.argsort(-shares, kind="stable"))


def test_evaluation_and_rerankers_see_the_same(model, histories):
    fair = ll.BestResponse(strength=0.0).over(model)
    with pytest.warns(ll.LimelightWarning):
        ids = fair.recommend(histories, k=4).ids
    with pytest.warns(ll.LimelightWarning):
        np.testing.assert_array_equal(np.sort(ids), np.sort(model.recommend(histories, k=4).ids))


def test_a_folder_of_before_says_that_it_cannot(model, histories, tmp_path):
    model.save(tmp_path / "model", history=False)
    arrays = load_arrays(tmp_path / "model" / "factors.safetensors")
    counts = arrays.pop("item_counts")
    np.testing.assert_array_equal(counts, model.learned.counts())
    save_arrays(tmp_path / "model" / "factors.safetensors", arrays)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | {"schema_version": 2}))
    old = ll.load(tmp_path / "model")
    assert isinstance(old, Recommender)
    with pytest.warns(ll.LimelightWarning, match="does not know which items are popular"):
        assert old.recommend(histories, k=3).ids.shape == (5, 3)


def test_counts_of_other_items_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    arrays = load_arrays(tmp_path / "model" / "factors.safetensors")
    for counts in (np.zeros(49), np.zeros((50, 2))):
        save_arrays(tmp_path / "model" / "factors.safetensors", arrays | {"item_counts": counts})
        with pytest.raises(ll.DataError, match="item_counts"):
            ll.load(tmp_path / "model")


def test_a_history_of_which_no_part_is_shown_is_nothing_to_warn_of(recwarn):
    data = ll.marketplace(60, 30, 600).interactions.matrix
    model = ll.IALS(factors=4, epochs=2).fit(data)
    part = data[:3].copy()
    part.data[: part.indptr[1]] = 0
    part.eliminate_zeros()
    hidden = data[:3]
    ids = model.ranking(part, hidden=hidden).top(np.arange(3), 5).ids
    assert not set(ids[0]) & set(hidden[0].indices)
    assert not recwarn.list


@pytest.mark.parametrize("kind", [lambda: ll.IALS(factors=4, epochs=4), ll.EASE])
def test_a_history_of_items_that_nobody_had_says_nothing(kind):
    X = ll.marketplace(300, 50, 4000).interactions.matrix.tolil()
    X[:, [7, 9]] = 0
    model = kind().fit(X.tocsr())
    rows = sparse.csr_matrix((np.ones(3, np.float32), ([0, 0, 1], [7, 9, 3])), shape=(2, 50))

    with pytest.warns(ll.LimelightWarning, match="1 of 2 users has no history that the model"):
        found = model.recommend(rows, k=5)

    shares = model.learned.item_shares()
    np.testing.assert_array_equal(found.ids[0], np.argsort(-shares, kind="stable")[:5])
