"""How often items that are known by features alone are shown."""

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll
from limelight._base.errors import DataError, LimelightWarning

DATA = ll.marketplace(600, 150, 9000, seed=2).interactions
COLD = np.arange(10_000, 10_040)
DRAW = np.random.default_rng(0)


def table(genres):
    return pa.table({"item_id": np.concatenate([DATA.item_ids, COLD]), "genre": list(genres)})


@pytest.mark.parametrize(
    "model", [ll.IALS(factors=16), ll.ExADMM(factors=16, exposure_strength=0.3)]
)
@pytest.mark.parametrize("kind", ["random", "constant"])
def test_features_that_say_nothing_take_hardly_any_place(model, kind):
    n = DATA.n_items + len(COLD)
    genres = DRAW.choice(list("abc"), n) if kind == "random" else ["a"] * n
    found = model.fit(DATA, item_features=table(genres)).cold_exposure()
    assert found.items == len(COLD)
    assert found.share < 0.01


def test_features_that_tell_items_apart_show_new_ones():
    V = ll.IALS(factors=16).fit(DATA.matrix).item_factors
    warm = DATA.matrix.tolil()
    warm[:, 5::10] = 0
    found = ll.IALS(factors=16).fit(warm.tocsr(), item_features=V).cold_exposure()
    assert found.items == 15
    # They are a tenth of all items.
    assert 0.02 < found.share < 0.2


def test_no_cold_item_has_no_exposure():
    assert ll.IALS(factors=8, epochs=2).fit(DATA).cold_exposure() == (0, 0.0)


def test_features_of_few_items_are_refused_or_said():
    few = pa.table({"item_id": DATA.item_ids[:30], "genre": ["a", "b", "c"] * 10})
    model = ll.IALS(factors=8, epochs=2)
    with pytest.raises(DataError, match=r"too few items .* have features: 9 of 150") as error:
        model.fit(DATA, item_features=few.slice(0, 9))
    assert "10 are the least" in error.value.hint
    with pytest.warns(LimelightWarning, match="only 30 of 150 items with interactions have"):
        model.fit(DATA, item_features=few)
