"""Wishes: which measures meet them, what they cost, and which strengths a search tries."""

import pytest

from limelight._base.errors import ConfigError
from limelight.rerank.targets.controls import Control
from limelight.rerank.targets.search import (
    MET_WITHIN,
    Goal,
    JointGoal,
    Measure,
    OutOfReachError,
    Trial,
    as_goal,
    as_goals,
    meet,
)


class Curve(Control):
    """A control whose measures are known; remembers which strengths were tried."""

    def __init__(self, measure, most=100.0):
        self._measure, self.most, self.tried = measure, most, []

    def try_at(self, strength):
        self.tried.append(strength)
        return Trial(strength, self._measure(strength))


def falling(strength):
    """Gini from 0.9 to 0.1, coverage from 0.3 to 1, loss from 0 to 0.5."""
    share = strength / (1 + strength)
    return Measure(0.9 - 0.8 * share, 0.3 + 0.7 * share, 0.5 * share**2)


LOSS = Goal("max_ndcg_loss", 0.02)


@pytest.mark.parametrize(
    ("loss", "met"), [(-0.3, True), (0.0, True), (0.0025, True), (0.02, True), (0.0225, False)]
)
def test_a_loss_is_a_bound(loss, met):
    measure = Measure(0.8, 0.5, loss)
    assert LOSS.is_met(measure) is met
    assert bool(LOSS.notes(measure)) is not met
    assert (LOSS.cost(measure)[0] == 0) is met


def test_of_two_within_a_loss_the_more_even_one_is_better():
    even, less = Measure(0.8015, 0.5, 0.0025), Measure(0.839, 0.5, 0.0193)
    assert LOSS.cost(even) < LOSS.cost(less)
    beyond = Measure(0.5, 0.9, 0.03)
    assert LOSS.cost(less) < LOSS.cost(beyond)


@pytest.mark.parametrize(
    ("gini", "met"), [(0.3, True), (0.6, True), (0.6 + MET_WITHIN, True), (0.6101, False)]
)
def test_a_gini_index_is_met_from_above(gini, met):
    assert Goal("gini", 0.6).is_met(Measure(gini, 0.5, 0.0)) is met


def test_coverage_is_met_from_below():
    goal = Goal("min_coverage", 0.5)
    assert goal.is_met(Measure(0.9, 0.5, 0.0))
    assert goal.is_met(Measure(0.9, 0.9, 0.0))
    assert not goal.is_met(Measure(0.9, 0.48, 0.0))
    assert not goal.ends_search(Measure(0.9, 0.499, 0.0))


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan"), "x"])
def test_what_is_no_share(bad):
    with pytest.raises(ConfigError):
        as_goals(gini=bad)


def test_one_wish_or_several():
    assert as_goals(gini=None, max_ndcg_loss=None) == []
    assert [goal.kind for goal in as_goals(gini=0.5, max_ndcg_loss=0.1)] == [
        "gini", "max_ndcg_loss"
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="give one target, not 2: gini, min_coverage"):
        as_goal(gini=0.5, min_coverage=0.1)


@pytest.mark.parametrize(
    ("goal", "of"),
    [
        (Goal("gini", 0.6), lambda measure: measure.gini),
        (Goal("min_coverage", 0.6), lambda measure: measure.coverage),
    ],
    ids=["gini", "coverage"],
)
def test_a_search_comes_near(goal, of):
    found = meet(Curve(falling), goal)
    assert of(found.measure) == pytest.approx(0.6, abs=0.02)
    assert goal.is_met(found.measure)


def test_a_search_of_a_loss_spends_it_and_not_more():
    found = meet(Curve(falling), LOSS)
    assert 0.015 < found.measure.loss <= 0.02


def test_a_search_of_a_loss_takes_the_most_even_within_it():
    def wavy(strength):
        """Loses too much in the middle, and little at the strong end."""
        loss = {0.0: 0.0, 0.1: 0.05}.get(strength, 0.001 if strength >= 50 else 0.019)
        return Measure(0.9 - 0.008 * strength, 0.5, loss)

    control = Curve(wavy)
    found = meet(control, LOSS, first=100.0)
    assert (found.strength, found.measure.loss) == (100.0, 0.001)
    tried = {strength: wavy(strength) for strength in control.tried}
    best = min((m for m in tried.values() if LOSS.is_met(m)), key=lambda m: m.gini)
    assert found.measure == best


@pytest.mark.parametrize("first", [0.1, 99.0, 100.0, 1e6])
def test_the_largest_strength_is_tried_once(first):
    control = Curve(lambda strength: Measure(0.9 - strength / 1000, 0.5, 0.0))
    found = meet(control, LOSS, first=first)
    assert found.strength == 100.0
    assert control.tried.count(100.0) == 1
    assert len(control.tried) == len(set(control.tried))


def test_no_strength_is_tried_where_own_lists_do():
    control = Curve(falling)
    assert meet(control, Goal("gini", 0.95)).strength == 0
    assert control.tried == [0]


def test_out_of_reach_gives_the_nearest():
    with pytest.raises(OutOfReachError, match=r"out of reach: a Gini index of 0\.05") as error:
        meet(Curve(falling), Goal("gini", 0.05))
    assert error.value.nearest.strength == 100.0


def both(*goals):
    return JointGoal.of([Goal(*goal) for goal in goals])


JOINT = both(("max_ndcg_loss", 0.1), ("gini", 0.6), ("min_coverage", 0.5))


def test_several_wishes_hold_together():
    assert JOINT.is_met(Measure(0.6, 0.5, 0.1))
    for missed in (Measure(0.7, 0.5, 0.1), Measure(0.6, 0.4, 0.1), Measure(0.6, 0.5, 0.2)):
        assert not JOINT.is_met(missed)
        [note] = JOINT.notes(missed)
        assert note.startswith("Not all targets can be met together: ")
    assert "a loss of nDCG of 10 % stands in the way beside a Gini index of 0.6" in note
    assert JOINT.notes(Measure(0.5, 0.9, 0.0)) == ()
    assert str(JOINT) == ("a Gini index of 0.6 and a coverage of 50 % and a loss of nDCG of 10 %")


def test_a_search_follows_the_wish_for_exposure_that_lacks_most():
    assert not JOINT.is_loss
    assert JOINT.lack(Measure(0.61, 0.2, 0.0)) == pytest.approx(0.3)
    assert JOINT.lack(Measure(0.8, 0.49, 0.0)) == pytest.approx(0.2)
    assert JOINT.for_exposure().asked == {"gini": 0.6, "min_coverage": 0.5}
    found = meet(Curve(falling), both(("gini", 0.6), ("max_ndcg_loss", 0.5)))
    assert found.measure.gini == pytest.approx(0.6, abs=0.01)


def test_where_a_loss_is_missed_the_one_that_loses_less_is_nearer():
    """Both have the Gini index that was asked for, one by a hair nearer."""
    goal = both(("gini", 0.1), ("max_ndcg_loss", 0.02))
    cheap, dear = Measure(0.0969, 1.0, 0.3854), Measure(0.1010, 1.0, 0.5839)
    assert goal.cost(cheap) < goal.cost(dear)


def test_meeting_all_wishes_is_better_than_meeting_some():
    goal = both(("gini", 0.5), ("max_ndcg_loss", 0.05))
    assert goal.cost(Measure(0.509, 0.5, 0.04)) < goal.cost(Measure(0.5, 0.5, 0.2))
