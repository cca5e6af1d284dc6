"""How evenly groups share exposure, and the items within each, by hand and by the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from limelight._base.errors import DataError
from limelight.data.groups import Groups
from limelight.metrics.exposure import gini, mmf
from limelight.metrics.groups import group_figures, group_rows, within_gini


def groups_of(numbers, weights=None):
    numbers = np.asarray(numbers)
    weights = np.ones(len(numbers)) if weights is None else np.asarray(weights)
    names = [f"g{n}" for n in range(numbers.max() + 1)]
    return Groups(np.arange(len(numbers)), numbers, weights, names, 0)


def test_mmf_is_the_share_of_the_poorer_half():
    assert mmf([5, 1, 3, 1]) == pytest.approx(0.2)
    assert mmf([6, 1, 3]) == pytest.approx(0.1)  # one of three
    assert mmf([2, 2, 2, 2]) == 0.5
    assert mmf([7]) == 0


def test_mmf_of_nothing_is_refused():
    with pytest.raises(DataError, match="no exposure at all"):
        mmf([0, 0])


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=15
    ),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
@examples(60)
def test_the_index_within_groups_is_their_mean(rows, weights):
    numbers, exposure, shares = (np.array(column, float) for column in zip(*rows, strict=True))
    members = groups_of(numbers.astype(int), shares)
    weights = np.array(weights[: len(members.group_ids)], float)
    expected, total = 0.0, 0.0
    for group, weight in enumerate(weights):
        amounts = (shares * exposure)[numbers == group]
        if len(amounts) > 1:
            total += weight
            expected += weight * (gini(amounts) if amounts.sum() else 0.0)
    found = within_gini(members, exposure, weights)
    assert found == pytest.approx(expected / total if total else 0.0, abs=1e-9)


def test_moving_exposure_from_group_to_group_leaves_the_index_within():
    members = groups_of([0, 0, 1, 1])
    found = group_figures(members, np.array([9.0, 3, 1, 1]), np.array([6.0, 2, 3, 3]), k=7)
    assert found["groups"] == 2
    assert found["group_gini@7"] < found["group_gini@7_before"]
    assert found["gini_within_groups@7"] == pytest.approx(found["gini_within_groups@7_before"])


def test_without_groups_there_is_nothing_to_write():
    assert group_rows({}, 0, 5) == []
