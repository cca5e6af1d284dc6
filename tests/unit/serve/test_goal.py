"""What a service is asked to hold, and wishes that make no sense."""

from __future__ import annotations

import pytest

from limelight._base.errors import ConfigError
from limelight.serve.targets.goal import ServedGoal

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"gini": 0.6}, "a Gini index of 0.6"),
        ({"min_coverage": 0.5}, "a coverage of 50 %"),
        ({"group_floor": 0.01}, "no group below 1 %"),
        ({"group_cap": {"a": 0.2}}, "no group above its own"),
        (
            {"gini": 0.6, "max_relevance_loss": 0.02},
            "a Gini index of 0.6 and a loss of relevance of 2 %",
        ),
        ({"gini": 0.6, "group_cap": 0.03}, "a Gini index of 0.6 and no group above 3 %"),
    ],
)
def test_it_says_what_is_asked(asked, words):
    goal = ServedGoal(**asked)
    assert str(goal) == words
    assert goal.asked == asked
    assert goal.has_groups == ("group" in words)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "no target was given: all of them are None"),
        ({"gini": 1.5}, "gini must be from 0 to 1: 1.5"),
        ({"gini": float("nan")}, "gini must be"),
        ({"min_coverage": -0.1}, "min_coverage must be"),
        ({"max_relevance_loss": 2}, "max_relevance_loss must be"),
        ({"group_cap": 3}, "at_most must be"),
        ({"group_floor": -1}, "at_least must be"),
        ({"group_cap": {"a": 7}}, "at_most must be"),
    ],
)
def test_wishes_that_make_no_sense(asked, said):
    with pytest.raises(ConfigError, match=said) as caught:
        ServedGoal(**asked)
    assert caught.value.hint
