"""Exposure against merit: numbers by hand, and items without merit."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from limelight._base.errors import DataError
from limelight.audit.audit import audit
from limelight.metrics.exposure import gini
from limelight.metrics.merit import (
    merit_correlation,
    merit_distance,
    merit_gini,
    merit_lorenz,
    merit_ratio,
)

LISTS = pa.table({"user_id": [1, 2, 3, 4], "item_id": ["a", "a", "a", "c"], "rank": [1, 1, 1, 1]})
CHOSEN = pa.table({"user_id": [1, 2, 2, 3], "item_id": ["a", "b", "b", "b"]})


def naive(exposure, merit):
    o, m = np.asarray(exposure, float), np.asarray(merit, float)
    return np.abs(np.outer(o, m) - np.outer(m, o)).sum() / (2 * o.sum() * m.sum())


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=20).filter(
        lambda pairs: any(o for o, _ in pairs) and any(m for _, m in pairs)
    )
)
def test_gini_against_merit_is_the_sum_over_all_pairs(pairs):
    exposure, merit = np.array(pairs).T
    assert merit_gini(exposure, merit) == pytest.approx(naive(exposure, merit), abs=1e-12)
    assert 0 <= merit_distance(exposure, merit) <= merit_gini(exposure, merit) + 1e-12
    across, up = merit_lorenz(exposure, merit)
    assert (up <= across + 1e-12).all()


def test_equal_merit_is_the_usual_gini():
    exposure = [0, 0, 0, 0, 1, 2, 3, 4, 10, 20]
    assert merit_gini(exposure, np.full(10, 3)) == pytest.approx(gini(exposure), abs=1e-12)


def test_proportional_exposure_is_merited():
    assert merit_gini([2, 0, 6], [1, 0, 3]) == pytest.approx(0, abs=1e-15)
    assert merit_distance([2, 0, 6], [1, 0, 3]) == 0
    assert merit_ratio([2, 0, 6], [1, 0, 3])[[0, 2]].tolist() == [1, 1]


def test_exposure_without_merit_is_all_wrong():
    assert merit_gini([0, 4], [3, 0]) == 1
    assert merit_distance([0, 4], [3, 0]) == 1


def test_correlation_is_spearmans():
    generator = np.random.default_rng(0)
    exposure, merit = generator.integers(0, 5, (2, 40))
    assert merit_correlation(exposure, merit) == pytest.approx(spearmanr(exposure, merit)[0])
    assert merit_correlation([1, 2], [3, 3]) == 0


@pytest.mark.parametrize(
    ("merit", "message"),
    [
        ([1, 2], r"one number per item each, got shapes \(3,\) and \(2,\)"),
        ([1, -1, 2], "merit must be finite, never negative"),
        ([0, 0, 0], "above 0 somewhere"),
    ],
)
def test_merit_that_cannot_be(merit, message):
    with pytest.raises(DataError, match=message):
        merit_gini([1, 2, 3], merit)


def test_audit_by_hand():
    result = audit(LISTS, catalogue=["a", "b", "c", "d"], merit=CHOSEN)
    exposure, merit = [3, 0, 1, 0], [1, 2, 0, 0]
    assert result.metrics["merit_gini@1"] == pytest.approx(naive(exposure, merit))
    assert result.metrics["merit_distance@1"] == pytest.approx(2 / 3)
    assert result.metrics["merit_spearman@1"] == pytest.approx(spearmanr(exposure, merit)[0])
    assert result.metrics["merit_none_share@1"] == 0.25
    assert result.merit.without_merit == 2
    assert [item.item_id for item in result.merit.over_exposed] == ["a", "c"]
    assert [item.item_id for item in result.merit.under_exposed] == ["b"]
    assert result.merit.over_exposed[0].ratio == pytest.approx(0.75 * 3)
    assert result.merit.over_exposed[1].ratio is None
    assert result.to_dict()["under_exposed"][0]["merit_share"] == pytest.approx(2 / 3)
    assert "2 of 4 items have no merit" in str(result)
    assert result.bounds["merit_gini@1_low"] < result.metrics["merit_gini@1"]


def test_merit_of_other_items_is_ignored_and_said():
    result = audit(LISTS, merit=CHOSEN)
    assert any("ignored: 2 rows" in note for note in result.notes)
    strange = pa.table({"user_id": [1], "item_id": ["zzz"]})
    with pytest.raises(DataError, match=r"no item of the frame is in the catalogue, e\.g\. 'zzz'"):
        audit(LISTS, merit=strange)


def test_merit_needs_users_and_items():
    with pytest.raises(DataError, match="no user column in the frame: item"):
        audit(LISTS, merit=pa.table({"item": ["a"]}))
    other_names = CHOSEN.rename_columns(["userId", "movieId"])
    assert audit(LISTS, merit=other_names) == audit(LISTS, merit=CHOSEN)
