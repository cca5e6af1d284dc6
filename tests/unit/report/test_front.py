"""Trade-offs, from points, evaluations and fronts."""

import numpy as np
import pytest

import limelight as ll
from limelight.control.frontier_result import FrontierPoint, PointFigures
from limelight.report.figures.inputs import Point
from limelight.report.figures.style import PALETTE

pytest.importorskip("matplotlib")

WEAK = {"users": 9, "ndcg@5": 0.2, "gini@5": 0.9, "ndcg@20": 0.3, "gini@20": 0.8, "gini@20_low": 0}
STRONG = ll.Evaluation({"users": 9, "ndcg@5": 0.1, "gini@5": 0.7, "ndcg@20": 0.2, "gini@20": 0.6})


def labels(ax):
    return [text.get_text() for text in ax.texts]


def lines(ax):
    return [line.get_xydata().tolist() for line in ax.get_lines()]


def names(ax):
    return ax.get_legend_handles_labels()[1]


def test_one_series_for_each_method():
    points = [Point(0.9, 0.2, "1e-06"), Point(0.8, 0.1, "1e-03")]
    ax = ll.plot.front({"iALS": [Point(0.95, 0.21)], "exADMM": points}, accuracy="nDCG@20")
    baseline, series = ax.get_lines()
    assert lines(ax) == [[[0.95, 0.21]], [[0.9, 0.2], [0.8, 0.1]]]
    assert (baseline.get_color(), series.get_color()) == PALETTE[:2]
    assert labels(ax) == ["1e-06", "1e-03"]
    assert ax.get_ylabel() == "nDCG@20"
    assert ax.get_title(loc="left") == "nDCG@20 against the inequality of exposure"


def test_labels_do_not_cover_each_other():
    crowd = [
        Point(0.9 + shift, 0.2 + shift, f"{number}")
        for number, shift in enumerate([0, 1e-5, 1e-4, 2e-4])
    ]
    ax = ll.plot.front({"exADMM": [*crowd, Point(0.5, 0.1, "far")]})
    assert "far" in labels(ax)
    assert len(labels(ax)) < 5
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_evaluations_are_drawn_at_the_longest_lists_or_at_k():
    ax = ll.plot.front({"iALS": WEAK, "exADMM": [WEAK, STRONG]})
    assert lines(ax) == [[[0.8, 0.3]], [[0.8, 0.3], [0.6, 0.2]]]
    assert (ax.get_ylabel(), names(ax)) == ("nDCG@20", ["iALS", "exADMM"])
    ax = ll.plot.front({"iALS": WEAK, "exADMM": [WEAK, STRONG]}, k=5)
    assert lines(ax) == [[[0.9, 0.2]], [[0.9, 0.2], [0.7, 0.1]]]
    assert ax.get_ylabel() == "nDCG@5"


def test_the_axis_says_of_how_many_lists_the_gini_is():
    nine, warning = Point(0.6, 0.2, users=9), ": part of the difference is their number"
    said = [
        (WEAK, ["over 9 users' lists"]),
        (WEAK | {"items": 4}, ["over 9 users' lists and 4 items"]),
        ([WEAK, nine], ["over 9 users' lists"]),
        ([WEAK, nine._replace(users=90)], [f"over 9 to 90 lists{warning}"]),
        (
            [nine._replace(items=4), nine._replace(items=5)],
            [f"over 9 lists and 4 to 5 items{warning}"],
        ),
        ([nine, nine._replace(gini=0.5)], ["over 9 users' lists"]),
        (Point(0.6, 0.2), []),
    ]
    for given, over in said:
        label, *found = ll.plot.front(given).get_xlabel().splitlines()
        assert (label, found) == ("Gini of exposure (further left: shared more evenly)", over)


def test_points_and_evaluations_without_a_name():
    for given in (STRONG, [STRONG], dict(STRONG), Point(0.6, 0.2), [Point(0.6, 0.2)]):
        ax = ll.plot.front(given)
        assert lines(ax) == [[[0.6, 0.2]]]
        assert ax.get_legend() is None


def test_a_front_is_drawn_for_test_users_where_validation_users_put_it():
    def point(method, strength, gini, ndcg, *, on_front):
        seen, test = PointFigures(0, 0, 0, 0, 0), PointFigures(ndcg, 0, 1, gini, 0.5)
        return FrontierPoint(method, 0, strength, seen, test, 1.0, 1.0, 1, on_front)

    front = ll.Frontier(
        (
            point("exadmm", 0.0, 0.9, 0.3, on_front=True),
            point("exadmm", 0.1, 0.7, 0.2, on_front=True),
            point("exadmm", 0.2, 0.8, 0.1, on_front=False),
            point("online", 0.0, 0.9, 0.3, on_front=True),
        ),
        at=10,
    )
    ax = ll.plot.front(front)
    assert lines(ax) == [[[0.9, 0.3]], [[0.9, 0.3], [0.7, 0.2]], [[0.9, 0.3]]]
    assert names(ax) == ["no control", "exadmm", "online"]
    assert (labels(ax), ax.get_ylabel()) == (["0.1"], "nDCG@10")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "no points to draw"),
        ({"iALS": []}, "no points to draw"),
        (ll.Frontier((), at=5), "no points to draw"),
        ({"iALS": [(0.9, 0.2)]}, "not a point of a trade-off"),
        ({"iALS": {"recall@5": 0.2}}, "not a point of a trade-off"),
        ([0.9, 0.2], "not a point of a trade-off"),
        ({"iALS": {"gini@5": 0.2}}, "not all evaluations have ndcg@k and gini@k for any k"),
        ([WEAK, {"ndcg@10": 0.2, "gini@10": 0.3}], "for any k"),
        (None, "not points of a trade-off: None"),
        ({"iALS": 0.3}, "not points of a trade-off: 0.3"),
    ],
)
def test_what_cannot_be_drawn(wrong, message):
    with pytest.raises(ll.DataError, match=message):
        ll.plot.front(wrong)


def test_a_k_that_nobody_measured():
    with pytest.raises(ll.DataError, match="for k = 7") as caught:
        ll.plot.front([WEAK, STRONG], k=7)
    assert caught.value.hint == "all have: 5, 20"


def test_numbers_of_numpy_are_points_too():
    evaluation = {"ndcg@5": np.float32(0.25), "gini@5": np.float64(0.5)}
    assert lines(ll.plot.front(evaluation)) == [[[0.5, 0.25]]]
