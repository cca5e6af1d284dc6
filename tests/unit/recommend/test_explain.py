import copy

import numpy as np
import pytest

import limelight as ll

DATA = ll.marketplace(200, 50, 3000).interactions


def weights(model, history):
    """Return A of a history, in float64, as the objective says."""
    config, V = model.config, model.item_factors.astype(np.float64)
    numbers = model.numbers
    a0, H = numbers.unobserved_weight, V[history]
    size = (len(history) + a0 * len(V)) ** config.regularization_exponent
    return a0 * V.T @ V + H.T @ H + numbers.regularization * size * np.eye(V.shape[1]), V


@pytest.mark.parametrize(
    "model",
    [
        ll.IALS(factors=6, epochs=5),
        ll.IALS(factors=6, epochs=5, regularization_exponent=0.5, unobserved_weight=0.3),
        ll.ExADMM(factors=6, epochs=5, exposure_strength=0.5),
        ll.ExADMM(factors=6, epochs=5, exposure_strength=0.5, solver="admm"),
    ],
    ids=repr,
)
def test_parts_are_those_of_the_equations(model):
    model = copy.copy(model).fit(DATA)
    history, item = DATA.matrix[8].indices, 11
    found = model.explain(8, item)
    A, V = weights(model, history)
    toward = np.linalg.solve(A, V[item])
    parts = dict(found.parts)
    np.testing.assert_allclose([parts[i] for i in history], V[history] @ toward, rtol=1e-5)
    score = model.fold_in(DATA.matrix[8])[0] @ model.item_factors[item]
    assert found.score == pytest.approx(score, rel=1e-3, abs=1e-5)
    if isinstance(model, ll.ExADMM):
        assert found.exposure == pytest.approx(-toward @ model.price_)
        assert found.exposure < 0
    else:
        assert found.exposure is None


def test_it_shows_itself():
    model = ll.ExADMM(factors=6, epochs=5, exposure_strength=0.1).fit(DATA)
    found = model.explain(item=11, history=[3, 4, 3])
    assert [item for item, _ in found.parts] in ([3, 4], [4, 3])
    assert str(found).startswith("Score of 11: ")
    assert "(control of exposure)" in str(found)
    assert found._repr_html_().startswith("<div")


def test_a_long_history_is_cut_where_it_is_shown():
    parts = tuple((f"item {number}", 0.5) for number in range(30))
    text = str(ll.Explanation("x", 15.0, parts))
    assert "10 items in between are left out" in text
    assert "3 %" in text


def test_a_model_without_histories_asks_for_one(tmp_path):
    ll.IALS(factors=4, epochs=2).fit(DATA).save(tmp_path / "model", history=False)
    model = ll.load(tmp_path / "model")
    with pytest.raises(ll.DataError, match="saved without histories"):
        model.explain(3, 4)
    assert model.explain(item=4, history=[1, 2]).score


def test_a_score_that_is_not_determined():
    model = ll.IALS(factors=6, epochs=2, unobserved_weight=0.1, regularization=0.003).fit(DATA)
    model.config = ll.IALS(factors=6, unobserved_weight=0, regularization=0).config
    model.learned.arrays["item_factors"][:, 0] = 0
    with pytest.raises(ll.SolveError, match="not determined"):
        model.explain(item=4, history=[1, 2])


def test_what_is_asked_is_refused_in_words():
    model = ll.IALS(factors=4, epochs=2).fit(DATA)
    with pytest.raises(ll.ConfigError, match="takes an item"):
        model.explain(3)
    with pytest.raises(ll.DataError, match="user id not in the training data: 'x'"):
        model.explain("x", 1)
    with pytest.raises(ll.DataError, match="item id not in the training data: 999"):
        model.explain(3, 999)
