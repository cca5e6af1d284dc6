"""The Ginis of other libraries, on the vector of the published table."""

import numpy as np
import pyarrow as pa
import pytest

from limelight.audit.audit import audit
from limelight.metrics.conventions import (
    elliot_gini,
    evidently_gini,
    holisticai_gini,
    recbole_gini,
)
from limelight.metrics.exposure import gini

TOY = [0, 0, 0, 0, 1, 2, 3, 4, 10, 20]


def divided_by_n_minus_1(values):
    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    return ((2 * np.arange(1, n + 1) - n - 1) @ ordered) / ((n - 1) * ordered.sum())


def test_the_published_table():
    ours = gini(TOY)
    assert round(recbole_gini(ours), 3) == 0.700
    assert round(holisticai_gini(ours, 10), 3) == 0.778
    assert round(elliot_gini(ours, 10), 3) == 0.222
    assert round(evidently_gini(ours, 10, 6), 3) == 0.600


@pytest.mark.parametrize("seed", range(5))
def test_conversions_equal_the_definitions(seed):
    counts = np.random.default_rng(seed).poisson(1.5, 50)
    ours, shown = gini(counts), counts[counts > 0]
    assert holisticai_gini(ours, 50) == pytest.approx(divided_by_n_minus_1(counts))
    assert elliot_gini(ours, 50) == pytest.approx(1 - divided_by_n_minus_1(counts))
    assert evidently_gini(ours, 50, len(shown)) == pytest.approx(divided_by_n_minus_1(shown))


def test_a_single_item():
    assert holisticai_gini(0.0, 1) == 0
    assert evidently_gini(0.9, 10, 1) == 0


def test_audit_of_the_toy_vector():
    items = np.repeat(np.arange(10), TOY)
    table = {"user_id": np.arange(len(items)), "item_id": items, "rank": np.ones(len(items), int)}
    found = audit(pa.table(table), catalogue=range(10)).to_dict()["conventions"]
    assert {library: round(figure, 3) for library, figure in found.items()} == {
        "recbole": 0.7,
        "lenskit_list_gini": 0.7,
        "lenskit_exposure_gini": 0.7,
        "holisticai": 0.778,
        "elliot": 0.222,
        "evidently": 0.6,
    }


def test_lenskit_weights_ranks_geometrically():
    lists = pa.table({"user_id": [1, 1, 1], "item_id": [0, 1, 2], "rank": [1, 2, 3]})
    found = audit(lists, catalogue=range(4)).conventions
    assert found["lenskit_exposure_gini"] == pytest.approx(gini([1, 0.85, 0.85**2, 0]))
